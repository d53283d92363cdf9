// The optimised graph that an engine stores, with its weights unpacked.
#pragma once

#include <memory>

#include "engine/engine.h"
#include "ir/graph.h"

namespace hone::runtime {

/// Parses Engine::graph_text; packed constants are unpacked one by one (copies), plain ones stay views of the
/// file. Used by the ref backend on an engine, by inspect and by steps with subgraphs.
std::unique_ptr<ir::Graph> materialize_graph(const engine::Engine& engine);

}  // namespace hone::runtime
