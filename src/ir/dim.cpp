#include "ir/dim.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "hone/error.h"

namespace hone::ir {
namespace {

// Budgets: expressions beyond them come from hostile models only.
constexpr size_t kMaxTerms = 4096;
constexpr size_t kMaxText = 1 << 16;
constexpr int kMaxParseDepth = 1000;

enum class AtomKind : uint8_t { kSymbol, kFloorDiv, kMax, kMin };

struct Atom {
  AtomKind kind;
  std::string name;  // kSymbol
  Dim a, b;          // the others
  std::string text;
};
using AtomPtr = std::shared_ptr<const Atom>;

// coef * atoms[0] * atoms[1] * ..., the atoms sorted by text; a constant has none.
struct Term {
  int64_t coef = 0;
  std::vector<AtomPtr> atoms;
};
using Terms = std::vector<Term>;

bool same_atom(const AtomPtr& x, const AtomPtr& y) { return x == y || x->text == y->text; }

bool same_atoms(const std::vector<AtomPtr>& x, const std::vector<AtomPtr>& y) {
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), same_atom);
}

// Monomial order: by degree, then lexicographic. It is compatible with multiplication, which long division
// needs.
bool before(const Term& x, const Term& y) {
  if (x.atoms.size() != y.atoms.size()) return x.atoms.size() > y.atoms.size();
  for (size_t i = 0; i < x.atoms.size(); ++i) {
    if (same_atom(x.atoms[i], y.atoms[i])) continue;
    return x.atoms[i]->text < y.atoms[i]->text;
  }
  return false;
}

bool plain_name(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  return std::all_of(s.begin(), s.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ':' || c == '/';
  });
}

std::string symbol_text(const std::string& name) {
  if (plain_name(name)) return name;
  std::string s = "\"";
  for (const char c : name) {
    if (c == '"' || c == '\\') s += '\\';
    s += c;
  }
  return s + '"';
}

std::string terms_text(const Terms& terms) {
  std::string s;
  for (const Term& t : terms) {
    std::string part;
    for (const AtomPtr& a : t.atoms) part += (part.empty() ? "" : "*") + a->text;
    const bool negative = t.coef < 0;
    // The magnitude as unsigned: -INT64_MIN has no int64.
    const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(t.coef) : static_cast<uint64_t>(t.coef);
    if (negative) {
      s += '-';
    } else if (!s.empty()) {
      s += '+';
    }
    if (part.empty()) {
      s += std::to_string(magnitude);
    } else {
      if (magnitude != 1) s += std::to_string(magnitude) + "*";
      s += part;
    }
    if (s.size() > kMaxText)
      throw Error(ErrorCode::kInvalidModel, "a dimension expression grows beyond 64 KiB");
  }
  return s;
}

// Sorts, merges equal monomials, drops zeros.
Terms normalized(Terms terms) {
  if (terms.size() > kMaxTerms)
    throw Error(ErrorCode::kInvalidModel, "a dimension expression has too many terms");
  std::stable_sort(terms.begin(), terms.end(), before);
  Terms out;
  for (Term& t : terms) {
    if (!out.empty() && same_atoms(out.back().atoms, t.atoms)) {
      out.back().coef = checked_add(out.back().coef, t.coef);
    } else {
      if (!out.empty() && out.back().coef == 0) out.pop_back();
      out.push_back(std::move(t));
    }
  }
  if (!out.empty() && out.back().coef == 0) out.pop_back();
  return out;
}

}  // namespace

struct Dim::Sym {
  Terms terms;
  std::string text;

  static Terms of(const Dim& d) {
    if (!d.is_const()) return d.sym_->terms;
    return d.value_ == 0 ? Terms{} : Terms{Term{d.value_, {}}};
  }
  static Dim to_dim(Terms terms) {
    terms = normalized(std::move(terms));
    if (terms.empty()) return Dim(0);
    if (terms.size() == 1 && terms[0].atoms.empty()) return Dim(terms[0].coef);
    auto s = std::make_shared<Sym>();
    s->text = terms_text(terms);
    s->terms = std::move(terms);
    return Dim(std::shared_ptr<const Sym>(std::move(s)));
  }
  static Dim atom(AtomKind kind, const char* function, const Dim& a, const Dim& b) {
    auto at = std::make_shared<Atom>(Atom{kind, {}, a, b, {}});
    at->text = std::string(function) + "(" + a.text() + "," + b.text() + ")";
    return to_dim({Term{1, {std::move(at)}}});
  }
  // {floordiv atom, added constant} when d is exactly floordiv(x, m) + c with a constant m > 0.
  static const Atom* plain_floordiv(const Dim& d, int64_t* added) {
    if (d.is_const()) return nullptr;
    const Terms& t = d.sym_->terms;
    if (t[0].coef != 1 || t[0].atoms.size() != 1 || t.size() > 2) return nullptr;
    if (t.size() == 2 && !t[1].atoms.empty()) return nullptr;
    const Atom* a = t[0].atoms[0].get();
    if (a->kind != AtomKind::kFloorDiv || !a->b.is_const() || a->b.value() <= 0) return nullptr;
    *added = t.size() == 2 ? t[1].coef : 0;
    return a;
  }
  // The atom when d is nothing but one of this kind.
  static const Atom* sole(const Dim& d, AtomKind kind) {
    if (d.is_const()) return nullptr;
    const Terms& t = d.sym_->terms;
    if (t.size() != 1 || t[0].coef != 1 || t[0].atoms.size() != 1 || t[0].atoms[0]->kind != kind)
      return nullptr;
    return t[0].atoms[0].get();
  }
  // x <= y for every assignment, by the structure of max and min; false: not shown.
  static bool at_most(const Dim& x, const Dim& y, int depth = 0) {
    if (x == y || (x.is_const() && y.is_const())) return x == y || x.value_ <= y.value_;
    if (depth > kMaxOrderDepth) return false;
    const auto le = [depth](const Dim& p, const Dim& q) { return at_most(p, q, depth + 1); };
    if (const Atom* m = sole(x, AtomKind::kMax); m != nullptr && le(m->a, y) && le(m->b, y)) return true;
    if (const Atom* m = sole(y, AtomKind::kMin); m != nullptr && le(x, m->a) && le(x, m->b)) return true;
    if (const Atom* m = sole(x, AtomKind::kMin); m != nullptr && (le(m->a, y) || le(m->b, y))) return true;
    if (const Atom* m = sole(y, AtomKind::kMax); m != nullptr && (le(x, m->a) || le(x, m->b))) return true;
    return false;
  }
  static constexpr int kMaxOrderDepth = 6;
};

namespace {

using Sym = Dim::Sym;

Terms multiply(const Terms& x, const Terms& y) {
  if (x.size() * y.size() > kMaxTerms)
    throw Error(ErrorCode::kInvalidModel, "a dimension expression has too many terms");
  Terms out;
  out.reserve(x.size() * y.size());
  for (const Term& p : x) {
    for (const Term& q : y) {
      Term t{checked_mul(p.coef, q.coef), {}};
      t.atoms.reserve(p.atoms.size() + q.atoms.size());
      std::merge(p.atoms.begin(), p.atoms.end(), q.atoms.begin(), q.atoms.end(), std::back_inserter(t.atoms),
                 [](const AtomPtr& m, const AtomPtr& n) { return m->text < n->text; });
      out.push_back(std::move(t));
    }
  }
  return normalized(std::move(out));
}

// t / d when the monomial and the coefficient divide exactly.
std::optional<Term> divide_term(const Term& t, const Term& d) {
  if (d.coef == -1 ? t.coef == INT64_MIN : t.coef % d.coef != 0) return std::nullopt;
  Term q{t.coef / d.coef, {}};
  size_t j = 0;
  for (const AtomPtr& a : t.atoms) {
    if (j < d.atoms.size() && same_atom(a, d.atoms[j])) {
      ++j;
    } else {
      q.atoms.push_back(a);
    }
  }
  if (j != d.atoms.size()) return std::nullopt;
  return q;
}

// Polynomial long division; nullopt unless the remainder is zero.
std::optional<Terms> divide_exactly(Terms num, const Terms& den) {
  Terms quotient;
  for (size_t steps = 0; !num.empty(); ++steps) {
    if (steps > 256) return std::nullopt;
    const std::optional<Term> q = divide_term(num[0], den[0]);
    if (!q) return std::nullopt;
    quotient.push_back(*q);
    Terms minus = multiply({*q}, den);
    for (Term& t : minus) t.coef = checked_sub(0, t.coef);
    num.insert(num.end(), minus.begin(), minus.end());
    num = normalized(std::move(num));
  }
  return quotient;
}

}  // namespace

Dim Dim::symbol(std::string name) {
  if (name.empty() || name.size() > 4096)
    throw Error(ErrorCode::kInvalidModel, "a dimension's name is empty or too long");
  auto a = std::make_shared<Atom>();
  a->kind = AtomKind::kSymbol;
  a->text = symbol_text(name);
  a->name = std::move(name);
  return Sym::to_dim({Term{1, {std::move(a)}}});
}

std::string Dim::text() const { return is_const() ? std::to_string(value_) : sym_->text; }

std::optional<int64_t> Dim::eval(const SymbolValues& symbols) const {
  if (is_const()) return value_;
  int64_t sum = 0;
  for (const Term& t : sym_->terms) {
    int64_t product = t.coef;
    for (const AtomPtr& a : t.atoms) {
      int64_t v = 0;
      if (a->kind == AtomKind::kSymbol) {
        const auto it = symbols.find(a->name);
        if (it == symbols.end()) return std::nullopt;
        v = it->second;
      } else {
        const auto x = a->a.eval(symbols);
        const auto y = a->b.eval(symbols);
        if (!x || !y) return std::nullopt;
        v = a->kind == AtomKind::kFloorDiv ? checked_floordiv(*x, *y)
            : a->kind == AtomKind::kMax    ? std::max(*x, *y)
                                           : std::min(*x, *y);
      }
      product = checked_mul(product, v);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

void Dim::symbols(std::vector<std::string>* out) const {
  if (is_const()) return;
  for (const Term& t : sym_->terms) {
    for (const AtomPtr& a : t.atoms) {
      if (a->kind == AtomKind::kSymbol) {
        out->push_back(a->name);
      } else {
        a->a.symbols(out);
        a->b.symbols(out);
      }
    }
  }
}

Dim Dim::substitute(const std::map<std::string, Dim, std::less<>>& with) const {
  if (is_const()) return *this;
  Dim sum(0);
  for (const Term& t : sym_->terms) {
    Dim product(t.coef);
    for (const AtomPtr& a : t.atoms) {
      Dim factor;
      if (a->kind == AtomKind::kSymbol) {
        const auto it = with.find(a->name);
        factor = it != with.end() ? it->second : Sym::to_dim({Term{1, {a}}});
      } else {
        const Dim x = a->a.substitute(with);
        const Dim y = a->b.substitute(with);
        factor = a->kind == AtomKind::kFloorDiv ? floordiv(x, y)
                 : a->kind == AtomKind::kMax    ? max(x, y)
                                                : min(x, y);
      }
      product = product * factor;
    }
    sum = sum + product;
  }
  return sum;
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.is_const() || b.is_const()) return a.is_const() && b.is_const() && a.value_ == b.value_;
  return a.sym_ == b.sym_ || a.sym_->text == b.sym_->text;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return Dim(checked_add(a.value_, b.value_));
  Terms t = Sym::of(a);
  const Terms u = Sym::of(b);
  t.insert(t.end(), u.begin(), u.end());
  return Sym::to_dim(std::move(t));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return Dim(checked_sub(a.value_, b.value_));
  Terms t = Sym::of(a);
  for (Term u : Sym::of(b)) {
    u.coef = checked_sub(0, u.coef);
    t.push_back(std::move(u));
  }
  return Sym::to_dim(std::move(t));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_const() && b.is_const()) return Dim(checked_mul(a.value_, b.value_));
  return Sym::to_dim(multiply(Sym::of(a), Sym::of(b)));
}

Dim Dim::floordiv(const Dim& a, const Dim& b) {
  if (b.is_const()) {
    if (a.is_const()) return Dim(checked_floordiv(a.value_, b.value_));
    if (b.value_ == 0)
      throw Error(ErrorCode::kInvalidModel, "division of dimension " + a.text() + " by zero");
    if (b.value_ == 1) return a;
    // floor((b*q + r) / b) = q + floor(r / b): what divides is taken out, so equal expressions get equal
    // text.
    const Term d{b.value_, {}};
    Terms whole, rest;
    for (const Term& t : Sym::of(a)) {
      if (t.atoms.empty()) {
        const int64_t q = checked_floordiv(t.coef, b.value_);
        whole.push_back(Term{q, {}});
        rest.push_back(Term{checked_sub(t.coef, checked_mul(q, b.value_)), {}});
      } else if (const auto q = divide_term(t, d)) {
        whole.push_back(*q);
      } else {
        rest.push_back(t);
      }
    }
    const Dim q = Sym::to_dim(std::move(whole));
    const Dim r = Sym::to_dim(std::move(rest));
    if (r.is_const()) return q + Dim(checked_floordiv(r.value_, b.value_));
    // floor((floor(x / m) + c) / b) = floor((x + c*m) / (m*b)) for m, b > 0.
    int64_t c = 0;
    if (const Atom* inner = Sym::plain_floordiv(r, &c); inner != nullptr && b.value_ > 0) {
      return q + floordiv(inner->a + Dim(checked_mul(c, inner->b.value())),
                          Dim(checked_mul(inner->b.value(), b.value_)));
    }
    return q + Sym::atom(AtomKind::kFloorDiv, "floordiv", r, b);
  }
  if (a.is_const() && a.value_ == 0) return Dim(0);
  if (auto q = divide_exactly(Sym::of(a), Sym::of(b))) return Sym::to_dim(std::move(*q));
  return Sym::atom(AtomKind::kFloorDiv, "floordiv", a, b);
}

Dim Dim::max(const Dim& a, const Dim& b) {
  const Dim d = a - b;
  if (d.is_const()) return d.value_ >= 0 ? a : b;
  if (Sym::at_most(b, a)) return a;  // max(max(N,S),N), max(N,min(N,512)), ...
  if (Sym::at_most(a, b)) return b;
  return a.text() < b.text() ? Sym::atom(AtomKind::kMax, "max", a, b)
                             : Sym::atom(AtomKind::kMax, "max", b, a);
}

Dim Dim::min(const Dim& a, const Dim& b) {
  const Dim d = a - b;
  if (d.is_const()) return d.value_ <= 0 ? a : b;
  if (Sym::at_most(a, b)) return a;
  if (Sym::at_most(b, a)) return b;
  return a.text() < b.text() ? Sym::atom(AtomKind::kMin, "min", a, b)
                             : Sym::atom(AtomKind::kMin, "min", b, a);
}

namespace {

// expr := ['-'] product {('+'|'-') product};  product := factor {'*' factor}
// factor := integer | name | "quoted name" | floordiv(expr,expr) | max(expr,expr) | min(expr,expr) | '(' expr
// ')'
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Dim all() {
    Dim d = expr(0);
    if (pos_ != text_.size()) fail("trailing text");
    return d;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::kInvalidModel, "dimension '" + std::string(text_.substr(0, 200)) + "', column " +
                                              std::to_string(pos_ + 1) + ": " + what);
  }
  void skip() {
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
  }
  bool take(char c) {
    skip();
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    skip();
    return true;
  }
  Dim expr(int depth) {
    if (depth > kMaxParseDepth) fail("nested too deeply");
    const bool negative = take('-');
    Dim sum = product(depth, negative);
    for (;;) {
      if (take('+')) {
        sum = sum + product(depth, false);
      } else if (take('-')) {
        sum = sum + product(depth, true);
      } else {
        return sum;
      }
    }
  }
  Dim product(int depth, bool negative) {
    Dim p = factor(depth, negative);
    while (take('*')) p = p * factor(depth, false);
    return p;
  }
  // `negative` reaches the first factor, so that the digits of INT64_MIN parse.
  Dim factor(int depth, bool negative) {
    skip();
    if (pos_ >= text_.size()) fail("an operand is missing");
    const char c = text_[pos_];
    if (c >= '0' && c <= '9') return number(negative);
    Dim d;
    if (take('(')) {
      d = expr(depth + 1);
      expect(')');
    } else if (c == '"') {
      d = quoted();
    } else {
      d = named(depth);
    }
    return negative ? Dim(0) - d : d;
  }
  Dim number(bool negative) {
    int64_t v = 0;
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      const int64_t digit = text_[pos_++] - '0';
      v = checked_add(checked_mul(v, 10), negative ? -digit : digit);
    }
    return Dim(v);
  }
  Dim quoted() {
    std::string name;
    for (++pos_; pos_ < text_.size() && text_[pos_] != '"'; ++pos_) {
      if (text_[pos_] == '\\' && pos_ + 1 < text_.size()) ++pos_;
      name += text_[pos_];
    }
    expect('"');
    return Dim::symbol(std::move(name));
  }
  Dim named(int depth) {
    const size_t start = pos_;
    while (pos_ < text_.size() &&
           (plain_name(text_.substr(pos_, 1)) || (text_[pos_] >= '0' && text_[pos_] <= '9')))
      ++pos_;
    const std::string_view name = text_.substr(start, pos_ - start);
    if (name.empty()) fail("a number, name or '(' is expected");
    const bool function = name == "floordiv" || name == "max" || name == "min";
    if (!function || !take('(')) return Dim::symbol(std::string(name));
    const Dim a = expr(depth + 1);
    expect(',');
    const Dim b = expr(depth + 1);
    expect(')');
    return name == "floordiv" ? Dim::floordiv(a, b) : name == "max" ? Dim::max(a, b) : Dim::min(a, b);
  }
  void expect(char c) {
    if (!take(c)) fail(std::string("'") + c + "' is expected");
  }

  std::string_view text_;
  size_t pos_ = 0;
};

}  // namespace

Dim Dim::parse(std::string_view text) {
  if (text.size() > kMaxText)
    throw Error(ErrorCode::kInvalidModel, "a dimension expression is longer than 64 KiB");
  return Parser(text).all();
}

std::string dims_text(const Dims& dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) s += (i == 0 ? "" : ",") + dims[i].text();
  return s + "]";
}

Dim product(const Dims& dims) {
  // A zero decides the product, whatever would overflow beside it.
  for (const Dim& d : dims) {
    if (d == Dim(0)) return Dim(0);
  }
  Dim p(1);
  for (const Dim& d : dims) p = p * d;
  return p;
}

std::optional<std::vector<int64_t>> const_dims(const Dims& dims) {
  std::vector<int64_t> out;
  out.reserve(dims.size());
  for (const Dim& d : dims) {
    if (!d.is_const()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

Dims to_dims(const std::vector<int64_t>& shape) { return Dims(shape.begin(), shape.end()); }

}  // namespace hone::ir
