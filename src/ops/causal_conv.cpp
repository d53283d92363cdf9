// CausalConvWithState: per channel y[t] = act(bias + sum_j w[j] * e[t + j]), e the past_state (zeros without
// one), k - 1 values, then the input; present_state is the last k - 1 values of e.
#include <algorithm>

#include "ops/conv.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"
#include "ops/scalar_math.h"

namespace hone::ops {
namespace {

bool read_activation(const AttrMap& attrs, const Fail& fail) {
  const std::string name = ir::attr_string(attrs, "activation", "none");
  if (name != "none" && name != "silu" && name != "swish")
    fail("attribute 'activation' is '" + name + "', must be none, silu or swish");
  return name != "none";
}

void infer(InferContext& ctx) {
  read_activation(ctx.node().attrs, failer(ctx));
  ctx.set_output(0, ctx.input(0));
  if (!ctx.has_shape(0)) return ctx.set_output(1, ctx.dtype(0), std::nullopt);
  const Dims& x = ctx.shape(0);
  if (x.size() != 3) ctx.fail("input must have rank 3, is " + ctx.input(0).text());
  if (!ctx.has_shape(1)) return ctx.set_output(1, ctx.dtype(0), Dims{x[0], x[1], ctx.fresh_symbol()});
  const Dims& w = ctx.shape(1);
  if (w.size() != 3 || (w[1].is_const() && w[1].value() != 1))
    ctx.fail("weight must be [channels, 1, k], is " + ctx.input(1).text());
  if (w[2].is_const() && w[2].value() < 1) ctx.fail("weight has a kernel of " + w[2].text());
  if (x[1].is_const() && w[0].is_const() && !(x[1] == w[0]))
    ctx.fail("input has " + x[1].text() + " channels, weight " + w[0].text());
  ctx.set_output(1, ctx.dtype(0), Dims{x[0], x[1], w[2] - Dim(1)});
}

void kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &w = ctx.in(1);
  const bool silu = read_activation(ctx.attrs, failer(ctx));
  if (x.rank() != 3 || w.rank() != 3 || w.dim(0) != x.dim(1) || w.dim(1) != 1 || w.dim(2) < 1)
    ctx.fail("input " + x.type_text() + " and weight " + w.type_text() + " do not fit");
  const int64_t batch = x.dim(0), channels = x.dim(1), length = x.dim(2), k = w.dim(2);
  const Shape state = {batch, channels, k - 1};
  if (ctx.has_input(3) && ctx.in(3).shape() != state)
    ctx.fail("past_state " + ctx.in(3).type_text() + " must be " + type_text(x.dtype(), state));
  std::vector<double> bias(static_cast<size_t>(channels), 0.0);
  if (ctx.has_input(2)) {
    if (ctx.in(2).shape() != Shape{channels})
      ctx.fail("bias " + ctx.in(2).type_text() + " is not one value for each channel");
    bias = to_doubles(ctx.in(2));
  }
  Tensor* y = ctx.wants(0) ? &ctx.out(0, x.shape()) : nullptr;
  Tensor* present = ctx.wants(1) ? &ctx.out(1, state) : nullptr;
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ref_parallel(batch * channels, static_cast<double>(length * k), [&](int64_t row) {
      std::vector<T> e(static_cast<size_t>(k - 1 + length), T{0});
      if (ctx.has_input(3)) std::copy_n(ctx.in(3).data<T>() + row * (k - 1), k - 1, e.begin());
      std::copy_n(x.data<T>() + row * length, length, e.begin() + (k - 1));
      const T* wp = w.data<T>() + row % channels * k;
      for (int64_t t = 0; y != nullptr && t < length; ++t) {
        double sum = 0;
        for (int64_t j = 0; j < k; ++j)
          sum += static_cast<double>(wp[j]) * static_cast<double>(e[static_cast<size_t>(t + j)]);
        sum += bias[static_cast<size_t>(row % channels)];
        y->data<T>()[row * length + t] = static_cast<T>(silu ? fn_swish(sum, 1) : sum);
      }
      if (present != nullptr) std::copy(e.end() - (k - 1), e.end(), present->data<T>() + row * (k - 1));
    });
  });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (inputs.size() > 1 && inputs[1].size() == 3)
    c.flops = 2.0 * static_cast<double>(numel(inputs[0])) * static_cast<double>(inputs[1][2]);
  return c;
}

}  // namespace

const OpDef& op_CausalConvWithState() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "CausalConvWithState";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
