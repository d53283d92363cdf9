#include "ops/legacy.h"

#include "ops/interpreter.h"

namespace hone::ops {

void unsqueeze_input(AdaptContext& ctx, size_t i, const std::vector<int64_t>& axes) {
  const ir::ValueId list = ctx.ints("axes", axes);
  const ir::Node* node = ctx.graph.add_node("Unsqueeze", {ctx.node.inputs[i], list}, {}, "", &ctx.node,
                                            ctx.node.name + "/unsqueeze");
  ctx.graph.set_input(&ctx.node, i, node->outputs[0]);
  const TypeInfo& from = ctx.graph.value(node->inputs[0]).type;
  if (from.known_rank()) {
    TypeInfo& to = ctx.graph.value(node->outputs[0]).type;
    to.dtype = from.dtype;
    Dims dims = *from.shape;
    for (const int64_t a : axes) dims.insert(dims.begin() + a, Dim(1));
    to.shape = std::move(dims);
  }
}

void adapt_legacy_broadcast(AdaptContext& ctx) {
  ctx.node.attrs.erase("consumed_inputs");
  if (ctx.since >= 7) return;
  const bool broadcast = ctx.node.get_int("broadcast", 0) != 0;
  const bool has_axis = ctx.node.has("axis");
  const int64_t axis = ctx.node.get_int("axis", -1);
  ctx.node.attrs.erase("broadcast");
  ctx.node.attrs.erase("axis");
  if (!broadcast || !has_axis) return;  // equal shapes, or B matches the last dimensions of A: NumPy's rule
  const TypeInfo& a = ctx.graph.value(ctx.node.inputs[0]).type;
  const TypeInfo& b = ctx.graph.value(ctx.node.inputs[1]).type;
  if (!a.known_rank() || !b.known_rank())
    ctx.fail("broadcast with an axis (opset below 7) needs the ranks of both inputs");
  const int64_t at = axis < 0 ? axis + a.rank() : axis;
  const int64_t trailing = a.rank() - at - b.rank();
  if (at < 0 || trailing < 0) ctx.fail("axis " + std::to_string(axis) + " does not place B inside A");
  std::vector<int64_t> axes;
  for (int64_t k = 0; k < trailing; ++k) axes.push_back(b.rank() + k);
  if (!axes.empty()) unsqueeze_input(ctx, 1, axes);
}

void put_input(AdaptContext& ctx, size_t i, ir::ValueId value) {
  while (ctx.node.inputs.size() < i) ctx.graph.append_input(&ctx.node, ir::kNoValue);
  if (ctx.node.inputs.size() == i) {
    ctx.graph.append_input(&ctx.node, value);
  } else {
    ctx.graph.set_input(&ctx.node, i, value);
  }
}

void attr_to_input(AdaptContext& ctx, std::string_view attr, size_t i) {
  const auto it = ctx.node.attrs.find(attr);
  if (it == ctx.node.attrs.end()) return;
  const std::vector<int64_t> values = ctx.node.get_ints(attr);
  ctx.node.attrs.erase(it);
  put_input(ctx, i, ctx.ints(std::string(attr), values));
}

ir::ValueId scalar_like_input(AdaptContext& ctx, const std::string& name, float value) {
  const DType t = ctx.graph.value(ctx.node.inputs[0]).type.dtype;
  const Tensor scalar = Tensor::f32_scalar(value);
  if (t == DType::kF32) return ctx.graph.add_constant(ctx.node.name + "/" + name, scalar);
  if (t != DType::kUndefined) return ctx.graph.add_constant(ctx.node.name + "/" + name, convert(scalar, t));
  const ir::ValueId constant = ctx.graph.add_constant(ctx.node.name + "/" + name, scalar);
  return ctx.graph
      .add_node("CastLike", {constant, ctx.node.inputs[0]}, {}, "", &ctx.node,
                ctx.node.name + "/" + name + "_cast")
      ->outputs[0];
}

}  // namespace hone::ops
