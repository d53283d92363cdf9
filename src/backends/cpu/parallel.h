// Work split of the CPU tactics: a range cut into pieces whose size depends on sizes alone, so that results
// never depend on the threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/tactic.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu {

/// fn(begin, end) over [0, total) in pieces of `grain`; one piece runs on the calling thread without the
/// pool.
template <class F>
void parallel_ranges(const RunArgs& args, int64_t total, int64_t grain, F&& fn) {
  if (total <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (total <= grain || args.max_threads <= 1) {
    for (int64_t b = 0; b < total; b += grain) fn(b, std::min(total, b + grain));
    return;
  }
  args.pool->parallel_for(
      (total + grain - 1) / grain,
      [&](int64_t chunk, int) { fn(chunk * grain, std::min(total, (chunk + 1) * grain)); }, args.max_threads);
}

/// Rows that make one piece when a row costs `row_cost` element-operations.
inline int64_t row_grain(int64_t row_cost, int64_t piece_cost = 16384) {
  return std::max<int64_t>(1, piece_cost / std::max<int64_t>(1, row_cost));
}

}  // namespace hone::backends::cpu
