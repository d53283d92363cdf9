// Loops of pointwise programs: one instruction over one contiguous chunk of floats, compiled per ISA and
// found in a table.
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"

namespace hone::cpu {

/// dst[i] = f(a[i], b[i], c[i]) for i in [0, n); operands a kernel does not have are ignored. dst may equal
/// an operand. alpha and beta are the activation's, or the bounds of a fused clip.
using PwFn = void (*)(float* dst, const float* a, const float* b, const float* c, int64_t n, float alpha,
                      float beta);

inline constexpr int kPwActs = 32;     ///< at least as many as ops::Act has kinds
inline constexpr int kPwBinaries = 7;  ///< add sub mul div min max pow, in ops::PwOp's order from kAdd

/// How a binary instruction's operands advance.
enum PwForm : uint8_t { kVecVec = 0, kVecOne = 1, kOneVec = 2 };
/// What follows in the same pass over the chunk. Math: relu max(x, 0), clip min(max(x, alpha), beta); NaN
/// stays NaN.
enum PwTail : uint8_t { kNoTail = 0, kReluTail = 1, kClipTail = 2 };

struct PwTable {
  PwFn act[kPwActs];  ///< by ops::Act
  PwFn binary[kPwBinaries][3]
             [3];         ///< by operator, form, tail. pow has no tails: those rows repeat the plain one
  PwFn mul_add[2][2][3];  ///< a * b + c, fused where the ISA can: [b is one value][c is one value][tail]
  PwFn fill;              ///< dst[i] = a[0]
};

HONE_DECLARE_ISA(const PwTable&, pw_table, ())

inline const PwTable& pw_table(Isa isa) { return HONE_PICK_ISA(isa, pw_table)(); }

}  // namespace hone::cpu
