// BitShift BitwiseAnd BitwiseOr BitwiseXor BitwiseNot. Source: ONNX, opsets 18 and 28.
#include <type_traits>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"

namespace hone::ops {
namespace {

template <class F>
void bitwise(KernelContext& ctx, F fn) {
  const Tensor &a = ctx.in(0), &b = ctx.in(1);
  if (a.dtype() != b.dtype()) ctx.fail("inputs differ in type: " + a.type_text() + " and " + b.type_text());
  const auto shape = broadcast_shapes(a.shape(), b.shape());
  if (!shape) ctx.fail("shapes of " + a.type_text() + " and " + b.type_text() + " do not broadcast");
  integer_or_throw(ctx, a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, a.dtype(), *shape);
    binary_loop(*shape, a.shape(), b.shape(), a.data<T>(), b.data<T>(), y.data<T>(),
                [fn](T u, T v) { return static_cast<T>(fn(u, v)); });
  });
}

/// Shifts by a negative amount or by the width and more leave what the sign bit's extension gives.
template <class T>
T shift(T x, T by, bool left) {
  const bool out = by < T{0} || static_cast<uint64_t>(by) >= sizeof(T) * 8;
  if (left) return out ? T{0} : static_cast<T>(static_cast<uint64_t>(x) << static_cast<uint64_t>(by));
  if (out) return x < T{0} ? static_cast<T>(-1) : T{0};
  return static_cast<T>(x >> by);
}

void shift_kernel(KernelContext& ctx) {
  const std::string direction = ctx.get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    ctx.fail("direction must be LEFT or RIGHT, not '" + direction + "'");
  const bool left = direction == "LEFT";
  bitwise(ctx, [left](auto x, auto by) { return shift(x, by, left); });
}

void not_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  integer_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), x.shape());
    for (int64_t i = 0, n = x.numel(); i < n; ++i) y.data<T>()[i] = static_cast<T>(~x.data<T>()[i]);
  });
}

OpDef bitwise_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&)) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.cost = elementwise_cost;
  def.elementwise = true;
  return def;
}

}  // namespace

const OpDef& op_BitShift() {
  static const OpDef def = bitwise_op("BitShift", infer_broadcast, shift_kernel);
  return def;
}

const OpDef& op_BitwiseAnd() {
  static const OpDef def = bitwise_op("BitwiseAnd", infer_broadcast, [](KernelContext& ctx) {
    bitwise(ctx, [](auto a, auto b) { return a & b; });
  });
  return def;
}

const OpDef& op_BitwiseOr() {
  static const OpDef def = bitwise_op("BitwiseOr", infer_broadcast, [](KernelContext& ctx) {
    bitwise(ctx, [](auto a, auto b) { return a | b; });
  });
  return def;
}

const OpDef& op_BitwiseXor() {
  static const OpDef def = bitwise_op("BitwiseXor", infer_broadcast, [](KernelContext& ctx) {
    bitwise(ctx, [](auto a, auto b) { return a ^ b; });
  });
  return def;
}

const OpDef& op_BitwiseNot() {
  static const OpDef def = bitwise_op("BitwiseNot", infer_same, not_kernel);
  return def;
}

}  // namespace hone::ops
