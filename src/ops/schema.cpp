// The table is text, read once at first use: 629 rows take about a millisecond, and compile as string
// literals.
#include "ops/schema.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <map>

#include "hone/error.h"

namespace hone::ops {
namespace {

struct TypesRow {
  int number;
  std::string_view text;
};
struct SchemaRow {
  std::string_view name;
  int since;
  std::string_view arity, inputs, outputs, types, attrs;
};

constexpr TypesRow kTypes[] = {
#define HONE_TYPES(number, text) {number, text},
#define HONE_SCHEMA(...)
#include "ops/schema_table.inc"
#undef HONE_TYPES
#undef HONE_SCHEMA
};

constexpr SchemaRow kRows[] = {
#define HONE_TYPES(...)
#define HONE_SCHEMA(name, since, arity, inputs, outputs, types, attrs) \
  {name, since, arity, inputs, outputs, types, attrs},
#include "ops/schema_table.inc"
#undef HONE_TYPES
#undef HONE_SCHEMA
};

[[noreturn]] void bad_row(std::string_view what) {
  throw Error(ErrorCode::kInternal, "schema table: malformed row at '" + std::string(what) + "'");
}

/// Splits off the text before the first of `sep`; `rest` loses it and the separator.
std::string_view take(std::string_view* rest, std::string_view sep) {
  const size_t at = rest->find(sep);
  std::string_view head = rest->substr(0, at);
  *rest = at == std::string_view::npos ? std::string_view() : rest->substr(at + sep.size());
  return head;
}

int64_t to_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || end != text.data() + text.size()) bad_row(text);
  return value;
}

TypeSet parse_types(std::string_view text) {
  TypeSet set;
  while (!text.empty()) {
    std::string_view word = take(&text, " ");
    uint32_t* mask = &set.tensor;
    if (const size_t colon = word.find(':'); colon != std::string_view::npos) {
      const std::string_view form = word.substr(0, colon);
      mask = form == "seq" ? &set.sequence : form == "opt" ? &set.optional : &set.optional_sequence;
      word = word.substr(colon + 1);
    }
    const std::optional<DType> dtype = parse_dtype(word);
    if (!dtype) bad_row(word);
    *mask |= 1U << static_cast<int>(*dtype);
  }
  return set;
}

std::optional<AttrKind> parse_kind(std::string_view text) {
  constexpr std::pair<const char*, AttrKind> kKinds[] = {
      {"i", AttrKind::kInt},     {"f", AttrKind::kFloat},         {"s", AttrKind::kString},
      {"t", AttrKind::kTensor},  {"g", AttrKind::kGraph},         {"is", AttrKind::kInts},
      {"fs", AttrKind::kFloats}, {"ss", AttrKind::kStrings},      {"ts", AttrKind::kTensors},
      {"gs", AttrKind::kGraphs}, {"sp", AttrKind::kSparseTensor}, {"tp", AttrKind::kTypeProto}};
  for (const auto& [name, kind] : kKinds) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

ir::Attr parse_default(AttrKind kind, std::string_view text) {
  switch (kind) {
    case AttrKind::kInt: return to_int(text);
    case AttrKind::kFloat: return static_cast<float>(std::strtod(std::string(text).c_str(), nullptr));
    case AttrKind::kString: return std::string(text);
    case AttrKind::kInts: {
      std::vector<int64_t> values;
      while (!text.empty()) values.push_back(to_int(take(&text, ":")));
      return values;
    }
    case AttrKind::kStrings: {
      std::vector<std::string> values;
      while (!text.empty()) values.emplace_back(take(&text, ":"));
      return values;
    }
    default: bad_row(text);
  }
}

SchemaAttr parse_attr(std::string_view text) {
  SchemaAttr attr;
  attr.name = take(&text, " ");
  if (attr.name.ends_with('!')) {
    attr.required = true;
    attr.name.remove_suffix(1);
  }
  const bool has_default = text.find('=') != std::string_view::npos;
  const std::string_view kind_text = take(&text, "=");
  const std::optional<AttrKind> kind = parse_kind(kind_text);
  if (!kind) bad_row(kind_text);
  attr.kind = *kind;
  if (has_default) attr.default_value = parse_default(*kind, text);
  return attr;
}

struct Table {
  std::vector<SchemaVersion> versions;
  /// (domain, name) -> first and one past the last version.
  std::map<std::pair<std::string_view, std::string_view>, std::pair<size_t, size_t>> index;
  std::vector<TypeSet> sets;

  Table() {
    for (const TypesRow& row : kTypes) {
      if (row.number != static_cast<int>(sets.size())) bad_row(row.text);
      sets.push_back(parse_types(row.text));
    }
    versions.reserve(std::size(kRows));
    for (const SchemaRow& row : kRows) versions.push_back(parse(row));
    for (size_t i = 0; i < versions.size(); ++i) {
      auto [it, fresh] = index.try_emplace({versions[i].domain, versions[i].name}, i, i + 1);
      if (!fresh) it->second.second = i + 1;
    }
  }

  const TypeSet& set(std::string_view number) const {
    const auto i = static_cast<size_t>(to_int(number));
    if (i >= sets.size()) bad_row(number);
    return sets[i];
  }

  SchemaVersion parse(const SchemaRow& row) const {
    SchemaVersion v;
    v.name = row.name;
    v.since = row.since;
    std::string_view arity = row.arity;
    v.min_inputs = static_cast<int>(to_int(take(&arity, " ")));
    v.min_outputs = static_cast<int>(to_int(take(&arity, " ")));
    v.deprecated = arity == "deprecated";
    std::map<std::string_view, TypeSet> variables;
    for (std::string_view types = row.types; !types.empty();) {
      std::string_view one = take(&types, " ");
      const std::string_view name = take(&one, "=");
      variables[name] = set(one);
    }
    v.inputs = parse_params(row.inputs, variables);
    v.outputs = parse_params(row.outputs, variables);
    for (std::string_view attrs = row.attrs; !attrs.empty();)
      v.attrs.push_back(parse_attr(take(&attrs, ", ")));
    return v;
  }

  std::vector<SchemaParam> parse_params(std::string_view text,
                                        const std::map<std::string_view, TypeSet>& variables) const {
    std::vector<SchemaParam> params;
    while (!text.empty()) {
      std::string_view type = take(&text, ", ");
      SchemaParam p;
      p.name = take(&type, " ");
      while (p.name.ends_with('*') || p.name.ends_with('?')) {
        if (p.option == ParamOption::kVariadic) p.homogeneous = false;  // the second star
        p.option = p.name.ends_with('?') ? ParamOption::kOptional : ParamOption::kVariadic;
        p.name.remove_suffix(1);
      }
      if (type.starts_with('#')) {
        p.types = set(type.substr(1));
      } else {
        const auto it = variables.find(type);
        if (it == variables.end()) bad_row(type);
        p.type_var = type;
        p.types = it->second;
      }
      params.push_back(p);
    }
    return params;
  }
};

const Table& table() {
  static const Table t;
  return t;
}

int max_arity(const std::vector<SchemaParam>& params) {
  if (!params.empty() && params.back().option == ParamOption::kVariadic) return INT_MAX;
  return static_cast<int>(params.size());
}

const SchemaParam* formal(const std::vector<SchemaParam>& params, size_t i) {
  if (i < params.size()) return &params[i];
  if (!params.empty() && params.back().option == ParamOption::kVariadic) return &params.back();
  return nullptr;
}

/// The kind an attribute value has, as ONNX counts kinds.
AttrKind kind_of(const ir::Attr& value) {
  constexpr AttrKind kByIndex[] = {AttrKind::kInt,     AttrKind::kFloat, AttrKind::kString,
                                   AttrKind::kTensor,  AttrKind::kInts,  AttrKind::kFloats,
                                   AttrKind::kStrings, AttrKind::kGraph, AttrKind::kGraphs};
  return kByIndex[value.index()];
}

bool kind_fits(AttrKind wanted, AttrKind found) {
  if (wanted == found) return true;
  // Sparse tensors and type protos arrive as whatever the importer made of them.
  return wanted == AttrKind::kSparseTensor || wanted == AttrKind::kTypeProto || wanted == AttrKind::kTensors;
}

std::string count_text(size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

/// Checks one side of a node; `bound` carries the dtype of each type variable from inputs to outputs.
struct TypeChecker {
  const ir::Graph& graph;
  std::vector<std::string>* out;
  std::map<std::string_view, std::pair<DType, std::string>> bound;

  void check(const char* side, size_t i, const SchemaParam& p, ir::ValueId id) {
    const ir::Value& value = graph.value(id);
    const DType t = value.type.dtype;
    if (t == DType::kUndefined) return;
    const std::string where = std::string(side) + " " + std::to_string(i) + " (" + std::string(p.name) + ")";
    if (!p.types.has(t)) {
      // A sequence or optional is not a tensor of its element type; the graph does not say which it is, so
      // any form will do.
      const uint32_t other = p.types.sequence | p.types.optional | p.types.optional_sequence;
      if ((other >> static_cast<int>(t) & 1U) == 0) {
        out->push_back(where + " is " + dtype_name(t) + ", allowed: " + p.types.text());
      }
      return;
    }
    if (p.type_var.empty() || !p.homogeneous) return;
    const auto [it, fresh] = bound.try_emplace(p.type_var, t, where);
    if (!fresh && it->second.first != t && p.types.only_tensors()) {
      out->push_back(where + " is " + dtype_name(t) + " but " + it->second.second + " is " +
                     dtype_name(it->second.first) + "; both must be " + std::string(p.type_var));
    }
  }
};

}  // namespace

const char* attr_kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::kFloat: return "float";
    case AttrKind::kInt: return "int";
    case AttrKind::kString: return "string";
    case AttrKind::kTensor: return "tensor";
    case AttrKind::kGraph: return "graph";
    case AttrKind::kFloats: return "floats";
    case AttrKind::kInts: return "ints";
    case AttrKind::kStrings: return "strings";
    case AttrKind::kTensors: return "tensors";
    case AttrKind::kGraphs: return "graphs";
    case AttrKind::kSparseTensor: return "sparse tensor";
    case AttrKind::kTypeProto: return "type";
  }
  return "unknown";
}

std::string TypeSet::text() const {
  std::string out;
  const std::pair<const char*, uint32_t> forms[] = {
      {"", tensor}, {"seq:", sequence}, {"opt:", optional}, {"optseq:", optional_sequence}};
  for (const auto& [form, mask] : forms) {
    for (int i = 0; i < 32; ++i) {
      if ((mask >> i & 1U) != 0)
        out += (out.empty() ? "" : " ") + std::string(form) + dtype_name(static_cast<DType>(i));
    }
  }
  return out;
}

int SchemaVersion::max_inputs() const { return max_arity(inputs); }
int SchemaVersion::max_outputs() const { return max_arity(outputs); }
const SchemaParam* SchemaVersion::input(size_t i) const { return formal(inputs, i); }
const SchemaParam* SchemaVersion::output(size_t i) const { return formal(outputs, i); }

const SchemaAttr* SchemaVersion::attr(std::string_view attr_name) const {
  for (const SchemaAttr& a : attrs) {
    if (a.name == attr_name) return &a;
  }
  return nullptr;
}

std::span<const SchemaVersion> all_schemas() { return table().versions; }

std::span<const SchemaVersion> schema_versions(std::string_view domain, std::string_view op) {
  if (domain == "ai.onnx") domain = "";
  const Table& t = table();
  const auto it = t.index.find({domain, op});
  if (it == t.index.end()) return {};
  return std::span(t.versions).subspan(it->second.first, it->second.second - it->second.first);
}

const SchemaVersion* find_schema(std::string_view domain, std::string_view op, int64_t opset) {
  const SchemaVersion* best = nullptr;
  for (const SchemaVersion& v : schema_versions(domain, op)) {
    if (v.since <= opset) best = &v;
  }
  return best;
}

const SchemaVersion* newest_schema(std::string_view domain, std::string_view op) {
  const auto versions = schema_versions(domain, op);
  return versions.empty() ? nullptr : &versions.back();
}

std::vector<std::string> check_node(const ir::Graph& graph, const ir::Node& node,
                                    const SchemaVersion& schema) {
  std::vector<std::string> out;
  const size_t num_inputs = node.inputs.size() - static_cast<size_t>(node.num_captures);
  const auto arity = [&](const char* what, size_t n, int min, int max) {
    if (n < static_cast<size_t>(min)) {
      out.push_back("has " + count_text(n, what) + ", needs at least " + std::to_string(min));
    } else if (max != INT_MAX && n > static_cast<size_t>(max)) {
      out.push_back("has " + count_text(n, what) + ", takes at most " + std::to_string(max));
    }
  };
  arity("input", num_inputs, schema.min_inputs, schema.max_inputs());
  arity("output", node.outputs.size(), schema.min_outputs, schema.max_outputs());

  for (const auto& [name, value] : node.attrs) {
    const SchemaAttr* attr = schema.attr(name);
    if (attr == nullptr) {
      out.push_back("unknown attribute '" + name + "'");
    } else if (!kind_fits(attr->kind, kind_of(value))) {
      out.push_back("attribute '" + name + "' is " + attr_kind_name(kind_of(value)) + ", must be " +
                    attr_kind_name(attr->kind));
    }
  }
  for (const SchemaAttr& attr : schema.attrs) {
    if (attr.required && !node.has(attr.name))
      out.push_back("missing attribute '" + std::string(attr.name) + "'");
  }

  TypeChecker types{graph, &out, {}};
  for (size_t i = 0; i < num_inputs; ++i) {
    const SchemaParam* p = schema.input(i);
    if (p == nullptr) break;
    if (node.inputs[i] == ir::kNoValue) {
      if (p->option == ParamOption::kSingle)
        out.push_back("input " + std::to_string(i) + " (" + std::string(p->name) + ") is missing");
    } else {
      types.check("input", i, *p, node.inputs[i]);
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const SchemaParam* p = schema.output(i);
    if (p == nullptr) break;
    if (node.outputs[i] != ir::kNoValue) types.check("output", i, *p, node.outputs[i]);
  }
  return out;
}

}  // namespace hone::ops
