// Activation functions of one input, and PRelu. Math: scalar_math.h. Source: ONNX, opsets up to 28.
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"
#include "ops/scalar_math.h"
#include "ops/unary.h"

namespace hone::ops {
namespace {

Cost activation_cost(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost cost = elementwise_cost(attrs, inputs, outputs);
  cost.transcendentals = cost.flops;
  return cost;
}

void drop_hints(AdaptContext& ctx) { ctx.node.attrs.erase("consumed_inputs"); }

OpDef activation(const char* name, void (*kernel)(KernelContext&)) {
  OpDef def;
  def.name = name;
  def.infer = infer_same;
  def.kernel = kernel;
  def.adapt = drop_hints;
  def.cost = activation_cost;
  def.elementwise = true;
  return def;
}

void relu_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), x.shape());
    const T* src = x.data<T>();
    T* dst = y.data<T>();
    for (int64_t i = 0, n = x.numel(); i < n; ++i) dst[i] = src[i] < T{0} ? T{0} : src[i];  // NaN stays NaN
  });
}

void gelu_kernel(KernelContext& ctx) {
  const std::string approximate = ctx.get_string("approximate", "none");
  if (approximate == "tanh") {
    float_unary(ctx, fn_gelu_tanh);
  } else if (approximate == "none") {
    float_unary(ctx, fn_gelu_erf);
  } else {
    ctx.fail("approximate must be none or tanh, not '" + approximate + "'");
  }
}

/// Slope broadcasts to X in one direction only.
void prelu_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const Tensor& slope = ctx.in(1);
  const auto shape = broadcast_shapes(x.shape(), slope.shape());
  if (!shape || *shape != x.shape())
    ctx.fail("slope " + slope.type_text() + " does not broadcast to " + x.type_text());
  if (x.dtype() != slope.dtype()) ctx.fail("X and slope differ in type");
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), x.shape());
    binary_loop(*shape, x.shape(), slope.shape(), x.data<T>(), slope.data<T>(), y.data<T>(),
                [](T v, T s) { return v < T{0} ? wrap_mul(v, s) : v; });
  });
}

/// Before opset 7 a 1-D slope is per channel (dimension 1), whatever the rank.
void prelu_adapt(AdaptContext& ctx) {
  drop_hints(ctx);
  if (ctx.since >= 7) return;
  const TypeInfo& x = ctx.graph.value(ctx.node.inputs[0]).type;
  const TypeInfo& slope = ctx.graph.value(ctx.node.inputs[1]).type;
  if (!x.known_rank() || !slope.known_rank()) ctx.fail("PRelu before opset 7 needs the ranks of its inputs");
  if (slope.rank() == 1 && x.rank() > 2) {
    std::vector<int64_t> axes;
    for (int i = 1; i < x.rank() - 1; ++i) axes.push_back(i);
    unsqueeze_input(ctx, 1, axes);
  }
}

}  // namespace

#define HONE_ACTIVATION(Name, read_attrs, expression)                   \
  const OpDef& op_##Name() {                                            \
    static const OpDef def = activation(#Name, [](KernelContext& ctx) { \
      read_attrs;                                                       \
      float_unary(ctx, [=](double x) -> double { return expression; }); \
    });                                                                 \
    return def;                                                         \
  }
#define HONE_ATTR(name, fallback) const double name = ctx.get_float(#name, fallback)

HONE_ACTIVATION(Celu, HONE_ATTR(alpha, 1.0F), fn_celu(x, alpha))
HONE_ACTIVATION(Elu, HONE_ATTR(alpha, 1.0F), fn_elu(x, alpha))
HONE_ACTIVATION(HardSigmoid, HONE_ATTR(alpha, 0.2F); HONE_ATTR(beta, 0.5F), fn_hard_sigmoid(x, alpha, beta))
HONE_ACTIVATION(HardSwish, , fn_hard_swish(x))
HONE_ACTIVATION(LeakyRelu, HONE_ATTR(alpha, 0.01F), fn_leaky_relu(x, alpha))
HONE_ACTIVATION(Mish, , fn_mish(x))
HONE_ACTIVATION(Selu, HONE_ATTR(alpha, 1.67326319217681884765625F);
                HONE_ATTR(gamma, 1.05070102214813232421875F), fn_selu(x, alpha, gamma))
HONE_ACTIVATION(Shrink, HONE_ATTR(bias, 0.0F); HONE_ATTR(lambd, 0.5F), fn_shrink(x, bias, lambd))
HONE_ACTIVATION(Sigmoid, , fn_sigmoid(x))
HONE_ACTIVATION(Softplus, , fn_softplus(x))
HONE_ACTIVATION(Softsign, , fn_softsign(x))
HONE_ACTIVATION(Swish, HONE_ATTR(alpha, 1.0F), fn_swish(x, alpha))
HONE_ACTIVATION(ThresholdedRelu, HONE_ATTR(alpha, 1.0F), fn_thresholded_relu(x, alpha))
#undef HONE_ATTR
#undef HONE_ACTIVATION

const OpDef& op_Relu() {
  static const OpDef def = [] {
    OpDef d = activation("Relu", relu_kernel);
    d.cost = elementwise_cost;
    return d;
  }();
  return def;
}

const OpDef& op_Gelu() {
  static const OpDef def = activation("Gelu", gelu_kernel);
  return def;
}

const OpDef& op_PRelu() {
  static const OpDef def = [] {
    OpDef d = activation("PRelu", prelu_kernel);
    d.adapt = prelu_adapt;
    d.cost = elementwise_cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
