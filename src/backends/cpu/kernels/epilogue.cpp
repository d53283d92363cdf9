#include "backends/cpu/kernels/epilogue.h"

#include <array>
#include <limits>
#include <utility>

#include "backends/cpu/isa_pick.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/vmath.h"

#define HONE_ISA_INL "backends/cpu/kernels/act.inl"
#include "base/isa_foreach.h"
#define HONE_ISA_INL "backends/cpu/kernels/epilogue.inl"
#include "base/isa_foreach.h"

namespace hone::cpu {

bool act_supported(ActKind act) { return act != ActKind::kSin && act != ActKind::kCos; }

Epilogue::Epilogue(const EpilogueOp* ops, int n_ops) {
  int i = 0;
  const auto is_add = [&](int at) { return at < n_ops && ops[at].kind == EpilogueOp::Kind::kAdd; };
  if (is_add(i) && ops[i].operand.row_stride == 0 && ops[i].operand.outer_stride == 0 &&
      ops[i].operand.column_stride == 1)
    bias = ops[i++].operand.data;
  if (is_add(i) && ops[i].operand.column_stride == 1) {
    has_add = true;
    add = ops[i++].operand;
  }
  if (i < n_ops && ops[i].kind == EpilogueOp::Kind::kAct) {
    const float inf = std::numeric_limits<float>::infinity();
    if (ops[i].act == ActKind::kRelu) {
      clamp = true;
      lo = 0;
      hi = inf;
      ++i;
    } else if (ops[i].act == ActKind::kClip) {
      clamp = true;
      lo = ops[i].alpha;
      hi = ops[i].beta;
      ++i;
    }
  }
  rest = ops + i;
  n_rest = n_ops - i;
}

EpilogueTileFn epilogue_tile_fn(Isa isa) { return HONE_PICK_ISA(isa, epilogue_tile); }

}  // namespace hone::cpu
