// From a level chosen at run time to the kernel compiled for it.
#pragma once

#include "base/cpu.h"
#include "base/isa_region.h"

/// The function (or table) `name` of namespace hone::cpu::{portable, avx2, avx512} for a level. All three
/// have one type.
///     const auto fn = HONE_PICK_ISA(isa, softmax_rows);
#if HONE_ISA_X86
#define HONE_PICK_ISA(isa, name)                              \
  ((isa) == ::hone::Isa::kAvx512 ? &::hone::cpu::avx512::name \
   : (isa) == ::hone::Isa::kAvx2 ? &::hone::cpu::avx2::name   \
                                 : &::hone::cpu::portable::name)
/// Declares a kernel in every ISA namespace; use it inside namespace hone::cpu, once per kernel.
///     HONE_DECLARE_ISA(void, softmax_rows, (const float* src, float* dst, int64_t rows, int64_t n))
#define HONE_DECLARE_ISA(result, name, params) \
  namespace portable {                         \
  result name params;                          \
  }                                            \
  namespace avx2 {                             \
  result name params;                          \
  }                                            \
  namespace avx512 {                           \
  result name params;                          \
  }
#else
#define HONE_PICK_ISA(isa, name) ((void)(isa), &::hone::cpu::portable::name)
#define HONE_DECLARE_ISA(result, name, params) \
  namespace portable {                         \
  result name params;                          \
  }
#endif
