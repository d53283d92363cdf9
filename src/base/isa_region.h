// Target regions: one translation unit, code for several instruction sets, no global -m flags.
//
// Use. A kernel family is written once in `family.inl`, in namespace `hone::cpu::HONE_ISA_NS`, and compiled
// for each ISA by
//
//     #include <cmath>                      // 1. every standard and intrinsic header the .inl needs
//     #include "backends/cpu/simd.h"        //    and every header of ours
//     #define HONE_ISA_INL "backends/cpu/kernels/family.inl"
//     #include "base/isa_foreach.h"         // 2. compiles the .inl three times
//
// `isa_foreach.h` includes HONE_ISA_INL into namespaces `portable`, `avx2` and `avx512`, each time with
//     HONE_ISA_NS       the namespace's name
//     HONE_ISA_LEVEL    0 portable, 1 AVX2+FMA, 2 AVX-512 (F, BW, DQ, VL, with AVX2+FMA)
// and undefines HONE_ISA_INL. On a machine that is not x86-64 only `portable` is compiled.
//
// Rules for an .inl: no #include of a header that defines functions (they would be compiled inside the region
// and the linker could keep the AVX-512 copy for everybody); no function outside the ISA namespace; nothing
// with external linkage but the dispatch entry. Inline functions of standard headers may be called: they keep
// the baseline target.
#pragma once

#if defined(__x86_64__) || defined(_M_X64)
#define HONE_ISA_X86 1
// GCC's headers write `__m512 y = y` for an undefined value and then warn about it wherever it is inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#else
#define HONE_ISA_X86 0
#endif

// clang-format off
#if defined(__clang__)
#define HONE_REGION_AVX2_BEGIN \
  _Pragma("clang attribute push(__attribute__((target(\"avx,avx2,fma\"))), apply_to = function)")
#define HONE_REGION_AVX512_BEGIN \
  _Pragma("clang attribute push(__attribute__((target(\"avx,avx2,fma,avx512f,avx512bw,avx512dq,avx512vl\"))), apply_to = function)")
#define HONE_REGION_END _Pragma("clang attribute pop")
// clang-format on
#else
#define HONE_REGION_AVX2_BEGIN _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma\")")
#define HONE_REGION_AVX512_BEGIN \
  _Pragma("GCC push_options") _Pragma("GCC target(\"avx2,fma,avx512f,avx512bw,avx512dq,avx512vl\")")
#define HONE_REGION_END _Pragma("GCC pop_options")
#endif

/// For the small functions of simd.h and of the micro-kernels: a call would spill every vector register.
#define HONE_INLINE inline __attribute__((always_inline))
/// For kernels whose code size matters more than the call.
#define HONE_NOINLINE __attribute__((noinline))

/// Full unrolling of a loop with a constant trip count, so that arrays of vectors become registers at -O2
/// too.
#if defined(__clang__)
#define HONE_UNROLL _Pragma("unroll")
#else
#define HONE_UNROLL _Pragma("GCC unroll 64")
#endif
