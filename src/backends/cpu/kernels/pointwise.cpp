#include "backends/cpu/kernels/pointwise.h"

#include <cmath>
#include <limits>
#include <utility>

#include "backends/cpu/simd.h"
#include "backends/cpu/vmath.h"
#include "ops/problem.h"

/// Lambdas of the loops are inlined like every function of simd.h.
#define HONE_LAMBDA_INLINE __attribute__((always_inline))

#define HONE_ISA_INL "backends/cpu/kernels/pointwise.inl"
#include "base/isa_foreach.h"
