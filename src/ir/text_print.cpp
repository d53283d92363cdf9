// Printing half of ir/text.h.
#include <bit>
#include <cmath>
#include <cstring>

#include "base/str.h"
#include "ir/text.h"
#include "ir/text_numbers.h"

namespace hone::ir {
namespace {

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == ':' || c == '/';
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}
  std::string out;

  void graph(const Graph& g) {
    out += "graph " + quote(g.name) + " (";
    typed_values(g, g.inputs());
    out += ')';
    if (!g.captures.empty()) {
      out += " captures (";
      typed_values(g, g.captures);
      out += ')';
    }
    out += " {\n";
    indent_ += 2;
    for (size_t i = 0; i < g.num_values(); ++i) {
      const Value& v = g.value(static_cast<ValueId>(i));
      if (v.is_const() && (!v.uses.empty() || v.listed_as_output != 0)) constant(v);
    }
    for (const auto& n : g.nodes()) node(g, *n);
    line("return");
    for (size_t i = 0; i < g.outputs().size(); ++i) {
      out += i == 0 ? " " : ", ";
      value_name(g, g.outputs()[i]);
    }
    out += '\n';
    indent_ -= 2;
    line("}");
  }

 private:
  void line(std::string_view s) {
    out.append(static_cast<size_t>(indent_), ' ');
    out += s;
  }
  void value_name(const Graph& g, ValueId id) {
    if (id == kNoValue) {
      out += '_';
      return;
    }
    const std::string& name = g.value(id).name;
    bool plain = !name.empty() && name.back() != ':';
    for (const char c : name) plain = plain && name_char(c);
    out += '%';
    out += plain ? name : quote(name);
  }
  void word(const std::string& s) {
    bool plain = !s.empty();
    for (const char c : s) plain = plain && name_char(c) && c != ':' && c != '/';
    out += plain ? s : quote(s);
  }
  void typed_values(const Graph& g, const std::vector<ValueId>& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i != 0) out += ", ";
      value_name(g, ids[i]);
      type(g.value(ids[i]).type);
    }
  }
  void type(const TypeInfo& t) {
    if (t.dtype != DType::kUndefined || t.shape) out += ": " + t.text();
  }
  void constant(const Value& v) {
    line("const ");
    out += '%';
    bool plain = !v.name.empty() && v.name.back() != ':';
    for (const char c : v.name) plain = plain && name_char(c);
    out += plain ? v.name : quote(v.name);
    out += ": " + v.data->type_text() + " = ";
    if (v.data->nbytes() <= options_.inline_bytes) {
      elements(*v.data);
    } else if (options_.external) {
      out += '@' + std::to_string(options_.external(v));
    } else {
      out += "@?";
    }
    out += '\n';
  }
  void elements(const Tensor& t) {
    out += '{';
    const int64_t count = text_element_count(t.dtype(), t.numel());
    for (int64_t i = 0; i < count; ++i) {
      if (i != 0) out += ", ";
      out += element_text(t, i);
    }
    out += '}';
  }
  void strings(const std::vector<std::string>& list) {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) out += (i == 0 ? "" : ", ") + quote(list[i]);
    out += ']';
  }
  void attribute(const Attr& a) {
    if (const auto* i = std::get_if<int64_t>(&a)) {
      out += std::to_string(*i);
    } else if (const auto* f = std::get_if<float>(&a)) {
      out += float_text(*f);
    } else if (const auto* s = std::get_if<std::string>(&a)) {
      out += quote(*s);
    } else if (const auto* t = std::get_if<Tensor>(&a)) {
      out += t->type_text() + ' ';
      elements(*t);
    } else if (const auto* is = std::get_if<std::vector<int64_t>>(&a)) {
      out += '[';
      for (size_t k = 0; k < is->size(); ++k) out += (k == 0 ? "" : ", ") + std::to_string((*is)[k]);
      out += ']';
    } else if (const auto* fs = std::get_if<std::vector<float>>(&a)) {
      out += fs->empty() ? "floats [" : "[";
      for (size_t k = 0; k < fs->size(); ++k) out += (k == 0 ? "" : ", ") + float_text((*fs)[k]);
      out += ']';
    } else if (const auto* ss = std::get_if<std::vector<std::string>>(&a)) {
      if (ss->empty()) out += "strings ";
      strings(*ss);
    } else if (const auto* g = std::get_if<std::shared_ptr<Graph>>(&a)) {
      nested(*g);
    } else {
      const auto& gs = std::get<std::vector<std::shared_ptr<Graph>>>(a);
      out += gs.empty() ? "graphs [" : "[";
      for (size_t k = 0; k < gs.size(); ++k) {
        if (k != 0) out += ", ";
        nested(gs[k]);
      }
      out += ']';
    }
  }
  void nested(const std::shared_ptr<Graph>& g) {
    if (!g) {
      out += "null";
      return;
    }
    indent_ += 2;
    graph(*g);
    indent_ -= 2;
  }
  void node(const Graph& g, const Node& n) {
    line("");
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (i != 0) out += ", ";
      value_name(g, n.outputs[i]);
      if (options_.types && n.outputs[i] != kNoValue) type(g.value(n.outputs[i]).type);
    }
    if (!n.outputs.empty()) out += " = ";
    if (!n.domain.empty()) {
      word(n.domain);
      out += "::";
    }
    word(n.op);
    out += '(';
    const size_t own = n.inputs.size() - static_cast<size_t>(n.num_captures);
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (i != 0) out += i == own ? "; " : ", ";
      if (i == 0 && own == 0) out += "; ";
      value_name(g, n.inputs[i]);
    }
    out += ')';
    if (!n.attrs.empty()) {
      out += " {";
      const char* separator = "";
      for (const auto& [key, attr] : n.attrs) {
        out += separator;
        separator = ", ";
        word(key);
        out += " = ";
        attribute(attr);
      }
      out += '}';
    }
    if (options_.provenance) {
      if (!n.name.empty()) out += ' ' + quote(n.name);
      if (!n.sources.empty()) {
        out += " sources ";
        strings(n.sources);
      }
      if (!n.passes.empty()) {
        out += " passes ";
        strings(n.passes);
      }
    }
    if (n.body) {
      out += " anchor " + std::to_string(n.anchor) + " body ";
      nested(n.body);
    }
    out += '\n';
  }

  const PrintOptions& options_;
  int indent_ = 0;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  Printer p(options);
  p.graph(graph);
  p.out += '\n';
  return std::move(p.out);
}

}  // namespace hone::ir
