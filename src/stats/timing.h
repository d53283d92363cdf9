// Robust statistics of repeated timings. Pure functions.
#pragma once

#include <vector>

namespace hone::stats {

/// All zero for an empty list. cv = standard deviation (n - 1) / mean; 0 for fewer than two values or a zero
/// mean.
struct TimingSummary {
  double min = 0, mean = 0, max = 0, median = 0, cv = 0;
};
TimingSummary summarize(const std::vector<double>& values);

/// Math: value = the order statistic of rank ceil(q n) (the smallest value with at least a share q of the
/// values at or below it). Interval: order statistics of the ranks that bound a Binomial(n, q) count with the
/// given confidence (distribution-free, exact); where n is too small for an upper or lower rank to exist, the
/// extreme value stands in. 0 for an empty list.
struct QuantileInterval {
  double value = 0, low = 0, high = 0;
};
QuantileInterval quantile_interval(std::vector<double> values, double q, double confidence);

}  // namespace hone::stats
