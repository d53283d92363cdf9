// NumPy broadcasting as a loop over contiguous rows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "hone/tensor.h"

namespace hone::ops {

/// Result shape of broadcasting two shapes; nullopt when they do not fit. Zero-size dimensions follow NumPy:
/// 0 against 1 is 0.
std::optional<Shape> broadcast_shapes(const Shape& a, const Shape& b);
/// Row-major element strides.
std::vector<int64_t> dense_strides(const Shape& shape);
/// Strides of `shape` read as the larger shape `as` (right-aligned): 0 where it is repeated. REQUIRES that it
/// broadcasts.
std::vector<int64_t> broadcast_strides(const Shape& shape, const Shape& as);

/// Iterates N dense operands against an output shape. Neighbouring dimensions that all operands walk alike
/// are merged, so that equal shapes become one row and a scalar or a per-channel operand costs nothing per
/// element.
template <int N>
class BroadcastLoop {
 public:
  using Offsets = std::array<int64_t, N>;

  BroadcastLoop(const Shape& out, const std::array<const Shape*, N>& operands) {
    std::array<std::vector<int64_t>, N> strides;
    for (size_t k = 0; k < N; ++k) strides[k] = broadcast_strides(*operands[k], out);
    for (size_t d = 0; d < out.size(); ++d) {
      count_ *= out[d];
      if (out[d] == 1) continue;
      Offsets s;
      for (size_t k = 0; k < N; ++k) s[k] = strides[k][d];
      bool merge = !extents_.empty();
      for (size_t k = 0; merge && k < N; ++k) merge = strides_.back()[k] == s[k] * out[d];
      if (merge) {
        extents_.back() *= out[d];
        strides_.back() = s;
      } else {
        extents_.push_back(out[d]);
        strides_.push_back(s);
      }
    }
    if (!extents_.empty()) {
      inner_ = extents_.back();
      inner_strides_ = strides_.back();
      extents_.pop_back();
      strides_.pop_back();
    } else {
      inner_strides_.fill(0);
    }
  }

  int64_t inner() const { return inner_; }  ///< elements of a row
  bool steps(int k) const {
    return inner_strides_[static_cast<size_t>(k)] != 0;
  }  ///< operand k advances by one in a row; else it is constant

  /// fn(output offset, operand offsets) per row.
  template <class F>
  void each_row(F&& fn) const {
    if (count_ == 0) return;
    Offsets at{};
    std::vector<int64_t> index(extents_.size(), 0);
    for (int64_t out = 0;; out += inner_) {
      fn(out, static_cast<const Offsets&>(at));
      size_t d = extents_.size();
      while (d > 0) {
        --d;
        for (size_t k = 0; k < N; ++k) at[k] += strides_[d][k];
        if (++index[d] < extents_[d]) break;
        for (size_t k = 0; k < N; ++k) at[k] -= strides_[d][k] * extents_[d];
        index[d] = 0;
        if (d == 0) return;
      }
      if (extents_.empty()) return;
    }
  }

 private:
  std::vector<int64_t> extents_;
  std::vector<Offsets> strides_;
  int64_t inner_ = 1;
  Offsets inner_strides_{};
  int64_t count_ = 1;
};

/// out[i] = fn(a[i], b[i]) with broadcasting.
template <class A, class B, class Out, class F>
void binary_loop(const Shape& out_shape, const Shape& a_shape, const Shape& b_shape, const A* a, const B* b,
                 Out* out, F fn) {
  const BroadcastLoop<2> loop(out_shape, {&a_shape, &b_shape});
  const int64_t n = loop.inner();
  const bool sa = loop.steps(0), sb = loop.steps(1);
  loop.each_row([&](int64_t at, const std::array<int64_t, 2>& off) {
    const A* pa = a + off[0];
    const B* pb = b + off[1];
    Out* po = out + at;
    if (sa && sb) {
      for (int64_t i = 0; i < n; ++i) po[i] = fn(pa[i], pb[i]);
    } else if (sa) {
      const B vb = *pb;
      for (int64_t i = 0; i < n; ++i) po[i] = fn(pa[i], vb);
    } else if (sb) {
      const A va = *pa;
      for (int64_t i = 0; i < n; ++i) po[i] = fn(va, pb[i]);
    } else {
      const Out v = fn(*pa, *pb);
      for (int64_t i = 0; i < n; ++i) po[i] = v;
    }
  });
}

}  // namespace hone::ops
