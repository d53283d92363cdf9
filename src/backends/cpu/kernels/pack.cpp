#include "backends/cpu/kernels/pack.h"

#include "backends/cpu/isa_pick.h"
#include "backends/cpu/simd.h"

#define HONE_ISA_INL "backends/cpu/kernels/pack.inl"
#include "base/isa_foreach.h"

namespace hone::cpu {

PackPanelFn pack_panel_fn(Isa isa) { return HONE_PICK_ISA(isa, pack_panel); }
PackRowsFn pack_rows_fn(Isa isa) { return HONE_PICK_ISA(isa, pack_rows); }
TransposeFn transpose_fn(Isa isa) { return HONE_PICK_ISA(isa, transpose); }

}  // namespace hone::cpu
