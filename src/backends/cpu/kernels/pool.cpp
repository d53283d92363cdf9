#include "backends/cpu/kernels/pool.h"

#include <cmath>

#include "backends/cpu/kernels/lambda_inline.h"
#include "backends/cpu/simd.h"

#define HONE_ISA_INL "backends/cpu/kernels/pool.inl"
#include "base/isa_foreach.h"
