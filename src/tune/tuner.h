// Lists, verifies, times and chooses tactics.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "tune/timing_cache.h"

namespace hone::tune {

/// A tactic that can run a problem, with the layouts it wants filled into `problem`.
struct Candidate {
  const backends::Tactic* tactic = nullptr;
  ops::Problem problem;
};

/// Candidates from fastest to slowest, those that failed verification left out. Never empty.
struct Ranked {
  size_t index = 0;  ///< into the candidates
  Timing timing;     ///< time_ns 0 when nothing was measured or cached
};

struct TunerOptions {
  backends::Target target;
  bool measure = false;  ///< time what the cache lacks; else cache where complete, heuristic order otherwise
  bool error_on_miss = false;  ///< a problem that the cache lacks is an error (kRejected)
  double budget_ms = 30;       ///< per candidate
  double max_error =
      1e-5;  ///< relative L2 against the oracle above which a tactic is refused (f32-class, DESIGN 3)
  int threads = 0;
};

/// Times a candidate as it will run: weights rotate through copies that exceed the last-level cache,
/// candidates are interleaved, the median counts. Verified before it is timed: its whole output against the
/// oracle's, guard bytes round outputs and workspace; one that fails is never chosen and is reported.
class Tuner {
 public:
  Tuner(TunerOptions options, TimingCache cache) : options_(std::move(options)), cache_(std::move(cache)) {}

  /// REQUIRES a non-empty list, fastest first by heuristic. `ref` is chosen only when nothing else is left.
  std::vector<Ranked> rank(const std::vector<Candidate>& candidates);

  const TimingCache& cache() const { return cache_; }
  TimingCache& cache() { return cache_; }
  int64_t timed() const { return timed_; }
  int64_t hits() const { return hits_; }
  int64_t misses() const { return misses_; }
  /// Tactics that failed verification: "name: problem: why".
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  std::vector<Timing> measure(const std::vector<Candidate>& candidates, const std::vector<size_t>& which);

  TunerOptions options_;
  TimingCache cache_;
  int64_t timed_ = 0, hits_ = 0, misses_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace hone::tune
