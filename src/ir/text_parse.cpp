// Parsing half of ir/text.h: recursive descent over untrusted text.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/str.h"
#include "hone/error.h"
#include "ir/text.h"
#include "ir/text_numbers.h"

namespace hone::ir {
namespace {

constexpr size_t kMaxRank = 64;

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {}

  std::unique_ptr<Graph> all() {
    auto g = graph(0, nullptr);
    skip();
    if (pos_ != text_.size()) fail("text follows the graph");
    return g;
  }

 private:
  // --- characters ---
  [[noreturn]] void fail(const std::string& what,
                         std::source_location where = std::source_location::current()) const {
    const std::string_view before = text_.substr(0, std::min(pos_, text_.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t start = before.rfind('\n');
    const size_t column = pos_ - (start == std::string_view::npos ? 0 : start + 1) + 1;
    ErrorContext c;
    c.stage = "parse";
    throw Error(ErrorCode::kInvalidModel,
                "IR text, line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what,
                std::move(c), where);
  }
  char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  void skip() {
    for (;;) {
      while (pos_ < text_.size() && (peek() == ' ' || peek() == '\n' || peek() == '\t' || peek() == '\r'))
        ++pos_;
      if (text_.substr(pos_, 2) != "//") return;
      pos_ = std::min(text_.find('\n', pos_), text_.size());
    }
  }
  bool take(std::string_view token) {
    skip();
    if (text_.substr(pos_, token.size()) != token) return false;
    pos_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail("'" + std::string(token) + "' is expected");
  }
  /// A keyword: the token and no further word character.
  bool keyword(std::string_view token) {
    skip();
    if (text_.substr(pos_, token.size()) != token) return false;
    if (pos_ + token.size() < text_.size() && word_char(text_[pos_ + token.size()])) return false;
    pos_ += token.size();
    return true;
  }
  std::string string() {
    skip();
    std::string_view rest = text_.substr(pos_);
    auto s = unquote(&rest);
    if (!s) fail("a quoted string is expected");
    pos_ = text_.size() - rest.size();
    return std::move(*s);
  }
  std::string word() {
    skip();
    if (peek() == '"') return string();
    const size_t start = pos_;
    while (word_char(peek())) ++pos_;
    if (pos_ == start) fail("a name is expected");
    return std::string(text_.substr(start, pos_ - start));
  }
  /// A number's characters: digits, signs, points, exponents, `inf`, `nan`, hexadecimal.
  std::string_view number() {
    skip();
    const size_t start = pos_;
    while (word_char(peek()) || peek() == '-' || peek() == '+') ++pos_;
    if (pos_ == start) fail("a number is expected");
    return text_.substr(start, pos_ - start);
  }
  int64_t integer() {
    const size_t at = pos_;
    const auto v = parse_i64(number());
    if (!v) {
      pos_ = at;
      fail("an integer is expected");
    }
    return *v;
  }
  std::string value_name() {
    if (!take("%")) fail("a value (%name) is expected");
    if (peek() == '"') return string();
    const size_t start = pos_;
    while (word_char(peek()) || peek() == ':' || peek() == '/') ++pos_;
    while (pos_ > start && text_[pos_ - 1] == ':') --pos_;
    if (pos_ == start) fail("a value's name is expected");
    return std::string(text_.substr(start, pos_ - start));
  }

  // --- types ---
  TypeInfo type() {
    skip();
    TypeInfo t;
    const std::string name = word();
    if (name != "undefined") {
      const auto d = parse_dtype(name);
      if (!d) fail("'" + name + "' is no element type");
      t.dtype = *d;
    }
    expect("[");
    if (take("?")) {
      expect("]");
      return t;
    }
    t.shape.emplace();
    if (take("]")) return t;
    do {
      skip();
      if (t.shape->size() == kMaxRank) fail("a tensor has more than 64 dimensions");
      const std::string_view d = dimension();
      try {
        t.shape->push_back(Dim::parse(d));
      } catch (const Error& e) {
        fail(e.message());
      }
    } while (take(","));
    expect("]");
    return t;
  }
  /// Text up to the comma or bracket that ends a dimension; parentheses nest, quotes hide.
  std::string_view dimension() {
    const size_t start = pos_;
    int depth = 0;
    for (; pos_ < text_.size(); ++pos_) {
      const char c = text_[pos_];
      if (c == '"') {
        for (++pos_; pos_ < text_.size() && text_[pos_] != '"'; ++pos_) {
          if (text_[pos_] == '\\') ++pos_;
        }
      } else if (c == '(') {
        ++depth;
      } else if (c == ')') {
        --depth;
      } else if ((c == ',' || c == ']') && depth <= 0) {
        break;
      }
    }
    pos_ = std::min(pos_, text_.size());
    return text_.substr(start, pos_ - start);
  }
  std::optional<TypeInfo> optional_type() {
    if (!take(":")) return std::nullopt;
    return type();
  }

  // --- tensors ---
  Tensor elements(DType dtype, const Shape& shape) {
    expect("{");
    if (dtype_bits(dtype) == 0) fail("tensors of this type have no text");
    const int64_t count = text_element_count(dtype, checked(shape));
    // Every element takes a character at least: the text bounds what is allocated.
    if (count > static_cast<int64_t>(text_.size() - pos_)) fail("more elements are declared than follow");
    Tensor t = Tensor::zeros(dtype, shape);
    for (int64_t i = 0; i < count; ++i) {
      if (i != 0) expect(",");
      if (!parse_element(number(), &t, i)) fail(std::string("not an element of type ") + dtype_name(dtype));
    }
    expect("}");
    return t;
  }
  int64_t checked(const Shape& shape) {
    try {
      const int64_t n = numel(shape);
      if (n > INT64_MAX / 16) fail("a tensor is too large");
      return n;
    } catch (const Error& e) {
      fail(e.message());
    }
  }
  Shape const_shape(const TypeInfo& t) {
    if (!t.shape) fail("a constant needs a shape");
    auto dims = const_dims(*t.shape);
    if (!dims) fail("a constant's dimensions are integers");
    return std::move(*dims);
  }

  // --- graphs ---
  std::unique_ptr<Graph> graph(int depth, const Graph* parent) {
    if (depth > kMaxSubgraphDepth) fail("graphs nest deeper than " + std::to_string(kMaxSubgraphDepth));
    if (!keyword("graph")) fail("'graph' is expected");
    auto g = std::make_unique<Graph>();
    if (parent != nullptr) g->share_symbols(*parent);
    skip();
    if (peek() == '"') g->name = string();
    for (const ValueId id : formals(*g)) g->add_input_value(id);
    if (keyword("captures")) g->captures = formals(*g);
    expect("{");
    while (keyword("const")) constant(*g);
    while (!keyword("return")) node(*g, depth);
    skip();
    if (peek() == '%') {
      do g->add_output(use(*g));
      while (take(","));
    }
    expect("}");
    return g;
  }
  std::vector<ValueId> formals(Graph& g) {
    std::vector<ValueId> ids;
    expect("(");
    if (take(")")) return ids;
    do {
      std::string name = value_name();
      auto t = optional_type();
      ids.push_back(define(g, name, t ? std::move(*t) : TypeInfo{}));
    } while (take(","));
    expect(")");
    return ids;
  }
  ValueId define(Graph& g, const std::string& name, TypeInfo t) {
    if (name.empty()) fail("a value's name is empty");
    if (g.find(name) != kNoValue) fail("value %" + name + " is defined twice");
    return g.add_value(name, std::move(t));
  }
  ValueId use(Graph& g) {
    const std::string name = value_name();
    const ValueId id = g.find(name);
    if (id == kNoValue) fail("value %" + name + " is not defined here");
    return id;
  }
  void constant(Graph& g) {
    const std::string name = value_name();
    expect(":");
    const TypeInfo t = type();
    const Shape shape = const_shape(t);
    expect("=");
    Tensor data;
    if (take("@")) {
      if (take("?")) fail("constant %" + name + " was left out when this text was written");
      const int64_t number = integer();
      if (!options_.external)
        fail("constant %" + name + " is external, and no source of constants was given");
      if (number < 0 || number > INT32_MAX) fail("no such external constant");
      (void)checked(shape);
      data = options_.external(static_cast<int>(number), t.dtype, shape);
      if (data.dtype() != t.dtype || data.shape() != shape) {
        fail("constant %" + name + " is stored as " + data.type_text() + ", declared " + t.text());
      }
    } else {
      data = elements(t.dtype, shape);
    }
    g.set_constant(define(g, name, {}), std::move(data));
  }
  void node(Graph& g, int depth) {
    Node n;
    std::vector<std::pair<std::string, TypeInfo>> results;  // an absent output has an empty name
    skip();
    if (peek() == '%' || at_absent()) {
      do {
        if (absent()) {
          results.emplace_back();
          continue;
        }
        std::string name = value_name();
        auto t = optional_type();
        results.emplace_back(std::move(name), t ? std::move(*t) : TypeInfo{});
      } while (take(","));
      expect("=");
    }
    n.op = word();
    if (take("::")) {
      n.domain = std::exchange(n.op, {});
      n.op = word();
    }
    inputs(g, &n);
    if (take("{")) attributes(g, depth, &n);
    skip();
    if (peek() == '"') n.name = string();
    if (keyword("sources")) n.sources = strings();
    if (keyword("passes")) n.passes = strings();
    if (keyword("anchor")) {
      const int64_t a = integer();
      if (a < -1 || a > INT32_MAX) fail("no such anchor");
      n.anchor = static_cast<int>(a);
    }
    if (keyword("body")) n.body = graph(depth + 1, &g);
    if (n.body && n.anchor >= static_cast<int>(n.body->num_nodes())) fail("no such anchor");
    for (auto& [name, t] : results)
      n.outputs.push_back(name.empty() ? kNoValue : define(g, name, std::move(t)));
    g.add_node(std::move(n));
  }
  /// `_` alone.
  bool at_absent() const { return peek() == '_' && !(pos_ + 1 < text_.size() && word_char(text_[pos_ + 1])); }
  bool absent() {
    skip();
    if (!at_absent()) return false;
    ++pos_;
    return true;
  }
  void inputs(Graph& g, Node* n) {
    expect("(");
    if (take(")")) return;
    bool captures = take(";");
    size_t first_capture = 0;
    for (;;) {
      n->inputs.push_back(absent() ? kNoValue : use(g));
      if (take(",")) continue;
      if (!captures && take(";")) {
        captures = true;
        first_capture = n->inputs.size();
        continue;
      }
      break;
    }
    expect(")");
    if (captures) n->num_captures = static_cast<int>(n->inputs.size() - first_capture);
  }
  std::vector<std::string> strings() {
    std::vector<std::string> list;
    expect("[");
    if (take("]")) return list;
    do list.push_back(string());
    while (take(","));
    expect("]");
    return list;
  }
  void attributes(Graph& g, int depth, Node* n) {
    if (take("}")) return;
    do {
      std::string key = word();
      if (n->has(key)) fail("attribute " + key + " is given twice");
      expect("=");
      n->attrs.emplace(std::move(key), attribute(g, depth));
    } while (take(","));
    expect("}");
  }
  bool at_graph() {
    const size_t at = pos_;
    const bool yes = keyword("graph");
    pos_ = at;
    return yes;
  }
  Attr attribute(Graph& g, int depth) {
    skip();
    if (peek() == '"') return string();
    if (peek() == '[') return list(g, depth);
    if (at_graph()) return std::shared_ptr<Graph>(graph(depth + 1, &g));
    if (keyword("null")) return std::shared_ptr<Graph>();
    if (keyword("floats")) return empty_list(std::vector<float>{});
    if (keyword("strings")) return empty_list(std::vector<std::string>{});
    if (keyword("graphs")) return empty_list(std::vector<std::shared_ptr<Graph>>{});
    const size_t at = pos_;
    const std::string_view token = number();
    if (const auto i = parse_i64(token)) return *i;
    if (const auto f = parse_float_text(token)) return *f;
    pos_ = at;
    const TypeInfo t = type();
    return elements(t.dtype, const_shape(t));
  }
  template <class T>
  Attr empty_list(T empty) {
    expect("[");
    expect("]");
    return Attr(std::move(empty));
  }
  Attr list(Graph& g, int depth) {
    expect("[");
    if (take("]")) return std::vector<int64_t>{};
    skip();
    if (peek() == '"') {
      std::vector<std::string> v;
      do v.push_back(string());
      while (take(","));
      expect("]");
      return v;
    }
    if (at_graph()) {
      std::vector<std::shared_ptr<Graph>> v;
      do v.push_back(graph(depth + 1, &g));
      while (take(","));
      expect("]");
      return v;
    }
    const std::string_view first = number();
    if (const auto f = parse_float_text(first)) {
      std::vector<float> v{*f};
      while (take(",")) {
        const auto x = parse_float_text(number());
        if (!x) fail("a float (with a point or exponent) is expected");
        v.push_back(*x);
      }
      expect("]");
      return v;
    }
    const auto i = parse_i64(first);
    if (!i) fail("a list holds integers, floats, strings or graphs");
    std::vector<int64_t> v{*i};
    while (take(",")) v.push_back(integer());
    expect("]");
    return v;
  }

  std::string_view text_;
  const ParseOptions& options_;
  size_t pos_ = 0;
};

}  // namespace

std::unique_ptr<Graph> parse(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).all();
}

}  // namespace hone::ir
