// Measures latency, throughput and memory of an engine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hone/session.h"

namespace hone {

struct BenchOptions {
  std::vector<NamedTensor> inputs;  ///< empty: seeded random ones at the opt shapes
  int64_t iterations = 10;          ///< at least so many runs ...
  double duration_ms = 3000;        ///< ... and at least so long
  double warm_up_ms = 200;
  int threads = 0;
  bool per_layer = false;  ///< also time each step, in runs of their own
  bool keep_times = false;
};

/// A percentile with its 95 % confidence interval from order statistics.
struct Percentile {
  double p = 0, ms = 0, low_ms = 0, high_ms = 0;
};

struct LayerTime {
  std::string name, tactic;
  double median_ms = 0, share = 0;  ///< share of the sum of medians
  double gflops = 0, gbytes_per_s = 0;
  double mean_ms = 0;
  int64_t runs = 0;  ///< that were profiled
};

struct BenchReport {
  int64_t runs = 0;
  int threads = 0;
  double min_ms = 0, mean_ms = 0, max_ms = 0, cv = 0;  ///< cv: standard deviation / mean
  std::vector<Percentile> percentiles;                 ///< 50 90 95 99 99.9
  double throughput_per_s = 0;  ///< leading dimension of the first input times runs, per second
  double first_run_ms = 0;
  int64_t rss_bytes = 0, peak_rss_bytes = 0;
  MemoryInfo memory;
  std::vector<LayerTime> layers;
  std::vector<double> times_ms;       ///< every run, with keep_times
  std::vector<std::string> warnings;  ///< noisy machine (cv above 2.5 %), outside the tuned range, ...
};

BenchReport bench(const Engine& engine, const BenchOptions& options);

}  // namespace hone
