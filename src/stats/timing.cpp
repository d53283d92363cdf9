#include "stats/timing.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>

namespace hone::stats {

TimingSummary summarize(const std::vector<double>& values) {
  TimingSummary s;
  if (values.empty()) return s;
  std::vector<double> v = values;
  std::sort(v.begin(), v.end());
  s.min = v.front();
  s.max = v.back();
  s.median = v.size() % 2 == 1 ? v[v.size() / 2] : (v[v.size() / 2 - 1] + v[v.size() / 2]) / 2;
  double sum = 0;
  for (double x : v) sum += x;
  const auto n = static_cast<double>(v.size());
  s.mean = sum / n;
  double square = 0;
  for (double x : v) square += (x - s.mean) * (x - s.mean);
  if (v.size() > 1 && s.mean != 0) s.cv = std::sqrt(square / (n - 1)) / s.mean;
  return s;
}

QuantileInterval quantile_interval(std::vector<double> v, double q, double confidence) {
  QuantileInterval out;
  if (v.empty()) return out;
  std::sort(v.begin(), v.end());
  const auto n = static_cast<long>(v.size());
  const auto at = [&](long rank) { return v[static_cast<size_t>(std::clamp(rank, 1L, n) - 1)]; };
  out.value = at(static_cast<long>(std::ceil(q * static_cast<double>(n) - 1e-12)));
  const boost::math::binomial count(static_cast<double>(n), q);
  const double tail = (1 - confidence) / 2;
  // Values below the quantile number at most k with probability cdf(k): the rank of the lower bound is the
  // largest whose tail is small enough.
  long low = 0;
  while (low < n && boost::math::cdf(count, static_cast<double>(low)) <= tail) ++low;
  long high = low;
  while (high < n && boost::math::cdf(count, static_cast<double>(high)) < 1 - tail) ++high;
  out.low = at(low);
  out.high = at(high + 1);
  return out;
}

}  // namespace hone::stats
