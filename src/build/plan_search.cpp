#include "build/plan_search.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "base/log.h"
#include "hone/error.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"

namespace hone::builder {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 9;
constexpr double kGain = 0.99;

double ms_since(Clock::time_point t) {
  return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
}

/// Steps of one problem with the alternatives that all of them share.
struct Group {
  std::string problem;
  std::vector<size_t> steps;
  std::vector<engine::TacticChoice> choices;
  double time_ns = 0;
};

std::vector<Group> group(const engine::Engine& e, const std::vector<Alternatives>& alternatives) {
  std::map<std::string, Group> by_problem;
  for (const Alternatives& a : alternatives) {
    Group& g = by_problem[e.plan.steps[a.step].problem.text()];
    g.steps.push_back(a.step);
    g.choices = a.choices;
    g.time_ns += e.plan.steps[a.step].choices.front().time_ns;
  }
  std::vector<Group> out;
  for (auto& [problem, g] : by_problem) {
    g.problem = problem;
    out.push_back(std::move(g));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Group& a, const Group& b) { return a.time_ns > b.time_ns; });
  return out;
}

/// The plan as a cache key: everything that was decided before, in order.
std::string plan_key(const engine::Engine& e) {
  std::string all;
  for (const engine::PlanStep& s : e.plan.steps) all += s.problem.text() + '\n';
  char text[32];
  std::snprintf(text, sizeof text, "plan %016llx",
                static_cast<unsigned long long>(XXH3_64bits(all.data(), all.size())));
  return text;
}

/// Names of the first bucket's tactics at the steps that have alternatives, joined: what a cache entry stores
/// as its tactic.
std::string chosen(const engine::Engine& e, const std::vector<Group>& groups) {
  std::string out;
  for (const Group& g : groups)
    out += (out.empty() ? "" : " ") + e.plan.steps[g.steps.front()].choices.front().tactic;
  return out;
}

void apply(engine::Engine& e, const Group& g, const engine::TacticChoice& choice) {
  for (size_t step : g.steps) e.plan.steps[step].choices.front() = choice;
}

}  // namespace

int search_plan(const std::shared_ptr<engine::Engine>& engine, const std::vector<Alternatives>& alternatives,
                const PlanSearchOptions& options, tune::TimingCache* cache) {
  engine::Engine& e = *engine;
  const std::vector<Group> groups = group(e, alternatives);
  if (groups.empty()) return 0;
  const std::string key = plan_key(e);
  int changed = 0;

  if (const auto known = cache->best(e.target, key)) {
    std::string_view names = known->first;
    for (const Group& g : groups) {
      const std::string_view name = names.substr(0, names.find(' '));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      for (const engine::TacticChoice& c : g.choices)
        if (c.tactic == name) {
          apply(e, g, c);
          changed += static_cast<int>(g.steps.size());
          break;
        }
    }
    return changed;
  }
  if (!options.measure) return 0;

  std::vector<Tensor> inputs;
  for (size_t i = 0; i < e.plan.inputs.size(); ++i)
    inputs.push_back(runtime::random_input(e.plan.values[static_cast<size_t>(e.plan.inputs[i])].dtype,
                                           e.plan.profiles.front()[i].opt, 1, i));
  const auto time = [&](runtime::Session& session, std::vector<Tensor>& outputs) {
    const Clock::time_point start = Clock::now();
    session.run_into(inputs, outputs);
    return ms_since(start);
  };
  const auto median = [](std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };

  try {  // made-up inputs may be none that the model accepts (indices, say): then the layers' own times stand
    (void)runtime::Session(engine).run(inputs);
  } catch (const Error&) {
    return 0;
  }
  const Clock::time_point start = Clock::now();
  double best_ms = 0;
  for (const Group& g : groups) {
    if (ms_since(start) > options.budget_ms) break;
    for (const engine::TacticChoice& choice : g.choices) {
      const engine::TacticChoice before = e.plan.steps[g.steps.front()].choices.front();
      // A session keeps what it bound, so both plans can run in turn.
      runtime::Session current(engine);
      std::vector<Tensor> a = current.run(inputs);
      apply(e, g, choice);
      runtime::Session other(engine);
      std::vector<Tensor> b = other.run(inputs);
      std::vector<double> current_ms, other_ms;
      for (int round = 0; round < kRounds; ++round) {
        current_ms.push_back(time(current, a));
        other_ms.push_back(time(other, b));
      }
      const double now = median(current_ms), then = median(other_ms);
      best_ms = std::min(now, then);
      if (log_enabled(Log::kTune))
        log(Log::kTune, "plan with " + choice.tactic + ": " + std::to_string(then) + " ms against " +
                            std::to_string(now) + " with " + before.tactic + ": " + g.problem);
      if (then < kGain * now)
        changed += static_cast<int>(g.steps.size());
      else
        apply(e, g, before);
    }
  }
  cache->put(e.target, key, chosen(e, groups), {best_ms * 1e6, -1});
  return changed;
}

}  // namespace hone::builder
