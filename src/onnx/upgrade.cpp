// Checks every node against the schema it was written for, rewrites it for the IR's opset, infers its types.
#include <algorithm>
#include <utility>

#include "base/str.h"
#include "onnx/import_context.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/schema.h"

namespace hone::onnx {
namespace {

bool is_string_op(std::string_view op) {
  return op.starts_with("String") || op == "RegexFullMatch" || op == "TfIdfVectorizer";
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// An operator of the same name but for upper and lower case, or empty.
std::string similar_op(std::string_view op) {
  for (const ops::SchemaVersion& v : ops::all_schemas()) {
    if (v.name != op && lower(v.name) == lower(op)) return std::string(v.name);
  }
  return {};
}

}  // namespace

// True when the operator exists, is implemented, and the node fits its schema; every reason why not is
// recorded.
bool Importer::check_known(const ir::Graph& graph, const ir::Node& node, const Subject& subject,
                           int64_t opset) {
  const auto unsupported = [&](const std::string& what, const std::string& remedy) {
    issues_.error(ErrorCode::kUnsupported, subject, what, remedy);
    return false;
  };
  const ops::OpDef* op = ops::find_op(node.domain, node.op);
  if (node.domain == "ai.onnx.ml") {
    return unsupported("classical machine learning operators (ai.onnx.ml) are not supported",
                       "run this step outside the model");
  }
  if (node.domain == "ai.onnx.training" || node.domain == "ai.onnx.preview.training") {
    return unsupported("training operators are not supported", "export the model for inference");
  }
  if (node.domain.empty()) {
    if (opset == 0) {
      issues_.error(ErrorCode::kInvalidModel, subject, "opset_import does not name the domain ai.onnx", {});
      return false;
    }
    if (node.op == "ImageDecoder")
      return unsupported("image files are not decoded here", "decode images before they are fed");
    if (is_string_op(node.op))
      return unsupported("operators on strings are not supported", "process text outside the model");
    if (ops::newest_schema("", node.op) == nullptr) {
      const std::string similar = similar_op(node.op);
      issues_.error(
          ErrorCode::kInvalidModel, subject, "there is no such operator",
          similar.empty() ? "check the operator's name and domain" : "perhaps " + similar + " is meant");
      return false;
    }
    const ops::SchemaVersion* schema = ops::find_schema("", node.op, opset);
    if (schema == nullptr) {
      const int first = ops::schema_versions("", node.op).front().since;
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "the operator exists from opset " + std::to_string(first) + " on",
                    "export with opset " + std::to_string(first) + " or higher");
      return false;
    }
    if (schema->deprecated) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "the operator is withdrawn since opset " + std::to_string(schema->since),
                    "export with an opset below " + std::to_string(schema->since) + ", or use its successor");
      return false;
    }
    const std::vector<std::string> wrong = ops::check_node(graph, node, *schema);
    for (const std::string& w : wrong) issues_.error(ErrorCode::kInvalidModel, subject, w, {});
    if (!wrong.empty()) return false;
    if (op == nullptr)
      return unsupported("the operator is not implemented", default_remedy(ErrorCode::kUnsupported));
    return true;
  }
  if (op == nullptr) {
    return unsupported("no operator of domain " + node.domain + " has this name here",
                       "give the model a local function that defines it");
  }
  return true;
}

bool Importer::upgrade_node(ir::Graph& graph, ir::Node& node, const Origin& origin) {
  const Subject subject{node.name, node.op_text(), origin.opset, {}};
  // Subgraphs first: the node's own inference reads what they give. Captured values have their types by now.
  std::vector<std::shared_ptr<ir::Graph>> inner;
  for (const auto& [key, attr] : node.attrs) {
    if (const auto* one = std::get_if<std::shared_ptr<ir::Graph>>(&attr)) inner.push_back(*one);
    if (const auto* many = std::get_if<std::vector<std::shared_ptr<ir::Graph>>>(&attr))
      inner.insert(inner.end(), many->begin(), many->end());
  }
  const size_t own = node.inputs.size() - static_cast<size_t>(node.num_captures);
  for (const auto& sub : inner) {
    for (size_t i = 0; i < sub->captures.size(); ++i) {
      const ir::Value& outer = graph.value(node.inputs[own + i]);
      ir::Value& v = sub->value(sub->captures[i]);
      v.type = outer.type;
      v.contents = outer.contents;
    }
    upgrade(*sub);
  }
  if (!check_known(graph, node, subject, origin.opset)) return false;

  const ops::SchemaVersion* schema = ops::find_schema(node.domain, node.op, origin.opset);
  const ops::SchemaVersion* newest = ops::newest_schema(node.domain, node.op);
  const ops::OpDef* op = ops::find_op(node.domain, node.op);
  try {
    if (schema != nullptr && op->adapt != nullptr && schema->since < newest->since) {
      ops::AdaptContext context{graph, node, schema->since};
      op->adapt(context);
    }
  } catch (const Error& e) {
    issues_.error(e.code(), subject, e.message(), {}, e.where());
    return false;
  }
  return true;
}

namespace {

// Shapes that a file declares for a node's results are hearsay: edited models keep stale ones. Where they
// alone keep inference from succeeding, they are forgotten. Element types are not: they decide what a kernel
// computes.
bool infer_undeclared(ir::Graph& graph, ir::Node& node) {
  std::vector<std::optional<ir::Dims>> declared;
  bool any = false;
  for (const ir::ValueId id : node.outputs) {
    declared.push_back(id == ir::kNoValue ? std::nullopt : graph.value(id).type.shape);
    if (id == ir::kNoValue) continue;
    any |= declared.back().has_value();
    graph.value(id).type.shape.reset();
  }
  try {
    if (any) ops::infer_node(graph, node);
  } catch (const Error&) {
    any = false;
  }
  if (!any)
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != ir::kNoValue) graph.value(node.outputs[i]).type.shape = declared[i];
  return any;
}

}  // namespace

// Nodes are taken in execution order: an adapter knows the types of what comes before, as far as they can be
// known.
void Importer::upgrade(ir::Graph& graph) {
  auto& nodes = graph.nodes();
  for (auto it = nodes.begin(); it != nodes.end();) {
    const auto next = std::next(it);
    const bool first = it == nodes.begin();
    const auto previous = first ? it : std::prev(it);
    ir::Node& node = **it;
    const Origin origin = origins_.at(&node);
    if (upgrade_node(graph, node, origin)) {
      // The node and what its adapter put before it.
      for (auto made = first ? nodes.begin() : std::next(previous); made != next; ++made) {
        ir::Node& n = **made;
        if (n.sources.empty()) n.sources = {node.name};
        if (!options_.infer) continue;
        try {
          ops::infer_node(graph, n);
        } catch (const Error& e) {
          const Subject subject{n.name, n.op_text(), origin.opset, {}};
          if (infer_undeclared(graph, n))
            issues_.warning(subject, e.message() + "; what is inferred counts");
          else
            issues_.error(e.code(), subject, e.message(), {}, e.where());
        }
      }
    }
    it = next;
  }
}

}  // namespace hone::onnx
