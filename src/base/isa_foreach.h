// Includes HONE_ISA_INL once per instruction set. See base/isa_region.h for the contract. No include guard:
// each kernel family includes this file once with its own HONE_ISA_INL.
#include "base/isa_region.h"

#ifndef HONE_ISA_INL
#error "define HONE_ISA_INL before including base/isa_foreach.h"
#endif

#define HONE_ISA_NS portable
#define HONE_ISA_LEVEL 0
#include HONE_ISA_INL
#undef HONE_ISA_NS
#undef HONE_ISA_LEVEL

#if HONE_ISA_X86
HONE_REGION_AVX2_BEGIN
#define HONE_ISA_NS avx2
#define HONE_ISA_LEVEL 1
#include HONE_ISA_INL
#undef HONE_ISA_NS
#undef HONE_ISA_LEVEL
HONE_REGION_END

HONE_REGION_AVX512_BEGIN
#define HONE_ISA_NS avx512
#define HONE_ISA_LEVEL 2
#include HONE_ISA_INL
#undef HONE_ISA_NS
#undef HONE_ISA_LEVEL
HONE_REGION_END
#endif

#undef HONE_ISA_INL
