// Activation traffic: what fusing saves, in bytes.
#pragma once

#include "ir/graph.h"

namespace hone::builder {

/// Bytes of activations that a graph moves when every node is a kernel of its own: each tensor that a node
/// produces or that is a graph input counts one read per reader, each that a node produces one write as well.
/// Constants and shape arithmetic (integer tensors of at most `small` elements) do not count. A formula over
/// the graph's symbols.
ir::Dim activation_traffic(const ir::Graph& graph, int64_t small = 64);

}  // namespace hone::builder
