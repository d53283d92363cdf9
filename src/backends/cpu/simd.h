// A thin float vector, once per instruction set, in namespaces hone::cpu::{portable, avx2, avx512}.
//
// A kernel in `x.inl` (see base/isa_region.h) writes `Vec`, `IVec`, `Mask` and the functions below
// unqualified inside `namespace hone::cpu::HONE_ISA_NS` and gets the right ones. Everything is always_inline
// and free of branches.
//
//     kWidth                     lanes of Vec: 4, 8, 16
//     Vec  set(x) zero()         broadcast; +0
//     Vec  load(p)  store(p, v)  kWidth floats, any alignment
//     Vec  load_n(p, n)          the first n lanes (0 <= n <= kWidth), the rest +0; nothing past p[n) is read
//     void store_n(p, v, n)      the first n lanes; nothing past p[n) is written
//     Vec  keep(v)               v, held in a register: the compiler may not load it again where it is used
//     + - * /  unary -           IEEE, one rounding each; - flips the sign bit (of NaN too)
//     fma(a, b, c)               a * b + c: one rounding on avx2 and avx512, two (product, sum) on portable
//     fnma(a, b, c)              c - a * b, likewise
//     abs(v) sqrt(v)
//     min(a, b)                  a < b ? a : b     so: b when either is NaN or both are zeros
//     max(a, b)                  a > b ? a : b     hence max(set(0), x) keeps the NaN of x
//     round(v)                   to nearest, ties to even; floor ceil trunc likewise; inf, NaN and |v| >=
//     2^23 pass
//                                unchanged; the sign of a zero result is kept
//     eq ne lt le gt ge (a, b)   -> Mask, ordered (false on NaN) but for ne, which is true on NaN
//     is_nan(v)                  -> Mask
//     & | ~ on Mask, any(m) all(m), select(m, a, b): m ? a : b per lane
//     copysign(mag, sgn)         magnitude of mag, sign bit of sgn
//
//     IVec: kWidth int32. set_i(x), + - (wrapping), & | ^, shl<n> shr<n> (logical) sar<n> (arithmetic),
//     gt_i(a, b) eq_i(a, b) -> Mask, select_i(m, a, b), load_i(p), load_i_n(p, n), store_i(p, v),
//     store_i_n(p, v, n) to_int(v)                  nearest, ties to even; out of range or NaN gives
//     INT32_MIN trunc_to_int(v)            towards zero, likewise to_float(i)                nearest bits(v)
//     from_bits(i)       reinterpretation gather(p, i)               p[i[lane]]; i in elements, each inside
//     the array
//
//     permute(v, i)              lane l of the result is lane i[l] of v; each i in [0, kWidth)
//
//     reduce_add(v)              fixed tree: halves are added until one lane is left (lane i + lane i + w/2)
//     reduce_max(v) reduce_min(v)  the same tree with max/min above
#pragma once

#include "base/isa_region.h"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "backends/cpu/simd_portable.h"

#if HONE_ISA_X86
HONE_REGION_AVX2_BEGIN
#include "backends/cpu/simd_avx2.h"
HONE_REGION_END
HONE_REGION_AVX512_BEGIN
#include "backends/cpu/simd_avx512.h"
HONE_REGION_END
#endif
