#include "backends/cpu/kernels/pointwise.h"

#include <cmath>
#include <limits>
#include <utility>

#include "backends/cpu/kernels/lambda_inline.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/vmath.h"
#include "ops/problem.h"

#define HONE_ISA_INL "backends/cpu/kernels/pointwise.inl"
#include "base/isa_foreach.h"
