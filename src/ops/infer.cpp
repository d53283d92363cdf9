#include "ops/infer.h"

#include "ops/op.h"

namespace hone::ops {
namespace {

/// A fused layer's outputs are those of its body on the layer's input types.
void infer_body(ir::Graph& graph, ir::Node& node) {
  ir::Graph& body = *node.body;
  InferContext ctx(graph, node);
  if (body.inputs().size() != node.inputs.size() || body.outputs().size() != node.outputs.size()) {
    ctx.fail("body's interface differs from its node's");
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == ir::kNoValue) continue;
    const ir::Value& outer = graph.value(node.inputs[i]);
    ir::Value& inner = body.value(body.inputs()[i]);
    inner.type = outer.type;
    inner.contents = outer.contents;
  }
  infer_graph(body, true);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ir::Value& inner = body.value(body.outputs()[i]);
    ctx.set_output(i, inner.type);
    if (inner.contents) ctx.set_contents(i, *inner.contents);
  }
}

}  // namespace

void infer_node(ir::Graph& graph, ir::Node& node) {
  if (node.body != nullptr) {
    infer_body(graph, node);
    return;
  }
  const OpDef* op = find_op(node.domain, node.op);
  if (op == nullptr || op->infer == nullptr) return;
  InferContext ctx(graph, node);
  op->infer(ctx);
}

void infer_graph(ir::Graph& graph, bool refresh) {
  if (refresh) {
    for (const auto& node : graph.nodes()) {
      for (const ir::ValueId id : node->outputs) {
        if (id == ir::kNoValue || graph.value(id).is_const()) continue;
        graph.value(id).type = {};
        graph.value(id).contents.reset();
      }
    }
  }
  for (const auto& node : graph.nodes()) infer_node(graph, *node);
}

}  // namespace hone::ops
