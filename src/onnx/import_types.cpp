// Types, attributes and Constant nodes.
#include <algorithm>
#include <utility>

#include "base/str.h"
#include "onnx/import_context.h"

namespace hone::onnx {
namespace {

const char* kind_text(TypeProto::Kind kind) {
  switch (kind) {
    case TypeProto::Kind::kSequence: return "a sequence";
    case TypeProto::Kind::kMap: return "a map";
    case TypeProto::Kind::kOptional: return "an optional";
    case TypeProto::Kind::kSparseTensor: return "a sparse tensor";
    case TypeProto::Kind::kOpaque: return "opaque";
    default: return "untyped";
  }
}

const char* attr_type_text(int64_t t) {
  constexpr const char* kNames[] = {
      "undefined", "float",   "int",    "string",        "tensor",         "graph", "floats", "ints",
      "strings",   "tensors", "graphs", "sparse tensor", "sparse tensors", "type",  "types"};
  return t >= 0 && t < static_cast<int64_t>(std::size(kNames)) ? kNames[t] : "unknown";
}

/// A name as our syntax writes it without quotes: `N`, not `N+1` or `batch size`.
bool plain_symbol(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '/';
  });
}

}  // namespace

// An input's name for a dimension is taken as it stands. Elsewhere exporters also write expressions over such
// names ("s0 + 1"); what is neither a name nor an expression over inputs' names says nothing.
ir::Dim Importer::to_dim(const DimProto& dim, std::string_view value, Role role) {
  ir::Graph& main = *fresh_;
  if (dim.value) {
    if (*dim.value >= 0) return ir::Dim(*dim.value);
    issues_.warning({{}, {}, 0, std::string(value)},
                    "dimension " + std::to_string(*dim.value) + " is negative and taken as unknown");
    return main.fresh_symbol();
  }
  // "?" is how some exporters write an unknown dimension; it names nothing, least of all two equal ones.
  if (dim.param.empty() || dim.param == "?" || dim.param.size() > 4096) return main.fresh_symbol();
  if (role == Role::kInput) {
    input_symbols_.emplace(dim.param);
    return ir::Dim::symbol(std::string(dim.param));
  }
  if (plain_symbol(dim.param) || input_symbols_.count(dim.param) != 0)
    return ir::Dim::symbol(std::string(dim.param));
  try {
    const ir::Dim d = ir::Dim::parse(dim.param);
    std::vector<std::string> names;
    d.symbols(&names);
    if (std::all_of(names.begin(), names.end(),
                    [&](const std::string& n) { return input_symbols_.count(n) != 0; }))
      return d;
  } catch (const Error&) {
    // Not our syntax: unknown.
  }
  return main.fresh_symbol();
}

ir::TypeInfo Importer::to_type(const TypeProto& type, std::string_view value, Role role) {
  ir::TypeInfo t;
  const Subject subject{{}, {}, 0, std::string(value)};
  if (type.kind != TypeProto::Kind::kTensor) {
    if (type.kind != TypeProto::Kind::kNone && role == Role::kInput) {
      issues_.error(ErrorCode::kUnsupported, subject,
                    std::string("the input is ") + kind_text(type.kind) + "; only tensors can be fed",
                    "export the model with tensor inputs");
    }
    return t;
  }
  if (type.elem_type != 0) {
    try {
      t.dtype = element_type(type.elem_type);
    } catch (const Error& e) {
      issues_.error(
          e.code(), subject, e.message(),
          e.code() == ErrorCode::kUnsupported ? "convert the data to numbers outside the model" : "",
          e.where());
    }
  }
  if (type.shape) {
    t.shape.emplace();
    for (const DimProto& d : *type.shape) t.shape->push_back(to_dim(d, value, role));
  }
  return t;
}

std::optional<ir::Attr> Importer::to_attr(
    const AttributeProto& a, Scope& scope, Captures* captures, const Subject& subject,
    std::vector<std::pair<std::shared_ptr<ir::Graph>, std::unique_ptr<Scope>>>* subgraphs) {
  const std::string name(a.name);
  if (!a.ref_attr_name.empty()) {
    if (scope.attrs == nullptr) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "attribute '" + name + "' refers to an attribute of a function, outside of one", {});
      return std::nullopt;
    }
    const auto it = scope.attrs->find(a.ref_attr_name);
    // Not given and without default: the attribute is absent here too.
    return it == scope.attrs->end() ? std::nullopt : std::optional<ir::Attr>(it->second);
  }
  int64_t type = a.type;
  if (type == 0) {  // IR version 1 had no type field
    for (int t = 1; t < 15; ++t) {
      if (a.seen == 1u << t) type = t;
    }
  }
  if (type < 1 || type > 14 || (a.seen & ~(1u << type)) != 0) {
    issues_.error(
        ErrorCode::kInvalidModel, subject,
        "attribute '" + name + "' says it is " + attr_type_text(a.type) + " but holds something else", {});
    return std::nullopt;
  }
  const auto sub = [&](const GraphProto& g) -> std::shared_ptr<ir::Graph> {
    if (captures == nullptr || subgraphs == nullptr) {
      issues_.error(ErrorCode::kUnsupported, subject, "attribute '" + name + "' passes a graph to a function",
                    "inline the function before export (onnx.inliner)");
      return nullptr;
    }
    std::unique_ptr<Scope> inner;
    auto graph = build_subgraph(g, scope, captures, &inner);
    subgraphs->emplace_back(graph, std::move(inner));
    return graph;
  };
  const auto strings = [](const std::vector<std::string_view>& v) {
    return std::vector<std::string>(v.begin(), v.end());
  };
  switch (static_cast<AttrType>(type)) {
    case AttrType::kFloat: return a.f;
    case AttrType::kInt: return a.i;
    case AttrType::kString: return std::string(a.s);
    case AttrType::kFloats: return a.floats;
    case AttrType::kInts: return a.ints;
    case AttrType::kStrings: return strings(a.strings);
    case AttrType::kTensor:
    case AttrType::kSparseTensor:
      try {
        if (a.t) return load_tensor(*a.t, source_);
        if (a.sparse_tensor) return load_sparse(*a.sparse_tensor, source_);
        throw Error(ErrorCode::kInvalidModel, "it is empty");
      } catch (const Error& e) {
        issues_.error(e.code(), subject, "attribute '" + name + "': " + e.message(), {}, e.where());
      }
      return std::nullopt;
    case AttrType::kGraph: {
      if (!a.g) {
        issues_.error(ErrorCode::kInvalidModel, subject, "attribute '" + name + "' holds no graph", {});
        return std::nullopt;
      }
      auto g = sub(*a.g);
      return g ? std::optional<ir::Attr>(std::move(g)) : std::nullopt;
    }
    case AttrType::kGraphs: {
      std::vector<std::shared_ptr<ir::Graph>> graphs;
      for (const GraphProto& g : a.graphs) graphs.push_back(sub(g));
      return graphs;
    }
    default:
      issues_.error(ErrorCode::kUnsupported, subject,
                    "attribute '" + name + "' holds " + attr_type_text(type), {});
      return std::nullopt;
  }
}

std::optional<Tensor> Importer::constant_value(const NodeProto& node, Scope& scope, const Subject& subject) {
  if (node.attribute.size() != 1) {
    issues_.error(ErrorCode::kInvalidModel, subject,
                  "a Constant has exactly one attribute, this one " + std::to_string(node.attribute.size()),
                  {});
    return std::nullopt;
  }
  const AttributeProto& a = node.attribute[0];
  const std::optional<ir::Attr> attr = to_attr(a, scope, nullptr, subject, nullptr);
  if (!attr) {
    if (!a.ref_attr_name.empty()) {
      issues_.error(ErrorCode::kInvalidModel, subject,
                    "the function's attribute '" + std::string(a.ref_attr_name) + "' is not given", {});
    }
    return std::nullopt;
  }
  const std::string_view name = a.name;
  const auto wrong = [&]() -> std::optional<Tensor> {
    issues_.error(ErrorCode::kInvalidModel, subject,
                  "attribute '" + std::string(name) + "' is unknown or of the wrong type", {});
    return std::nullopt;
  };
  if (name == "value_string" || name == "value_strings") {
    issues_.error(ErrorCode::kUnsupported, subject, "element type STRING",
                  "convert the data to numbers outside the model");
    return std::nullopt;
  }
  if (name == "value" || name == "sparse_value") {
    const auto* t = std::get_if<Tensor>(&*attr);
    return t != nullptr ? std::optional<Tensor>(*t) : wrong();
  }
  if (name == "value_float") {
    const auto* f = std::get_if<float>(&*attr);
    return f != nullptr ? std::optional<Tensor>(Tensor::f32_scalar(*f)) : wrong();
  }
  if (name == "value_int") {
    const auto* i = std::get_if<int64_t>(&*attr);
    return i != nullptr ? std::optional<Tensor>(Tensor::i64_scalar(*i)) : wrong();
  }
  if (name == "value_floats") {
    const auto* v = std::get_if<std::vector<float>>(&*attr);
    if (v == nullptr) return wrong();
    return Tensor::of<float>(DType::kF32, {static_cast<int64_t>(v->size())}, *v);
  }
  if (name == "value_ints") {
    const auto* v = std::get_if<std::vector<int64_t>>(&*attr);
    return v != nullptr ? std::optional<Tensor>(Tensor::i64_vector(*v)) : wrong();
  }
  return wrong();
}

}  // namespace hone::onnx
