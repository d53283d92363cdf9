// One axis of a tensor in memory order: [outer, n, inner], whatever the layout.
#pragma once

#include <cstdint>

#include "backends/tactic.h"

namespace hone::backends::cpu {

struct MemoryAxis {
  int64_t outer = 1, n = 1, inner = 1;
};

/// REQUIRES -rank <= axis < rank.
inline MemoryAxis memory_axis(const Operand& o, int64_t axis) {
  const int rank = static_cast<int>(o.dims.size());
  if (axis < 0) axis += rank;
  MemoryAxis v;
  bool after = false;
  for (const int d : ops::layout_order(o.layout, rank)) {
    const int64_t extent = o.dims[static_cast<size_t>(d)];
    if (d == axis) {
      v.n = extent;
      after = true;
    } else {
      (after ? v.inner : v.outer) *= extent;
    }
  }
  return v;
}

inline bool axis_in_range(int64_t axis, const Shape& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  return axis >= -rank && axis < rank;
}

/// The single-source f32 tactics' common precondition: domain, f32 everywhere, one destination of the
/// source's shape and layout.
inline Support same_shape_unary(const Problem& p) {
  if (p.srcs.empty() || p.dsts.empty() || !p.srcs[0].present()) return Support::no("sources: none");
  if (p.srcs[0].dims != p.dsts[0].dims) return Support::no("shape: source and result differ");
  if (!ops::same_order(p.srcs[0].layout, p.dsts[0].layout, p.dsts[0].dims))
    return Support::no("layout: source and result differ");
  return Support::yes();
}

}  // namespace hone::backends::cpu
