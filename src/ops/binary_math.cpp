// Arithmetic of two broadcast inputs: Add Sub Mul Div Mod Pow. Integers wrap; integer division truncates.
// Source: ONNX, opsets up to 28.
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"

namespace hone::ops {
namespace {

Shape result_shape(const KernelContext& ctx) {
  auto shape = broadcast_shapes(ctx.in(0).shape(), ctx.in(1).shape());
  if (!shape)
    ctx.fail("shapes of " + ctx.in(0).type_text() + " and " + ctx.in(1).type_text() + " do not broadcast");
  return std::move(*shape);
}

/// fn is generic over the element type; both inputs have it.
template <class F>
void arithmetic(KernelContext& ctx, F fn) {
  const Tensor& a = ctx.in(0);
  const Tensor& b = ctx.in(1);
  if (a.dtype() != b.dtype()) ctx.fail("inputs differ in type: " + a.type_text() + " and " + b.type_text());
  const Shape shape = result_shape(ctx);
  number_or_throw(ctx, a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, a.dtype(), shape);
    binary_loop(shape, a.shape(), b.shape(), a.data<T>(), b.data<T>(), y.data<T>(), fn);
  });
}

template <class T>
T divide(const KernelContext& ctx, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else {
    if (b == 0) ctx.fail("integer division by zero");
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrap_sub<T>(0, a);  // INT_MIN / -1 wraps
    }
    return static_cast<T>(a / b);
  }
}

template <class T>
T modulo(const KernelContext& ctx, T a, T b, bool fmod) {
  if constexpr (std::is_floating_point_v<T>) {
    const double r = std::fmod(static_cast<double>(a), static_cast<double>(b));
    if (fmod) return static_cast<T>(r);
    if (r == 0) return std::copysign(T{0}, b);
    return static_cast<T>(
        (r < 0) == (b < 0) ? r : r + static_cast<double>(b));  // the divisor's sign, as Python has it
  } else {
    if (b == 0) ctx.fail("integer modulo by zero");
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    const T r = static_cast<T>(a % b);
    if constexpr (std::is_signed_v<T>) {
      if (!fmod && r != 0 && (r < 0) != (b < 0)) return static_cast<T>(r + b);
    }
    return r;
  }
}

/// Integer power by squaring, wrapping; a negative exponent truncates 1/x^|n|.
template <class T>
T integer_power(T x, int64_t n, bool huge) {
  if constexpr (std::is_signed_v<T>) {
    if (n < 0) {
      if (x == 1) return 1;
      if (x == -1) return (n & 1) != 0 ? static_cast<T>(-1) : T{1};
    }
  }
  if (n < 0 && !huge) {
    if (x == 0)
      return std::numeric_limits<T>::max();  // infinite, saturated as every conversion to integer is
    return x == 1 ? T{1} : T{0};
  }
  uint64_t base = static_cast<uint64_t>(x), result = 1;
  for (auto e = static_cast<uint64_t>(n); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= base;
    base *= base;
  }
  return static_cast<T>(result);
}

template <class X, class Y>
X power(X x, Y y) {
  if constexpr (std::is_integral_v<X> && std::is_integral_v<Y>) {
    return integer_power(x, static_cast<int64_t>(y), std::is_unsigned_v<Y>);
  } else if constexpr (std::is_integral_v<X>) {
    return to_integer<X>(std::pow(static_cast<double>(x), static_cast<double>(y)));
  } else {
    if (y == Y{2}) return static_cast<X>(static_cast<double>(x) * static_cast<double>(x));
    return static_cast<X>(std::pow(static_cast<double>(x), static_cast<double>(y)));
  }
}

void pow_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const Tensor& y = ctx.in(1);
  const Shape shape = result_shape(ctx);
  number_or_throw(ctx, x.dtype(), [&](auto xt) {
    using X = typename decltype(xt)::type;
    Tensor& z = ctx.out(0, x.dtype(), shape);
    number_or_throw(ctx, y.dtype(), [&](auto yt) {
      using Y = typename decltype(yt)::type;
      binary_loop(shape, x.shape(), y.shape(), x.data<X>(), y.data<Y>(), z.data<X>(), power<X, Y>);
    });
  });
}

Cost pow_cost(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost cost = elementwise_cost(attrs, inputs, outputs);
  cost.transcendentals = cost.flops;
  return cost;
}

void add_infer(InferContext& ctx) {
  infer_broadcast(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> { return v[0] + v[1]; });
}
void sub_infer(InferContext& ctx) {
  infer_broadcast(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> { return v[0] - v[1]; });
}
void mul_infer(InferContext& ctx) {
  infer_broadcast(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> { return v[0] * v[1]; });
}
/// Truncation equals the floor where both are known not to be negative.
void div_infer(InferContext& ctx) {
  infer_broadcast(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> {
    const Dim &a = v[0], &b = v[1];
    if (b == Dim(1)) return a;
    if (a.is_const() && b.is_const()) {
      if (b.value() == 0 || b.value() == -1) return std::nullopt;
      return Dim(a.value() / b.value());
    }
    if (b == Dim(0) || !provably_nonneg(a) || !provably_nonneg(b)) return std::nullopt;
    return Dim::floordiv(a, b);
  });
}
void mod_infer(InferContext& ctx) {
  infer_broadcast(ctx);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> {
    const Dim &a = v[0], &b = v[1];
    if (b == Dim(0) || !provably_nonneg(a) || !provably_nonneg(b)) return std::nullopt;
    return a - Dim::floordiv(a, b) * b;
  });
}

OpDef arithmetic_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&)) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.adapt = adapt_legacy_broadcast;
  def.cost = elementwise_cost;
  def.elementwise = true;
  return def;
}

}  // namespace

const OpDef& op_Add() {
  static const OpDef def = arithmetic_op("Add", add_infer, [](KernelContext& ctx) {
    arithmetic(ctx, [](auto a, auto b) { return wrap_add(a, b); });
  });
  return def;
}

const OpDef& op_Sub() {
  static const OpDef def = arithmetic_op("Sub", sub_infer, [](KernelContext& ctx) {
    arithmetic(ctx, [](auto a, auto b) { return wrap_sub(a, b); });
  });
  return def;
}

const OpDef& op_Mul() {
  static const OpDef def = arithmetic_op("Mul", mul_infer, [](KernelContext& ctx) {
    arithmetic(ctx, [](auto a, auto b) { return wrap_mul(a, b); });
  });
  return def;
}

const OpDef& op_Div() {
  static const OpDef def = arithmetic_op("Div", div_infer, [](KernelContext& ctx) {
    arithmetic(ctx, [&](auto a, auto b) { return divide(ctx, a, b); });
  });
  return def;
}

const OpDef& op_Mod() {
  static const OpDef def = arithmetic_op("Mod", mod_infer, [](KernelContext& ctx) {
    const bool fmod = ctx.get_int("fmod", 0) != 0;
    arithmetic(ctx, [&](auto a, auto b) { return modulo(ctx, a, b, fmod); });
  });
  return def;
}

const OpDef& op_Pow() {
  static const OpDef def = [] {
    OpDef d = arithmetic_op("Pow", infer_broadcast, pow_kernel);
    d.cost = pow_cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
