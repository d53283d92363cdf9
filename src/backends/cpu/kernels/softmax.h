// Softmax, log-softmax and Lp normalisation of rows and of columns, f32, compiled per ISA.
//
// Math: with m the maximum and S = sum exp(x - m): softmax = exp(x - m) / S, log-softmax = x - m - log S; lp
// = x / norm, 0 where the norm is 0. Sums run in f32 blocks that are added in f64 (rows) or in short f32
// blocks (columns).
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"

namespace hone::cpu {

enum class AxisNorm : uint8_t { kSoftmax, kLogSoftmax, kL1, kL2 };

/// Columns that one call of axis_norm_columns takes at most.
inline constexpr int64_t kAxisColumns = 128;

/// One contiguous row of n values. dst may equal src.
HONE_DECLARE_ISA(void, axis_norm_row, (AxisNorm kind, const float* src, float* dst, int64_t n))
/// n x cols values, rows `stride` apart, normalised down the columns; cols <= kAxisColumns. dst may equal
/// src.
HONE_DECLARE_ISA(void, axis_norm_columns,
                 (AxisNorm kind, const float* src, float* dst, int64_t n, int64_t stride, int64_t cols))

}  // namespace hone::cpu
