// Graphs: names to values, nodes to nodes, captures.
#include <algorithm>
#include <utility>

#include "base/str.h"
#include "onnx/import_context.h"

namespace hone::onnx {

std::string Importer::unique_node_name(std::string wanted) {
  auto [it, fresh] = node_names_.try_emplace(wanted, 1);
  if (fresh) return wanted;
  for (;;) {
    std::string candidate = wanted + "_" + std::to_string(it->second++);
    if (node_names_.try_emplace(candidate, 1).second) return candidate;
    it = node_names_.find(wanted);  // the insertion may have moved it
  }
}

int64_t Importer::opset_of(std::string_view domain, const Scope& scope) const {
  const auto it = scope.opsets->find(plain_domain(domain));
  if (it != scope.opsets->end()) return it->second;
  const auto model = opsets_.find(plain_domain(domain));
  return model != opsets_.end() ? model->second : 0;
}

Subject Importer::subject_of(const NodeProto& node, const Scope& scope) const {
  const std::string domain(plain_domain(node.domain));
  std::string name = scope.prefix + std::string(node.name);
  if (node.name.empty() && !node.output.empty()) name += "(producer of " + std::string(node.output[0]) + ")";
  return {name,
          (domain.empty() ? "ai.onnx" : domain) + "::" + std::string(node.op_type),
          opset_of(node.domain, scope),
          {}};
}

void Importer::count_node(const Subject& subject) {
  if (++nodes_made_ <= options_.max_nodes) return;
  ErrorContext context;
  context.stage = "import";
  context.node = subject.node;
  throw Error(
      ErrorCode::kInvalidModel,
      "the model has more than " + std::to_string(options_.max_nodes) + " nodes once functions are inlined",
      std::move(context));
}

std::optional<ir::ValueId> Importer::lookup(Scope& scope, std::string_view name) {
  if (const auto it = scope.names.find(name); it != scope.names.end()) return it->second;
  if (scope.outer == nullptr) return std::nullopt;
  const std::optional<ir::ValueId> outer = lookup(*scope.outer, name);
  if (!outer || *outer == ir::kNoValue) return outer;
  const ir::Value& v = scope.outer->graph->value(*outer);
  ir::ValueId inner = ir::kNoValue;
  if (v.is_const()) {
    inner = scope.graph->add_constant(v.name, *v.data);  // shares the bytes: inside, its contents are known
  } else {
    const auto [it, fresh] = scope.captured.try_emplace(*outer, ir::kNoValue);
    if (fresh) {
      it->second = scope.graph->add_value(v.name, v.type);
      if (scope.captures->index.try_emplace(*outer, scope.captures->outer.size()).second)
        scope.captures->outer.push_back(*outer);
    }
    inner = it->second;
  }
  scope.names.emplace(name, inner);
  return inner;
}

void Importer::declare_inputs(const GraphProto& proto, Scope& scope) {
  std::set<std::string_view> initialized;
  for (const TensorProto& t : proto.initializer) initialized.insert(t.name);
  for (const SparseTensorProto& t : proto.sparse_initializer) initialized.insert(t.values.name);
  const bool main = scope.outer == nullptr;
  for (const ValueInfoProto& v : proto.input) {
    const Subject subject{{}, {}, 0, std::string(v.name)};
    if (v.name.empty()) {
      issues_.error(ErrorCode::kInvalidModel, {}, "a graph input has no name", {});
      continue;
    }
    if (initialized.count(v.name) != 0 && main && !options_.override_initializers) {
      issues_.note(subject, "this input has a default value and is taken as a constant");
      continue;
    }
    if (scope.names.count(v.name) != 0) {
      issues_.error(ErrorCode::kInvalidModel, subject, "two graph inputs have the same name", {});
      continue;
    }
    ir::TypeInfo type = to_type(v.type, v.name, main ? Role::kInput : Role::kInner);
    if (main && type.dtype == DType::kUndefined && v.type.elem_type == 0 &&
        (v.type.kind == TypeProto::Kind::kTensor || v.type.kind == TypeProto::Kind::kNone)) {
      issues_.error(ErrorCode::kInvalidModel, subject, "a graph input has no element type", {});
    }
    scope.names.emplace(v.name, scope.graph->add_input(v.name, std::move(type)));
  }
}

void Importer::declare_initializers(const GraphProto& proto, Scope& scope) {
  std::set<std::string_view> seen;
  std::unordered_map<std::string_view, const TypeProto*> declared;
  for (const ValueInfoProto& v : proto.input) declared.emplace(v.name, &v.type);
  const auto add = [&](std::string_view name, auto&& load) {
    const Subject subject{{}, {}, 0, std::string(name)};
    if (name.empty()) return issues_.error(ErrorCode::kInvalidModel, {}, "an initializer has no name", {});
    if (!seen.insert(name).second)
      return issues_.error(ErrorCode::kInvalidModel, subject, "duplicate initializer", {});
    if (scope.names.count(name) != 0) {  // an input that stays one
      issues_.warning(subject, "the default value of this input is dropped; it must be fed");
      return;
    }
    try {
      Tensor t = load();
      const auto it = declared.find(name);
      if (it != declared.end() && it->second->kind == TypeProto::Kind::kTensor) {
        const ir::TypeInfo type = to_type(*it->second, name, Role::kInner);
        bool fits = type.dtype == DType::kUndefined || type.dtype == t.dtype();
        if (type.shape) {
          fits = fits && type.shape->size() == t.shape().size();
          for (size_t d = 0; fits && d < type.shape->size(); ++d) {
            fits = !(*type.shape)[d].is_const() || (*type.shape)[d].value() == t.shape()[d];
          }
        }
        if (!fits) {
          issues_.error(ErrorCode::kInvalidModel, subject,
                        "the initializer is " + t.type_text() + ", declared as input " + type.text(), {});
        }
      }
      scope.names.emplace(name, scope.graph->add_constant(name, std::move(t)));
    } catch (const Error& e) {
      issues_.error(e.code(), subject, e.message(), {}, e.where());
      scope.names.emplace(name, scope.graph->add_value(name, {}));  // uses of it are no further errors
    }
  };
  for (const TensorProto& t : proto.initializer) add(t.name, [&] { return load_tensor(t, source_); });
  for (const SparseTensorProto& t : proto.sparse_initializer)
    add(t.values.name, [&] { return load_sparse(t, source_); });
}

// Every output gets its value before any node is made, so that nodes may stand in any order. `bound`: names
// whose values exist already (the outputs of a function call).
void Importer::declare_nodes(const std::vector<NodeProto>& nodes, Scope& scope,
                             const std::unordered_map<std::string_view, const TypeProto*>& types,
                             const std::unordered_map<std::string_view, ir::ValueId>& bound) {
  for (const NodeProto& n : nodes) {
    const bool constant =
        n.op_type == "Constant" && plain_domain(n.domain).empty() && find_function(n) == nullptr;
    const Subject subject = subject_of(n, scope);
    if (std::all_of(n.output.begin(), n.output.end(), [](std::string_view o) { return o.empty(); })) {
      issues_.error(ErrorCode::kInvalidModel, subject, "the node has no outputs", {});
      continue;
    }
    for (const std::string_view out : n.output) {
      if (out.empty()) continue;
      if (scope.names.count(out) != 0) {
        issues_.error(ErrorCode::kInvalidModel, subject,
                      "output '" + std::string(out) + "' is the name of another value already", {});
        continue;
      }
      ir::ValueId id = ir::kNoValue;
      if (const auto b = bound.find(out); b != bound.end()) {
        id = b->second;
      } else {
        const auto t = types.find(out);
        id = scope.graph->add_value(
            scope.prefix + std::string(out),
            t != types.end() ? to_type(*t->second, out, Role::kInner) : ir::TypeInfo{});
      }
      scope.names.emplace(out, id);
      if (!constant) continue;
      if (n.output.size() != 1 || !n.input.empty()) {
        issues_.error(ErrorCode::kInvalidModel, subject, "a Constant has no inputs and one output", {});
      } else if (auto value = constant_value(n, scope, subject)) {
        scope.graph->set_constant(id, std::move(*value));
      }
    }
  }
}

std::vector<ir::ValueId> Importer::node_inputs(const NodeProto& proto, Scope& scope, const Subject& subject) {
  std::vector<ir::ValueId> ids;
  for (const std::string_view in : proto.input) {
    std::optional<ir::ValueId> id = ir::kNoValue;
    if (!in.empty()) id = lookup(scope, in);
    if (!id) {
      issues_.error(ErrorCode::kInvalidModel, subject, "input '" + std::string(in) + "' is not defined", {});
      id = ir::kNoValue;
    }
    ids.push_back(*id);
  }
  while (!ids.empty() && ids.back() == ir::kNoValue) ids.pop_back();
  return ids;
}

std::vector<ir::ValueId> Importer::node_outputs(const NodeProto& proto, Scope& scope) {
  std::vector<ir::ValueId> ids;
  std::set<ir::ValueId> used;
  for (const std::string_view out : proto.output) {
    ir::ValueId id = ir::kNoValue;
    if (!out.empty()) {
      const auto it = scope.names.find(out);
      id = it != scope.names.end() ? it->second : ir::kNoValue;
      // A name that is taken was reported; the node gets a value of its own, so that the graph stays sound
      // for the rest.
      const auto& inputs = scope.graph->inputs();
      if (id == ir::kNoValue || !used.insert(id).second || scope.graph->value(id).producer != nullptr ||
          scope.graph->value(id).is_const() ||
          (issues_.any() && std::find(inputs.begin(), inputs.end(), id) != inputs.end())) {
        id = scope.graph->add_value({}, {});
      }
    }
    ids.push_back(id);
  }
  while (!ids.empty() && ids.back() == ir::kNoValue) ids.pop_back();
  return ids;
}

void Importer::make_node(const NodeProto& proto, Scope& scope) {
  if (proto.op_type == "Constant" && plain_domain(proto.domain).empty() && find_function(proto) == nullptr)
    return;
  Subject subject = subject_of(proto, scope);
  count_node(subject);
  if (const FunctionProto* f = find_function(proto)) return inline_call(proto, *f, scope);
  ir::Node n;
  n.op = proto.op_type;
  n.domain = plain_domain(proto.domain);
  n.name = unique_node_name(scope.prefix + std::string(proto.name.empty() ? proto.op_type : proto.name));
  n.sources = {n.name};
  subject.node = n.name;
  if (n.op.empty()) issues_.error(ErrorCode::kInvalidModel, subject, "the node has no operator", {});
  n.inputs = node_inputs(proto, scope, subject);
  n.outputs = node_outputs(proto, scope);

  Captures captures;
  std::vector<std::pair<std::shared_ptr<ir::Graph>, std::unique_ptr<Scope>>> subgraphs;
  for (const AttributeProto& a : proto.attribute) {
    if (a.name.empty()) {
      issues_.error(ErrorCode::kInvalidModel, subject, "an attribute has no name", {});
    } else if (n.has(a.name)) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "attribute '" + std::string(a.name) + "' is given twice", {});
    } else if (auto value = to_attr(a, scope, &captures, subject, &subgraphs)) {
      n.attrs.emplace(a.name, std::move(*value));
    }
  }
  // All subgraphs of the node get the same captures, in the same order; one that does not use a value has it
  // unused.
  if (!captures.outer.empty()) {
    // Captures follow the formal inputs; absent ones before them keep their places through num_captures
    // alone.
    for (const auto& [graph, inner] : subgraphs) {
      for (const ir::ValueId outer : captures.outer) {
        const auto it = inner->captured.find(outer);
        const ir::Value& v = scope.graph->value(outer);
        graph->captures.push_back(it != inner->captured.end() ? it->second
                                                              : graph->add_value(v.name, v.type));
      }
    }
    n.inputs.insert(n.inputs.end(), captures.outer.begin(), captures.outer.end());
    n.num_captures = static_cast<int>(captures.outer.size());
  }
  const ir::Node* made = scope.graph->add_node(std::move(n));
  origins_.emplace(made, Origin{subject.opset});
}

std::shared_ptr<ir::Graph> Importer::build_subgraph(const GraphProto& proto, Scope& outer, Captures* captures,
                                                    std::unique_ptr<Scope>* out) {
  auto graph = std::make_shared<ir::Graph>();
  graph->name = proto.name;
  graph->share_symbols(*outer.graph);
  auto scope = std::make_unique<Scope>();
  scope->graph = graph.get();
  scope->outer = &outer;
  scope->opsets = outer.opsets;
  scope->attrs = outer.attrs;
  scope->depth = outer.depth + 1;
  scope->call_depth = outer.call_depth;
  scope->captures = captures;
  // Node names are unique in the whole model, so those in an inlined body's subgraphs carry its prefix;
  // values are local anyway.
  scope->prefix = outer.prefix;
  if (scope->depth > ir::kMaxSubgraphDepth) {
    throw Error(
        ErrorCode::kInvalidModel,
        "subgraphs nest deeper than " + std::to_string(ir::kMaxSubgraphDepth) + " once functions are inlined",
        {"import", {}, {}, 0, {}});
  }
  build(proto, *scope);
  *out = std::move(scope);
  return graph;
}

void Importer::make_outputs(const GraphProto& proto, Scope& scope) {
  for (const ValueInfoProto& v : proto.output) {
    const Subject subject{{}, {}, 0, std::string(v.name)};
    const std::optional<ir::ValueId> id = v.name.empty() ? std::nullopt : lookup(scope, v.name);
    if (!id || *id == ir::kNoValue) {
      issues_.error(ErrorCode::kInvalidModel, subject, "a graph output is not defined", {});
      continue;
    }
    if (scope.outer == nullptr && v.type.kind != TypeProto::Kind::kTensor &&
        v.type.kind != TypeProto::Kind::kNone) {
      issues_.error(ErrorCode::kUnsupported, subject, "the output is no tensor",
                    "export the model with tensor outputs");
    }
    scope.graph->add_output(*id);
  }
}

void Importer::sort(ir::Graph& graph) {
  std::vector<const ir::Node*> before;
  before.reserve(graph.num_nodes());
  for (const auto& n : graph.nodes()) before.push_back(n.get());
  try {
    graph.sort();
  } catch (const Error& e) {
    issues_.error(e.code(), {}, e.message(), "break the cycle; ONNX graphs are acyclic", e.where());
    return;
  }
  size_t moved = 0, i = 0;
  for (const auto& n : graph.nodes()) moved += n.get() != before[i++] ? 1 : 0;
  if (moved != 0) {
    issues_.warning({}, "the nodes of graph '" + graph.name + "' are not in execution order and were sorted");
  }
}

void Importer::build(const GraphProto& proto, Scope& scope) {
  report_->nodes += static_cast<int64_t>(proto.node.size());
  declare_inputs(proto, scope);
  declare_initializers(proto, scope);
  std::unordered_map<std::string_view, const TypeProto*> types;
  for (const ValueInfoProto& v : proto.output) types.emplace(v.name, &v.type);
  for (const ValueInfoProto& v : proto.value_info) types.emplace(v.name, &v.type);
  declare_nodes(proto.node, scope, types, {});
  for (const NodeProto& n : proto.node) make_node(n, scope);
  make_outputs(proto, scope);
  sort(*scope.graph);
}

}  // namespace hone::onnx
