// Clip: min(max(x, low), high), NaN stays NaN, high wins where the bounds cross. Source: ONNX Clip-13.
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"

namespace hone::ops {
namespace {

void clip_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  for (size_t i = 1; i <= 2; ++i) {
    if (!ctx.has_input(i)) continue;
    if (ctx.in(i).numel() != 1) ctx.fail("bounds must be scalars, not " + ctx.in(i).type_text());
    if (ctx.in(i).dtype() != x.dtype())
      ctx.fail("a bound is " + ctx.in(i).type_text() + ", the input " + x.type_text());
  }
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool has_low = ctx.has_input(1), has_high = ctx.has_input(2);
    const T low = has_low ? *ctx.in(1).data<T>() : T{0};
    const T high = has_high ? *ctx.in(2).data<T>() : T{0};
    Tensor& y = ctx.out(0, x.dtype(), x.shape());
    const T* src = x.data<T>();
    T* dst = y.data<T>();
    for (int64_t i = 0, n = x.numel(); i < n; ++i) {
      T v = src[i];
      if (has_low && v < low) v = low;
      if (has_high && v > high) v = high;
      dst[i] = v;
    }
  });
}

void clip_infer(InferContext& ctx) {
  infer_same(ctx);
  auto x = known_contents(ctx, 0);
  if (!x) return;
  for (size_t i = 1; i <= 2; ++i) {
    if (!ctx.has_input(i)) continue;
    const auto bound = known_contents(ctx, i);
    if (!bound || bound->size() != 1) return;
    for (Dim& d : *x) d = i == 1 ? Dim::max(d, (*bound)[0]) : Dim::min(d, (*bound)[0]);
  }
  ctx.set_contents(0, std::move(*x));
}

/// Clip-1 and Clip-6 hold their bounds in float attributes, whatever the tensor's type; an integer tensor's
/// bounds are those floats truncated.
void clip_adapt(AdaptContext& ctx) {
  ctx.node.attrs.erase("consumed_inputs");
  if (ctx.since >= 11) return;
  size_t position = 1;
  for (const char* name : {"min", "max"}) {
    if (ctx.node.has(name)) {
      const float bound = ctx.node.get_float(name, 0);
      ctx.node.attrs.erase(name);
      put_input(ctx, position, scalar_like_input(ctx, name, bound));
    }
    ++position;
  }
}

}  // namespace

const OpDef& op_Clip() {
  static const OpDef def{.name = "Clip",
                         .infer = clip_infer,
                         .kernel = clip_kernel,
                         .adapt = clip_adapt,
                         .cost = elementwise_cost,
                         .elementwise = true};
  return def;
}

}  // namespace hone::ops
