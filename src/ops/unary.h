// The loop of elementwise float operators.
#pragma once

#include "ops/dispatch.h"

namespace hone::ops {

/// y = fn(x) for f32 and f64, computed in f64. Erf, Exp, ... on integer tensors (Erf allows them) go through
/// f64 too.
template <class F>
void float_unary(KernelContext& ctx, F fn) {
  const Tensor& x = ctx.in(0);
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), x.shape());
    const T* src = x.data<T>();
    T* dst = y.data<T>();
    for (int64_t i = 0, n = x.numel(); i < n; ++i) dst[i] = from_double<T>(fn(static_cast<double>(src[i])));
  });
}

}  // namespace hone::ops
