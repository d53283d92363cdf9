// For the lambdas of vector loops: inlined like every function of simd.h, since a call would spill the vector
// registers.
//     each(n, [=](Vec v) HONE_LAMBDA_INLINE { return v * v; });
#pragma once

#define HONE_LAMBDA_INLINE __attribute__((always_inline))
