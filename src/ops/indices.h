// Run-time indices: read from i32 or i64 tensors, checked before use.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace hone::ops {

/// All elements of an i32 or i64 index input (a copy for i32).
inline std::vector<int64_t> read_indices(const KernelContext& ctx, size_t i) {
  const Tensor& t = ctx.in(i);
  if (t.dtype() != DType::kI64 && t.dtype() != DType::kI32)
    ctx.fail("indices must be i32 or i64, not " + t.type_text());
  return t.to_i64();
}

/// Index in [-extent, extent) made non-negative; throws kInvalidData otherwise.
inline int64_t checked_index(const KernelContext& ctx, int64_t index, int64_t extent) {
  if (index < -extent || index >= extent) {
    ctx.fail("index " + std::to_string(index) + " is outside [" + std::to_string(-extent) + ", " +
             std::to_string(extent - 1) + "], the dimension is " + std::to_string(extent));
  }
  return index < 0 ? index + extent : index;
}

}  // namespace hone::ops
