#include "backends/cpu/kernels/rnn.h"

#include <cmath>

#include "backends/cpu/kernels/lambda_inline.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/vmath.h"

#define HONE_ISA_INL "backends/cpu/kernels/rnn.inl"
#include "base/isa_foreach.h"
