// Nodes whose results nobody reads are removed; constants that nobody reads give back their bytes.
//
// When: no output of the node has a use or is a graph output. Operators here have no side effects.
// Why: rewrites leave what they no longer need to this pass.
// Example: %unused = Shape(%x)   goes
#include "optimize/passes.h"

namespace hone::optimize {

void dead_code(PassContext& ctx) {
  ir::Graph& graph = ctx.graph;
  const auto dead = [&](const ir::Node& n) {
    for (const ir::ValueId id : n.outputs)
      if (id != ir::kNoValue && (!graph.value(id).uses.empty() || graph.is_output(id))) return false;
    return true;
  };
  // From the end, so that a chain dies in one walk.
  auto it = graph.nodes().end();
  while (it != graph.nodes().begin()) {
    --it;
    ir::Node* node = it->get();
    ++it;  // the node's successor survives its removal
    if (dead(*node)) {
      drop_node(ctx, "dead_code", node);
    } else {
      --it;
    }
  }
  for (size_t i = 0; i < graph.num_values(); ++i) {
    ir::Value& v = graph.value(static_cast<ir::ValueId>(i));
    if (v.is_const() && v.uses.empty() && !graph.is_output(v.id)) v.data.reset();
  }
}

}  // namespace hone::optimize
