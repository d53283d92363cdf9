// Fused layers and pointwise programs.
//
// fuse_layers: an anchor (Conv, ConvTranspose, MatMul, Gemm) takes the elementwise operators behind it:
// bias, scale, residual addition, multiplication, activation, clip, in any order and number that
// ops::check_body reduces to post-ops.
// When: nothing else reads what lies in between, no value in between is a graph output, and each step
// keeps type and shape, so the other operand broadcasts to the result and never enlarges it. The layer
// stands where its last node stood, hence operands computed after the anchor (the other branch of a
// residual) are there. A later anchor chooses first: it runs when its residual is ready.
// Why: each step saves a write and a read of the whole tensor.
// Example: Relu(Add(Conv(x, W, b), r)) becomes hone::Fused(x, W, b, r) {body: Conv, Add, Relu; anchor 0}
//
// fuse_pointwise: what elementwise operators remain are joined into programs of at most kMaxInstrs
// operations and kMaxSources operands.
// When: f32; every operator inside has the shape of the result (a smaller intermediate would be computed
// again for each element that it is broadcast to), and is read inside only. A set that is closed in this
// way has one way out, so fusing it cannot close a cycle.
// Example: Mul(Sigmoid(a), Tanh(b)) becomes hone::Fused(a, b) {body: Sigmoid, Tanh, Mul}
#include <algorithm>
#include <map>
#include <set>

#include "ops/problem.h"
#include "optimize/passes.h"

namespace hone::optimize {

using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::Value;
using ir::ValueId;

namespace {

constexpr size_t kMaxInstrs = 16;
constexpr size_t kMaxSources = 8;

bool is_anchor(const Node& n) {
  return n.domain.empty() &&
         (n.op == "Conv" || n.op == "ConvTranspose" || n.op == "MatMul" || n.op == "Gemm");
}

// Operators that post-ops and programs know (ops/problem.h).
bool is_step(const Node& n) {
  static const std::set<std::string, std::less<>> kSteps = {"Relu",
                                                            "LeakyRelu",
                                                            "Clip",
                                                            "Sigmoid",
                                                            "HardSigmoid",
                                                            "HardSwish",
                                                            "Swish",
                                                            "Tanh",
                                                            "Gelu",
                                                            "Elu",
                                                            "Selu",
                                                            "Celu",
                                                            "Softplus",
                                                            "Mish",
                                                            "Abs",
                                                            "Neg",
                                                            "Exp",
                                                            "Log",
                                                            "Sqrt",
                                                            "Reciprocal",
                                                            "Erf",
                                                            "Floor",
                                                            "Ceil",
                                                            "Round",
                                                            "Sign",
                                                            "Softsign",
                                                            "Sin",
                                                            "Cos",
                                                            "ThresholdedRelu",
                                                            "Add",
                                                            "Sub",
                                                            "Mul",
                                                            "Div",
                                                            "Min",
                                                            "Max",
                                                            "Pow",
                                                            "Sum"};
  return n.domain.empty() && n.outputs.size() == 1 && kSteps.count(n.op) != 0;
}

bool is_scalar_constant(const Graph& graph, ValueId id) {
  const Value& v = graph.value(id);
  return v.is_const() && v.data->numel() == 1 && is_float(v.data->dtype());
}

// A fused node of `nodes` (in execution order) whose result is the last node's output. Not yet part of the
// graph.
Node make_layer(const Graph& graph, const std::vector<Node*>& nodes, bool anchored) {
  Node layer;
  layer.domain = ir::kHoneDomain;
  layer.op = "Fused";
  layer.name = nodes.front()->name;
  layer.anchor = anchored ? 0 : -1;
  layer.outputs = {nodes.back()->outputs[0]};
  layer.body = std::make_shared<Graph>();
  Graph& body = *layer.body;
  std::map<ValueId, ValueId> inside;
  const auto input = [&](ValueId id) {
    layer.inputs.push_back(id);
    return id == kNoValue ? body.add_input("absent", {})
                          : body.add_input(graph.value(id).name, graph.value(id).type);
  };
  for (size_t k = 0; k < nodes.size(); ++k) {
    const Node& from = *nodes[k];
    Node n;
    n.name = from.name;
    n.domain = from.domain;
    n.op = from.op;
    n.attrs = from.attrs;
    n.sources = from.sources;
    n.passes = from.passes;
    for (const ValueId id : from.inputs) {
      if (anchored && k == 0) {  // the anchor's operands come first, one for one
        const ValueId i = input(id);
        n.inputs.push_back(id == kNoValue ? kNoValue : i);
        continue;
      }
      if (id == kNoValue) {
        n.inputs.push_back(id);
        continue;
      }
      auto it = inside.find(id);
      if (it == inside.end())
        it = inside
                 .emplace(id, is_scalar_constant(graph, id)
                                  ? body.add_constant(graph.value(id).name, *graph.value(id).data)
                                  : input(id))
                 .first;
      n.inputs.push_back(it->second);
    }
    const Value& out = graph.value(from.outputs[0]);
    const ValueId made = body.add_value(out.name, out.type);
    n.outputs = {made};
    inside[out.id] = made;
    if (from.sources.empty()) layer.sources.push_back(from.name);
    layer.sources.insert(layer.sources.end(), from.sources.begin(), from.sources.end());
    for (const std::string& p : from.passes)
      if (std::find(layer.passes.begin(), layer.passes.end(), p) == layer.passes.end())
        layer.passes.push_back(p);
    body.add_node(std::move(n));
  }
  body.add_output(inside.at(nodes.back()->outputs[0]));
  return layer;
}

// Puts the layer in the place of its nodes.
void put_layer(PassContext& ctx, const char* pass, Node layer, const std::vector<Node*>& nodes) {
  Graph& graph = ctx.graph;
  ir::Dim saved = 0;
  for (const Node* n : nodes) saved = saved + node_traffic(graph, *n);
  Node* const before = graph.next(nodes.back());
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) graph.remove_node(*it);
  layer.passes.emplace_back(pass);
  const Node* made = graph.add_node(std::move(layer), before);
  saved = saved - node_traffic(graph, *made);
  ++ctx.changes;
  if (tracing()) trace(pass, made->name, "layer of " + std::to_string(nodes.size()) + " nodes");
  ctx.record(pass, *made, saved);
}

std::map<const Node*, size_t> positions(const Graph& graph) {
  std::map<const Node*, size_t> at;
  for (const auto& n : graph.nodes()) at.emplace(n.get(), at.size());
  return at;
}

bool same_result(const Graph& graph, const Node& n, ValueId like) {
  return same_type(graph.value(n.outputs[0]).type, graph.value(like).type);
}

// The shortest set of steps behind `running` after which a single value is left: one step, or several where
// values are read more than once (x * sigmoid(x)). Empty when there is none.
std::vector<Node*> next_stretch(const Graph& graph, ValueId running,
                                const std::map<const Node*, size_t>& at) {
  std::vector<std::pair<size_t, Node*>> taken;  // in execution order
  std::set<std::pair<size_t, Node*>> open;      // taken, readers not looked at yet
  const auto take_readers = [&](ValueId id) {
    if (graph.is_output(id) || graph.value(id).uses.empty()) return false;
    for (const ir::Use& use : graph.value(id).uses) {
      const auto position = at.find(use.node);
      if (!is_step(*use.node) || position == at.end() || !same_result(graph, *use.node, running))
        return false;
      if (std::find(taken.begin(), taken.end(), std::pair(position->second, use.node)) != taken.end())
        continue;
      taken.emplace_back(position->second, use.node);
      open.emplace(position->second, use.node);
    }
    return taken.size() <= kMaxInstrs;
  };
  if (!take_readers(running)) return {};
  while (open.size() > 1) {
    Node* const earliest = open.begin()->second;
    open.erase(open.begin());
    if (!take_readers(earliest->outputs[0])) return {};
  }
  std::sort(taken.begin(), taken.end());
  std::vector<Node*> nodes;
  for (const auto& [position, n] : taken) nodes.push_back(n);
  return nodes;
}

}  // namespace

void fuse_layers(PassContext& ctx) {
  Graph& graph = ctx.graph;
  const std::map<const Node*, size_t> at = positions(graph);
  std::vector<Node*> anchors;
  for (const auto& n : graph.nodes())
    if (is_anchor(*n)) anchors.push_back(n.get());
  for (auto it = anchors.rbegin(); it != anchors.rend(); ++it) {
    Node* const anchor = *it;
    if (anchor->outputs.size() != 1 || !known(graph.value(anchor->outputs[0]).type)) continue;
    std::vector<Node*> nodes = {anchor};
    std::vector<size_t> ends;  // sizes after which the body is whole
    while (nodes.size() <= kMaxInstrs) {
      const ValueId running = nodes.back()->outputs[0];
      if (graph.is_output(running)) break;
      const std::vector<Node*> more = next_stretch(graph, running, at);
      if (more.empty()) break;
      nodes.insert(nodes.end(), more.begin(), more.end());
      ends.push_back(nodes.size());
    }
    // The longest body that reduces.
    for (; !ends.empty(); ends.pop_back()) {
      nodes.resize(ends.back());
      Node layer = make_layer(graph, nodes, true);
      const std::string why = ops::check_body(graph, layer);
      if (why.empty()) {
        put_layer(ctx, "fuse_layers", std::move(layer), nodes);
        break;
      }
      trace("fuse_layers", anchor->name, "not applied to " + std::to_string(nodes.size()) + " nodes: " + why);
    }
  }
}

void fuse_pointwise(PassContext& ctx) {
  Graph& graph = ctx.graph;
  const std::map<const Node*, size_t> at = positions(graph);
  std::vector<Node*> sinks;
  for (const auto& n : graph.nodes())
    if (is_step(*n)) sinks.push_back(n.get());
  std::set<const Node*> gone;
  for (auto it = sinks.rbegin(); it != sinks.rend(); ++it) {
    Node* const sink = *it;
    if (gone.count(sink) != 0) continue;
    const ir::TypeInfo& type = graph.value(sink->outputs[0]).type;
    if (!known(type) || type.dtype != DType::kF32) continue;
    std::set<Node*> inside = {sink};
    std::set<ValueId> sources;
    const auto count_sources = [&](const std::set<Node*>& set) {
      std::set<ValueId> s;
      for (const Node* n : set)
        for (const ValueId id : n->inputs) {
          if (id == kNoValue || is_scalar_constant(graph, id)) continue;
          if (graph.value(id).producer == nullptr || set.count(graph.value(id).producer) == 0) s.insert(id);
        }
      return s.size();
    };
    for (bool grew = true; grew && inside.size() < kMaxInstrs;) {
      grew = false;
      for (Node* n : std::vector<Node*>(inside.begin(), inside.end())) {
        for (const ValueId id : n->inputs) {
          if (id == kNoValue) continue;
          Node* p = graph.value(id).producer;
          if (p == nullptr || inside.count(p) != 0 || gone.count(p) != 0 || !is_step(*p) ||
              graph.is_output(id))
            continue;
          if (!same_result(graph, *p, sink->outputs[0])) continue;
          const auto& uses = graph.value(id).uses;
          if (!std::all_of(uses.begin(), uses.end(),
                           [&](const ir::Use& u) { return inside.count(u.node) != 0; }))
            continue;
          std::set<Node*> wider = inside;
          wider.insert(p);
          if (wider.size() > kMaxInstrs || count_sources(wider) > kMaxSources) continue;
          inside = std::move(wider);
          grew = true;
        }
      }
    }
    if (inside.size() < 2) continue;
    std::vector<Node*> nodes(inside.begin(), inside.end());
    std::sort(nodes.begin(), nodes.end(), [&](const Node* a, const Node* b) { return at.at(a) < at.at(b); });
    Node layer = make_layer(graph, nodes, false);
    const std::string why = ops::check_body(graph, layer);
    if (!why.empty()) {
      trace("fuse_pointwise", sink->name,
            "not applied to " + std::to_string(nodes.size()) + " nodes: " + why);
      continue;
    }
    gone.insert(nodes.begin(), nodes.end());
    put_layer(ctx, "fuse_pointwise", std::move(layer), nodes);
  }
}

}  // namespace hone::optimize
