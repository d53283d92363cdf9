// Binding: a plan's formulas evaluated for one set of input shapes.
#include <algorithm>
#include <cmath>

#include "backends/backend.h"
#include "base/checked.h"
#include "hone/error.h"
#include "runtime/session.h"

namespace hone::runtime {

using engine::Engine;
using engine::kNone;
using engine::Place;
using engine::Plan;
using engine::PlanId;
using engine::PlanStep;
using engine::PlanValue;
using engine::StepKind;

namespace {

ir::SymbolValues input_symbols(const Plan& plan, const std::vector<Shape>& shapes) {
  if (shapes.size() != plan.inputs.size())
    throw Error(ErrorCode::kInvalidArgument,
                "the engine has " + std::to_string(plan.inputs.size()) + " inputs, " +
                    std::to_string(shapes.size()) + " were given",
                {.stage = "bind"});
  ir::SymbolValues symbols;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const PlanValue& v = plan.values[static_cast<size_t>(plan.inputs[i])];
    const ErrorContext where{.stage = "bind",
                             .tensor = v.name + " " + dtype_name(v.dtype) + ir::dims_text(v.dims)};
    if (v.dims.size() != shapes[i].size())
      throw Error(ErrorCode::kInvalidArgument,
                  "input '" + v.name + "' has rank " + std::to_string(v.dims.size()) + ", but " +
                      type_text(v.dtype, shapes[i]) + " was given",
                  where);
    for (size_t d = 0; d < v.dims.size(); ++d) {
      const int64_t got = shapes[i][d];
      if (got < 0)
        throw Error(ErrorCode::kInvalidArgument, "input '" + v.name + "' was given a negative dimension",
                    where);
      if (v.dims[d].is_const()) {
        if (v.dims[d].value() != got)
          throw Error(ErrorCode::kInvalidArgument,
                      "dimension " + std::to_string(d) + " of input '" + v.name + "' is fixed at " +
                          std::to_string(v.dims[d].value()) + ", but " + std::to_string(got) + " was given",
                      where);
        continue;
      }
      const auto [at, inserted] = symbols.emplace(v.dims[d].text(), got);
      if (!inserted && at->second != got)
        throw Error(ErrorCode::kInvalidArgument,
                    "dimension " + std::to_string(d) + " of input '" + v.name + "' is " +
                        std::to_string(got) + ", but '" + at->first + "' is " + std::to_string(at->second) +
                        " in another input: equal symbols must be equal",
                    where);
    }
  }
  return symbols;
}

/// The profile whose ranges hold the shapes and whose opt is nearest (sum of |log ratio| over dimensions).
int choose_bucket(const Plan& plan, const std::vector<Shape>& shapes, std::vector<std::string>* events) {
  int best = -1;
  double best_distance = 0;
  std::string why;
  for (size_t b = 0; b < plan.profiles.size(); ++b) {
    bool inside = true;
    double distance = 0;
    for (const engine::ProfileRange& r : plan.profiles[b])
      for (size_t i = 0; i < plan.inputs.size(); ++i) {
        const PlanValue& v = plan.values[static_cast<size_t>(plan.inputs[i])];
        if (v.name != r.input || r.opt.size() != shapes[i].size()) continue;
        for (size_t d = 0; d < r.opt.size(); ++d) {
          const int64_t got = shapes[i][d];
          if (got < r.min[d] || got > r.max[d]) {
            inside = false;
            why = "dimension " + std::to_string(d) + " of input '" + v.name + "' is " + std::to_string(got) +
                  ", outside [" + std::to_string(r.min[d]) + ", " + std::to_string(r.max[d]) + "]";
          }
          distance += std::abs(std::log(static_cast<double>(got + 1) / static_cast<double>(r.opt[d] + 1)));
        }
      }
    if (inside && (best < 0 || distance < best_distance)) {
      best = static_cast<int>(b);
      best_distance = distance;
    }
  }
  if (best < 0)
    throw Error(ErrorCode::kInvalidArgument,
                "the shapes lie outside every optimization profile: " + why +
                    "; build with --minShapes/--maxShapes that hold them",
                {.stage = "bind"});
  if (best_distance > 0)
    events->push_back("shapes differ from the tuned ones of profile " + std::to_string(best) +
                      ": its tactics run untuned");
  return best;
}

ops::Problem concrete(const PlanStep& s, const std::vector<Shape>& shapes) {
  ops::Problem p = s.problem;
  for (size_t k = 0; k < p.srcs.size(); ++k)
    if (s.srcs[k] != kNone) p.srcs[k].dims = shapes[static_cast<size_t>(s.srcs[k])];
  for (size_t k = 0; k < p.dsts.size(); ++k)
    if (s.dsts[k] != kNone) p.dsts[k].dims = shapes[static_cast<size_t>(s.dsts[k])];
  return p;
}

}  // namespace

std::shared_ptr<const Bound> bind(const Engine& engine, const std::vector<Shape>& input_shapes,
                                  int64_t max_memory) {
  const Plan& plan = engine.plan;
  auto bound = std::make_shared<Bound>();
  Bound& b = *bound;
  b.symbols = input_symbols(plan, input_shapes);
  b.bucket = choose_bucket(plan, input_shapes, &b.events);

  const size_t n = plan.values.size();
  b.shapes.resize(n);
  b.known.assign(n, 0);
  b.bytes.assign(n, 0);
  b.offsets.assign(n, -1);
  for (size_t i = 0; i < n; ++i) {
    const PlanValue& v = plan.values[i];
    if (v.place == Place::kDynamic) continue;
    bool known = true;
    for (const ir::Dim& d : v.dims) {
      const auto e = d.eval(b.symbols);
      known &= e.has_value();
      if (e && *e < 0)
        throw Error(ErrorCode::kInvalidArgument,
                    "these input shapes give '" + v.name + "' the negative dimension " + std::to_string(*e) +
                        " (" + d.text() + ")",
                    {.stage = "bind", .tensor = v.name});
      b.shapes[i].push_back(e.value_or(0));
    }
    b.known[i] = known;
    if (known) b.bytes[i] = dtype_bytes(v.dtype, numel(b.shapes[i]));
  }

  // Prepared steps.
  const backends::Target target = backends::Target::parse(engine.target);
  const backends::Backend* backend = backends::find_backend(target.backend);
  if (backend == nullptr)
    throw Error(ErrorCode::kUnsupported,
                "engine built for '" + engine.target + "', this build of hone has no such backend",
                {.stage = "bind"});
  b.prepared.resize(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& s = plan.steps[i];
    if (s.kind != StepKind::kTactic && s.kind != StepKind::kReorder) continue;
    const ops::Problem p = concrete(s, b.shapes);
    const std::string& name = s.choices[static_cast<size_t>(b.bucket)].tactic;
    const backends::Tactic* tactic = backend->find(name);
    if (tactic == nullptr)
      throw Error(ErrorCode::kCorruptEngine,
                  "step '" + s.name + "' wants the tactic '" + name +
                      "', which this hone does not have: rebuild the engine",
                  {.stage = "bind", .node = s.name});
    const backends::Support ok = tactic->supports(p);
    if (!ok)
      throw Error(ErrorCode::kNoTactic, name + " does not run " + p.text() + ": " + ok.reason,
                  {.stage = "bind", .node = s.name, .op = p.op});
    b.prepared[i] = tactic->prepare(p);
  }

  // Lifetimes of arena roots; a step may reuse the memory of a source that dies there.
  std::vector<int> first(n, -1), last(n, -1);
  const auto root = [&](PlanId id) {
    const PlanId r = plan.values[static_cast<size_t>(id)].alias_of;
    return static_cast<size_t>(r == kNone ? id : r);
  };
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const int at = static_cast<int>(i);
    for (PlanId id : plan.steps[i].dsts)
      if (id != kNone) {
        const size_t r = root(id);
        if (first[r] < 0) first[r] = at;
        last[r] = std::max(last[r], at);
      }
    for (PlanId id : plan.steps[i].srcs)
      if (id != kNone) last[root(id)] = std::max(last[root(id)], at);
  }
  for (PlanId id : plan.outputs) last[root(id)] = static_cast<int>(plan.steps.size());

  std::vector<size_t> shares(n);  // representative of each in-place group
  for (size_t i = 0; i < n; ++i) shares[i] = i;
  const auto in_arena = [&](size_t i) {
    return plan.values[i].place == Place::kArena && plan.values[i].alias_of == kNone && b.bytes[i] > 0 &&
           first[i] >= 0;
  };
  std::vector<int> group_last = last;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& s = plan.steps[i];
    if (s.kind != StepKind::kTactic || s.dsts.size() != 1 || s.dsts[0] == kNone) continue;
    const size_t dst = static_cast<size_t>(s.dsts[0]);
    if (!in_arena(dst)) continue;
    const backends::Tactic* tactic = backend->find(s.choices[static_cast<size_t>(b.bucket)].tactic);
    const ops::Problem p = concrete(s, b.shapes);
    for (size_t k = 0; k < s.srcs.size(); ++k) {
      if (s.srcs[k] == kNone) continue;
      const size_t src = root(s.srcs[k]);
      if (!in_arena(src) || b.bytes[src] != b.bytes[dst] || last[src] != static_cast<int>(i) ||
          p.srcs[k].layout != p.dsts[0].layout)
        continue;
      // Another source of this step in the same memory would be overwritten while it is read.
      size_t reads = 0;
      for (PlanId other : s.srcs) reads += other != kNone && shares[root(other)] == shares[src];
      if (reads != 1 || !tactic->in_place(p, k)) continue;
      shares[dst] = shares[src];
      group_last[shares[src]] = std::max(group_last[shares[src]], last[dst]);
      break;
    }
  }

  std::vector<engine::MemoryRequest> requests;
  std::vector<int> request_of(n, -1);
  for (size_t i = 0; i < n; ++i) {
    if (!in_arena(i) || shares[i] != i) continue;
    request_of[i] = static_cast<int>(requests.size());
    requests.push_back({b.bytes[i], first[i], group_last[i]});
  }
  std::vector<int> workspace_request(plan.steps.size(), -1);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const int64_t bytes = b.prepared[i] ? b.prepared[i]->workspace_bytes() : 0;
    if (bytes == 0) continue;
    workspace_request[i] = static_cast<int>(requests.size());
    requests.push_back({bytes, static_cast<int>(i), static_cast<int>(i)});
  }
  b.memory = engine::plan_memory(requests);
  for (size_t i = 0; i < n; ++i)
    if (in_arena(i)) b.offsets[i] = b.memory.offsets[static_cast<size_t>(request_of[shares[i]])];
  b.workspace_offsets.assign(plan.steps.size(), -1);
  for (size_t i = 0; i < plan.steps.size(); ++i)
    if (workspace_request[i] >= 0)
      b.workspace_offsets[i] = b.memory.offsets[static_cast<size_t>(workspace_request[i])];
  b.first = std::move(first);
  b.last = std::move(last);

  if (max_memory > 0 && b.memory.arena_bytes > max_memory)
    throw Error(ErrorCode::kOutOfMemory,
                "the arena needs " + std::to_string(b.memory.arena_bytes) + " bytes, --maxMemory allows " +
                    std::to_string(max_memory) + "; live at the peak:\n" + describe_peak(engine, b),
                {.stage = "bind"});
  return bound;
}

std::string describe_peak(const Engine& engine, const Bound& b) {
  const Plan& plan = engine.plan;
  const int at = b.memory.peak_step;
  std::vector<std::pair<int64_t, std::string>> live;
  for (size_t i = 0; i < plan.values.size(); ++i)
    if (b.offsets[i] >= 0 && b.first[i] <= at && at <= b.last[i])
      live.emplace_back(b.bytes[i], plan.values[i].name + " " + type_text(plan.values[i].dtype, b.shapes[i]));
  if (static_cast<size_t>(at) < b.prepared.size() && b.prepared[static_cast<size_t>(at)] &&
      b.prepared[static_cast<size_t>(at)]->workspace_bytes() > 0)
    live.emplace_back(b.prepared[static_cast<size_t>(at)]->workspace_bytes(),
                      "workspace of " + plan.steps[static_cast<size_t>(at)].name);
  std::sort(live.begin(), live.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  std::string text =
      "  at step " + std::to_string(at) +
      (static_cast<size_t>(at) < plan.steps.size() ? " '" + plan.steps[static_cast<size_t>(at)].name + "'"
                                                   : "") +
      "\n";
  for (const auto& [bytes, name] : live) text += "  " + std::to_string(bytes) + "  " + name + "\n";
  return text;
}

}  // namespace hone::runtime
