// Reductions in f32 over a set of offsets, compiled per ISA: one output from rows, or a block of outputs from
// columns.
//
// Accuracy: sums in f32 partial sums of at most 64 additions that are added in f64; products in f64; sums of
// squares that leave f32's range are done again in f64. NaN makes max and min NaN.
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"

namespace hone::cpu {

enum class Reduction : uint8_t { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

/// The elements of one output: src + offsets[i] + j * stride, i < n_offsets, j < n.
struct ReduceSpan {
  const int64_t* offsets = nullptr;
  int64_t n_offsets = 1;
  int64_t n = 1;
  int64_t stride = 1;
  int64_t count() const { return n_offsets * n; }
};

inline constexpr int64_t kReduceColumns = 128;

/// REQUIRES stride == 1 and count() > 0.
HONE_DECLARE_ISA(float, reduce_row, (Reduction kind, const float* src, const ReduceSpan& span))
/// dst[c] reduces src + c, c < cols <= kReduceColumns. REQUIRES count() > 0.
HONE_DECLARE_ISA(void, reduce_columns,
                 (Reduction kind, const float* src, const ReduceSpan& span, int64_t cols, float* dst))

}  // namespace hone::cpu
