// Products of one tensor with several constant matrices are one product.
//
// What: MatMul(x, W1), MatMul(x, W2), ... (the query, key and value of an attention layer), each with its
// constant bias if it has one, become MatMul(x, [W1 W2 ...]), Add and Split.
// When: the weights are matrices used here only, no intermediate result is read elsewhere or is a graph
// output, and x has few rows (kMaxRows): then reading the weights is all the work and one pass over them
// wins, while for many rows the Split would copy more than reading x once instead of three times saves.
// Why: fewer steps and one stream of weights in decoding and at batch 1.
// Example: q = MatMul(x, @q); k = MatMul(x, @k) becomes q, k = Split(MatMul(x, @qk)) {axis = -1}
#include <cstring>

#include "hone/error.h"
#include "optimize/passes.h"

namespace hone::optimize {

using ir::Graph;
using ir::Node;
using ir::ValueId;

namespace {

constexpr int64_t kMaxRows = 16;

struct Branch {
  Node* product;
  Node* bias = nullptr;  // the Add, if any
  const Tensor* weights;
  const Tensor* bias_data = nullptr;
  ValueId result(const Graph&) const { return bias != nullptr ? bias->outputs[0] : product->outputs[0]; }
};

// Columns side by side: [K, N1] [K, N2] -> [K, N1 + N2]; vectors end to end.
Tensor side_by_side(const std::vector<const Tensor*>& parts, int64_t rows) {
  int64_t columns = 0;
  for (const Tensor* t : parts) columns += t->numel() / rows;
  Tensor all(parts[0]->dtype(), parts[0]->rank() == 2 ? Shape{rows, columns} : Shape{columns});
  const int64_t element = dtype_bytes(all.dtype(), 1);
  auto* out = static_cast<char*>(all.raw());
  for (int64_t r = 0; r < rows; ++r) {
    for (const Tensor* t : parts) {
      const int64_t bytes = t->numel() / rows * element;
      std::memcpy(out, static_cast<const char*>(t->raw()) + r * bytes, static_cast<size_t>(bytes));
      out += bytes;
    }
  }
  return all;
}

std::vector<Branch> branches_of(const Graph& graph, ValueId x, std::string* why) {
  std::vector<Branch> found;
  for (const ir::Use& use : graph.value(x).uses) {
    Node* n = use.node;
    if (!n->is("MatMul") || use.index != 0) continue;
    const ir::Value& w = graph.value(n->inputs[1]);
    if (!w.is_const() || w.data->rank() != 2 || w.uses.size() != 1 || !is_float(w.data->dtype())) continue;
    Branch b{n, nullptr, w.data.get(), nullptr};
    if (graph.is_output(n->outputs[0])) {
      *why = "a product is a graph output";
      continue;
    }
    if (Node* add = graph.sole_user(n->outputs[0]); add != nullptr && add->is("Add")) {
      const ValueId other = add->inputs[0] == n->outputs[0] ? add->inputs[1] : add->inputs[0];
      const ir::Value& v = graph.value(other);
      if (v.is_const() && v.data->rank() == 1 && v.data->numel() == w.data->dim(1)) {
        b.bias = add;
        b.bias_data = v.data.get();
      }
    }
    if (b.bias != nullptr && graph.is_output(b.bias->outputs[0])) continue;
    if (!found.empty() &&
        ((found[0].bias == nullptr) != (b.bias == nullptr) || found[0].weights->dtype() != w.data->dtype()))
      continue;
    found.push_back(b);
  }
  return found;
}

}  // namespace

void merge_products(PassContext& ctx) {
  Graph& graph = ctx.graph;
  const size_t values = graph.num_values();
  for (size_t i = 0; i < values; ++i) {
    const auto x = static_cast<ValueId>(i);
    if (graph.value(x).uses.size() < 2 || !graph.value(x).type.shape) continue;
    std::string why;
    const std::vector<Branch> branches = branches_of(graph, x, &why);
    if (branches.size() < 2) continue;
    ir::Dim rows = 1;
    const ir::Dims& shape = *graph.value(x).type.shape;
    for (size_t d = 0; d + 1 < shape.size(); ++d) rows = rows * shape[d];
    if (!rows.is_const() || rows.value() > kMaxRows) {
      trace("merge_products", graph.value(x).name,
            "not applied: too many rows, the Split would copy more than it saves");
      continue;
    }
    // Earliest reader of x in the group: everything the merged node needs is there.
    Node* first = nullptr;
    for (const auto& n : graph.nodes()) {
      for (const Branch& b : branches)
        if (first == nullptr && b.product == n.get()) first = n.get();
    }
    Trial trial(graph, first);
    std::vector<const Tensor*> weights, biases;
    std::vector<int64_t> sizes;
    for (const Branch& b : branches) {
      weights.push_back(b.weights);
      sizes.push_back(b.weights->dim(1));
      if (b.bias_data != nullptr) biases.push_back(b.bias_data);
    }
    ValueId y =
        trial.value("MatMul", {x, trial.constant("merged", side_by_side(weights, weights[0]->dim(0)))});
    if (!biases.empty()) y = trial.value("Add", {y, trial.constant("merged", side_by_side(biases, 1))});
    Node* split = trial.add("Split", {y, trial.ints("sizes", sizes)}, {{"axis", int64_t{-1}}}, "",
                            static_cast<int>(branches.size()));
    LedgerRow row{"merge_products", first->name, {}, 0};
    std::vector<std::string> passes;
    for (const Branch& b : branches) {
      for (Node* n : {b.product, b.bias}) {
        if (n == nullptr) continue;
        row.bytes_not_moved = row.bytes_not_moved + node_traffic(graph, *n);
        if (n->sources.empty()) row.sources.push_back(n->name);
        row.sources.insert(row.sources.end(), n->sources.begin(), n->sources.end());
      }
    }
    for (Node* n : trial.added()) {
      row.bytes_not_moved = row.bytes_not_moved - node_traffic(graph, *n);
      n->sources = row.sources;
      n->passes = {"merge_products"};
    }
    for (size_t k = 0; k < branches.size(); ++k) {
      const ValueId old = branches[k].result(graph);
      const ValueId fresh = split->outputs[k];
      if (!known(graph.value(fresh).type)) graph.value(fresh).type = graph.value(old).type;
      graph.replace_uses(old, fresh);
      if (branches[k].bias != nullptr) graph.remove_node(branches[k].bias);
      graph.remove_node(branches[k].product);
    }
    ++ctx.changes;
    ctx.record(std::move(row));
  }
}

}  // namespace hone::optimize
