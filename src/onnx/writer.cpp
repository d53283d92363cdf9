#include "onnx/writer.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <protozero/pbf_writer.hpp>

#include "base/file_writer.h"
#include "base/str.h"
#include "hone/error.h"
#include "onnx/weights.h"

namespace hone::onnx {
namespace {

using protozero::pbf_writer;

constexpr int kFunctionsIrVersion = 8;
constexpr int64_t kExternalMinBytes = 1024;
constexpr int64_t kProtobufMaxBytes = (int64_t{1} << 31) - 1;

void string_field(pbf_writer& w, uint32_t field, std::string_view s) {
  w.add_string(field, s.data(), s.size());
}
void message_field(pbf_writer& w, uint32_t field, std::string_view s) {
  w.add_message(field, s.data(), s.size());
}
void varint(std::string* out, uint64_t v) { protozero::write_varint(std::back_inserter(*out), v); }

/// Tag and length of a length-delimited field whose bytes follow.
std::string field_head(uint32_t field, uint64_t length) {
  std::string s;
  varint(&s, field << 3 | 2);
  varint(&s, length);
  return s;
}

/// A TensorProto but for its data.
std::string tensor_head(std::string_view name, const Tensor& t) {
  std::string s;
  pbf_writer w(s);
  w.add_packed_int64(1, t.shape().begin(), t.shape().end());
  w.add_int32(2, static_cast<int32_t>(t.dtype()));
  if (!name.empty()) string_field(w, 8, name);
  return s;
}

std::string tensor_text(std::string_view name, const Tensor& t) {
  std::string s = tensor_head(name, t);
  pbf_writer w(s);
  w.add_bytes(9, static_cast<const char*>(t.raw()), static_cast<size_t>(t.nbytes()));
  return s;
}

std::string type_text(const ir::TypeInfo& type) {
  std::string tensor;
  {
    pbf_writer w(tensor);
    w.add_int32(1, static_cast<int32_t>(type.dtype));
    if (type.shape) {
      // Written even when it is empty: a scalar has a shape without dimensions.
      std::string dims;
      pbf_writer shape(dims);
      for (const ir::Dim& d : *type.shape) {
        pbf_writer dim(shape, 1);
        if (d.is_const()) {
          dim.add_int64(1, d.value());
        } else {
          string_field(dim, 2, d.text());
        }
      }
      message_field(w, 2, dims);
    }
  }
  std::string s;
  pbf_writer w(s);
  message_field(w, 1, tensor);
  return s;
}

std::string value_info(std::string_view name, const ir::TypeInfo& type) {
  std::string s;
  pbf_writer w(s);
  string_field(w, 1, name);
  if (type.dtype != DType::kUndefined) message_field(w, 2, type_text(type));
  return s;
}

std::string opset_import(std::string_view domain, int64_t version) {
  std::string s;
  pbf_writer w(s);
  string_field(w, 1, domain);
  w.add_int64(2, version);
  return s;
}

/// The file as pieces: text that was made here, and tensors' bytes that are only referred to.
struct Piece {
  std::string head;
  const void* data = nullptr;
  size_t size = 0;
};

class Emitter {
 public:
  Emitter(const ir::Graph& graph, const WriteOptions& options) : options_(options), graph_(graph) {
    opset_ = choose_opset(graph, options.opset);
  }

  /// Pieces of the ModelProto. `external`: large initializers go there (written as they come) under the name
  /// `location`.
  std::vector<Piece> model(FileWriter* external, const std::string& location, WriteReport* report) {
    std::string graph_text;
    std::vector<Piece> pieces;
    Names names;
    names.used = &main_used_;
    for (size_t i = 0; i < graph_.num_values(); ++i)
      main_used_.insert(graph_.value(static_cast<ir::ValueId>(i)).name);
    for (size_t i = 0; i < graph_.num_values(); ++i) {
      const ir::Value& v = graph_.value(static_cast<ir::ValueId>(i));
      names.of[v.id] = v.name;
    }
    {
      pbf_writer w(graph_text);
      nodes(graph_, names, w);
      outputs(graph_, names, w, false);
      string_field(w, 2, graph_.name.empty() ? "graph" : graph_.name);
      if (!graph_.doc.empty()) string_field(w, 10, graph_.doc);
      for (const ir::ValueId id : graph_.inputs())
        message_field(w, 11, value_info(names.of.at(id), graph_.value(id).type));
      inner_types(graph_, names, w);
    }
    size_t graph_size = graph_text.size();
    for (size_t i = 0; i < graph_.num_values(); ++i) {
      const ir::Value& v = graph_.value(static_cast<ir::ValueId>(i));
      if (!v.is_const() || (v.uses.empty() && v.listed_as_output == 0)) continue;
      pieces.push_back(initializer(v, external, location));
      graph_size += pieces.back().head.size() + pieces.back().size;
    }

    std::string head;
    report->opset = opset_;
    report->ir_version = std::max({4, ir_version_for(opset_), functions_.empty() ? 0 : kFunctionsIrVersion});
    {
      pbf_writer w(head);
      w.add_int64(1, report->ir_version);
      string_field(w, 2, options_.producer);
      message_field(w, 8, opset_import("", opset_));
      for (const std::string& d : domains_) message_field(w, 8, opset_import(d, 1));
      for (const auto& [key, value] : options_.metadata) {
        std::string entry;
        pbf_writer e(entry);
        string_field(e, 1, key);
        string_field(e, 2, value);
        message_field(w, 14, entry);
      }
      for (const std::string& f : functions_) message_field(w, 25, f);
    }
    head += field_head(7, graph_size) + graph_text;
    pieces.insert(pieces.begin(), Piece{std::move(head), nullptr, 0});
    return pieces;
  }

 private:
  /// Names that values are written under. `used` holds every name of the enclosing main graph or function.
  struct Names {
    std::unordered_map<ir::ValueId, std::string> of;
    std::unordered_set<std::string>* used = nullptr;

    std::string unique(const std::string& wanted) const {
      std::string name = wanted;
      for (int k = 1; !used->insert(name).second; ++k) name = wanted + "_" + std::to_string(k);
      return name;
    }
  };

  Piece initializer(const ir::Value& v, FileWriter* external, const std::string& location) const {
    const Tensor& t = *v.data;
    Piece piece;
    std::string head = tensor_head(v.name, t);
    if (external != nullptr && t.nbytes() >= kExternalMinBytes) {
      // Aligned, so that readers can use the bytes in place.
      external->align(t.nbytes() >= (1 << 20) ? 4096 : 64);
      const std::pair<const char*, std::string> entries[] = {{"location", location},
                                                             {"offset", std::to_string(external->size())},
                                                             {"length", std::to_string(t.nbytes())}};
      pbf_writer w(head);
      for (const auto& [key, value] : entries) {
        std::string entry;
        pbf_writer e(entry);
        string_field(e, 1, key);
        string_field(e, 2, value);
        message_field(w, 13, entry);
      }
      w.add_enum(14, 1);
      external->write(t.raw(), static_cast<size_t>(t.nbytes()));
      piece.head = field_head(5, head.size()) + head;
      return piece;
    }
    piece.data = t.raw();
    piece.size = static_cast<size_t>(t.nbytes());
    const std::string raw = field_head(9, piece.size);
    piece.head = field_head(5, head.size() + raw.size() + piece.size) + head + raw;
    return piece;
  }

  void inner_types(const ir::Graph& g, const Names& names, pbf_writer& w) const {
    if (!options_.value_types) return;
    for (const auto& n : g.nodes()) {
      for (const ir::ValueId id : n->outputs) {
        if (id == ir::kNoValue) continue;
        const ir::Value& v = g.value(id);
        if (v.listed_as_output == 0 && v.type.dtype != DType::kUndefined)
          message_field(w, 13, value_info(names.of.at(id), v.type));
      }
    }
  }

  /// Graph outputs. A value listed twice, and in a subgraph one that is not made there, goes through an
  /// Identity.
  void outputs(const ir::Graph& g, Names& names, pbf_writer& w, bool subgraph) {
    std::unordered_set<ir::ValueId> seen;
    for (const ir::ValueId id : g.outputs()) {
      const ir::Value& v = g.value(id);
      std::string name = names.of.at(id);
      if (!seen.insert(id).second || (subgraph && v.producer == nullptr)) {
        const std::string copy = names.unique(name + "_out");
        message_field(w, 1, identity(name, copy));
        name = copy;
      }
      message_field(w, 12, value_info(name, v.type));
    }
  }

  static std::string identity(const std::string& from, const std::string& to) {
    std::string s;
    pbf_writer w(s);
    string_field(w, 1, from);
    string_field(w, 2, to);
    string_field(w, 3, to + "_identity");
    string_field(w, 4, "Identity");
    return s;
  }

  static std::string constant_node(const std::string& name, const Tensor& t) {
    std::string attr;
    {
      pbf_writer a(attr);
      string_field(a, 1, "value");
      message_field(a, 5, tensor_text({}, t));
      a.add_enum(20, 4);
    }
    std::string s;
    pbf_writer w(s);
    string_field(w, 2, name);
    string_field(w, 4, "Constant");
    message_field(w, 5, attr);
    return s;
  }

  /// Nodes of a graph as fields 1 (GraphProto) or 7 (FunctionProto) of `w`.
  void nodes(const ir::Graph& g, Names& names, pbf_writer& w, uint32_t field = 1) {
    for (const auto& n : g.nodes()) {
      if (n->body && !options_.functions) {
        in_place(*n, names, w, field);
      } else {
        message_field(w, field, node(*n, names));
      }
    }
  }

  std::string node(const ir::Node& n, Names& names) {
    std::string op = n.op;
    if (n.body) {
      op = function(n);
    } else if (n.domain == ir::kHoneDomain) {
      ErrorContext context;
      context.stage = "write";
      context.node = n.name;
      context.op = n.op_text();
      throw Error(ErrorCode::kUnsupported, "the operator has no body of standard operators",
                  std::move(context));
    }
    if (!n.domain.empty()) domains_.insert(n.domain);
    std::string s;
    pbf_writer w(s);
    const size_t own = n.inputs.size() - static_cast<size_t>(n.num_captures);
    for (size_t i = 0; i < own; ++i)
      string_field(w, 1, n.inputs[i] == ir::kNoValue ? std::string_view() : names.of.at(n.inputs[i]));
    for (const ir::ValueId id : n.outputs)
      string_field(w, 2, id == ir::kNoValue ? std::string_view() : names.of.at(id));
    if (!n.name.empty()) string_field(w, 3, n.name);
    string_field(w, 4, op);
    if (!n.domain.empty()) string_field(w, 7, n.domain);
    if (!n.body) {
      for (const auto& [key, value] : attrs_at(n, opset_))
        message_field(w, 5, attribute(n, key, value, names));
    }
    return s;
  }

  std::string attribute(const ir::Node& n, const std::string& key, const ir::Attr& value, Names& names) {
    std::string s;
    pbf_writer w(s);
    string_field(w, 1, key);
    const auto sub = [&](const std::shared_ptr<ir::Graph>& p) { return subgraph(n, *p, names); };
    int type = 0;
    if (const auto* f = std::get_if<float>(&value)) {
      w.add_float(2, *f);
      type = 1;
    } else if (const auto* i = std::get_if<int64_t>(&value)) {
      w.add_int64(3, *i);
      type = 2;
    } else if (const auto* str = std::get_if<std::string>(&value)) {
      w.add_bytes(4, *str);
      type = 3;
    } else if (const auto* t = std::get_if<Tensor>(&value)) {
      message_field(w, 5, tensor_text({}, *t));
      type = 4;
    } else if (const auto* p = std::get_if<std::shared_ptr<ir::Graph>>(&value)) {
      message_field(w, 6, sub(*p));
      type = 5;
    } else if (const auto* fs = std::get_if<std::vector<float>>(&value)) {
      w.add_packed_float(7, fs->begin(), fs->end());
      type = 6;
    } else if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) {
      w.add_packed_int64(8, is->begin(), is->end());
      type = 7;
    } else if (const auto* ss = std::get_if<std::vector<std::string>>(&value)) {
      for (const std::string& one : *ss) w.add_bytes(9, one);
      type = 8;
    } else {
      for (const auto& one : std::get<std::vector<std::shared_ptr<ir::Graph>>>(value))
        message_field(w, 11, sub(one));
      type = 10;
    }
    w.add_enum(20, type);
    return s;
  }

  std::string subgraph(const ir::Node& n, const ir::Graph& g, const Names& outer_names) {
    Names names;
    names.used = outer_names.used;
    const size_t own = n.inputs.size() - static_cast<size_t>(n.num_captures);
    for (size_t i = 0; i < g.captures.size(); ++i)
      names.of[g.captures[i]] = outer_names.of.at(n.inputs[own + i]);
    name_rest(g, names);
    std::string s;
    pbf_writer w(s);
    nodes(g, names, w);
    outputs(g, names, w, true);
    string_field(w, 2, g.name.empty() ? "subgraph" : g.name);
    for (size_t i = 0; i < g.num_values(); ++i) {
      const ir::Value& v = g.value(static_cast<ir::ValueId>(i));
      if (v.is_const() && (!v.uses.empty() || v.listed_as_output != 0))
        message_field(w, 5, tensor_text(names.of.at(v.id), *v.data));
    }
    for (const ir::ValueId id : g.inputs())
      message_field(w, 11, value_info(names.of.at(id), g.value(id).type));
    inner_types(g, names, w);
    return s;
  }

  /// A name for every value of `g` that matters and has none yet: no name is used twice, not even in
  /// different subgraphs.
  static void name_rest(const ir::Graph& g, Names& names) {
    for (size_t i = 0; i < g.num_values(); ++i) {
      const ir::Value& v = g.value(static_cast<ir::ValueId>(i));
      if (names.of.count(v.id) == 0) names.of[v.id] = names.unique(v.name);
    }
  }

  /// Makes the function of a fused layer; returns its name.
  std::string function(const ir::Node& n) {
    const ir::Graph& body = *n.body;
    const std::string name = n.op + "_" + std::to_string(next_function_++);
    std::unordered_set<std::string> used;
    Names names;
    names.used = &used;
    name_rest(body, names);
    std::string s;
    pbf_writer w(s);
    string_field(w, 1, name);
    string_field(w, 10, ir::kHoneDomain);
    for (const ir::ValueId id : body.inputs()) string_field(w, 4, names.of.at(id));
    for (size_t i = 0; i < body.num_values(); ++i) {
      const ir::Value& v = body.value(static_cast<ir::ValueId>(i));
      if (v.is_const() && (!v.uses.empty() || v.listed_as_output != 0))
        message_field(w, 7, constant_node(names.of.at(v.id), *v.data));
    }
    const std::set<std::string> before = std::exchange(domains_, {});
    nodes(body, names, w, 7);
    std::unordered_set<std::string> taken;
    for (const ir::ValueId id : body.outputs()) {
      std::string out = names.of.at(id);
      if (body.value(id).producer == nullptr || !taken.insert(out).second) {
        const std::string copy = names.unique(out + "_out");
        message_field(w, 7, identity(out, copy));
        out = copy;
      }
      string_field(w, 5, out);
    }
    message_field(w, 9, opset_import("", opset_));
    for (const std::string& d : domains_) message_field(w, 9, opset_import(d, 1));
    domains_.insert(before.begin(), before.end());
    functions_.push_back(std::move(s));
    return name;
  }

  /// Writes the nodes of a fused layer's body where the layer stands.
  void in_place(const ir::Node& n, Names& outer, pbf_writer& w, uint32_t field) {
    const ir::Graph& body = *n.body;
    Names names;
    names.used = outer.used;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      names.of[body.inputs()[i]] = n.inputs[i] == ir::kNoValue ? std::string() : outer.of.at(n.inputs[i]);
    }
    std::vector<std::pair<ir::ValueId, std::string>> copies;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (n.outputs[i] == ir::kNoValue) continue;
      const ir::ValueId inner = body.outputs()[i];
      const std::string& name = outer.of.at(n.outputs[i]);
      if (body.value(inner).producer != nullptr && names.of.count(inner) == 0) {
        names.of[inner] = name;
      } else {
        copies.emplace_back(inner, name);
      }
    }
    name_rest(body, names);
    for (size_t i = 0; i < body.num_values(); ++i) {
      const ir::Value& v = body.value(static_cast<ir::ValueId>(i));
      if (v.is_const() && (!v.uses.empty() || v.listed_as_output != 0)) {
        message_field(w, field, constant_node(names.of.at(v.id), *v.data));
      }
    }
    nodes(body, names, w, field);
    for (const auto& [inner, name] : copies) {
      message_field(w, field, identity(names.of.at(inner), name));
    }
  }

  const WriteOptions& options_;
  const ir::Graph& graph_;
  int opset_ = 0;
  int next_function_ = 0;
  std::unordered_set<std::string> main_used_;
  std::set<std::string> domains_;       // besides ai.onnx
  std::vector<std::string> functions_;  // serialised
};

int64_t constant_bytes(const ir::Graph& g) {
  int64_t sum = 0;
  for (size_t i = 0; i < g.num_values(); ++i) {
    const ir::Value& v = g.value(static_cast<ir::ValueId>(i));
    if (v.is_const() && (!v.uses.empty() || v.listed_as_output != 0)) sum += v.data->nbytes();
  }
  return sum;
}

}  // namespace

std::string serialize_model(const ir::Graph& graph, const WriteOptions& options, WriteReport* report) {
  WriteReport local;
  if (report == nullptr) report = &local;
  if (constant_bytes(graph) > kProtobufMaxBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                "the model exceeds 2 GiB; write it to a file with external data");
  }
  std::string out;
  for (const Piece& p : Emitter(graph, options).model(nullptr, {}, report)) {
    out += p.head;
    if (p.size != 0) out.append(static_cast<const char*>(p.data), p.size);
  }
  report->file_bytes = static_cast<int64_t>(out.size());
  return out;
}

WriteReport write_model(const ir::Graph& graph, const std::string& path, const WriteOptions& options) {
  WriteReport report;
  Emitter emitter(graph, options);
  FileWriter file(path);
  std::unique_ptr<FileWriter> data;
  std::string location;
  if (options.external || constant_bytes(graph) > options.external_from_bytes) {
    const size_t slash = path.rfind('/');
    location = path.substr(slash == std::string::npos ? 0 : slash + 1) + ".data";
    (void)check_location(location);  // what we would refuse to read is not written
    data = std::make_unique<FileWriter>(path + ".data");
  }
  for (const Piece& p : emitter.model(data.get(), location, &report)) {
    file.write(p.head);
    if (p.size != 0) file.write(p.data, p.size);
  }
  report.file_bytes = file.size();
  if (report.file_bytes > kProtobufMaxBytes) {
    throw Error(ErrorCode::kInvalidArgument, "the model exceeds 2 GiB even with external data");
  }
  if (data && data->size() != 0) {
    report.external_bytes = data->size();
    data->commit();
    report.files.push_back(path + ".data");
  }
  file.commit();
  report.files.push_back(path);
  return report;
}

}  // namespace hone::onnx
