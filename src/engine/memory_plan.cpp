#include "engine/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace hone::engine {
namespace {

constexpr int64_t kAlign = 64;

int64_t align_up(int64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

/// Places requests in the given order, each at the lowest gap among the already placed requests that live at
/// the same time.
MemoryPlan place(const std::vector<MemoryRequest>& requests, const std::vector<int>& order) {
  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  std::vector<int> placed;  // sorted by offset
  placed.reserve(order.size());
  for (int i : order) {
    const MemoryRequest& r = requests[static_cast<size_t>(i)];
    const int64_t bytes = align_up(r.bytes);
    int64_t offset = 0;
    for (int j : placed) {
      const MemoryRequest& p = requests[static_cast<size_t>(j)];
      if (p.last < r.first || r.last < p.first) continue;
      const int64_t start = plan.offsets[static_cast<size_t>(j)];
      if (offset + bytes <= start) break;
      offset = std::max(offset, start + align_up(p.bytes));
    }
    plan.offsets[static_cast<size_t>(i)] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), i, [&](int a, int b) {
      return plan.offsets[static_cast<size_t>(a)] < plan.offsets[static_cast<size_t>(b)];
    });
    placed.insert(at, i);
  }
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests) {
  std::vector<int> live;
  int last_step = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].bytes > 0) live.push_back(static_cast<int>(i));
    last_step = std::max(last_step, requests[i].last);
  }

  const auto req = [&](int i) -> const MemoryRequest& { return requests[static_cast<size_t>(i)]; };
  const auto by = [&](auto key) {
    std::vector<int> order = live;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return key(req(a)) > key(req(b)); });
    return order;
  };
  const std::vector<std::vector<int>> orders = {
      by([](const MemoryRequest& r) { return r.bytes; }),
      by([](const MemoryRequest& r) { return r.bytes * (r.last - r.first + 1); }),
      by([](const MemoryRequest& r) { return int64_t{-r.first}; }),
  };
  MemoryPlan best;
  best.offsets.assign(requests.size(), 0);
  bool first = true;
  for (const auto& order : orders) {
    MemoryPlan plan = place(requests, order);
    if (first || plan.arena_bytes < best.arena_bytes) best = std::move(plan);
    first = false;
  }

  // Lower bound: sum of live bytes at each step, from size changes at the ends of lifetimes.
  std::vector<int64_t> delta(static_cast<size_t>(last_step) + 2, 0);
  for (int i : live) {
    delta[static_cast<size_t>(req(i).first)] += req(i).bytes;
    delta[static_cast<size_t>(req(i).last) + 1] -= req(i).bytes;
  }
  int64_t sum = 0;
  for (int s = 0; s <= last_step; ++s) {
    sum += delta[static_cast<size_t>(s)];
    if (sum > best.peak_live_bytes) {
      best.peak_live_bytes = sum;
      best.peak_step = s;
    }
  }
  return best;
}

}  // namespace hone::engine
