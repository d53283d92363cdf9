// GlobalAveragePool, GlobalMaxPool, GlobalLpPool: one number of each channel's plane. GlobalLpPool-1 has p as
// a float.
#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "ops/ref_gemm.h"
#include "ops/window.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) return ctx.set_output(0, ctx.dtype(0), std::nullopt);
  Dims out = ctx.shape(0);
  if (out.size() < 2) ctx.fail("input X " + ctx.input(0).text() + " needs at least N and C");
  for (size_t d = 2; d < out.size(); ++d) out[d] = Dim(1);
  ctx.set_output(0, ctx.dtype(0), out);
}

/// y = fn(plane, elements) for every channel.
template <class F>
void each_plane(KernelContext& ctx, F&& fn) {
  const Tensor& x = ctx.in(0);
  if (x.rank() < 2) ctx.fail("input X " + x.type_text() + " needs at least N and C");
  Shape shape = x.shape();
  for (size_t d = 2; d < shape.size(); ++d) shape[d] = 1;
  Tensor& out = ctx.out(0, shape);
  const int64_t planes = out.numel(), n = planes == 0 ? 0 : x.numel() / planes;
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* p = x.data<T>();
    T* y = out.data<T>();
    ref_parallel(planes, static_cast<double>(n), [&](int64_t i) { y[i] = static_cast<T>(fn(p + i * n, n)); });
  });
}

void kernel_average(KernelContext& ctx) {
  each_plane(ctx, [](const auto* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
    return sum / static_cast<double>(n);  // 0/0 of an empty plane is NaN, as the mean of nothing
  });
}

void kernel_max(KernelContext& ctx) {
  each_plane(ctx, [](const auto* x, int64_t n) {
    double best = -std::numeric_limits<double>::infinity();
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<double>(x[i]);
      if (v > best || v != v) best = v;
      if (v != v) break;
    }
    return best;
  });
}

void kernel_lp(KernelContext& ctx) {
  const int64_t p = ctx.get_int("p", 2);
  if (p < 1) ctx.fail("attribute 'p' is " + std::to_string(p) + ", must be at least 1");
  each_plane(ctx, [p](const auto* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<double>(x[i]);
      sum += p == 1 ? std::fabs(v) : p == 2 ? v * v : std::pow(std::fabs(v), static_cast<double>(p));
    }
    return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1.0 / static_cast<double>(p));
  });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = static_cast<double>(numel(inputs[0]));
  return c;
}

OpDef make(const char* name, void (*kernel)(KernelContext&), void (*adapt)(AdaptContext&) = nullptr) {
  OpDef d;
  d.name = name;
  d.infer = infer;
  d.kernel = kernel;
  d.adapt = adapt;
  d.cost = cost;
  return d;
}

}  // namespace

const OpDef& op_GlobalAveragePool() {
  static const OpDef def = make("GlobalAveragePool", kernel_average);
  return def;
}
const OpDef& op_GlobalMaxPool() {
  static const OpDef def = make("GlobalMaxPool", kernel_max);
  return def;
}
const OpDef& op_GlobalLpPool() {
  static const OpDef def = make("GlobalLpPool", kernel_lp, adapt_float_order);
  return def;
}

}  // namespace hone::ops
