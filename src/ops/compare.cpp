// Comparisons and logic: Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Not IsInf IsNaN. A
// comparison with NaN is false. Source: ONNX, opsets up to 28.
#include <cmath>

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

template <class F>
void compare(KernelContext& ctx, F fn) {
  const Tensor& a = ctx.in(0);
  const Tensor& b = ctx.in(1);
  if (a.dtype() != b.dtype()) ctx.fail("inputs differ in type: " + a.type_text() + " and " + b.type_text());
  const Shape shape = result_shape(ctx);
  Tensor& y = ctx.out(0, DType::kBool, shape);
  const DType t = a.dtype() == DType::kBool ? DType::kU8 : a.dtype();
  number_or_throw(ctx, t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    binary_loop(shape, a.shape(), b.shape(), a.data<T>(), b.data<T>(), y.data<uint8_t>(),
                [fn](T u, T v) { return static_cast<uint8_t>(fn(u, v)); });
  });
}

template <class F>
void logic(KernelContext& ctx, F fn) {
  const Tensor& a = ctx.in(0);
  const Tensor& b = ctx.in(1);
  if (a.dtype() != DType::kBool || b.dtype() != DType::kBool) ctx.fail("inputs must be bool");
  const Shape shape = result_shape(ctx);
  Tensor& y = ctx.out(0, DType::kBool, shape);
  binary_loop(shape, a.shape(), b.shape(), a.data<uint8_t>(), b.data<uint8_t>(), y.data<uint8_t>(),
              [fn](uint8_t u, uint8_t v) { return static_cast<uint8_t>(fn(u != 0, v != 0)); });
}

template <class F>
void classify(KernelContext& ctx, F fn) {
  const Tensor& x = ctx.in(0);
  Tensor& y = ctx.out(0, DType::kBool, x.shape());
  auto* dst = y.data<uint8_t>();
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* src = x.data<T>();
    for (int64_t i = 0, n = x.numel(); i < n; ++i) dst[i] = static_cast<uint8_t>(fn(src[i]));
  });
}

using Decision = std::optional<bool> (*)(const Dim&, const Dim&);

std::optional<bool> negate(std::optional<bool> v) { return v ? std::optional<bool>(!*v) : std::nullopt; }

template <Decision decide>
void decided_infer(InferContext& ctx) {
  infer_broadcast_as(ctx, DType::kBool);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> {
    const auto known = decide(v[0], v[1]);
    return known ? std::optional<Dim>(Dim(*known ? 1 : 0)) : std::nullopt;
  });
}

std::optional<bool> decide_greater(const Dim& a, const Dim& b) { return decide_less(b, a); }
std::optional<bool> decide_greater_equal(const Dim& a, const Dim& b) { return negate(decide_less(a, b)); }
std::optional<bool> decide_less_equal(const Dim& a, const Dim& b) { return negate(decide_less(b, a)); }
/// Contents of bools are the constants 0 and 1.
std::optional<bool> decide_and(const Dim& a, const Dim& b) { return a.value() != 0 && b.value() != 0; }
std::optional<bool> decide_or(const Dim& a, const Dim& b) { return a.value() != 0 || b.value() != 0; }
std::optional<bool> decide_xor(const Dim& a, const Dim& b) { return (a.value() != 0) != (b.value() != 0); }

void not_infer(InferContext& ctx) {
  infer_same(ctx);
  elementwise_contents(
      ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> { return Dim(v[0].value() != 0 ? 0 : 1); });
}

void classify_infer(InferContext& ctx) { ctx.set_output(0, DType::kBool, ctx.input(0).shape); }

void not_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.dtype() != DType::kBool) ctx.fail("input must be bool");
  Tensor& y = ctx.out(0, DType::kBool, x.shape());
  for (int64_t i = 0, n = x.numel(); i < n; ++i) y.data<uint8_t>()[i] = x.data<uint8_t>()[i] == 0 ? 1 : 0;
}

void isinf_kernel(KernelContext& ctx) {
  const bool negative = ctx.get_int("detect_negative", 1) != 0;
  const bool positive = ctx.get_int("detect_positive", 1) != 0;
  classify(ctx, [=](auto v) { return std::isinf(v) && (v < 0 ? negative : positive); });
}

OpDef bool_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
              void (*adapt)(AdaptContext&) = nullptr) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.adapt = adapt;
  def.cost = elementwise_cost;
  def.elementwise = true;
  return def;
}

}  // namespace

#define HONE_COMPARE(Name, decide, expression)                                               \
  const OpDef& op_##Name() {                                                                 \
    static const OpDef def = bool_op(                                                        \
        #Name, decided_infer<decide>,                                                        \
        [](KernelContext& ctx) { compare(ctx, [](auto a, auto b) { return expression; }); }, \
        adapt_legacy_broadcast);                                                             \
    return def;                                                                              \
  }
#define HONE_LOGIC(Name, decide, expression)                                               \
  const OpDef& op_##Name() {                                                               \
    static const OpDef def = bool_op(                                                      \
        #Name, decided_infer<decide>,                                                      \
        [](KernelContext& ctx) { logic(ctx, [](bool a, bool b) { return expression; }); }, \
        adapt_legacy_broadcast);                                                           \
    return def;                                                                            \
  }

HONE_COMPARE(Equal, decide_equal, a == b)
HONE_COMPARE(Greater, decide_greater, a > b)
HONE_COMPARE(GreaterOrEqual, decide_greater_equal, a >= b)
HONE_COMPARE(Less, decide_less, a < b)
HONE_COMPARE(LessOrEqual, decide_less_equal, a <= b)
HONE_LOGIC(And, decide_and, a&& b)
HONE_LOGIC(Or, decide_or, a || b)
HONE_LOGIC(Xor, decide_xor, a != b)
#undef HONE_COMPARE
#undef HONE_LOGIC

const OpDef& op_Not() {
  static const OpDef def = bool_op("Not", not_infer, not_kernel);
  return def;
}

const OpDef& op_IsInf() {
  static const OpDef def = bool_op("IsInf", classify_infer, isinf_kernel);
  return def;
}

const OpDef& op_IsNaN() {
  static const OpDef def = bool_op("IsNaN", classify_infer, [](KernelContext& ctx) {
    classify(ctx, [](auto v) { return std::isnan(v); });
  });
  return def;
}

}  // namespace hone::ops
