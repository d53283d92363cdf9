// DeformConv: a convolution whose taps are read at o * stride - pad + k * dilation + offset[n, offset group,
// k, o], interpolated linearly between the neighbouring elements (those outside the input count as 0) and
// multiplied by mask[n, offset group, k, o]. Both versions mean the same.
#include <cmath>

#include "base/checked.h"
#include "ops/conv.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) return ctx.set_output(0, ctx.dtype(0), std::nullopt);
  const Dims& x = ctx.shape(0);
  if (x.size() < 3)
    ctx.fail("input X has rank " + std::to_string(x.size()) +
             ", needs N, C and at least one spatial dimension");
  const int64_t group = ctx.node().get_int("group", 1), offsets = ctx.node().get_int("offset_group", 1);
  if (group < 1) ctx.fail("attribute 'group' is " + std::to_string(group) + ", must be at least 1");
  if (offsets < 1)
    ctx.fail("attribute 'offset_group' is " + std::to_string(offsets) + ", must be at least 1");
  std::optional<std::vector<int64_t>> kernel;
  if (ctx.has_shape(1)) {
    if (ctx.shape(1).size() != x.size())
      ctx.fail("weights W " + ctx.input(1).text() + " do not fit X " + ctx.input(0).text());
    kernel = ir::const_dims(Dims(ctx.shape(1).begin() + 2, ctx.shape(1).end()));
  }
  if (!kernel) {
    Dims out = {x[0], ctx.has_shape(1) ? ctx.shape(1)[0] : ctx.fresh_symbol()};
    while (out.size() < x.size()) out.push_back(ctx.fresh_symbol());
    return ctx.set_output(0, ctx.dtype(0), out);
  }
  const Window w = read_window(ctx.node().attrs, static_cast<int>(x.size()) - 2, *kernel, failer(ctx));
  ctx.set_output(0, ctx.dtype(0), window_dims(w, x, ctx.shape(1)[0]));
}

/// Where the taps of every output position are read.
class Sampler {
 public:
  Sampler(const Window& w, const Shape& x, const Shape& y, const Tensor& offset, const Tensor* mask,
          int64_t groups)
      : window_(w), in_(spatial(x)), out_(spatial(y)), offset_(offset), mask_(mask), groups_(groups) {
    for (const int64_t k : w.kernel) taps_ = checked_mul(taps_, k);
    for (const int64_t o : out_) positions_ = checked_mul(positions_, o);
    for (const int64_t i : in_) plane_ = checked_mul(plane_, i);
  }
  int64_t taps() const { return taps_; }
  int64_t positions() const { return positions_; }
  int64_t plane() const { return plane_; }
  int64_t corners() const { return int64_t{1} << in_.size(); }

  /// Offsets (-1 outside) and weights of the corners round one sample.
  void corners_of(int64_t n, int64_t group, int64_t tap, int64_t position, int64_t* at,
                  double* weight) const {
    const auto rank = static_cast<int64_t>(in_.size());
    double fraction[kMaxRank];
    int64_t low[kMaxRank];
    int64_t rest_p = position, rest_t = tap;
    for (int64_t d = rank - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      const int64_t o = rest_p % out_[i], k = rest_t % window_.kernel[i];
      rest_p /= out_[i];
      rest_t /= window_.kernel[i];
      const double moved =
          offset_.at((((n * groups_ + group) * taps_ + tap) * rank + d) * positions_ + position);
      const double c =
          static_cast<double>(o * window_.strides[i] - window_.pad_begin[i] + k * window_.dilations[i]) +
          moved;
      // Far outside, and NaN: no corner lies in the input.
      const bool near = c > -1 && c < static_cast<double>(in_[i]);
      low[d] = near ? static_cast<int64_t>(std::floor(c)) : -2;
      fraction[d] = near ? c - std::floor(c) : 0;
    }
    const double scale =
        mask_ != nullptr ? mask_->at(((n * groups_ + group) * taps_ + tap) * positions_ + position) : 1.0;
    for (int64_t corner = 0; corner < corners(); ++corner) {
      int64_t offset = 0;
      double w = scale;
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t up = corner >> d & 1, c = low[d] + up;
        const int64_t size = in_[static_cast<size_t>(d)];
        if (c < 0 || c >= size) offset = -1;
        if (offset >= 0) offset = offset * size + c;
        w *= up != 0 ? fraction[d] : 1 - fraction[d];
      }
      at[corner] = offset;
      weight[corner] = w;
    }
  }
  static constexpr int64_t kMaxRank = 8;

 private:
  const Window& window_;
  std::vector<int64_t> in_, out_;
  const Tensor& offset_;
  const Tensor* mask_;
  int64_t groups_, taps_ = 1, positions_ = 1, plane_ = 1;
};

template <class T>
void run(KernelContext& ctx, const Sampler& sampler, int64_t offset_groups, Tensor* out) {
  const Tensor &x = ctx.in(0), &weights = ctx.in(1);
  const int64_t group = ctx.get_int("group", 1), channels = weights.dim(1), m = weights.dim(0) / group,
                all = x.dim(1), per_offset = all / offset_groups;
  const std::vector<double> bias = ctx.has_input(3)
                                       ? to_doubles(ctx.in(3))
                                       : std::vector<double>(static_cast<size_t>(weights.dim(0)), 0.0);
  const int64_t taps = sampler.taps(), corners = sampler.corners(), n = sampler.positions();
  RefGemm g;
  g.batch = x.dim(0) * group;
  g.m = m;
  g.n = n;
  g.k = channels * taps;
  const int64_t k = g.k;
  g.pack_a = [&, k](int64_t b, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width) {
    pack_strided(weights.data<T>() + (b % group * m + i0) * k + p0, 1, k, rows, kc, dst, width);
  };
  g.pack_b = [&](int64_t b, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst, int64_t width) {
    std::vector<int64_t> at(static_cast<size_t>(corners));
    std::vector<double> weight(static_cast<size_t>(corners));
    const int64_t image = b / group;
    for (int64_t p = 0; p < kc; ++p) {
      const int64_t channel = b % group * channels + (p0 + p) / taps, tap = (p0 + p) % taps;
      const T* plane = x.data<T>() + (image * all + channel) * sampler.plane();
      for (int64_t c = 0; c < width; ++c) {
        double v = 0;
        if (c < cols) {
          sampler.corners_of(image, channel / per_offset, tap, j0 + c, at.data(), weight.data());
          for (size_t e = 0; e < at.size(); ++e) {
            if (at[e] >= 0) v += weight[e] * static_cast<double>(plane[at[e]]);
          }
        }
        dst[p * width + c] = v;
      }
    }
  };
  g.store = [&, n](int64_t b, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc,
                   int64_t ld) {
    for (int64_t r = 0; r < rows; ++r) {
      T* y = out->data<T>() + (b * m + i0 + r) * n + j0;
      for (int64_t c = 0; c < cols; ++c)
        y[c] = static_cast<T>(acc[r * ld + c] + bias[static_cast<size_t>(b % group * m + i0 + r)]);
    }
  };
  ref_gemm(g);
}

void kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &weights = ctx.in(1), &offset = ctx.in(2);
  const Fail fail = failer(ctx);
  const int64_t group = ctx.get_int("group", 1), groups = ctx.get_int("offset_group", 1);
  if (group < 1 || x.rank() < 3 || x.rank() - 2 > Sampler::kMaxRank || weights.rank() != x.rank() ||
      x.dim(1) != weights.dim(1) * group || weights.dim(0) % group != 0) {
    ctx.fail("attribute 'group': X " + x.type_text() + " and W " + weights.type_text() + " do not fit");
  }
  if (groups < 1 || x.dim(1) % groups != 0)
    ctx.fail("attribute 'offset_group' is " + std::to_string(groups) + " for " + std::to_string(x.dim(1)) +
             " channels");
  if (ctx.has_input(3) && ctx.in(3).shape() != Shape{weights.dim(0)})
    ctx.fail("bias " + ctx.in(3).type_text() + " is not one value for each output channel");
  const Window w = read_window(ctx.attrs, x.rank() - 2, spatial(weights.shape()), fail);
  const Shape shape = window_shape(w, x.shape(), weights.dim(0), fail);
  const Tensor* mask = ctx.has_input(4) ? &ctx.in(4) : nullptr;
  const Sampler sampler(w, x.shape(), shape, offset, mask, groups);
  Shape want = shape;
  want[1] = groups * sampler.taps() * w.rank();
  if (offset.shape() != want)
    ctx.fail("offset " + offset.type_text() + " must be " + type_text(offset.dtype(), want));
  want[1] = groups * sampler.taps();
  if (mask != nullptr && mask->shape() != want)
    ctx.fail("mask " + mask->type_text() + " must be " + type_text(mask->dtype(), want));
  Tensor& out = ctx.out(0, shape);
  float_or_throw(ctx, x.dtype(),
                 [&](auto tag) { run<typename decltype(tag)::type>(ctx, sampler, groups, &out); });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost c;
  if (inputs.size() < 2 || inputs[1].empty() || outputs.empty()) return c;
  double per_output = 2;
  for (size_t d = 1; d < inputs[1].size(); ++d) per_output *= static_cast<double>(inputs[1][d]);
  c.flops = per_output * static_cast<double>(numel(outputs[0]));
  return c;
}

}  // namespace

const OpDef& op_DeformConv() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "DeformConv";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
