// LayerNormalization: Y = (X - mean) / sqrt(var + epsilon) * Scale + B over the dimensions from `axis` on.
// RMSNormalization: Y = X / sqrt(mean(X^2) + epsilon) * scale.
// stash_type names the type of Mean and InvStdDev; the statistics themselves are always computed in f64.
#include <cmath>

#include "ops/dispatch.h"
#include "ops/ref_gemm.h"
#include "ops/spread.h"

namespace hone::ops {
namespace {

DType stash_type(const AttrMap& attrs) { return static_cast<DType>(ir::attr_int(attrs, "stash_type", 1)); }

void infer_layer(InferContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  const DType stash = stash_type(ctx.node().attrs);
  if (!is_float(stash))
    ctx.fail("attribute 'stash_type' is " + std::to_string(static_cast<int>(stash)) + ", not a float type");
  std::optional<Dims> reduced;
  if (ctx.has_shape(0)) {
    reduced = ctx.shape(0);
    const int axis = ctx.axis(ctx.node().get_int("axis", -1), static_cast<int>(reduced->size()));
    for (size_t d = static_cast<size_t>(axis); d < reduced->size(); ++d) (*reduced)[d] = Dim(1);
    for (size_t i = 1; i <= 2; ++i) {
      if (ctx.has_shape(i) && ctx.shape(i).size() > reduced->size())
        ctx.fail("input " + std::to_string(i) + " has a higher rank than X");
    }
  }
  ctx.set_output(1, stash, reduced);
  ctx.set_output(2, stash, reduced);
}

void infer_rms(InferContext& ctx) {
  ctx.set_output(0, ctx.dtype(1), ctx.input(0).shape);
  if (ctx.has_shape(0)) ctx.axis(ctx.node().get_int("axis", -1), static_cast<int>(ctx.shape(0).size()));
}

template <class To>
void store(Tensor* t, int64_t i, double v) {
  if (t != nullptr) t->data<To>()[i] = static_cast<To>(v);
}

void store_any(Tensor* t, int64_t i, double v) {
  if (t == nullptr) return;
  if (t->dtype() == DType::kF64)
    store<double>(t, i, v);
  else
    store<float>(t, i, v);
}

/// Runs both: `centred` subtracts the mean.
void normalise(KernelContext& ctx, bool centred) {
  const Tensor& x = ctx.in(0);
  const int axis = ctx.axis(ctx.get_int("axis", -1), x.rank());
  const double epsilon = ctx.get_float("epsilon", 1e-5F);
  Shape reduced = x.shape();
  int64_t n = 1;
  for (size_t d = static_cast<size_t>(axis); d < reduced.size(); ++d) {
    n *= reduced[d];
    reduced[d] = 1;
  }
  const Spread scale = spread_over(ctx, "Scale", ctx.in(1), x.shape());
  Spread bias{{0.0}, 1};
  if (ctx.has_input(2)) bias = spread_over(ctx, "B", ctx.in(2), x.shape());
  Tensor* mean_out = centred && ctx.wants(1) ? &ctx.out(1, reduced) : nullptr;
  Tensor* inverse_out = centred && ctx.wants(2) ? &ctx.out(2, reduced) : nullptr;
  Tensor& out = ctx.out(0, x.shape());
  const int64_t rows = numel(reduced);
  float_or_throw(ctx, x.dtype(), [&](auto in_tag) {
    float_or_throw(ctx, out.dtype(), [&](auto out_tag) {
      using In = typename decltype(in_tag)::type;
      using Out = typename decltype(out_tag)::type;
      ref_parallel(rows, static_cast<double>(4 * n), [&](int64_t r) {
        const In* xp = x.data<In>() + r * n;
        Out* yp = out.data<Out>() + r * n;
        double mean = 0, squares = 0;
        if (centred) {
          for (int64_t i = 0; i < n; ++i) mean += static_cast<double>(xp[i]);
          mean /= static_cast<double>(n);
        }
        for (int64_t i = 0; i < n; ++i) {
          const double d = static_cast<double>(xp[i]) - mean;
          squares += d * d;
        }
        const double deviation = std::sqrt(squares / static_cast<double>(n) + epsilon);
        for (int64_t i = 0; i < n; ++i) {
          const double v = (static_cast<double>(xp[i]) - mean) / deviation;
          yp[i] = static_cast<Out>(v * scale.at(r * n + i) + bias.at(r * n + i));
        }
        store_any(mean_out, r, mean);
        store_any(inverse_out, r, 1.0 / deviation);
      });
    });
  });
}

void kernel_layer(KernelContext& ctx) { normalise(ctx, true); }
void kernel_rms(KernelContext& ctx) { normalise(ctx, false); }

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = 8.0 * static_cast<double>(numel(inputs[0]));
  return c;
}

}  // namespace

const OpDef& op_LayerNormalization() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "LayerNormalization";
    d.infer = infer_layer;
    d.kernel = kernel_layer;
    d.cost = cost;
    return d;
  }();
  return def;
}
const OpDef& op_RMSNormalization() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "RMSNormalization";
    d.infer = infer_rms;
    d.kernel = kernel_rms;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
