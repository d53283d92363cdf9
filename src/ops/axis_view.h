// A tensor read as [outer, n, inner] about one axis, or as [kept, reduced] about several.
#pragma once

#include <cstdint>
#include <vector>

#include "base/checked.h"
#include "hone/tensor.h"

namespace hone::ops {

/// Element (o, i, k) lies at (o * n + i) * inner + k.
struct AxisView {
  int64_t outer = 1, n = 1, inner = 1;
  AxisView(const Shape& shape, int axis) {
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      int64_t& into = d < axis ? outer : d == axis ? n : inner;
      into =
          checked_mul(into, shape[static_cast<size_t>(d)]);  // an empty tensor may have huge other dimensions
    }
  }
};

/// Offsets of a reduction: output element i covers x[base(i) + offset(j)], j < count, in row-major order of
/// the reduced dimensions.
class ReduceView {
 public:
  /// `reduced[d]`: dimension d is reduced.
  ReduceView(const Shape& shape, const std::vector<bool>& reduced);
  int64_t outputs() const { return outputs_; }
  int64_t count() const { return count_; }
  int64_t base(int64_t i) const { return bases_.empty() ? i * base_step_ : bases_[static_cast<size_t>(i)]; }
  int64_t offset(int64_t j) const {
    return offsets_.empty() ? j * offset_step_ : offsets_[static_cast<size_t>(j)];
  }

 private:
  int64_t outputs_ = 1, count_ = 1;
  int64_t base_step_ = 1, offset_step_ = 1;  ///< where the offsets are evenly spaced
  std::vector<int64_t> bases_, offsets_;
};

}  // namespace hone::ops
