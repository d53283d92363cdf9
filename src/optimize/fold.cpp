// Constant folding.
//
// fold_constants: a node whose inputs are all constants is run, by the kernels that would run it, and its
// outputs become constants.
// When: the operator is deterministic, has no subgraphs, and the result stays inside the budgets: no
// constant above fold_budget_bytes, none that outgrows its inputs by more than fold_growth_factor and
// fold_growth_bytes allow. DequantizeLinear stays: the types that a quantised model asks for are obeyed. A
// kernel that refuses (an index out of range, say) leaves the node: the error belongs to the run, and only
// if that branch is taken.
// Example: %w2 = Transpose(@w) becomes a constant
//
// fold_contents: an integer tensor whose elements inference knows is a constant, whatever computed it:
// Shape of known dimensions, and the arithmetic on it.
// Example: Gather(Shape(%x: f32[N,3,224,224]), 2) becomes 224
//
// captured_constants: a constant that a subgraph captures is a constant inside it.
#include "hone/error.h"
#include "ops/interpreter.h"
#include "optimize/passes.h"

namespace hone::optimize {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::ValueId;

namespace {

// Turns output `id` into a constant: nobody writes it any more, nobody reads it as an activation.
ir::Dim make_constant(Graph& graph, ValueId id, Tensor data) {
  ir::Dim saved = 0;
  const ir::Dim bytes = value_bytes(graph, id);
  const Node* producer = graph.value(id).producer;
  if (producer != nullptr && !is_view(*producer)) saved = saved + bytes;
  for (const ir::Use& use : graph.value(id).uses)
    if (!is_view(*use.node)) saved = saved + bytes;
  graph.set_constant(id, std::move(data));
  return saved;
}

bool has_subgraph(const Node& n) {
  for (const auto& [name, attr] : n.attrs)
    if (std::holds_alternative<std::shared_ptr<Graph>>(attr) ||
        std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(attr))
      return true;
  return n.body != nullptr || n.num_captures > 0;
}

bool fits_type(const ir::TypeInfo& t, const Tensor& data) {
  if (t.dtype != DType::kUndefined && t.dtype != data.dtype()) return false;
  if (!t.shape) return true;
  if (t.shape->size() != data.shape().size()) return false;
  for (size_t i = 0; i < t.shape->size(); ++i)
    if ((*t.shape)[i].is_const() && (*t.shape)[i].value() != data.shape()[i]) return false;
  return true;
}

// Why the node is not folded, or empty.
std::string fold(PassContext& ctx, Node& n) {
  Graph& graph = ctx.graph;
  const ops::OpDef* def = ops::find_op(n.domain, n.op);
  if (def == nullptr || def->kernel == nullptr || !def->deterministic || has_subgraph(n))
    return "not an operator that folds";
  if (n.is("DequantizeLinear")) return "quantised weights stay quantised";
  std::vector<const Tensor*> inputs;
  int64_t in_bytes = 0, out_bytes = 0;
  for (const ValueId id : n.inputs) {
    if (id != kNoValue && !graph.value(id).is_const()) return "an input is computed";
    inputs.push_back(id == kNoValue ? nullptr : graph.value(id).data.get());
    if (inputs.back() != nullptr) in_bytes += inputs.back()->nbytes();
  }
  std::vector<DType> dtypes;
  for (const ValueId id : n.outputs) {
    dtypes.push_back(id == kNoValue ? DType::kUndefined : graph.value(id).type.dtype);
    if (id == kNoValue) continue;
    const ir::TypeInfo& t = graph.value(id).type;
    if (!known(t)) return "the result's type is unknown";
    const auto dims = ir::const_dims(*t.shape);
    if (!dims) return "the result's shape is unknown";
    out_bytes += dtype_bytes(t.dtype, numel(*dims));
  }
  if (out_bytes > ctx.fold_budget_bytes) return "the result is above the folding budget";
  if (out_bytes > in_bytes * ctx.fold_growth_factor + ctx.fold_growth_bytes)
    return "the result outgrows its inputs";
  try {
    std::vector<Tensor> results = ops::run_node(graph, n, inputs);
    const std::vector<ValueId> outputs = n.outputs;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != kNoValue && !fits_type(graph.value(outputs[i]).type, results.at(i)))
        return "the kernel gives another type than inferred";
    LedgerRow row{"fold_constants", n.name, n.sources, 0};
    if (row.sources.empty()) row.sources = {n.name};
    for (size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != kNoValue)
        row.bytes_not_moved = row.bytes_not_moved + make_constant(graph, outputs[i], std::move(results[i]));
    graph.remove_node(&n);
    ++ctx.changes;
    ctx.record(std::move(row));
    return "";
  } catch (const Error& e) {
    return std::string("left for run time: ") + e.what();
  }
}

}  // namespace

void fold_constants(PassContext& ctx) {
  Graph& graph = ctx.graph;
  Node* node = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (node != nullptr) {
    Node* const n = node;
    node = graph.next(node);
    bool all = true;
    for (const ValueId id : n->inputs) all = all && (id == kNoValue || graph.value(id).is_const());
    if (!all) continue;
    const std::string name = n->name;
    if (const std::string why = fold(ctx, *n); !why.empty())
      trace("fold_constants", name, "not applied: " + why);
  }
}

void fold_contents(PassContext& ctx) {
  Graph& graph = ctx.graph;
  for (const auto& node : graph.nodes()) {
    for (const ValueId id : std::vector<ValueId>(node->outputs)) {
      if (id == kNoValue) continue;
      const ir::Value& v = graph.value(id);
      if (!v.contents || !v.type.shape || (v.uses.empty() && !graph.is_output(id))) continue;
      if (v.type.dtype != DType::kI64 && v.type.dtype != DType::kI32 && v.type.dtype != DType::kBool)
        continue;
      const auto values = ir::const_dims(*v.contents);
      const auto shape = ir::const_dims(*v.type.shape);
      if (!values || !shape || numel(*shape) != static_cast<int64_t>(values->size())) continue;
      Tensor t(v.type.dtype, *shape);
      for (size_t i = 0; i < values->size(); ++i) {
        if (t.dtype() == DType::kI64) t.data<int64_t>()[i] = (*values)[i];
        if (t.dtype() == DType::kI32) t.data<int32_t>()[i] = static_cast<int32_t>((*values)[i]);
        if (t.dtype() == DType::kBool) t.data<uint8_t>()[i] = (*values)[i] != 0 ? 1 : 0;
      }
      LedgerRow row{"fold_contents", node->name, node->sources, 0};
      row.bytes_not_moved = make_constant(graph, id, std::move(t));
      ++ctx.changes;
      ctx.record(std::move(row));
    }
  }
}

void captured_constants(PassContext& ctx) {
  Graph& graph = ctx.graph;
  for (const auto& node : graph.nodes()) {
    if (node->num_captures == 0) continue;
    const size_t first = node->inputs.size() - static_cast<size_t>(node->num_captures);
    for (auto& [name, attr] : node->attrs) {
      const auto* sub = std::get_if<std::shared_ptr<Graph>>(&attr);
      if (sub == nullptr || *sub == nullptr) continue;
      for (size_t i = 0; i < (*sub)->captures.size() && first + i < node->inputs.size(); ++i) {
        const ValueId outer = node->inputs[first + i], inner = (*sub)->captures[i];
        if (outer == kNoValue || inner == kNoValue || !graph.value(outer).is_const()) continue;
        // The capture stays listed (its number is part of the node's interface); readers inside get the
        // constant.
        if ((*sub)->value(inner).uses.empty()) continue;
        const ValueId copy = (*sub)->add_constant(graph.value(outer).name, *graph.value(outer).data);
        (*sub)->replace_uses(inner, copy);
        ++ctx.changes;
      }
    }
  }
}

}  // namespace hone::optimize
