// Which opset a graph can be written at.
#include <algorithm>
#include <utility>

#include "base/str.h"
#include "hone/error.h"
#include "hone/version.h"
#include "onnx/writer.h"
#include "ops/op.h"
#include "ops/schema.h"

namespace hone::onnx {
namespace {

// Below it negative axes and indices had no meaning, which schemas do not tell.
constexpr int kLowestOpset = 11;

bool has_negative_axis(const ir::Node& node) {
  if (const auto* axis =
          node.has("axis") ? std::get_if<int64_t>(&node.attrs.find("axis")->second) : nullptr) {
    if (*axis < 0) return true;
  }
  const auto* axes =
      node.has("axes") ? std::get_if<std::vector<int64_t>>(&node.attrs.find("axes")->second) : nullptr;
  return axes != nullptr && std::any_of(axes->begin(), axes->end(), [](int64_t a) { return a < 0; });
}

// Values of enum-like attributes that a version brought: schemas list attributes, not their values.
struct NewValue {
  const char *op, *attr, *value;
  int since;
};
constexpr NewValue kNewValues[] = {
    {"GridSample", "mode", "linear", 20},
    {"GridSample", "mode", "cubic", 20},
    {"Pad", "mode", "wrap", 19},
    {"Resize", "coordinate_transformation_mode", "half_pixel_symmetric", 19},
    {"ScatterElements", "reduction", "max", 18},
    {"ScatterElements", "reduction", "min", 18},
    {"ScatterND", "reduction", "max", 18},
    {"ScatterND", "reduction", "min", 18},
};

const NewValue* newer_value(const ir::Node& node, int since) {
  for (const NewValue& v : kNewValues) {
    if (node.op == v.op && since < v.since && node.get_string(v.attr, "") == v.value) return &v;
  }
  return nullptr;
}

bool is_default(const ir::Attr& value, const ops::SchemaAttr& attr) {
  if (!attr.default_value) return false;
  const ir::AttrMap a{{"v", value}}, b{{"v", *attr.default_value}};
  return ir::attrs_equal(a, b);
}

ir::AttrMap known_attrs(const ir::Node& node, const ops::SchemaVersion& schema,
                        const ops::SchemaVersion& newest) {
  ir::AttrMap out;
  for (const auto& [name, value] : node.attrs) {
    const ops::SchemaAttr* now = newest.attr(name);
    if (schema.attr(name) != nullptr || now == nullptr || !is_default(value, *now)) out.emplace(name, value);
  }
  return out;
}

/// Does reading `node` back at schema version `since` leave it as it is?
bool reads_back(const ir::Graph& graph, const ir::Node& node, const ir::AttrMap& attrs, const ops::OpDef& op,
                int since) {
  if (op.adapt == nullptr) return true;
  ir::Graph scratch;
  ir::Node copy;
  copy.name = node.name;
  copy.op = node.op;
  copy.attrs = attrs;
  copy.num_captures = node.num_captures;
  std::map<ir::ValueId, ir::ValueId> made;
  for (const ir::ValueId id : node.inputs) {
    if (id == ir::kNoValue) {
      copy.inputs.push_back(id);
      continue;
    }
    const auto [it, fresh] = made.try_emplace(id, ir::kNoValue);
    if (fresh) {
      const ir::Value& v = graph.value(id);
      it->second = v.is_const() ? scratch.add_constant(v.name, *v.data) : scratch.add_value(v.name, v.type);
      scratch.value(it->second).contents = v.contents;
    }
    copy.inputs.push_back(it->second);
  }
  for (const ir::ValueId id : node.outputs)
    copy.outputs.push_back(id == ir::kNoValue ? id : scratch.add_value({}, graph.value(id).type));
  const std::vector<ir::ValueId> inputs = copy.inputs, outputs = copy.outputs;
  ir::Node* n = scratch.add_node(std::move(copy));
  try {
    ops::AdaptContext context{scratch, *n, since};
    op.adapt(context);
  } catch (const Error&) {
    return false;
  }
  return scratch.num_nodes() == 1 && n->op == node.op && n->inputs == inputs && n->outputs == outputs &&
         ir::attrs_equal(n->attrs, attrs);
}

/// Why an opset does not do for a node; empty when it does.
std::string refusal(const ir::Graph& graph, const ir::Node& node, int opset) {
  const ops::SchemaVersion* schema = ops::find_schema("", node.op, opset);
  const ops::SchemaVersion* newest = ops::newest_schema("", node.op);
  if (newest == nullptr) return "there is no such operator";
  if (schema == nullptr) return "the operator is newer than opset " + std::to_string(opset);
  if (schema->deprecated) return "the operator is withdrawn at opset " + std::to_string(opset);
  if (opset < kLowestOpset && has_negative_axis(node))
    return "negative axes have no meaning at opset " + std::to_string(opset);
  if (schema == newest) return {};
  if (const NewValue* v = newer_value(node, schema->since)) {
    return std::string(v->attr) + " = " + v->value + " is newer than opset " + std::to_string(opset);
  }
  ir::Node shown;
  shown.op = node.op;
  shown.inputs = node.inputs;
  shown.outputs = node.outputs;
  shown.num_captures = node.num_captures;
  shown.attrs = known_attrs(node, *schema, *newest);
  const std::vector<std::string> wrong = ops::check_node(graph, shown, *schema);
  if (!wrong.empty()) return wrong[0];
  const ops::OpDef* op = ops::find_op("", node.op);
  if (op == nullptr) return "the operator has no definition here";
  return reads_back(graph, node, shown.attrs, *op, schema->since)
             ? std::string()
             : "it means something else at opset " + std::to_string(opset);
}

/// Every node of ai.onnx, in subgraphs and bodies too.
void all_nodes(const ir::Graph& top, const std::function<void(const ir::Graph&, const ir::Node&)>& fn) {
  std::vector<const ir::Graph*> work{&top};
  while (!work.empty()) {
    const ir::Graph* g = work.back();
    work.pop_back();
    for (const auto& n : g->nodes()) {
      if (n->body) {
        work.push_back(n->body.get());
        continue;
      }
      if (n->domain.empty()) fn(*g, *n);
      for (const auto& [key, attr] : n->attrs) {
        if (const auto* one = std::get_if<std::shared_ptr<ir::Graph>>(&attr)) work.push_back(one->get());
        if (const auto* many = std::get_if<std::vector<std::shared_ptr<ir::Graph>>>(&attr)) {
          for (const auto& p : *many) work.push_back(p.get());
        }
      }
    }
  }
}

}  // namespace

ir::AttrMap attrs_at(const ir::Node& node, int opset) {
  const ops::SchemaVersion* schema = ops::find_schema(node.domain, node.op, opset);
  const ops::SchemaVersion* newest = ops::newest_schema(node.domain, node.op);
  if (schema == nullptr || newest == nullptr || schema == newest) return node.attrs;
  return known_attrs(node, *schema, *newest);
}

int choose_opset(const ir::Graph& graph, int wanted) {
  if (wanted != 0) {
    if (wanted < 1 || wanted > kIrOpset) {
      throw Error(ErrorCode::kInvalidArgument,
                  "opset " + std::to_string(wanted) + " is not between 1 and " + std::to_string(kIrOpset));
    }
    std::vector<std::string> problems;
    all_nodes(graph, [&](const ir::Graph& g, const ir::Node& n) {
      const std::string why = refusal(g, n, wanted);
      if (!why.empty()) problems.push_back("node '" + n.name + "' op " + n.op_text() + ": " + why);
    });
    if (problems.empty()) return wanted;
    ErrorContext context;
    context.stage = "write";
    context.opset = wanted;
    throw Error(ErrorCode::kUnsupported,
                "the graph cannot be written at this opset: " + join_some(problems, "; ", 50),
                std::move(context));
  }
  // Opsets that do for every node seen so far; the newest always does.
  std::vector<char> good(static_cast<size_t>(kIrOpset) + 1, 1);
  all_nodes(graph, [&](const ir::Graph& g, const ir::Node& n) {
    // One answer a schema version: opsets between two versions share it.
    int upper = kIrOpset;
    const auto versions = ops::schema_versions("", n.op);
    for (auto v = versions.rbegin(); v != versions.rend(); ++v) {
      const int from = std::max(v->since, kLowestOpset);
      bool open = false;
      for (int o = from; o <= upper; ++o) open = open || good[static_cast<size_t>(o)] != 0;
      if (open && upper >= from && !refusal(g, n, from).empty()) {
        for (int o = from; o <= upper; ++o) good[static_cast<size_t>(o)] = 0;
      }
      upper = std::min(upper, v->since - 1);
    }
    for (int o = kLowestOpset; o <= upper; ++o) good[static_cast<size_t>(o)] = 0;  // below its first version
  });
  for (int o = kLowestOpset; o < kIrOpset; ++o) {
    if (good[static_cast<size_t>(o)] != 0) return o;
  }
  return kIrOpset;
}

int ir_version_for(int opset) {
  // The IR version released with each opset, from opset 8 on.
  constexpr int kByOpset[] = {3, 4, 5, 6, 7, 7, 7, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12, 13, 13, 13, 14};
  if (opset < 8) return 3;
  return kByOpset[std::min<size_t>(static_cast<size_t>(opset) - 8, std::size(kByOpset) - 1)];
}

}  // namespace hone::onnx
