// Elementwise work over broadcast sources: the destination's elements in memory order, cut into pieces of
// rows; within a row every source advances by a constant step.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"
#include "backends/tactic.h"

namespace hone::backends::cpu {

template <size_t N>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, N>;

  StridedLoop() = default;
  /// REQUIRES every source to broadcast to dst (pw_strides says so). Any mix of layouts.
  StridedLoop(const Operand& dst, const std::array<const Operand*, N>& srcs) : total_(numel(dst.dims)) {
    std::array<std::vector<int64_t>, N> strides;
    for (size_t k = 0; k < N; ++k) strides[k] = *pw_strides(*srcs[k], dst.dims);
    for (const int d : ops::layout_order(dst.layout, static_cast<int>(dst.dims.size()))) {
      const auto at = static_cast<size_t>(d);
      if (dst.dims[at] == 1) continue;
      Offsets s{};
      for (size_t k = 0; k < N; ++k) s[k] = strides[k][at];
      bool merges = !extents_.empty();
      for (size_t k = 0; k < N; ++k) merges = merges && strides_.back()[k] == s[k] * dst.dims[at];
      if (merges) {
        extents_.back() *= dst.dims[at];
        strides_.back() = s;
      } else {
        extents_.push_back(dst.dims[at]);
        strides_.push_back(s);
      }
    }
    if (extents_.empty()) {
      extents_.push_back(1);
      strides_.push_back({});
    }
  }

  /// Elements by which source k advances within a row.
  int64_t step(size_t k) const { return strides_.back()[k]; }

  /// fn(destination offset, source offsets, n) for pieces of rows; pieces may run at once.
  template <class F>
  void run(const RunArgs& args, F&& fn) const {
    parallel_ranges(args, total_, kGrain, [&](int64_t begin, int64_t end) {
      const int64_t inner = extents_.back();
      while (begin < end) {
        const int64_t column = begin % inner, n = std::min(end - begin, inner - column);
        Offsets at{};
        for (size_t k = 0; k < N; ++k) at[k] = column * strides_.back()[k];
        int64_t row = begin / inner;
        for (size_t d = extents_.size() - 1; d-- > 0; row /= extents_[d])
          for (size_t k = 0; k < N; ++k) at[k] += row % extents_[d] * strides_[d][k];
        fn(begin, static_cast<const Offsets&>(at), n);
        begin += n;
      }
    });
  }

 private:
  static constexpr int64_t kGrain = 32768;

  int64_t total_ = 0;
  std::vector<int64_t> extents_;  ///< collapsed, in the destination's memory order
  std::vector<Offsets> strides_;
};

}  // namespace hone::backends::cpu
