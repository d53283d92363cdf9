#include "backends/cpu/kernels/deconv.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

struct AxisTap {
  int64_t k;      // position in the kernel
  int64_t shift;  // displacement in the input of the first pixel's tap
};

// The outputs o of one axis with (o + pad) % stride == remainder: first, first + stride, ...; and their taps.
struct AxisPhase {
  int64_t first = 0, count = 0;
  std::vector<AxisTap> taps;
};

std::vector<AxisPhase> axis_phases(const ConvShape& s, size_t d) {
  const int64_t stride = s.stride[d], pad = s.pad[d];
  std::vector<AxisPhase> phases(static_cast<size_t>(stride));
  for (int64_t r = 0; r < stride; ++r) {
    AxisPhase& p = phases[static_cast<size_t>(r)];
    p.first = ((r - pad) % stride + stride) % stride;
    p.count = p.first < s.out[d] ? (s.out[d] - p.first + stride - 1) / stride : 0;
    for (int64_t k = 0; k < s.kernel[d]; ++k) {
      const int64_t to = p.first + pad - k * s.dilation[d];
      if (to % stride == 0) p.taps.push_back({k, to / stride});
    }
  }
  return phases;
}

// Every combination of axis phases, in a fixed order: f(phase of depth, of height, of width).
template <typename F>
void for_each_phase(const ConvShape& s, F&& f) {
  const std::vector<AxisPhase> z = axis_phases(s, 0), y = axis_phases(s, 1), x = axis_phases(s, 2);
  for (const AxisPhase& pz : z)
    for (const AxisPhase& py : y)
      for (const AxisPhase& px : x) f(pz, py, px);
}

int64_t group_floats(Isa isa, const ConvShape& s) {
  const int64_t nr = tile_kernels(isa).nr;
  return s.groups * ceil_div(s.oc / s.groups, nr) * nr * (s.ic / s.groups);
}

// Calls f(offset in ONNX weights, offset in packed weights) for every weight.
template <typename F>
void for_each_weight(Isa isa, const ConvShape& s, F&& f) {
  const int64_t nr = tile_kernels(isa).nr;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups, taps = s.taps();
  int64_t base = 0;
  for_each_phase(s, [&](const AxisPhase& z, const AxisPhase& y, const AxisPhase& x) {
    const auto n_taps = static_cast<int64_t>(z.taps.size() * y.taps.size() * x.taps.size());
    for (int64_t g = 0; g < s.groups; ++g)
      for (int64_t o = 0; o < ocg; ++o) {
        const int64_t panel = base + (g * ceil_div(ocg, nr) + o / nr) * n_taps * icg * nr + o % nr;
        int64_t t = 0;
        for (const AxisTap& tz : z.taps)
          for (const AxisTap& ty : y.taps)
            for (const AxisTap& tx : x.taps) {
              const int64_t k = (tz.k * s.kernel[1] + ty.k) * s.kernel[2] + tx.k;
              for (int64_t c = 0; c < icg; ++c)
                f(((g * icg + c) * ocg + o) * taps + k, panel + (t * icg + c) * nr);
              ++t;
            }
      }
    base += n_taps * group_floats(isa, s);
  });
}

}  // namespace

int64_t packed_deconv_floats(Isa isa, const ConvShape& s) { return s.taps() * group_floats(isa, s); }

void pack_deconv_weights(Isa isa, const ConvShape& s, const float* weights, float* packed) {
  std::fill_n(packed, packed_deconv_floats(isa, s), 0.0F);
  for_each_weight(isa, s, [&](int64_t from, int64_t to) { packed[to] = weights[from]; });
}

void unpack_deconv_weights(Isa isa, const ConvShape& s, const float* packed, float* weights) {
  for_each_weight(isa, s, [&](int64_t from, int64_t to) { weights[from] = packed[to]; });
}

Deconv::Deconv(Isa isa, const ConvShape& s) : empty_(s.batch * s.out_pixels() * s.oc == 0) {
  PixelProductShape shape{s.batch, s.ic, s.oc, s.groups, s.in, s.out, s.src_stride, s.dst_stride, {}};
  if (shape.src_stride == 0) shape.src_stride = s.ic;
  if (shape.dst_stride == 0) shape.dst_stride = s.oc;
  int64_t weights = 0;
  for_each_phase(s, [&](const AxisPhase& z, const AxisPhase& y, const AxisPhase& x) {
    PixelPhase phase;
    phase.count = {z.count, y.count, x.count};
    phase.out_first = {z.first, y.first, x.first};
    phase.out_step = s.stride;
    phase.weights = weights;
    for (const AxisTap& tz : z.taps)
      for (const AxisTap& ty : y.taps)
        for (const AxisTap& tx : x.taps) phase.taps.push_back({tz.shift, ty.shift, tx.shift});
    weights += static_cast<int64_t>(phase.taps.size()) * group_floats(isa, s);
    shape.phases.push_back(std::move(phase));
  });
  product_ = PixelProduct(isa, std::move(shape));
}

void Deconv::run_chunk(const ConvArgs& args, int64_t chunk, int worker) const {
  product_.run_chunk(args, chunk, static_cast<char*>(args.workspace) + worker * product_.worker_bytes(), {});
}

void Deconv::run(const ConvArgs& args, ThreadPool& pool, int max_workers) const {
  if (empty_) return;
  pool.parallel_for(
      n_chunks(), [&](int64_t chunk, int worker) { run_chunk(args, chunk, worker); }, max_workers);
}

}  // namespace hone::cpu
