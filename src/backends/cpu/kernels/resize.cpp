#include "backends/cpu/kernels/resize.h"

#include "backends/cpu/simd.h"

#define HONE_ISA_INL "backends/cpu/kernels/resize.inl"
#include "base/isa_foreach.h"
