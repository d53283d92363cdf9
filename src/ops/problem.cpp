// Problem: printing, parsing, equality.
#include "ops/problem.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "hone/error.h"

namespace hone::ops {
namespace {

constexpr const char* kActNames[] = {
    "relu", "leaky_relu", "clip",      "sigmoid", "hard_sigmoid", "hard_swish", "swish",
    "tanh", "gelu",       "gelu_tanh", "elu",     "selu",         "celu",       "softplus",
    "mish", "abs",        "neg",       "exp",     "log",          "sqrt",       "reciprocal",
    "erf",  "floor",      "ceil",      "round",   "sign",         "softsign",   "thresholded_relu",
    "sin",  "cos",        "identity"};
static_assert(std::size(kActNames) == static_cast<size_t>(Act::kIdentity) + 1);
constexpr const char* kPwNames[] = {"act", "add", "sub", "mul", "div", "min", "max", "pow", "const"};
constexpr const char* kPostNames[] = {"bias", "scale", "add", "mul", "act", "program", "convert"};

std::optional<PwOp> parse_pw(std::string_view name) {
  for (size_t i = 1; i < std::size(kPwNames); ++i) {
    if (name == kPwNames[i]) return static_cast<PwOp>(i);
  }
  return std::nullopt;
}

std::string float_text(float v) {
  if (std::isnan(v)) return "nan";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  std::string text(buffer, end);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // "inf" has an n
  return text;
}

template <class List, class F>
std::string join(const List& list, F&& text, const char* sep = ",") {
  std::string out;
  for (const auto& item : list) {
    if (!out.empty()) out += sep;
    out += text(item);
  }
  return out;
}

std::string quoted(std::string_view s) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : s) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20 || u == 0x7f) {
      out += "\\x";
      out += kHex[u >> 4];
      out += kHex[u & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string hex_text(const Tensor& t) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = t.type_text() + "#";
  const auto* bytes = static_cast<const uint8_t*>(t.raw());
  for (int64_t i = 0, n = t.nbytes(); i < n; ++i) {
    out += kHex[bytes[i] >> 4];
    out += kHex[bytes[i] & 15];
  }
  return out;
}

std::string attr_text(const ir::Attr& value) {
  struct Visitor {
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(float v) const { return float_text(v); }
    std::string operator()(const std::string& v) const { return quoted(v); }
    std::string operator()(const Tensor& v) const { return hex_text(v); }
    std::string operator()(const std::vector<int64_t>& v) const {
      return "[" + join(v, [](int64_t x) { return std::to_string(x); }) + "]";
    }
    std::string operator()(const std::vector<float>& v) const {
      return v.empty() ? "f[]" : "[" + join(v, float_text) + "]";
    }
    std::string operator()(const std::vector<std::string>& v) const {
      return v.empty() ? "s[]" : "[" + join(v, quoted) + "]";
    }
    std::string operator()(const std::shared_ptr<ir::Graph>&) const { return graph(); }
    std::string operator()(const std::vector<std::shared_ptr<ir::Graph>>&) const { return graph(); }
    static std::string graph() { throw Error(ErrorCode::kInternal, "a problem has no graph attributes"); }
  };
  return std::visit(Visitor(), value);
}

std::string operand_text(const Operand& o) {
  if (!o.present()) return "_";
  std::string out = type_text(o.dtype, o.dims);
  if (o.layout != Layout::kPlain) out += std::string(":") + layout_name(o.layout);
  if (o.constant) out += '*';
  if (o.contents) out += "{" + join(*o.contents, [](int64_t v) { return std::to_string(v); }) + "}";
  return out;
}

std::string params_text(float alpha, float beta) {
  if (beta != 0) return float_text(alpha) + "," + float_text(beta);
  return alpha != 0 ? float_text(alpha) : "";
}

std::string instr_text(const PwInstr& i) {
  if (i.op == PwOp::kConst) return "const(" + float_text(i.alpha) + ")";
  if (i.op != PwOp::kAct)
    return std::string(pw_op_name(i.op)) + "(" + std::to_string(i.a) + "," + std::to_string(i.b) + ")";
  const std::string params = params_text(i.alpha, i.beta);
  return std::string(act_name(i.act)) + "(" + std::to_string(i.a) + (params.empty() ? "" : "," + params) +
         ")";
}

/// Reads what text() writes. Every failure names the column.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Problem problem() {
    Problem p;
    p.op = word();
    if (eat("::")) {
      p.domain = p.op;
      p.op = word();
    }
    expect("(");
    while (!eat(")")) {
      if (!p.srcs.empty()) expect(", ");
      p.srcs.push_back(operand());
    }
    p.num_anchor_srcs = next_src_ = p.srcs.size();
    if (eat(" {")) {
      while (!eat("}")) {
        if (!p.attrs.empty()) expect(" ");
        std::string name(word());
        expect("=");
        if (!p.attrs.emplace(std::move(name), attr()).second) fail("attribute twice");
      }
    }
    while (eat(" +")) p.post.push_back(post(&p));
    expect(" -> ");
    do p.dsts.push_back(operand());
    while (eat(", "));
    if (at_ != text_.size()) fail("trailing text");
    for (size_t i = 0; i < p.srcs.size(); ++i) {
      if (i >= p.num_anchor_srcs && !seen_[i]) fail("source %" + std::to_string(i) + " is never given");
    }
    return p;
  }

 private:
  static constexpr size_t kMaxSrcs = 4096;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, "problem string, column " + std::to_string(at_ + 1) + ": " +
                                                 what + " in '" + std::string(text_) + "'");
  }
  bool eat(std::string_view s) {
    if (text_.substr(at_, s.size()) != s) return false;
    at_ += s.size();
    return true;
  }
  void expect(std::string_view s) {
    if (!eat(s)) fail("expected '" + std::string(s) + "'");
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  std::string_view word() {
    const size_t from = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || (peek() == '.' && at_ > from))
      ++at_;
    if (at_ == from) fail("expected a name");
    return text_.substr(from, at_ - from);
  }
  int64_t integer() {
    int64_t v = 0;
    const auto [end, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (ec != std::errc()) fail("expected an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  float number() {
    float v = 0;
    const auto [end, ec] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), v);
    if (ec != std::errc()) fail("expected a number");
    at_ = static_cast<size_t>(end - text_.data());
    return v;
  }
  int reg(int limit) {
    const int64_t r = integer();
    if (r < 0 || r >= limit) fail("register " + std::to_string(r) + " is not defined yet");
    return static_cast<int>(r);
  }

  Shape dims() {
    Shape shape;
    expect("[");
    while (!eat("]")) {
      if (!shape.empty()) expect(",");
      shape.push_back(integer());
      if (shape.back() < 0) fail("negative dimension");
    }
    return shape;
  }
  Operand operand() {
    Operand o;
    if (eat("_")) return o;
    o.dtype = dtype();
    o.dims = dims();
    if (eat(":")) {
      const auto layout = parse_layout(word());
      if (!layout) fail("unknown layout");
      o.layout = *layout;
    }
    o.constant = eat("*");
    if (eat("{")) {
      o.contents.emplace();
      while (!eat("}")) {
        if (!o.contents->empty()) expect(",");
        o.contents->push_back(integer());
      }
    }
    return o;
  }
  DType dtype() {
    const auto t = parse_dtype(word());
    if (!t || *t == DType::kUndefined) fail("unknown element type");
    return *t;
  }

  uint8_t hex_byte() {
    const auto digit = [&]() -> int {
      const char c = peek();
      ++at_;
      if (c >= '0' && c <= '9') return c - '0';
      if (c >= 'a' && c <= 'f') return c - 'a' + 10;
      --at_;
      fail("expected a hexadecimal digit");
    };
    const int high = digit();
    return static_cast<uint8_t>(high * 16 + digit());
  }
  std::string string() {
    std::string out;
    expect("\"");
    while (!eat("\"")) {
      if (at_ >= text_.size()) fail("string without an end");
      if (eat("\\x")) {
        out += static_cast<char>(hex_byte());
      } else {
        eat("\\");
        if (at_ >= text_.size()) fail("string without an end");
        out += text_[at_++];
      }
    }
    return out;
  }
  /// An integer without point, exponent, inf or nan.
  bool at_integer() const {
    size_t i = at_ < text_.size() && text_[at_] == '-' ? at_ + 1 : at_;
    const size_t from = i;
    while (i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i]))) ++i;
    return i > from && (i == text_.size() || (text_[i] != '.' && text_[i] != 'e'));
  }
  ir::Attr attr() {
    if (peek() == '"') return string();
    if (eat("f[]")) return std::vector<float>();
    if (eat("s[]")) return std::vector<std::string>();
    if (peek() == '[') return list();
    if (at_integer()) return integer();
    if (peek() == '-' || std::isdigit(static_cast<unsigned char>(peek())) || text_.substr(at_, 3) == "inf" ||
        text_.substr(at_, 3) == "nan") {
      return number();
    }
    const DType t = dtype();
    const Shape shape = dims();
    expect("#");
    const int64_t bytes = dtype_bytes(t, numel(shape));
    if (dtype_bits(t) == 0 || bytes > static_cast<int64_t>(text_.size() - at_) / 2)
      fail("tensor data is cut short");
    Tensor value(t, shape);
    for (int64_t i = 0; i < bytes; ++i) static_cast<uint8_t*>(value.raw())[i] = hex_byte();
    return value;
  }
  ir::Attr list() {
    expect("[");
    if (eat("]")) return std::vector<int64_t>();
    if (peek() == '"') return rest<std::string>([&] { return string(); });
    if (at_integer()) return rest<int64_t>([&] { return integer(); });
    return rest<float>([&] { return number(); });
  }
  template <class T, class F>
  ir::Attr rest(F&& one) {
    std::vector<T> values;
    do values.push_back(one());
    while (eat(","));
    expect("]");
    return values;
  }

  /// A source of a post-op: an operand that is new, or the number of one.
  int source(Problem* p) {
    size_t index = next_src_;
    if (eat("%")) {
      const int64_t i = integer();
      if (i < 0 || static_cast<size_t>(i) >= kMaxSrcs) fail("source index out of range");
      index = static_cast<size_t>(i);
      if (!eat("=")) {
        if (index >= p->srcs.size() || (index >= p->num_anchor_srcs && !seen_[index]))
          fail("source is not given yet");
        return static_cast<int>(index);
      }
    }
    if (index >= p->srcs.size()) p->srcs.resize(index + 1);
    if (seen_.size() < p->srcs.size()) seen_.resize(p->srcs.size(), false);
    if (seen_[index] || index < p->num_anchor_srcs) fail("source given twice");
    p->srcs[index] = operand();
    seen_[index] = true;
    while (next_src_ < seen_.size() && seen_[next_src_]) ++next_src_;
    return static_cast<int>(index);
  }

  PostOp post(Problem* p) {
    PostOp post;
    const std::string_view name = word();
    size_t kind = 0;
    while (kind < std::size(kPostNames) &&
           (name != kPostNames[kind] || kind == static_cast<size_t>(PostOp::Kind::kAct)))
      ++kind;
    if (kind == std::size(kPostNames)) {
      const auto act = parse_act(name);
      if (!act) fail("unknown post-op '" + std::string(name) + "'");
      post.act = *act;
      if (eat("(")) params(&post.alpha, &post.beta, ")");
      return post;
    }
    post.kind = static_cast<PostOp::Kind>(kind);
    if (post.kind == PostOp::Kind::kConvert && !eat("(")) return post;
    if (post.kind != PostOp::Kind::kConvert) expect("(");
    if (post.kind == PostOp::Kind::kProgram) {
      while (!eat("; ")) {
        if (!post.srcs.empty()) expect(", ");
        post.srcs.push_back(source(p));
      }
      post.program.num_srcs =
          static_cast<int>(post.srcs.size()) + (p->op == "Pointwise" && p->domain == ir::kHoneDomain ? 0 : 1);
      do
        post.program.instrs.push_back(
            instr(post.program.num_srcs + static_cast<int>(post.program.instrs.size())));
      while (eat("; "));
    } else {
      do post.srcs.push_back(source(p));
      while (eat(", "));
    }
    expect(")");
    return post;
  }
  void params(float* alpha, float* beta, const char* end) {
    *alpha = number();
    if (eat(",")) *beta = number();
    expect(end);
  }
  PwInstr instr(int limit) {
    PwInstr i;
    const std::string_view name = word();
    expect("(");
    if (name == "const") {
      i.op = PwOp::kConst;
      i.alpha = number();
      expect(")");
    } else if (const auto op = parse_pw(name)) {
      i.op = *op;
      i.a = reg(limit);
      expect(",");
      i.b = reg(limit);
      expect(")");
    } else {
      const auto act = parse_act(name);
      if (!act) fail("unknown instruction '" + std::string(name) + "'");
      i.act = *act;
      i.a = reg(limit);
      if (eat(","))
        params(&i.alpha, &i.beta, ")");
      else
        expect(")");
    }
    return i;
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t next_src_ = 0;
  std::vector<bool> seen_;
};

}  // namespace

const char* act_name(Act act) {
  return static_cast<size_t>(act) < std::size(kActNames) ? kActNames[static_cast<size_t>(act)] : "unknown";
}

std::optional<Act> parse_act(std::string_view name) {
  for (size_t i = 0; i < std::size(kActNames); ++i) {
    if (name == kActNames[i]) return static_cast<Act>(i);
  }
  return std::nullopt;
}

const char* pw_op_name(PwOp op) {
  return static_cast<size_t>(op) < std::size(kPwNames) ? kPwNames[static_cast<size_t>(op)] : "unknown";
}

std::string Problem::text() const {
  std::string out = domain.empty() ? op : domain + "::" + op;
  std::vector<bool> seen(srcs.size(), false);
  std::vector<Operand> own(srcs.begin(), srcs.begin() + static_cast<std::ptrdiff_t>(num_anchor_srcs));
  for (size_t i = 0; i < num_anchor_srcs; ++i) seen[i] = true;
  out += "(" + join(own, operand_text, ", ") + ")";
  if (!attrs.empty()) {
    out += " {" +
           join(
               attrs, [](const auto& a) { return a.first + "=" + attr_text(a.second); }, " ") +
           "}";
  }
  size_t next = num_anchor_srcs;
  const auto source = [&](int index) {
    const auto i = static_cast<size_t>(index);
    if (seen[i]) return "%" + std::to_string(i);
    std::string text =
        i == next ? operand_text(srcs[i]) : "%" + std::to_string(i) + "=" + operand_text(srcs[i]);
    seen[i] = true;
    while (next < seen.size() && seen[next]) ++next;
    return text;
  };
  for (const PostOp& p : post) {
    out += " +";
    if (p.kind == PostOp::Kind::kAct) {
      const std::string params = params_text(p.alpha, p.beta);
      out += act_name(p.act) + (params.empty() ? "" : "(" + params + ")");
      continue;
    }
    out += kPostNames[static_cast<size_t>(p.kind)];
    const std::string list = join(p.srcs, source, ", ");
    if (p.kind == PostOp::Kind::kProgram) {
      out += "(" + list + "; " + join(p.program.instrs, instr_text, "; ") + ")";
    } else if (!p.srcs.empty()) {
      out += "(" + list + ")";
    }
  }
  return out + " -> " + join(dsts, operand_text, ", ");
}

Problem Problem::parse(std::string_view text) { return Parser(text).problem(); }

bool operator==(const Problem& a, const Problem& b) {
  return a.domain == b.domain && a.op == b.op && a.num_anchor_srcs == b.num_anchor_srcs && a.srcs == b.srcs &&
         a.post == b.post && a.dsts == b.dsts && ir::attrs_equal(a.attrs, b.attrs);
}

}  // namespace hone::ops
