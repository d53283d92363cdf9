// Common subexpressions and equal constants.
//
// common_subexpressions: a node that computes what an earlier one has computed gives way to it.
// When: operator, attributes (tensors by their bytes) and inputs are equal, inputs of commuting operators
// in either order; the operator is deterministic and has no subgraph.
// Example: %a = Shape(%x); %b = Shape(%x) becomes one node
//
// merge_constants: constants of equal type, shape and bytes are one value, so that the above sees equal
// inputs and a file holds the bytes once. Graph outputs keep their own.
#include <cstring>
#include <map>
#include <unordered_map>

#include "ops/op.h"
#include "optimize/passes.h"

namespace hone::optimize {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::ValueId;

namespace {

// A few words of the bytes: enough to tell weights apart without reading them all; equality is decided by the
// bytes themselves.
size_t sample_hash(const Tensor& t) {
  const auto n = static_cast<size_t>(t.nbytes());
  const auto* p = static_cast<const char*>(t.raw());
  size_t h = n * 1000003U + static_cast<size_t>(t.dtype());
  for (const int64_t d : t.shape()) h = h * 31U + static_cast<size_t>(d);
  constexpr size_t kPieces = 8, kBytes = 32;
  for (size_t i = 0; i < kPieces; ++i) {
    const size_t at = n <= kBytes ? 0 : (n - kBytes) / (kPieces - 1) * i;
    h = h * 1000003U + std::hash<std::string_view>()(std::string_view(p + at, std::min(kBytes, n - at)));
  }
  return h;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.raw() == b.raw() || std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.nbytes())) == 0);
}

bool commutes(const Node& n) {
  return n.domain.empty() && n.inputs.size() == 2 &&
         (n.op == "Add" || n.op == "Mul" || n.op == "And" || n.op == "Or" || n.op == "Equal");
}

std::string key_of(const Node& n) {
  std::string key = n.domain + "::" + n.op + "/" + std::to_string(n.outputs.size());
  std::vector<ValueId> inputs = n.inputs;
  if (commutes(n) && inputs[0] > inputs[1]) std::swap(inputs[0], inputs[1]);
  for (const ValueId id : inputs) key += "," + std::to_string(id);
  return key;
}

bool has_subgraph(const Node& n) {
  for (const auto& [name, attr] : n.attrs)
    if (std::holds_alternative<std::shared_ptr<Graph>>(attr) ||
        std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(attr))
      return true;
  return n.body != nullptr || n.num_captures > 0;
}

// Can every output of `b` be read from `a` instead? A graph output that would need an Identity keeps its
// node.
bool can_stand_in(const Graph& graph, const Node& a, const Node& b) {
  for (size_t i = 0; i < b.outputs.size(); ++i) {
    if (b.outputs[i] == kNoValue) continue;
    if (a.outputs[i] == kNoValue || graph.is_output(b.outputs[i])) return false;
  }
  return true;
}

}  // namespace

void merge_constants(PassContext& ctx) {
  Graph& graph = ctx.graph;
  std::unordered_map<size_t, std::vector<ValueId>> seen;
  for (size_t i = 0; i < graph.num_values(); ++i) {
    const auto id = static_cast<ValueId>(i);
    const ir::Value& v = graph.value(id);
    if (!v.is_const() || v.uses.empty() || graph.is_output(id) || v.data->dtype() == DType::kString) continue;
    std::vector<ValueId>& same_hash = seen[sample_hash(*v.data)];
    bool merged = false;
    for (const ValueId other : same_hash) {
      if (!same_bytes(*graph.value(other).data, *v.data)) continue;
      graph.replace_uses(id, other);
      ++ctx.changes;
      merged = true;
      break;
    }
    if (!merged) same_hash.push_back(id);
  }
}

void common_subexpressions(PassContext& ctx) {
  Graph& graph = ctx.graph;
  std::unordered_map<std::string, std::vector<Node*>> seen;
  Node* node = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (node != nullptr) {
    Node* const n = node;
    node = graph.next(node);
    const ops::OpDef* def = ops::find_op(n->domain, n->op);
    if (def == nullptr || !def->deterministic || has_subgraph(*n)) continue;
    std::vector<Node*>& candidates = seen[key_of(*n)];
    Node* twin = nullptr;
    for (Node* c : candidates)
      if (twin == nullptr && attrs_equal(c->attrs, n->attrs) && can_stand_in(graph, *c, *n)) twin = c;
    if (twin == nullptr) {
      candidates.push_back(n);
      continue;
    }
    for (size_t i = 0; i < n->outputs.size(); ++i)
      if (n->outputs[i] != kNoValue) graph.replace_uses(n->outputs[i], twin->outputs[i]);
    drop_node(ctx, "common_subexpressions", n);
  }
}

}  // namespace hone::optimize
