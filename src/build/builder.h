// The whole path of a model: import, infer, optimise, plan, tune.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "hone/builder.h"
#include "ir/graph.h"

namespace hone::builder {

/// Imports and infers, with `options.shapes`, `batch` and profiles applied to the interface.
ir::Model import_for_build(const std::string& model_path, const BuildOptions& options, BuildReport* report);

/// Concrete optimization profiles for a graph: given ranges, else the given shapes, else 1 for every symbol.
std::vector<engine::Profile> make_profiles(const ir::Graph& graph, const BuildOptions& options);

/// Import to optimised graph; `ledger` gets the rewrites.
ir::Model optimise(const std::string& model_path, const BuildOptions& options, BuildReport* report,
                   engine::Plan* ledger);

std::shared_ptr<const engine::Engine> build_engine(const std::string& model_path, const BuildOptions& options,
                                                   BuildReport* report);

/// The same graph, profiles and flags as the engine's, planned and tuned again: only tactics and what follows
/// from them may differ.
std::shared_ptr<const engine::Engine> retune_engine(const engine::Engine& engine, const BuildOptions& options,
                                                    BuildReport* report);

}  // namespace hone::builder
