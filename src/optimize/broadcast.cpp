// An Expand in front of an elementwise operator goes where broadcasting does the same.
//
// When: the operator's result keeps its type with the unexpanded tensor in that place, by inference: the
// other operands bring the extent.
// Why: the expanded copy is never written.
// Example: Add(%scores: f32[N,12,S,S], Expand(%mask: f32[N,1,1,S], [N,1,S,S])) becomes Add(%scores, %mask)
#include "hone/error.h"
#include "ops/op.h"
#include "optimize/passes.h"

namespace hone::optimize {

void needless_expand(PassContext& ctx) {
  ir::Graph& graph = ctx.graph;
  ir::Node* node = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (node != nullptr) {
    ir::Node* const n = node;
    node = graph.next(node);
    const ops::OpDef* def = ops::find_op(n->domain, n->op);
    if (def == nullptr || !def->elementwise || n->outputs.size() != 1 || n->inputs.size() < 2) continue;
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      if (n->inputs[i] == ir::kNoValue) continue;
      const ir::Node* expand = graph.value(n->inputs[i]).producer;
      if (expand == nullptr || !expand->is("Expand") || !known(graph.value(n->outputs[0]).type)) continue;
      Trial trial(graph, n);
      try {
        std::vector<ir::ValueId> inputs = n->inputs;
        inputs[i] = expand->inputs[0];
        const ir::ValueId to = trial.value(n->op, inputs, n->attrs, n->domain);
        if (!same_type(graph.value(to).type, graph.value(n->outputs[0]).type)) {
          trial.take_back();
          continue;
        }
        if (commit(ctx, "needless_expand", trial, n->outputs[0], to, {n}, nullptr)) break;
      } catch (const Error&) {
        trial.take_back();
      }
    }
  }
}

}  // namespace hone::optimize
