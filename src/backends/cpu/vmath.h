// Elementary functions on simd.h vectors, in namespaces hone::cpu::{portable, avx2, avx512}. All are
// always_inline, branch-free and, for every float, within the stated distance of the true value
// (vmath_test.cpp sweeps them).
//
//     function        error     edge values
//     exp(x)          <= 2 ulp  overflow +inf, underflow through the subnormals to +0, exp(-inf) = +0
//     expm1(x)        <= 3 ulp  exp(x) - 1 without cancellation near 0; expm1(-inf) = -1; -0 kept
//     log(x)          <= 2 ulp  log(+-0) = -inf, log(x < 0) = NaN, log(+inf) = +inf, subnormals right
//     log1p(x)        <= 3 ulp  log1p(-1) = -inf, log1p(x < -1) = NaN; -0 kept
//     tanh(x)         <= 3 ulp  +-1 at +-inf; -0 kept
//     erf(x)          <= 3 ulp  +-1 at +-inf; -0 kept
//     sigmoid(x)      <= 3 ulp  1 / (1 + exp(-x)): 0 and 1 at -inf and +inf, subnormal results right
//     softplus(x)     <= 4 ulp  log(1 + exp(x))
//     silu(x)                   x * sigmoid(x), so NaN at -inf as in the formula
//     gelu_erf(x)               0.5 * x * (1 + erf(x / sqrt(2)))
//     gelu_tanh(x)              0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
//
// NaN in, NaN out. The error holds with the default rounding mode, with and without fused multiply-add;
// results may differ between portable and the FMA levels in the last place, avx2 and avx512 agree bit for
// bit. The polynomials are our own minimax fits (Lawson iteration on Chebyshev nodes); each comment states
// its error.
#pragma once

#include "backends/cpu/simd.h"

#define HONE_ISA_INL "backends/cpu/vmath.inl"
#include "base/isa_foreach.h"
