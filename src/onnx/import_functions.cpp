// Model-local functions: they are inlined, so the IR has none.
#include <algorithm>
#include <utility>

#include "base/str.h"
#include "onnx/import_context.h"

namespace hone::onnx {
namespace {

constexpr int kMaxCallDepth = 64;

std::string function_text(const FunctionProto& f) {
  std::string s(f.domain.empty() ? "ai.onnx" : f.domain);
  s += "::" + std::string(f.name);
  return f.overload.empty() ? s : s + ":" + std::string(f.overload);
}

}  // namespace

const FunctionProto* Importer::find_function(const NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find({plain_domain(node.domain), node.op_type, node.overload});
  return it == functions_.end() ? nullptr : it->second;
}

void Importer::read_functions() {
  for (const FunctionProto& f : proto_.functions) {
    if (!functions_.emplace(FunctionKey{plain_domain(f.domain), f.name, f.overload}, &f).second) {
      issues_.error(ErrorCode::kInvalidModel, {{}, function_text(f), 0, {}}, "the function is defined twice",
                    {});
    }
  }
  for (const FunctionProto& f : proto_.functions) {
    const Opsets& table =
        function_opsets_.emplace(&f, opset_table(f.opset_import, "function " + function_text(f)))
            .first->second;
    if (const auto it = table.find(std::string_view()); it != table.end())
      check_opset(it->second, "function " + function_text(f));
  }
  refuse_recursion();
}

// Depth-first over the call graph, calls inside subgraphs included, with a stack of our own: chains may be as
// long as there are functions.
void Importer::refuse_recursion() const {
  const auto calls = [this](const FunctionProto& f) {
    std::vector<const FunctionProto*> out;
    std::vector<const std::vector<NodeProto>*> lists{&f.node};
    while (!lists.empty()) {
      const auto* list = lists.back();
      lists.pop_back();
      for (const NodeProto& n : *list) {
        if (const FunctionProto* callee = find_function(n)) out.push_back(callee);
        for (const AttributeProto& a : n.attribute) {
          if (a.g) lists.push_back(&a.g->node);
          for (const GraphProto& g : a.graphs) lists.push_back(&g.node);
        }
      }
    }
    return out;
  };
  struct Frame {
    const FunctionProto* function;
    std::vector<const FunctionProto*> callees;
    size_t next = 0;
  };
  std::unordered_map<const FunctionProto*, int> state;  // 1: on the stack, 2: done
  for (const FunctionProto& root : proto_.functions) {
    if (state[&root] != 0) continue;
    std::vector<Frame> stack;
    stack.push_back({&root, calls(root)});
    state[&root] = 1;
    while (!stack.empty()) {
      Frame& top = stack.back();
      if (top.next == top.callees.size()) {
        state[top.function] = 2;
        stack.pop_back();
        continue;
      }
      const FunctionProto* callee = top.callees[top.next++];
      int& s = state[callee];
      if (s == 1) {
        std::vector<std::string> path;
        bool in = false;
        for (const Frame& f : stack) {
          in = in || f.function == callee;
          if (in) path.push_back(function_text(*f.function));
        }
        path.push_back(function_text(*callee));
        throw Error(ErrorCode::kInvalidModel,
                    "functions call each other in a cycle: " + join_some(path, " -> ", 20),
                    {"import", {}, {}, 0, {}});
      }
      if (s == 0) {
        s = 1;
        stack.push_back({callee, calls(*callee)});
      }
    }
  }
}

ir::AttrMap Importer::call_attributes(const NodeProto& call, const FunctionProto& f, Scope& scope,
                                      const Subject& subject) {
  ir::AttrMap attrs;
  std::set<std::string_view> known(f.attribute.begin(), f.attribute.end());
  for (const AttributeProto& a : f.attribute_proto) known.insert(a.name);
  for (const AttributeProto& a : call.attribute) {
    if (known.count(a.name) == 0) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "unknown attribute '" + std::string(a.name) + "' of a function", {});
    } else if (attrs.find(a.name) != attrs.end()) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "attribute '" + std::string(a.name) + "' is given twice", {});
    } else if (auto v = to_attr(a, scope, nullptr, subject, nullptr)) {
      attrs.emplace(a.name, std::move(*v));
    }
  }
  Scope none = Scope();  // defaults refer to nothing
  for (const AttributeProto& a : f.attribute_proto) {
    if (attrs.find(a.name) != attrs.end()) continue;
    if (auto v = to_attr(a, none, nullptr, subject, nullptr)) attrs.emplace(a.name, std::move(*v));
  }
  return attrs;
}

void Importer::inline_call(const NodeProto& call, const FunctionProto& f, Scope& scope) {
  Subject subject = subject_of(call, scope);
  if (scope.call_depth >= kMaxCallDepth) {
    throw Error(ErrorCode::kInvalidModel, "function calls nest deeper than " + std::to_string(kMaxCallDepth),
                {"import", subject.node, subject.op, 0, {}});
  }
  ++report_->functions_inlined;
  const std::string name =
      unique_node_name(scope.prefix + std::string(call.name.empty() ? call.op_type : call.name));
  subject.node = name;
  const std::vector<ir::ValueId> inputs = node_inputs(call, scope, subject);
  const std::vector<ir::ValueId> outputs = node_outputs(call, scope);
  if (inputs.size() > f.input.size() || outputs.size() > f.output.size()) {
    issues_.error(ErrorCode::kInvalidModel, subject,
                  "the call has " + std::to_string(inputs.size()) + " inputs and " +
                      std::to_string(outputs.size()) + " outputs, the function " +
                      std::to_string(f.input.size()) + " and " + std::to_string(f.output.size()),
                  {});
    return;
  }
  const ir::AttrMap attrs = call_attributes(call, f, scope, subject);
  Scope body;
  body.graph = scope.graph;
  body.opsets = &function_opsets_.at(&f);
  body.attrs = &attrs;
  body.prefix = name + "/";
  body.depth = scope.depth;
  body.call_depth = scope.call_depth + 1;
  for (size_t i = 0; i < f.input.size(); ++i) {
    if (!body.names.emplace(f.input[i], i < inputs.size() ? inputs[i] : ir::kNoValue).second) {
      issues_.error(ErrorCode::kInvalidModel, subject, "two inputs of the function have the same name", {});
    }
  }
  // A formal output that a node of the body makes is that node's output; one that is an input, or was taken
  // before, is copied.
  std::unordered_map<std::string_view, ir::ValueId> bound;
  std::vector<std::pair<std::string_view, ir::ValueId>> copies;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] == ir::kNoValue) continue;
    const std::string_view formal = f.output[i];
    if (body.names.count(formal) != 0 || !bound.emplace(formal, outputs[i]).second)
      copies.emplace_back(formal, outputs[i]);
  }
  declare_nodes(f.node, body, {}, bound);
  for (const NodeProto& n : f.node) make_node(n, body);
  for (const auto& [formal, id] : bound) {
    if (body.names.count(formal) == 0) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "output '" + std::string(formal) + "' of the function is not defined", {});
    }
  }
  for (const auto& [formal, id] : copies) {
    const std::optional<ir::ValueId> from = lookup(body, formal);
    if (!from || *from == ir::kNoValue) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "output '" + std::string(formal) + "' of the function is an absent input", {});
      continue;
    }
    ir::Node copy;
    copy.op = "Identity";
    copy.name = unique_node_name(name + "/" + std::string(formal));
    copy.sources = {name};
    copy.inputs = {*from};
    copy.outputs = {id};
    origins_.emplace(scope.graph->add_node(std::move(copy)), Origin{opset_of("", body)});
  }
}

}  // namespace hone::onnx
