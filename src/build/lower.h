// From an optimised graph to a plan: layouts, aliases, reorders, packed constants, one step a layer.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "engine/engine.h"
#include "ir/graph.h"
#include "tune/tuner.h"

namespace hone::builder {

using tune::Candidate;

/// Ranks candidates (never empty, fastest first by heuristic) from best to worst, the unusable ones left out.
/// The tuner answers from measurements.
using Chooser = std::function<std::vector<tune::Ranked>(const std::vector<Candidate>&)>;

/// Tactics that could replace a step's choice without touching anything else: the same layouts and packings.
struct Alternatives {
  size_t step = 0;
  std::vector<engine::TacticChoice>
      choices;  ///< of the first bucket, nearly as fast as the one chosen, best first
};

struct LowerOptions {
  backends::Target target;
  /// At least one. The first one's opt shapes decide layouts and packings; every profile is a bucket with
  /// tactics of its own.
  std::vector<engine::Profile> profiles;
  Chooser choose;                                     ///< null: the first candidate
  std::vector<Alternatives>* alternatives = nullptr;  ///< filled when given, for plan_search
  int64_t max_workspace = 0;                          ///< bytes of workspace a step may use, 0: no limit
  bool strict_f32 = false;  ///< refuse tactics of class `transforms` beyond Winograd F(2x2)
};

/// REQUIRES an inferred graph. Errors: kNoTactic listing each tactic's reason.
engine::Engine lower(const ir::Graph& graph, const LowerOptions& options);

/// Values of the graph's input symbols under concrete input shapes; throws kInvalidArgument naming input and
/// dimension on a contradiction.
ir::SymbolValues bind_symbols(const ir::Graph& graph, const std::map<std::string, Shape>& shapes);

}  // namespace hone::builder
