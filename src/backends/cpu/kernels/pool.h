// Max and average pooling in f32, one output row a call, compiled per ISA. One, two and three spatial
// dimensions are all three here (extent 1 in front).
//
// Math: max over the window's inside, NaN if one is NaN, -inf without inside; mean over the inside, or with
// include_pad over the window as far as it lies on the padded input; 0 without any. Sums run along kw in f32,
// those rows are added in f32.
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"

namespace hone::cpu {

struct PoolShape {
  int64_t channels = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          dilation[3] = {1, 1, 1};
  int64_t pad_begin[3] = {0, 0, 0}, pad_end[3] = {0, 0, 0};
  bool max = true;
  bool include_pad = false;
};

/// Output row `row` = od * out[1] + oh of a channels-last image: out[2] * channels values.
HONE_DECLARE_ISA(void, pool_row_last, (const PoolShape& s, const float* image, float* dst, int64_t row))
/// The same row of one channel's plane: out[2] values.
HONE_DECLARE_ISA(void, pool_row_plain, (const PoolShape& s, const float* plane, float* dst, int64_t row))

}  // namespace hone::cpu
