#include "backends/cpu/kernels/conv.h"

#include <algorithm>

#include "backends/cpu/kernels/pack.h"
#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

// Calls f(offset in ONNX weights, offset in packed weights) for every weight.
template <typename F>
void for_each_weight(Isa isa, const ConvShape& s, F&& f) {
  const int64_t nr = tile_kernels(isa).nr;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups, taps = s.taps();
  const int64_t panel_floats = taps * icg * nr;
  for (int64_t g = 0; g < s.groups; ++g)
    for (int64_t o = 0; o < ocg; ++o) {
      const int64_t panel = (g * ceil_div(ocg, nr) + o / nr) * panel_floats + o % nr;
      const int64_t row = (g * ocg + o) * icg * taps;
      for (int64_t c = 0; c < icg; ++c)
        for (int64_t t = 0; t < taps; ++t) f(row + c * taps + t, panel + (t * icg + c) * nr);
    }
}

}  // namespace

int64_t packed_conv_floats(Isa isa, const ConvShape& s) {
  const int64_t nr = tile_kernels(isa).nr;
  return s.groups * ceil_div(s.oc / s.groups, nr) * nr * s.taps() * (s.ic / s.groups);
}

void pack_conv_weights(Isa isa, const ConvShape& s, const float* weights, float* packed) {
  std::fill_n(packed, packed_conv_floats(isa, s), 0.0F);
  for_each_weight(isa, s, [&](int64_t from, int64_t to) { packed[to] = weights[from]; });
}

void unpack_conv_weights(Isa isa, const ConvShape& s, const float* packed, float* weights) {
  for_each_weight(isa, s, [&](int64_t from, int64_t to) { weights[from] = packed[to]; });
}

bool Conv::takes_planar(const ConvShape& s) {
  // A tap of few channels is too short to pay for its pointers; a kernel row of a padded strip is long
  // enough.
  return s.groups == 1 && s.ic < 16 && s.kernel[2] > 1 && s.dilation[2] == 1;
}

Conv::Conv(Isa isa, const ConvShape& shape) : kernels_(&tile_kernels(isa)), shape_(shape) {
  ConvShape& s = shape_;
  if (s.src_stride == 0) s.src_stride = s.ic;
  if (s.dst_stride == 0) s.dst_stride = s.oc;
  // With few channels a tap is too short to pay for its pointers; a kernel row of a padded strip is long
  // enough.
  strips_ = s.groups == 1 && s.ic < 16 && s.kernel[2] > 1 && s.dilation[2] == 1 && s.out_pixels() > 0;
  if (strips_) {
    plan_strips();
    return;
  }
  PixelPhase phase;
  phase.count = s.out;
  phase.in_step = s.stride;
  for (int64_t z = 0; z < s.kernel[0]; ++z)
    for (int64_t y = 0; y < s.kernel[1]; ++y)
      for (int64_t x = 0; x < s.kernel[2]; ++x)
        phase.taps.push_back(
            {z * s.dilation[0] - s.pad[0], y * s.dilation[1] - s.pad[1], x * s.dilation[2] - s.pad[2]});
  product_ =
      PixelProduct(isa, {s.batch, s.ic, s.oc, s.groups, s.in, s.out, s.src_stride, s.dst_stride, {phase}});
  worker_bytes_ = product_.worker_bytes();
}

struct Conv::Strip {
  const float** sources;
  float** dst;
  int64_t* ids;
  float* strip;
  int64_t bytes;
};

Conv::Strip Conv::carve(void* base) const {
  const ConvShape& s = shape_;
  Carver carver(base);
  Strip out{};
  const int64_t rows = block_lines_ * s.out[2];
  out.sources = carver.take<const float*>(rows * s.kernel[0] * s.kernel[1]);
  out.dst = carver.take<float*>(rows);
  out.ids = carver.take<int64_t>(rows);
  const int64_t lines = (block_lines_ - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
  const int64_t width = (s.out[2] - 1) * s.stride[2] + s.kernel[2];
  out.strip = carver.take<float>(s.kernel[0] * lines * width * s.ic);
  out.bytes = carver.used();
  return out;
}

void Conv::plan_strips() {
  const ConvShape& s = shape_;
  const double flops =
      2.0 * static_cast<double>(s.batch * s.out_pixels()) * static_cast<double>(s.oc * s.ic * s.taps());
  const int64_t a_floats = s.batch * (s.in_pixels() * s.ic + s.out_pixels() * s.oc);
  split_ = split_work(1, s.batch * s.out[0] * s.out[1], ceil_div(s.oc, kernels_->nr), flops, a_floats,
                      s.oc * s.ic * s.taps());
  // As many lines as keep strip, tables and the output tile rows in half of L2.
  const int64_t line_floats = (s.out[2] * s.stride[2] + s.kernel[2]) * s.ic * s.stride[1] * s.kernel[0] +
                              s.out[2] * (2 * s.kernel[0] * s.kernel[1] + 4);
  const int64_t fit = static_cast<int64_t>(cache_sizes().l2_bytes) / 8 / std::max<int64_t>(1, line_floats);
  const int64_t chunk_lines = ceil_div(split_.rows.count, split_.rows.parts);
  block_lines_ = std::clamp<int64_t>(fit, 1, std::max<int64_t>(1, std::min(chunk_lines, s.out[1])));
  worker_bytes_ = carve(nullptr).bytes;
}

void Conv::run_strips(const ConvArgs& args, int64_t chunk, void* memory) const {
  const ConvShape& s = shape_;
  const Strip scratch = carve(memory);
  const int64_t row_part = chunk % split_.rows.parts, panel_part = chunk / split_.rows.parts;
  const int64_t line0 = split_.rows.begin(row_part), line1 = split_.rows.begin(row_part + 1);
  const int64_t width = (s.out[2] - 1) * s.stride[2] + s.kernel[2];  // padded
  const int64_t first_x = -s.pad[2];
  // Of a padded line, [left, right) comes from the input.
  const int64_t left = std::clamp<int64_t>(-first_x, 0, width);
  const int64_t right = std::clamp<int64_t>(s.in[2] - first_x, left, width);
  const TransposeFn interleave = transpose_fn(kernels_->isa);
  RowBlock block;
  block.n_taps = s.kernel[0] * s.kernel[1];
  block.run = s.kernel[2] * s.ic;
  block.sources = scratch.sources;
  block.dst = scratch.dst;
  block.ids = scratch.ids;

  for (int64_t line = line0; line < line1;) {
    const int64_t slice = line / s.out[1], y0 = line % s.out[1];
    const int64_t image = slice / s.out[0], oz = slice % s.out[0];
    const int64_t lines = std::min({block_lines_, s.out[1] - y0, line1 - line});
    const int64_t strip_lines = (lines - 1) * s.stride[1] + (s.kernel[1] - 1) * s.dilation[1] + 1;
    const int64_t line_floats = width * s.ic;

    float* to = scratch.strip;
    for (int64_t z = 0; z < s.kernel[0]; ++z) {
      const int64_t iz = oz * s.stride[0] - s.pad[0] + z * s.dilation[0];
      for (int64_t l = 0; l < strip_lines; ++l, to += line_floats) {
        const int64_t iy = y0 * s.stride[1] - s.pad[1] + l;
        if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1]) {
          std::fill_n(to, line_floats, 0.0F);
          continue;
        }
        std::fill_n(to, left * s.ic, 0.0F);
        const int64_t line_in = iz * s.in[1] + iy, x0 = first_x + left;
        float* first = to + left * s.ic;
        if (s.src_planar) {
          interleave(args.src + image * s.ic * s.in_pixels() + line_in * s.in[2] + x0, s.in_pixels(), s.ic,
                     right - left, first, s.ic);
        } else {
          const float* from =
              args.src + ((image * s.in[0] * s.in[1] + line_in) * s.in[2] + x0) * s.src_stride;
          if (s.src_stride == s.ic)
            std::copy_n(from, (right - left) * s.ic, first);
          else
            for (int64_t x = 0; x < right - left; ++x)
              std::copy_n(from + x * s.src_stride, s.ic, first + x * s.ic);
        }
        std::fill_n(to + right * s.ic, (width - right) * s.ic, 0.0F);
      }
    }

    block.rows = lines * s.out[2];
    const int64_t row0 = line * s.out[2];
    const EvenSplit tiles = block.tiles(kernels_->mr);
    for (int64_t t = 0; t < tiles.parts; ++t) {
      const int64_t r0 = tiles.begin(t), r1 = tiles.begin(t + 1);
      const float** out = scratch.sources + r0 * block.n_taps;
      const float* origin[kMaxTileRows];
      int64_t x = r0 % s.out[2], y_first = r0 / s.out[2];
      for (int64_t r = r0; r < r1; ++r) {
        origin[r - r0] = scratch.strip + y_first * s.stride[1] * line_floats + x * s.stride[2] * s.ic;
        scratch.ids[r] = row0 + r;
        scratch.dst[r] = args.dst + (row0 + r) * s.dst_stride;
        if (++x == s.out[2]) {
          x = 0;
          ++y_first;
        }
      }
      for (int64_t z = 0; z < s.kernel[0]; ++z)
        for (int64_t y = 0; y < s.kernel[1]; ++y)
          for (int64_t r = 0; r < r1 - r0; ++r)
            *out++ = origin[r] + (z * strip_lines + y * s.dilation[1]) * line_floats;
    }
    run_group_panels(*kernels_, block, args, args.weights, 1, s.ic, s.oc, split_.panels.begin(panel_part),
                     split_.panels.begin(panel_part + 1), walk);
    line += lines;
  }
}

void Conv::run_chunk(const ConvArgs& args, int64_t chunk, int worker) const {
  void* scratch = static_cast<char*>(args.workspace) + worker * worker_bytes_;
  if (strips_)
    run_strips(args, chunk, scratch);
  else
    product_.run_chunk(args, chunk, scratch, walk);
}

void Conv::run(const ConvArgs& args, ThreadPool& pool, int max_workers) const {
  if (shape_.batch * shape_.out_pixels() * shape_.oc == 0) return;
  pool.parallel_for(
      n_chunks(), [&](int64_t chunk, int worker) { run_chunk(args, chunk, worker); }, max_workers);
}

}  // namespace hone::cpu
