// Times whole plans: the last word on tactics that are nearly equal alone.
#pragma once

#include <memory>
#include <vector>

#include "build/lower.h"
#include "tune/timing_cache.h"

namespace hone::builder {

struct PlanSearchOptions {
  bool measure = false;  ///< else only what the cache holds is applied
  double budget_ms = 3000;
};

/// Why: alone, a layer finds its inputs where the tuner left them; in the plan, where the layer before left
/// them. Steps of one problem change together. For each group in turn (largest time first) the plan with the
/// alternative runs interleaved with the best plan so far; it is kept when its median is at least 1 % lower.
/// The outcome is a cache entry under `plan <hash of all problems>`, so that a rebuild from the cache makes
/// the same choices. Results do not change: alternatives have the same numerics and were verified.
/// Returns the number of steps whose choice changed.
int search_plan(const std::shared_ptr<engine::Engine>& engine, const std::vector<Alternatives>& alternatives,
                const PlanSearchOptions& options, tune::TimingCache* cache);

}  // namespace hone::builder
