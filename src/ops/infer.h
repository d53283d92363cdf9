// Runs shape inference over graphs.
#pragma once

#include "ir/graph.h"

namespace hone::ops {

/// Infers types, shapes and known integer contents of one node's outputs. Ops without inference leave their
/// outputs unknown.
void infer_node(ir::Graph& graph, ir::Node& node);
/// The same for every node in order, subgraphs included. `refresh` forgets derived types first (after a
/// rewrite changed shapes).
void infer_graph(ir::Graph& graph, bool refresh = false);

}  // namespace hone::ops
