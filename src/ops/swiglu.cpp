// SwiGLU: Y = A * sigmoid(alpha * A) * B for A and B of one shape.
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/ref_gemm.h"
#include "ops/scalar_math.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  infer_same(ctx);
  if (!ctx.has_shape(0) || !ctx.has_shape(1)) return;
  const Dims &a = ctx.shape(0), &b = ctx.shape(1);
  bool differ = a.size() != b.size();
  for (size_t d = 0; !differ && d < a.size(); ++d)
    differ = a[d].is_const() && b[d].is_const() && !(a[d] == b[d]);
  if (differ) ctx.fail("A " + ctx.input(0).text() + " and B " + ctx.input(1).text() + " must have one shape");
}

void kernel(KernelContext& ctx) {
  const Tensor &a = ctx.in(0), &b = ctx.in(1);
  if (a.shape() != b.shape())
    ctx.fail("A " + a.type_text() + " and B " + b.type_text() + " must have one shape");
  const double alpha = ctx.get_float("alpha", 1.0F);
  Tensor& out = ctx.out(0, a.shape());
  float_or_throw(ctx, a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ref_parallel(out.numel(), 30, [&](int64_t i) {
      out.data<T>()[i] = static_cast<T>(fn_swish(static_cast<double>(a.data<T>()[i]), alpha) *
                                        static_cast<double>(b.data<T>()[i]));
    });
  });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (inputs.empty()) return c;
  c.flops = 4.0 * static_cast<double>(numel(inputs[0]));
  c.transcendentals = static_cast<double>(numel(inputs[0]));
  return c;
}

}  // namespace

const OpDef& op_SwiGLU() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "SwiGLU";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
