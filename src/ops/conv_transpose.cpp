// ConvTranspose: Y[n,m,i * stride - pad + k * dilation] += X[n,c,i] * W[c,m,k], by groups, plus B[m]. All
// versions (1, 11, 22) mean the same.
//
// As one matmul over channels, then an addition per tap: element (m, k, i) of the lowered result goes to one
// output. Taps are added in rising order, so zero-stuffed products (which would turn an infinite weight into
// NaN) never arise.
#include <algorithm>

#include "base/checked.h"
#include "ops/conv.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

std::vector<int64_t> optional_ints(const AttrMap& attrs, const char* name, size_t count, const Fail& fail) {
  std::vector<int64_t> v = ir::attr_ints(attrs, name);
  if (!v.empty() && v.size() != count) {
    fail("attribute '" + std::string(name) + "' has " + std::to_string(v.size()) + " values, needs " +
         std::to_string(count));
  }
  for (const int64_t x : v) {
    if (x < 0 || x > (int64_t{1} << 31))
      fail("attribute '" + std::string(name) + "' holds " + std::to_string(x));
  }
  return v;
}

struct Geometry {
  Window window;
  std::vector<int64_t> output_padding, output_shape;

  Geometry(const AttrMap& attrs, int rank, const std::vector<int64_t>& kernel, const Fail& fail)
      : window(read_window(attrs, rank, kernel, fail)) {
    const auto n = static_cast<size_t>(rank);
    output_padding = optional_ints(attrs, "output_padding", n, fail);
    if (output_padding.empty()) output_padding.assign(n, 0);
    // Some exporters repeat N and C in output_shape.
    output_shape = ir::attr_ints(attrs, "output_shape").size() == n + 2
                       ? optional_ints(attrs, "output_shape", n + 2, fail)
                       : optional_ints(attrs, "output_shape", n, fail);
    if (output_shape.size() == n + 2) output_shape.erase(output_shape.begin(), output_shape.begin() + 2);
  }
  bool same() const {
    return window.auto_pad == Window::AutoPad::kSameUpper || window.auto_pad == Window::AutoPad::kSameLower;
  }
  /// stride * (in - 1) + output_padding + extent
  Dim full(int d, const Dim& in) const {
    const auto i = static_cast<size_t>(d);
    return Dim(window.strides[i]) * (in - Dim(1)) + Dim(output_padding[i]) + Dim(window.extent(d));
  }
  Dim out(int d, const Dim& in) const {
    const auto i = static_cast<size_t>(d);
    if (!output_shape.empty()) return {output_shape[i]};
    if (same()) return in * Dim(window.strides[i]);
    return full(d, in) - Dim(window.pad_begin[i]) - Dim(window.pad_end[i]);
  }
  int64_t pad_begin(int d, int64_t in, int64_t out) const {
    if (output_shape.empty() && !same()) return window.pad_begin[static_cast<size_t>(d)];
    const int64_t total = std::max<int64_t>(0, full(d, Dim(in)).value() - out);
    return window.auto_pad == Window::AutoPad::kSameUpper ? total / 2 : total - total / 2;
  }
};

void infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) return ctx.set_output(0, ctx.dtype(0), std::nullopt);
  const Dims& x = ctx.shape(0);
  if (x.size() < 3)
    ctx.fail("input X has rank " + std::to_string(x.size()) +
             ", needs N, C and at least one spatial dimension");
  const int64_t group = ctx.node().get_int("group", 1);
  if (group < 1) ctx.fail("attribute 'group' is " + std::to_string(group) + ", must be at least 1");
  Dims out = {x[0]};
  std::vector<int64_t> kernel = ctx.node().get_ints("kernel_shape");
  if (ctx.has_shape(1)) {
    const Dims& w = ctx.shape(1);
    if (w.size() != x.size())
      ctx.fail("weights W have rank " + std::to_string(w.size()) + ", input X has " +
               std::to_string(x.size()));
    if (x[1].is_const() && w[0].is_const() && x[1].value() != w[0].value())
      ctx.fail("input has " + x[1].text() + " channels, weights take " + w[0].text());
    if (w[0].is_const() && w[0].value() % group != 0)
      ctx.fail("attribute 'group' does not divide the " + w[0].text() + " input channels");
    out.push_back(w[1] * Dim(group));
    if (const auto dims = ir::const_dims(Dims(w.begin() + 2, w.end()))) {
      if (!kernel.empty() && kernel != *dims)
        ctx.fail("attribute 'kernel_shape' differs from the shape of the weights");
      kernel = *dims;
    }
  } else {
    out.push_back(ctx.fresh_symbol());
  }
  const auto rank = static_cast<int>(x.size()) - 2;
  if (kernel.empty()) {
    for (int d = 0; d < rank; ++d) out.push_back(ctx.fresh_symbol());
    return ctx.set_output(0, ctx.dtype(0), out);
  }
  const Geometry g(ctx.node().attrs, rank, kernel, failer(ctx));
  for (int d = 0; d < rank; ++d) {
    Dim o = g.out(d, x[static_cast<size_t>(d) + 2]);
    if (o.is_const() && o.value() < 0)
      ctx.fail("attribute 'pads' removes more than the output has (spatial dimension " + std::to_string(d) +
               ")");
    out.push_back(std::move(o));
  }
  ctx.set_output(0, ctx.dtype(0), out);
}

constexpr int64_t kMaxLoweredBytes = 64 << 20;

/// Where the lowered element (tap, input position) goes, or -1: as a walk from output to input it is the
/// window of a convolution.
template <class T>
void run(KernelContext& ctx, const Geometry& geometry, Tensor* out) {
  const Tensor &x = ctx.in(0), &weights = ctx.in(1);
  const Window& w = geometry.window;
  const int rank = w.rank();
  const int64_t group = ctx.get_int("group", 1), per_group_in = x.dim(1) / group,
                per_group_out = weights.dim(1);
  std::vector<int64_t> pads;
  for (int d = 0; d < rank; ++d) pads.push_back(geometry.pad_begin(d, x.dim(d + 2), out->dim(d + 2)));
  // The transposed walk: windows over the output, one for each input position.
  const WindowWalk walk(w, spatial(out->shape()), spatial(x.shape()), pads);
  const int64_t taps = walk.taps(), n = walk.positions(), plane = walk.plane();
  const std::vector<double> bias =
      ctx.has_input(2) ? to_doubles(ctx.in(2)) : std::vector<double>(static_cast<size_t>(out->dim(1)), 0.0);
  const T* xp = x.data<T>();
  const T* wp = weights.data<T>();
  T* yp = out->data<T>();
  if (out->numel() == 0) return;

  const int64_t block = std::clamp<int64_t>(
      kMaxLoweredBytes / std::max<int64_t>(1, checked_mul(checked_mul(taps, n), 8)), 1, per_group_out);
  std::vector<double> lowered(static_cast<size_t>(checked_mul(checked_mul(taps, n), block)));
  for (int64_t b = 0; b < x.dim(0) * group; ++b) {
    const int64_t g = b % group;
    for (int64_t m0 = 0; m0 < per_group_out; m0 += block) {
      const int64_t rows = std::min(block, per_group_out - m0);
      RefGemm gemm;
      gemm.m = rows * taps;
      gemm.n = n;
      gemm.k = per_group_in;
      const T* wg = wp + (g * per_group_in * per_group_out + m0) * taps;
      gemm.pack_a = [=](int64_t, int64_t i0, int64_t r, int64_t p0, int64_t kc, double* dst, int64_t width) {
        pack_strided(wg + p0 * per_group_out * taps + i0, per_group_out * taps, 1, r, kc, dst, width);
      };
      const T* xg = xp + b * per_group_in * n;
      gemm.pack_b = [=](int64_t, int64_t j0, int64_t c, int64_t p0, int64_t kc, double* dst, int64_t width) {
        pack_strided(xg + p0 * n + j0, n, 1, c, kc, dst, width);
      };
      gemm.store = [&](int64_t, int64_t i0, int64_t r, int64_t j0, int64_t c, const double* acc, int64_t ld) {
        for (int64_t i = 0; i < r; ++i)
          std::copy(acc + i * ld, acc + i * ld + c, lowered.data() + (i0 + i) * n + j0);
      };
      ref_gemm(gemm);
      ref_parallel(rows, static_cast<double>(taps * n), [&](int64_t r) {
        std::vector<double> sum(static_cast<size_t>(plane), 0.0);
        std::vector<int64_t> origin(static_cast<size_t>(rank));
        for (int64_t t = 0; t < taps; ++t) {
          const double* row = lowered.data() + (r * taps + t) * n;
          for (int64_t i = 0; i < n; ++i) {
            walk.origin(i, origin.data());
            const int64_t at = walk.offset(origin.data(), t);
            if (at >= 0) sum[static_cast<size_t>(at)] += row[i];
          }
        }
        const int64_t channel = g * per_group_out + m0 + r;
        T* y = yp + (b / group * out->dim(1) + channel) * plane;
        const double add = bias[static_cast<size_t>(channel)];
        for (int64_t i = 0; i < plane; ++i) y[i] = static_cast<T>(sum[static_cast<size_t>(i)] + add);
      });
    }
  }
}

void kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &weights = ctx.in(1);
  check_conv_operands(ctx, x, weights, /*transposed=*/true);
  const Geometry g(ctx.attrs, x.rank() - 2, spatial(weights.shape()), failer(ctx));
  Shape shape = {x.dim(0), weights.dim(1) * ctx.get_int("group", 1)};
  for (int d = 0; d < g.window.rank(); ++d) {
    shape.push_back(g.out(d, Dim(x.dim(d + 2))).value());
    if (shape.back() < 0 && x.dim(d + 2) == 0) shape.back() = 0;
    if (shape.back() < 0)
      ctx.fail("attribute 'pads' removes more than the output has (spatial dimension " + std::to_string(d) +
               ")");
  }
  Tensor& out = ctx.out(0, shape);
  float_or_throw(ctx, x.dtype(), [&](auto tag) { run<typename decltype(tag)::type>(ctx, g, &out); });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost c;
  if (inputs.size() < 2 || inputs[1].empty() || outputs.empty()) return c;
  double per_input = 2;
  for (size_t d = 1; d < inputs[1].size(); ++d) per_input *= static_cast<double>(inputs[1][d]);
  c.flops = per_input * static_cast<double>(numel(inputs[0]));
  return c;
}

}  // namespace

const OpDef& op_ConvTranspose() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "ConvTranspose";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
