#include "backends/cpu/kernels/depthwise.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/isa_pick.h"
#include "backends/cpu/simd.h"
#include "base/thread_pool.h"

#define HONE_ISA_INL "backends/cpu/kernels/depthwise.inl"
#include "base/isa_foreach.h"

namespace hone::cpu {
namespace {

constexpr int64_t kChannelRun = 16;  // channels are cut at multiples of the widest vector
constexpr int64_t kLeastChannels = 96;
constexpr int64_t kMostLines = 64;  // kernel lines whose pointers fit the stack table

}  // namespace

namespace {

// Calls f(offset in ONNX weights, offset in packed weights) for every weight.
template <typename F>
void for_each_weight(const ConvShape& s, F&& f) {
  const int64_t taps = s.taps(), group = s.ic / s.groups;
  for (int64_t c = 0; c < s.oc; ++c)
    for (int64_t i = 0; i < group; ++i)
      for (int64_t t = 0; t < taps; ++t) f((c * group + i) * taps + t, (t * group + i) * s.oc + c);
}

}  // namespace

void pack_depthwise_weights(const ConvShape& s, const float* weights, float* packed) {
  for_each_weight(s, [&](int64_t from, int64_t to) { packed[to] = weights[from]; });
}

void unpack_depthwise_weights(const ConvShape& s, const float* packed, float* weights) {
  for_each_weight(s, [&](int64_t from, int64_t to) { weights[from] = packed[to]; });
}

bool Depthwise::takes(Isa isa, const ConvShape& s) {
  if (s.groups < 1 || s.ic != s.oc || s.ic % s.groups != 0) return false;
  const int64_t group = s.ic / s.groups;
  return group == 1 || ((group == 2 || group == 4 || group == 8) && group <= tile_kernels(isa).width);
}

Depthwise::Depthwise(Isa isa, const ConvShape& shape) : isa_(isa), shape_(shape) {
  ConvShape& s = shape_;
  if (s.src_stride == 0) s.src_stride = s.ic;
  if (s.dst_stride == 0) s.dst_stride = s.oc;
  // A multiply-add here moves about as much memory as it computes: an eighth of a product's speed with the
  // data from the other core.
  const double work = 16.0 * static_cast<double>(s.batch * s.out_pixels()) *
                      static_cast<double>(s.ic * s.taps() * (s.ic / s.groups));
  split_ = split_work(1, s.batch * s.out[0] * s.out[1], ceil_div(s.ic, kChannelRun), work, 1, 0);
}

void Depthwise::run_chunk(const ConvArgs& args, int64_t chunk) const {
  const ConvShape& s = shape_;
  const int64_t row_part = chunk % split_.rows.parts, panel_part = chunk / split_.rows.parts;
  const DepthwiseSpanFn span_fn = HONE_PICK_ISA(isa_, depthwise_span);
  const EpilogueTileFn tile_fn = epilogue_tile_fn(isa_);
  const Epilogue& e = args.epilogue;

  DepthwiseSpan span;
  const int64_t group = s.ic / s.groups;
  span.channels = s.ic;
  span.group = group;
  span.width = s.in[2];
  span.kw = s.kernel[2];
  span.stride = s.stride[2];
  span.dilation = s.dilation[2];
  span.pad = s.pad[2];
  span.src_stride = s.src_stride;
  span.dst_stride = s.dst_stride;
  span.bias = e.bias;
  // What comes after an addition waits for it.
  span.clamp = e.clamp && !e.has_add;
  span.lo = e.lo;
  span.hi = e.hi;
  const EpilogueOp late[] = {EpilogueOp::add(e.add), EpilogueOp::activation(ActKind::kClip, e.lo, e.hi)};
  const int n_late = e.has_add ? (e.clamp ? 2 : 1) : 0;

  const int64_t kernel_lines = s.kernel[0] * s.kernel[1];
  const float* short_table[2 * kMostLines];
  std::vector<const float*> long_table(kernel_lines > kMostLines ? static_cast<size_t>(2 * kernel_lines) : 0);
  const float** lines = kernel_lines > kMostLines ? long_table.data() : short_table;
  const float** weights = lines + kernel_lines;
  span.lines = lines;
  span.weights = weights;

  // A block of channels narrow enough for its input lines to stay in L1 until the next output line reads them
  // again, but wide enough to read memory in pieces of several cache lines.
  const int64_t line_floats = (s.kernel[1] + s.stride[1]) * s.in[2];
  const int64_t fit =
      static_cast<int64_t>(cache_sizes().l1d_bytes) * 3 / 4 / 4 / std::max<int64_t>(1, line_floats);
  const int64_t width = std::max<int64_t>(kLeastChannels, fit / kChannelRun * kChannelRun);
  const int64_t c_end = std::min(s.ic, split_.panels.begin(panel_part + 1) * kChannelRun);
  for (int64_t c = split_.panels.begin(panel_part) * kChannelRun; c < c_end; c += width) {
    span.c0 = c;
    span.c1 = std::min(c_end, c + width);
    for (int64_t line = split_.rows.begin(row_part); line < split_.rows.begin(row_part + 1); ++line) {
      const int64_t oy = line % s.out[1], slice = line / s.out[1];
      const int64_t oz = slice % s.out[0], image = slice / s.out[0];
      span.n_lines = 0;
      for (int64_t z = 0; z < s.kernel[0]; ++z) {
        const int64_t iz = oz * s.stride[0] - s.pad[0] + z * s.dilation[0];
        if (iz < 0 || iz >= s.in[0]) continue;
        for (int64_t y = 0; y < s.kernel[1]; ++y) {
          const int64_t iy = oy * s.stride[1] - s.pad[1] + y * s.dilation[1];
          if (iy < 0 || iy >= s.in[1]) continue;
          lines[span.n_lines] = args.src + ((image * s.in[0] + iz) * s.in[1] + iy) * s.in[2] * s.src_stride;
          weights[span.n_lines] = args.weights + (z * s.kernel[1] + y) * s.kernel[2] * group * s.ic;
          ++span.n_lines;
        }
      }
      // Short spans, so that what the epilogue reads back is still in L1.
      const int64_t step = n_late + e.n_rest > 0 ? 16 : s.out[2];
      span.dst = args.dst + line * s.out[2] * s.dst_stride;
      for (int64_t x = 0; x < s.out[2]; x += step) {
        span.x0 = x;
        span.x1 = std::min(s.out[2], x + step);
        span_fn(span);
        if (n_late + e.n_rest == 0) continue;
        float* dst[16];
        int64_t ids[16];
        const int rows = static_cast<int>(span.x1 - span.x0);
        for (int r = 0; r < rows; ++r) {
          dst[r] = span.dst + (x + r) * s.dst_stride;
          ids[r] = line * s.out[2] + x + r;
        }
        tile_fn(late, n_late, dst, ids, rows, span.c0, span.c1 - span.c0);
        tile_fn(e.rest, e.n_rest, dst, ids, rows, span.c0, span.c1 - span.c0);
      }
    }
  }
}

void Depthwise::run(const ConvArgs& args, ThreadPool& pool, int max_workers) const {
  if (shape_.batch * shape_.out_pixels() * shape_.oc == 0) return;
  pool.parallel_for(
      n_chunks(), [&](int64_t chunk, int) { run_chunk(args, chunk); }, max_workers);
}

}  // namespace hone::cpu
