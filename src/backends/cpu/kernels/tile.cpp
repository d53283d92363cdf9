#include "backends/cpu/kernels/tile.h"

#include "backends/cpu/isa_pick.h"
#include "backends/cpu/simd.h"

#define HONE_ISA_INL "backends/cpu/kernels/tile.inl"
#include "base/isa_foreach.h"

namespace hone::cpu {

const TileKernels& tile_kernels(Isa isa) { return *HONE_PICK_ISA(isa, kTileKernels); }

}  // namespace hone::cpu
