#include "stats/timing.h"

#include <gtest/gtest.h>

#include <random>

namespace hone::stats {
namespace {

TEST(Timing, Degenerate) {
  EXPECT_EQ(summarize({}).mean, 0);
  EXPECT_EQ(quantile_interval({}, 0.5, 0.95).value, 0);
  const TimingSummary one = summarize({3});
  EXPECT_EQ(one.median, 3);
  EXPECT_EQ(one.cv, 0);
  const QuantileInterval q = quantile_interval({3}, 0.99, 0.95);
  EXPECT_EQ(q.low, 3);
  EXPECT_EQ(q.high, 3);
}

TEST(Timing, Summary) {
  const TimingSummary s = summarize({4, 1, 3, 2});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(s.median, 2.5);
  EXPECT_EQ(s.mean, 2.5);
  EXPECT_NEAR(s.cv, 1.2909944487358056 / 2.5, 1e-12);
}

TEST(Timing, OrderStatisticRanks) {
  std::vector<double> v;
  for (int i = 1; i <= 100; ++i) v.push_back(i);
  const QuantileInterval q = quantile_interval(v, 0.5, 0.95);
  EXPECT_EQ(q.value, 50);
  // Binomial(100, 1/2): the classical 95 % interval for a median is the order statistics 40 and 61.
  EXPECT_EQ(q.low, 40);
  EXPECT_EQ(q.high, 61);
}

TEST(Timing, IntervalCoversTheMedianAsOftenAsItSays) {
  std::mt19937 rng(3);
  std::exponential_distribution<double> d(1.0);
  int covered = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<double> v;
    for (int i = 0; i < 60; ++i) v.push_back(d(rng));
    const QuantileInterval q = quantile_interval(v, 0.5, 0.95);
    covered += q.low <= 0.6931471805599453 && 0.6931471805599453 <= q.high;
  }
  EXPECT_GE(covered, 2000 * 0.94);
}

}  // namespace
}  // namespace hone::stats
