// Offsets of values in the arena from their sizes and lifetimes.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::engine {

struct MemoryRequest {
  int64_t bytes = 0;
  int first = 0, last = 0;  ///< steps during which the value lives, inclusive
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< a request of 0 bytes gets 0
  int64_t arena_bytes = 0;
  int64_t peak_live_bytes = 0;  ///< largest sum of live bytes over the steps: a lower bound of any plan
  int peak_step = 0;            ///< where that is
};

/// Greedy by size: requests from large to small, each at the lowest 64-byte aligned offset that is free for
/// its whole lifetime; of several orders (size, lifetime*size, first use) the smallest arena wins.
/// Deterministic. Cost: O(n^2) in the worst case, n log n in practice.
MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests);

}  // namespace hone::engine
