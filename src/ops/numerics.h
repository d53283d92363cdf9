// How much a tactic or a rewrite may change numbers (DESIGN 3). Reports charge error to these classes; an
// undeclared difference is a bug.
#pragma once

#include <cstdint>

namespace hone::ops {

enum class Numerics : uint8_t {
  kExact,         ///< same bits
  kReassociates,  ///< same real-number formula, other order of roundings
  kTransforms,    ///< operands rounded or mixed before the product (Winograd, bf16x3)
  kNarrows,       ///< a narrower type
};

inline const char* numerics_name(Numerics n) {
  constexpr const char* kNames[] = {"exact", "reassociates", "transforms", "narrows"};
  return kNames[static_cast<int>(n)];
}

}  // namespace hone::ops
