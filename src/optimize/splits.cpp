// Pieces of a tensor taken one by one are one Split, and Transposes sink below it.
//
// slices_to_split: Slices and Gathers of single numbers that together cut one dimension into all its
// pieces become one Split (and Squeezes, which are views, for the Gathers).
// When: the dimension is static, starts, ends and indices are constants, steps are 1, and the pieces cover
// the dimension without gap or overlap.
// Why: the tensor is read once; query, key and value come from one product in most exporters, and are cut
// out of it in this way.
// Example: q = Gather(x, 0), k = Gather(x, 1), v = Gather(x, 2) of x: f32[3,N,S,64] becomes q, k, v =
// Squeeze each of Split(x)
//
// transpose_sink_split: Split(Transpose(x)) is Transpose each of Split(x) along the dimension that it came
// from.
// When: nothing else reads the Transpose. Bytes moved are the same; the Transposes of the pieces can go on
// sinking.
#include <algorithm>
#include <numeric>

#include "hone/error.h"
#include "optimize/passes.h"

namespace hone::optimize {

using ir::Graph;
using ir::Node;
using ir::ValueId;

namespace {

struct Piece {
  int64_t begin, end;
  Node* node;
  bool squeeze;  // a Gather of one number drops the dimension
};

// The piece that a reader of `x` takes along a dimension (set), or nullopt when it does something else.
std::optional<Piece> piece_of(const Graph& graph, Node* n, int rank, const ir::TypeInfo& type,
                              int64_t* axis) {
  if (n->is("Gather")) {
    const ir::Value& index = graph.value(n->inputs[1]);
    if (!index.is_const() || index.data->rank() != 0) return std::nullopt;
    *axis = node_axis(*n, rank, 0);
    const int64_t extent = static_dim(type, static_cast<int>(*axis));
    int64_t i = index.data->to_i64()[0];
    if (i < 0) i += extent;
    if (extent < 0 || i < 0 || i >= extent) return std::nullopt;
    return Piece{i, i + 1, n, true};
  }
  if (!n->is("Slice") || !n->has_input(3)) return std::nullopt;
  const auto begins = const_ints(graph, n->inputs[1]), ends = const_ints(graph, n->inputs[2]),
             axes = const_ints(graph, n->inputs[3]);
  if (!begins || !ends || !axes || axes->size() != 1) return std::nullopt;
  if (n->has_input(4)) {
    const auto steps = const_ints(graph, n->inputs[4]);
    if (!steps || steps->front() != 1) return std::nullopt;
  }
  *axis = axes->front() < 0 ? axes->front() + rank : axes->front();
  if (*axis < 0 || *axis >= rank) return std::nullopt;
  const int64_t extent = static_dim(type, static_cast<int>(*axis));
  if (extent < 0) return std::nullopt;
  const auto place = [&](int64_t v) { return std::clamp(v < 0 ? v + extent : v, int64_t{0}, extent); };
  return Piece{place(begins->front()), place(ends->front()), n, false};
}

// Pieces along one dimension that cover it, in order; empty when there are none.
std::vector<Piece> covering(const Graph& graph, ValueId x, int64_t* axis) {
  const ir::Value& v = graph.value(x);
  const int rank = v.type.rank();
  for (int64_t a = 0; a < rank; ++a) {
    std::vector<Piece> pieces;
    for (const ir::Use& use : v.uses) {
      int64_t along = -1;
      if (use.index != 0) continue;
      const auto p = piece_of(graph, use.node, rank, v.type, &along);
      if (p && along == a) pieces.push_back(*p);
    }
    if (pieces.size() < 2) continue;
    std::sort(pieces.begin(), pieces.end(), [](const Piece& p, const Piece& q) { return p.begin < q.begin; });
    int64_t at = 0;
    bool whole = true;
    for (const Piece& p : pieces) {
      whole = whole && p.begin == at && p.end > p.begin;
      at = p.end;
    }
    if (!whole || at != static_dim(v.type, static_cast<int>(a))) continue;
    *axis = a;
    return pieces;
  }
  return {};
}

// Several outputs at once: `made` stand for `old`; all types must be the same.
bool swap_in(PassContext& ctx, const char* pass, Trial& trial, const std::vector<ValueId>& old,
             const std::vector<ValueId>& made, const std::vector<Node*>& gone) {
  Graph& graph = ctx.graph;
  for (size_t i = 0; i < old.size(); ++i) {
    if (!same_type(graph.value(old[i]).type, graph.value(made[i]).type)) {
      trace(pass, gone[0]->name, "not applied: a piece would be " + graph.value(made[i]).type.text());
      trial.take_back();
      return false;
    }
  }
  LedgerRow row{pass, gone[0]->name, {}, 0};
  for (const Node* n : gone) {
    if (n->sources.empty()) row.sources.push_back(n->name);
    row.sources.insert(row.sources.end(), n->sources.begin(), n->sources.end());
    row.bytes_not_moved = row.bytes_not_moved + node_traffic(graph, *n);
  }
  for (Node* n : trial.added()) {
    row.bytes_not_moved = row.bytes_not_moved - node_traffic(graph, *n);
    n->sources = row.sources;
    n->passes = {pass};
  }
  for (size_t i = 0; i < old.size(); ++i) graph.replace_uses(old[i], made[i]);
  for (Node* n : gone) graph.remove_node(n);
  ++ctx.changes;
  ctx.record(std::move(row));
  return true;
}

}  // namespace

void slices_to_split(PassContext& ctx) {
  Graph& graph = ctx.graph;
  const size_t values = graph.num_values();
  for (size_t i = 0; i < values; ++i) {
    const auto x = static_cast<ValueId>(i);
    const ir::Value& v = graph.value(x);
    if (v.uses.size() < 2 || v.is_const() || !known(v.type)) continue;
    int64_t axis = 0;
    const std::vector<Piece> pieces = covering(graph, x, &axis);
    if (pieces.empty()) continue;
    std::vector<ValueId> old, made;
    std::vector<Node*> gone;
    std::vector<int64_t> sizes;
    bool output = false;
    for (const Piece& p : pieces) {
      old.push_back(p.node->outputs[0]);
      gone.push_back(p.node);
      sizes.push_back(p.end - p.begin);
      output = output || graph.is_output(old.back());
    }
    if (output) continue;
    Node* first = nullptr;  // the reader that stands first
    for (const auto& n : graph.nodes())
      if (first == nullptr && std::find(gone.begin(), gone.end(), n.get()) != gone.end()) first = n.get();
    Trial trial(graph, first);
    try {
      Node* split = trial.add("Split", {x, trial.ints("sizes", sizes)}, {{"axis", axis}}, "",
                              static_cast<int>(pieces.size()));
      const std::vector<ValueId> outputs = split->outputs;
      ValueId axes = ir::kNoValue;
      for (size_t k = 0; k < pieces.size(); ++k) {
        if (pieces[k].squeeze && axes == ir::kNoValue) axes = trial.ints("axes", {axis});
        made.push_back(pieces[k].squeeze ? trial.value("Squeeze", {outputs[k], axes}) : outputs[k]);
      }
      swap_in(ctx, "slices_to_split", trial, old, made, gone);
    } catch (const Error& e) {
      trial.take_back();
      trace("slices_to_split", v.name, std::string("not applied: ") + e.what());
    }
  }
}

void transpose_sink_split(PassContext& ctx) {
  Graph& graph = ctx.graph;
  Node* node = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (node != nullptr) {
    Node* const n = node;
    node = graph.next(node);
    if (!n->is("Split")) continue;
    Node* t = graph.value(n->inputs[0]).producer;
    if (t == nullptr || !t->is("Transpose") || graph.sole_user(n->inputs[0]) != n ||
        !known(graph.value(t->inputs[0]).type))
      continue;
    const int rank = graph.value(t->inputs[0]).type.rank();
    bool output = false;
    for (const ValueId id : n->outputs) output = output || id == ir::kNoValue || graph.is_output(id);
    if (output) continue;
    std::vector<int64_t> perm(static_cast<size_t>(rank));
    std::iota(perm.rbegin(), perm.rend(), 0);
    perm = t->get_ints("perm", perm);
    ir::AttrMap attrs = n->attrs;
    attrs.insert_or_assign("axis", perm[static_cast<size_t>(node_axis(*n, rank, 0))]);
    Trial trial(graph, n);
    try {
      std::vector<ValueId> inputs = n->inputs;
      inputs[0] = t->inputs[0];
      Node* split = trial.add("Split", inputs, attrs, "", static_cast<int>(n->outputs.size()));
      std::vector<ValueId> made;
      const std::vector<ValueId> outputs = split->outputs;
      for (const ValueId id : outputs) made.push_back(trial.value("Transpose", {id}, {{"perm", perm}}));
      swap_in(ctx, "transpose_sink_split", trial, std::vector<ValueId>(n->outputs), made, {n, t});
    } catch (const Error& e) {
      trial.take_back();
      trace("transpose_sink_split", n->name, std::string("not applied: ") + e.what());
    }
  }
}

}  // namespace hone::optimize
