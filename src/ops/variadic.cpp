// Max Min Sum Mean of one or more broadcast inputs. NaN wins in Max and Min. Source: ONNX, opsets up to 28.
#include <cmath>
#include <type_traits>
#include <vector>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"

namespace hone::ops {
namespace {

Shape result_shape(const KernelContext& ctx) {
  Shape shape = ctx.in(0).shape();
  for (size_t i = 1; i < ctx.inputs.size(); ++i) {
    if (ctx.in(i).dtype() != ctx.in(0).dtype()) ctx.fail("inputs differ in type");
    auto merged = broadcast_shapes(shape, ctx.in(i).shape());
    if (!merged)
      ctx.fail("shape of " + ctx.in(i).type_text() + " does not broadcast with the inputs before it");
    shape = std::move(*merged);
  }
  return shape;
}

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(v);
  else
    return false;
}

/// y = fn(y, x_i) in the order of the inputs.
template <class F>
void fold(KernelContext& ctx, F fn) {
  const Shape shape = result_shape(ctx);
  number_or_throw(ctx, ctx.in(0).dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, ctx.in(0).dtype(), shape);
    T* dst = y.data<T>();
    const Shape& first = ctx.in(0).shape();
    if (ctx.inputs.size() == 1) {
      binary_loop(shape, first, first, ctx.in(0).data<T>(), ctx.in(0).data<T>(), dst,
                  [](T a, T) { return a; });
      return;
    }
    binary_loop(shape, first, ctx.in(1).shape(), ctx.in(0).data<T>(), ctx.in(1).data<T>(), dst, fn);
    for (size_t i = 2; i < ctx.inputs.size(); ++i) {
      binary_loop(shape, shape, ctx.in(i).shape(), static_cast<const T*>(dst), ctx.in(i).data<T>(), dst, fn);
    }
  });
}

/// Sums in f64 (integers: in the type itself, wrapping), divided once where `mean`.
void sum(KernelContext& ctx, bool mean) {
  const Shape shape = result_shape(ctx);
  const double count = static_cast<double>(ctx.inputs.size());
  number_or_throw(ctx, ctx.in(0).dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    Tensor& y = ctx.out(0, ctx.in(0).dtype(), shape);
    std::vector<Acc> acc(static_cast<size_t>(y.numel()), Acc{0});
    const Acc* read = acc.data();
    for (const Tensor* x : ctx.inputs) {
      binary_loop(shape, shape, x->shape(), read, x->data<T>(), acc.data(),
                  [](Acc a, T b) { return wrap_add<Acc>(a, b); });
    }
    T* dst = y.data<T>();
    for (size_t i = 0; i < acc.size(); ++i) {
      dst[i] = mean ? from_double<T>(static_cast<double>(acc[i]) / count) : static_cast<T>(acc[i]);
    }
  });
}

void drop_hints(AdaptContext& ctx) { ctx.node.attrs.erase("consumed_inputs"); }

void max_infer(InferContext& ctx) {
  infer_broadcast(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> {
    Dim m = v[0];
    for (size_t i = 1; i < v.size(); ++i) m = Dim::max(m, v[i]);
    return m;
  });
}
void min_infer(InferContext& ctx) {
  infer_broadcast(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> {
    Dim m = v[0];
    for (size_t i = 1; i < v.size(); ++i) m = Dim::min(m, v[i]);
    return m;
  });
}

Cost variadic_cost(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost cost = elementwise_cost(attrs, inputs, outputs);
  cost.flops *= static_cast<double>(inputs.empty() ? 1 : inputs.size());
  return cost;
}

OpDef variadic(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&)) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.adapt = drop_hints;
  def.cost = variadic_cost;
  def.elementwise = true;
  return def;
}

}  // namespace

const OpDef& op_Max() {
  static const OpDef def = variadic("Max", max_infer, [](KernelContext& ctx) {
    fold(ctx, [](auto a, auto b) { return a > b || is_nan(a) ? a : b; });
  });
  return def;
}

const OpDef& op_Min() {
  static const OpDef def = variadic("Min", min_infer, [](KernelContext& ctx) {
    fold(ctx, [](auto a, auto b) { return a < b || is_nan(a) ? a : b; });
  });
  return def;
}

const OpDef& op_Sum() {
  static const OpDef def = variadic("Sum", infer_broadcast, [](KernelContext& ctx) { sum(ctx, false); });
  return def;
}

const OpDef& op_Mean() {
  static const OpDef def = variadic("Mean", infer_broadcast, [](KernelContext& ctx) { sum(ctx, true); });
  return def;
}

}  // namespace hone::ops
