// Weighted sums of rows and of elements of a row, f32, compiled per ISA: the two passes of a separable
// resize.
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"

namespace hone::cpu {

/// dst[i] = sum over r of weights[r] * rows[r][i], i < n. count >= 1.
HONE_DECLARE_ISA(void, blend_rows,
                 (float* dst, const float* const* rows, const float* weights, int count, int64_t n))
/// dst[i] = sum over t of weight[t * n + i] * row[index[t * n + i]], i < n. A tap of weight 0 adds nothing,
/// whatever it points at.
HONE_DECLARE_ISA(void, sample_row,
                 (float* dst, const float* row, const int32_t* index, const float* weight, int taps,
                  int64_t n))

}  // namespace hone::cpu
