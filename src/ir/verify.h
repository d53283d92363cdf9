// Structural checks of a graph, run after every pass in debug builds and under --verify.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace hone::ir {

/// Everything that is wrong with the graph's structure; empty when sound. Checks: every input is defined
/// before its use, uses and producers agree both ways, names are unique, outputs exist, constants match their
/// type, subgraph captures correspond, bodies' interfaces match.
std::vector<std::string> verify(const Graph& graph);

/// Throws kInternal listing what verify() found, with `stage` as context.
void verify_or_throw(const Graph& graph, const std::string& stage);

}  // namespace hone::ir
