#include "optimize/rewrite.h"

#include <algorithm>

#include "base/log.h"
#include "base/str.h"
#include "hone/error.h"
#include "ops/infer.h"

namespace hone::optimize {

using ir::Dim;
using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::TypeInfo;
using ir::ValueId;

// --- bytes ---

bool is_view(const Node& node) {
  return node.domain.empty() && (node.op == "Reshape" || node.op == "Squeeze" || node.op == "Unsqueeze" ||
                                 node.op == "Flatten" || node.op == "Identity");
}

Dim value_bytes(const Graph& graph, ValueId id) {
  if (id == kNoValue) return 0;
  const ir::Value& v = graph.value(id);
  if (v.is_const() || !v.type.shape) return 0;
  const int bits = dtype_bits(v.type.dtype);
  if (bits == 0) return 0;
  const Dim count = ir::product(*v.type.shape);
  return bits % 8 == 0 ? count * Dim(bits / 8) : Dim::ceildiv(count * Dim(bits), 8);
}

Dim node_traffic(const Graph& graph, const Node& node) {
  Dim total = 0;
  if (is_view(node)) return total;
  for (const ValueId id : node.inputs) total = total + value_bytes(graph, id);
  for (const ValueId id : node.outputs) total = total + value_bytes(graph, id);
  return total;
}

namespace {

// What the node's subgraphs move, each counted once.
Dim subgraph_traffic(const Node& node) {
  Dim total = 0;
  for (const auto& [name, attr] : node.attrs) {
    if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attr); one != nullptr && *one != nullptr)
      total = total + graph_traffic(**one);
    if (const auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attr); many != nullptr)
      for (const auto& g : *many) total = total + graph_traffic(*g);
  }
  return total;
}

}  // namespace

Dim graph_traffic(const Graph& graph) {
  Dim total = 0;
  for (const auto& node : graph.nodes()) total = total + node_traffic(graph, *node) + subgraph_traffic(*node);
  return total;
}

// --- types ---

bool known(const TypeInfo& t) { return t.dtype != DType::kUndefined && t.shape.has_value(); }
bool same_type(const TypeInfo& a, const TypeInfo& b) { return known(a) && known(b) && a == b; }

int64_t static_dim(const TypeInfo& t, int i) {
  if (!t.shape) return -1;
  if (i < 0) i += t.rank();
  if (i < 0 || i >= t.rank()) return -1;
  return (*t.shape)[static_cast<size_t>(i)].maybe().value_or(-1);
}

std::optional<std::vector<int64_t>> const_ints(const Graph& graph, ValueId id) {
  if (id == kNoValue) return std::nullopt;
  const ir::Value& v = graph.value(id);
  if (v.is_const()) {
    if (!is_integer(v.data->dtype())) return std::nullopt;
    return v.data->to_i64();
  }
  return v.contents ? ir::const_dims(*v.contents) : std::nullopt;
}

std::optional<std::vector<int64_t>> node_axes(const Graph& graph, const Node& node, size_t index, int rank) {
  std::vector<int64_t> axes;
  if (node.has_input(index)) {
    const auto given = const_ints(graph, node.inputs[index]);
    if (!given) return std::nullopt;
    axes = *given;
  }
  for (int64_t& a : axes) {
    if (a < 0) a += rank;
    if (a < 0 || a >= rank) return std::nullopt;
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

int64_t node_axis(const Node& node, int rank, int64_t fallback) {
  const int64_t axis = node.get_int("axis", fallback);
  return axis < 0 ? axis + rank : axis;
}

// --- notes ---

bool tracing() { return log_enabled(Log::kPass); }

void trace(std::string_view pass, std::string_view node, std::string_view what) {
  if (!tracing()) return;
  log(Log::kPass, std::string(pass) + ": " + quote(node) + ": " + std::string(what));
}

void PassContext::record(LedgerRow row) {
  if (ledger != nullptr) ledger->push_back(std::move(row));
}

void PassContext::record(const std::string& pass, const Node& result, Dim bytes_not_moved) {
  record(LedgerRow{pass, result.name, result.sources, std::move(bytes_not_moved)});
}

// --- changing the graph ---

void replace_value(Graph& graph, ValueId from, ValueId to) {
  Node* producer = graph.value(from).producer;
  Node* after = producer != nullptr ? graph.next(producer) : nullptr;
  graph.replace_uses(from, to);
  const bool keeps_name = graph.is_output(from);
  std::string name;
  std::vector<std::string> sources, passes;
  if (producer != nullptr) {
    name = producer->name;
    sources = producer->sources;
    passes = producer->passes;
    graph.remove_node(producer);
  }
  if (!keeps_name) return;
  Node identity;
  identity.op = "Identity";
  identity.name = std::move(name);
  identity.sources = std::move(sources);
  identity.passes = std::move(passes);
  identity.inputs = {to};
  identity.outputs = {from};
  // `to` may be produced after the old node stood (never before this call), so the place right behind it is
  // the safe one.
  graph.add_node(std::move(identity), after);
}

Node* Trial::add(std::string_view op, std::vector<ValueId> inputs, ir::AttrMap attrs, std::string_view domain,
                 int num_outputs) {
  const std::string name = before_ != nullptr ? before_->name : std::string();
  Node* node = graph_.add_node(op, std::move(inputs), std::move(attrs), domain, before_, name, num_outputs);
  added_.push_back(node);
  ops::infer_node(graph_, *node);
  return node;
}

Node* Trial::adopt(Node node) {
  Node* n = graph_.add_node(std::move(node), before_);
  added_.push_back(n);
  ops::infer_node(graph_, *n);
  return n;
}

void Trial::take_back() {
  for (auto it = added_.rbegin(); it != added_.rend(); ++it) graph_.remove_node(*it);
  added_.clear();
}

namespace {

void append_unique(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const std::string& s : from)
    if (std::find(to.begin(), to.end(), s) == to.end()) to.push_back(s);
}

bool unused(const Graph& graph, const Node& node) {
  for (const ValueId id : node.outputs)
    if (id != kNoValue && (!graph.value(id).uses.empty() || graph.is_output(id))) return false;
  return true;
}

}  // namespace

bool commit(PassContext& ctx, const std::string& pass, Trial& trial, ValueId from, ValueId to,
            const std::vector<Node*>& gone, std::string* why) {
  Graph& graph = ctx.graph;
  const TypeInfo before = graph.value(from).type;
  TypeInfo& after = graph.value(to).type;
  if (known(before) && known(after) && !(before == after)) {
    if (why != nullptr) *why = "the result would be " + after.text() + " instead of " + before.text();
    trial.take_back();
    return false;
  }
  if (!after.shape && before.shape) after.shape = before.shape;
  if (after.dtype == DType::kUndefined) after.dtype = before.dtype;

  LedgerRow row;
  row.pass = pass;
  std::vector<std::string> passes;
  Node* root = graph.value(from).producer;
  for (Node* n : gone) {
    if (n->sources.empty() && !n->name.empty()) append_unique(row.sources, {n->name});
    append_unique(row.sources, n->sources);
    append_unique(passes, n->passes);
    row.bytes_not_moved = row.bytes_not_moved + node_traffic(graph, *n);
  }
  passes.push_back(pass);
  row.node = root != nullptr ? root->name : graph.value(from).name;
  for (Node* n : trial.added()) {
    row.bytes_not_moved = row.bytes_not_moved - node_traffic(graph, *n);
    n->sources = row.sources;
    n->passes = passes;
  }
  if (graph.value(to).is_const()) {  // what reads a constant reads no activation
    for (const ir::Use& use : graph.value(from).uses)
      if (!is_view(*use.node)) row.bytes_not_moved = row.bytes_not_moved + value_bytes(graph, from);
  }
  replace_value(graph, from, to);
  // What went into the root goes too, consumers first.
  std::vector<Node*> left;
  for (Node* n : gone)
    if (n != root) left.push_back(n);
  for (bool moved = true; moved && !left.empty();) {
    moved = false;
    for (size_t i = 0; i < left.size();) {
      if (unused(graph, *left[i])) {
        graph.remove_node(left[i]);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
        moved = true;
      } else {
        ++i;
      }
    }
  }
  for (const Node* n : left) row.bytes_not_moved = row.bytes_not_moved - node_traffic(graph, *n);
  ++ctx.changes;
  if (tracing()) trace(pass, row.node, "rewritten");
  ctx.record(std::move(row));
  return true;
}

void drop_node(PassContext& ctx, const std::string& pass, Node* node) {
  LedgerRow row{pass, node->name, node->sources, node_traffic(ctx.graph, *node) + subgraph_traffic(*node)};
  if (row.sources.empty()) row.sources = {node->name};
  ctx.graph.remove_node(node);
  ++ctx.changes;
  ctx.record(std::move(row));
}

// --- rules ---

void run_rule(PassContext& ctx, const Rule& rule) {
  const std::vector<std::string> roots = ir::root_ops(rule.pattern);
  Graph& graph = ctx.graph;
  Node* node = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (node != nullptr) {
    Node* const current = node;
    node = graph.next(node);
    if (!roots.empty() && std::find(roots.begin(), roots.end(), current->op) == roots.end()) continue;
    ir::Match match;
    std::string why;
    if (!ir::match(graph, *current, rule.pattern, &match, &why)) {
      if (!why.empty()) trace(rule.name, current->name, "not applied: " + why);
      continue;
    }
    why.clear();
    for (size_t i = 1; i < current->outputs.size(); ++i) {
      const ValueId id = current->outputs[i];
      if (id != kNoValue && (!graph.value(id).uses.empty() || graph.is_output(id)))
        why = "a further output is used";
    }
    if (!why.empty()) {
      trace(rule.name, current->name, "not applied: " + why);
      continue;
    }
    Trial trial(graph, current);
    RuleContext c{graph, match, trial};
    if (rule.when != nullptr) {
      const std::string reason = rule.when(c);
      if (!reason.empty()) {
        trace(rule.name, current->name, "not applied: " + reason);
        continue;
      }
    }
    const std::string name = current->name;
    try {
      const ValueId to = rule.result(c);
      if (to == kNoValue) {
        trial.take_back();
        continue;
      }
      std::vector<Node*> gone = match.covered;
      if (!commit(ctx, rule.name, trial, current->outputs[0], to, gone, &why))
        trace(rule.name, name, "not applied: " + why);
    } catch (const Error& e) {
      trial.take_back();
      trace(rule.name, name, std::string("not applied: ") + e.what());
    }
  }
}

std::vector<Pass> as_passes(const Rules& rules) {
  std::vector<Pass> passes;
  passes.reserve(rules.size());
  for (const Rule& rule : rules)
    passes.push_back(
        Pass{rule.name, rule.what, rule.numerics, [&rule](PassContext& ctx) { run_rule(ctx, rule); }});
  return passes;
}

}  // namespace hone::optimize
