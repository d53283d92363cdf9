// Elementwise functions of one input: y = f(x) in f64, rounded once. Source: ONNX, opsets up to 28.
#include <cmath>
#include <type_traits>

#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/scalar_math.h"
#include "ops/unary.h"

namespace hone::ops {
namespace {

Cost transcendental_cost(const AttrMap& attrs, std::span<const Shape> inputs,
                         std::span<const Shape> outputs) {
  Cost cost = elementwise_cost(attrs, inputs, outputs);
  cost.transcendentals = cost.flops;
  return cost;
}

/// Old versions of these operators carry `consumed_inputs`, an in-place hint without meaning.
void drop_hints(AdaptContext& ctx) { ctx.node.attrs.erase("consumed_inputs"); }

OpDef float_op(const char* name, void (*kernel)(KernelContext&), bool transcendental) {
  OpDef def;
  def.name = name;
  def.infer = infer_same;
  def.kernel = kernel;
  def.adapt = drop_hints;
  def.cost = transcendental ? transcendental_cost : elementwise_cost;
  def.elementwise = true;
  return def;
}

/// |x|, -x, sign: integers stay integers (two's complement, so that -INT_MIN is INT_MIN).
template <class F>
void number_unary(KernelContext& ctx, F fn) {
  const Tensor& x = ctx.in(0);
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), x.shape());
    const T* src = x.data<T>();
    T* dst = y.data<T>();
    for (int64_t i = 0, n = x.numel(); i < n; ++i) dst[i] = fn(src[i]);
  });
}

void abs_kernel(KernelContext& ctx) {
  number_unary(ctx, [](auto v) {
    using T = decltype(v);
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(v);
    else if constexpr (std::is_signed_v<T>)
      return v < 0 ? wrap_sub<T>(0, v) : v;
    else
      return v;
  });
}

void neg_kernel(KernelContext& ctx) {
  number_unary(ctx, [](auto v) {
    using T = decltype(v);
    if constexpr (std::is_floating_point_v<T>)
      return -v;
    else
      return wrap_sub<T>(0, v);
  });
}

void sign_kernel(KernelContext& ctx) {
  number_unary(ctx, [](auto v) {
    using T = decltype(v);
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(fn_sign(v));
    else
      return static_cast<T>((v > 0) - (v < T{0}));
  });
}

void neg_infer(InferContext& ctx) {
  infer_same(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> { return Dim(0) - v[0]; });
}

void abs_infer(InferContext& ctx) {
  infer_same(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> {
    if (provably_nonneg(v[0])) return v[0];
    return provably_nonneg(Dim(0) - v[0]) ? std::optional<Dim>(Dim(0) - v[0]) : std::nullopt;
  });
}

}  // namespace

#define HONE_UNARY(Name, transcendental, expression)                                                        \
  const OpDef& op_##Name() {                                                                                \
    static const OpDef def = float_op(                                                                      \
        #Name, [](KernelContext& ctx) { float_unary(ctx, [](double x) -> double { return expression; }); }, \
        transcendental);                                                                                    \
    return def;                                                                                             \
  }

HONE_UNARY(Acos, true, std::acos(x))
HONE_UNARY(Acosh, true, std::acosh(x))
HONE_UNARY(Asin, true, std::asin(x))
HONE_UNARY(Asinh, true, std::asinh(x))
HONE_UNARY(Atan, true, std::atan(x))
HONE_UNARY(Atanh, true, std::atanh(x))
HONE_UNARY(Ceil, false, std::ceil(x))
HONE_UNARY(Cos, true, std::cos(x))
HONE_UNARY(Cosh, true, std::cosh(x))
HONE_UNARY(Erf, true, std::erf(x))
HONE_UNARY(Exp, true, std::exp(x))
HONE_UNARY(Floor, false, std::floor(x))
HONE_UNARY(Log, true, std::log(x))
HONE_UNARY(Reciprocal, false, 1.0 / x)
HONE_UNARY(Round, false, fn_round(x))
HONE_UNARY(Sin, true, std::sin(x))
HONE_UNARY(Sinh, true, std::sinh(x))
HONE_UNARY(Sqrt, true, std::sqrt(x))
HONE_UNARY(Tan, true, std::tan(x))
HONE_UNARY(Tanh, true, std::tanh(x))
#undef HONE_UNARY

const OpDef& op_Abs() {
  static const OpDef def = [] {
    OpDef d = float_op("Abs", abs_kernel, false);
    d.infer = abs_infer;
    return d;
  }();
  return def;
}

const OpDef& op_Neg() {
  static const OpDef def = [] {
    OpDef d = float_op("Neg", neg_kernel, false);
    d.infer = neg_infer;
    return d;
  }();
  return def;
}

const OpDef& op_Sign() {
  static const OpDef def = float_op("Sign", sign_kernel, false);
  return def;
}

}  // namespace hone::ops
