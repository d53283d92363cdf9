// Shared by the CPU tactics: a base class that carries name and ISA, and the list's row type.
//
// A tactic of this backend is a class in src/backends/cpu/<x>.cpp, a maker `std::unique_ptr<Tactic>
// make_<x>(Isa)` and one row in tactics.inc. The backend makes one object per ISA level and row; a maker may
// return null for a level at which it has nothing of its own.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backends/tactic.h"

namespace hone::backends::cpu {

class CpuTactic : public Tactic {
 public:
  /// `stem` as in docs/naming.md without the ISA: "softmax_f32_rows"; the name becomes
  /// "softmax_f32_rows__avx512".
  CpuTactic(const std::string& stem, Isa isa, Numerics numerics)
      : name_(stem + "__" + std::string(isa_name(isa))), isa_(isa), numerics_(numerics) {}
  const std::string& name() const override { return name_; }
  Isa isa() const override { return isa_; }
  Numerics numerics() const override { return numerics_; }

 private:
  std::string name_;
  Isa isa_;
  Numerics numerics_;
};

/// All present operands are f32; else the reason.
Support require_f32(const Problem& p);
/// Every operand of the destination's rank takes channels-last when source `src` has it (rank >= 3),
/// everything else is plain.
void follow_layout(Problem& p, size_t src = 0);

}  // namespace hone::backends::cpu
