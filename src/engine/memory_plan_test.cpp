#include "engine/memory_plan.h"

#include <gtest/gtest.h>

#include <random>

namespace hone::engine {
namespace {

void expect_disjoint(const std::vector<MemoryRequest>& rs, const MemoryPlan& plan) {
  for (size_t i = 0; i < rs.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + rs[i].bytes, plan.arena_bytes);
    for (size_t j = i + 1; j < rs.size(); ++j) {
      if (rs[i].bytes == 0 || rs[j].bytes == 0 || rs[i].last < rs[j].first || rs[j].last < rs[i].first)
        continue;
      EXPECT_TRUE(plan.offsets[i] + rs[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + rs[j].bytes <= plan.offsets[i])
          << "requests " << i << " and " << j << " overlap";
    }
  }
}

TEST(MemoryPlan, ChainReusesTwoBuffers) {
  std::vector<MemoryRequest> rs;
  for (int i = 0; i < 10; ++i) rs.push_back({1024, i, i + 1});
  const MemoryPlan plan = plan_memory(rs);
  expect_disjoint(rs, plan);
  EXPECT_EQ(plan.arena_bytes, 2048);
  EXPECT_EQ(plan.peak_live_bytes, 2048);
}

TEST(MemoryPlan, EmptyAndZeroBytes) {
  EXPECT_EQ(plan_memory({}).arena_bytes, 0);
  EXPECT_EQ(plan_memory({{0, 0, 3}}).arena_bytes, 0);
}

TEST(MemoryPlan, PeakNamesItsStep) {
  const MemoryPlan plan = plan_memory({{100, 0, 1}, {500, 3, 4}, {200, 4, 5}});
  EXPECT_EQ(plan.peak_live_bytes, 700);
  EXPECT_EQ(plan.peak_step, 4);
}

TEST(MemoryPlan, RandomLifetimesNeverOverlapAndStayNearTheBound) {
  std::mt19937 rng(7);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<MemoryRequest> rs;
    const int n = 5 + static_cast<int>(rng() % 60);
    for (int i = 0; i < n; ++i) {
      const int first = static_cast<int>(rng() % 40);
      rs.push_back({static_cast<int64_t>(rng() % 5000), first, first + static_cast<int>(rng() % 6)});
    }
    const MemoryPlan plan = plan_memory(rs);
    expect_disjoint(rs, plan);
    EXPECT_GE(plan.arena_bytes, plan.peak_live_bytes);
    EXPECT_LE(plan.arena_bytes, 3 * plan.peak_live_bytes + 64 * n);
  }
}

}  // namespace
}  // namespace hone::engine
