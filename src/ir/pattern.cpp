// Matching by continuation: every choice (order of commuting inputs, alternative, split of a product) is
// retried until the whole rest of the pattern succeeds, so rules need not be written with an order in mind.
#include "ir/pattern.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hone/error.h"

namespace hone::ir {

enum class Kind : uint8_t { kAny, kConstant, kNumber, kOp, kAnyOf, kProduct };

struct Pattern::Impl {
  Kind kind = Kind::kAny;
  std::string name;    // capture
  std::string op;      // kOp
  std::string domain;  // kOp
  double value = 0;    // kNumber
  std::vector<Pattern> parts;
  std::vector<NodeTest> tests;
  bool shared = false;
  bool more_inputs = false;
};

namespace {

std::shared_ptr<Pattern::Impl> copy_of(const Pattern& p) { return std::make_shared<Pattern::Impl>(p.impl()); }

bool commutes(std::string_view op) {
  constexpr std::array<std::string_view, 9> kOps = {"Add", "Mul", "Max",   "Min", "And",
                                                    "Or",  "Xor", "Equal", "Sum"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

double unit_in_last_place(DType t, double v) {
  int mantissa = 0;
  switch (t) {
    case DType::kF64: mantissa = 52; break;
    case DType::kF32: mantissa = 23; break;
    case DType::kF16: mantissa = 10; break;
    case DType::kBF16: mantissa = 7; break;
    default: return 0;
  }
  return std::ldexp(1.0, std::ilogb(v) - mantissa);
}

using Next = std::function<bool()>;

class Matcher {
 public:
  Matcher(const Graph& graph, Match& found) : graph_(graph), found_(found) {}

  bool value(const Pattern& p, ValueId id, const Next& next) {
    const Pattern::Impl& i = p.impl();
    if (id == kNoValue || ++steps_ > kMaxSteps) return false;
    switch (i.kind) {
      case Kind::kAny: return bind(i.name, id, next);
      case Kind::kConstant: return graph_.value(id).is_const() && bind(i.name, id, next);
      case Kind::kNumber: {
        const Value& v = graph_.value(id);
        return v.is_const() && is_number(*v.data, i.value) && bind(i.name, id, next);
      }
      case Kind::kAnyOf:
        for (const Pattern& alternative : i.parts)
          if (value(alternative, id, [&] { return bind(i.name, id, next); })) return true;
        return false;
      case Kind::kProduct: {
        if (!i.name.empty()) return bind(i.name, id, [&] { return factors(i.parts, i.shared, id, next); });
        return factors(i.parts, i.shared, id, next);
      }
      case Kind::kOp: {
        Node* node = graph_.value(id).producer;
        if (node == nullptr || graph_.value(id).output_index != 0) return false;
        return this->node(p, *node, next);
      }
    }
    return false;
  }

  bool node(const Pattern& p, Node& n, const Next& next) {
    const Pattern::Impl& i = p.impl();
    if (!n.is(i.op, i.domain) || n.inputs.size() < i.parts.size() || n.outputs.empty()) return false;
    if (!i.more_inputs)
      for (size_t k = i.parts.size(); k < n.inputs.size(); ++k)
        if (n.inputs[k] != kNoValue) return false;
    for (const NodeTest& test : i.tests)
      if (!test(graph_, n)) return false;
    return covering(n, i.shared, [&] {
      return bind(i.name, n.outputs[0], [&] {
        if (inputs(i, n, 0, next)) return true;
        if (i.parts.size() != 2 || n.inputs.size() != 2 || !commutes(i.op)) return false;
        return value(i.parts[0], n.inputs[1], [&] { return value(i.parts[1], n.inputs[0], next); });
      });
    });
  }

  bool steps_spent() const { return steps_ > kMaxSteps; }

 private:
  bool inputs(const Pattern::Impl& i, Node& n, size_t k, const Next& next) {
    if (k == i.parts.size()) return next();
    return value(i.parts[k], n.inputs[k], [&, k] { return inputs(i, n, k + 1, next); });
  }

  // `id` as the product of `parts`: one part is the value itself, several are spread over the two inputs of a
  // Mul in every way.
  bool factors(const std::vector<Pattern>& parts, bool shared, ValueId id, const Next& next) {
    if (id == kNoValue || ++steps_ > kMaxSteps) return false;
    if (parts.size() == 1) return value(parts[0], id, next);
    Node* n = graph_.value(id).producer;
    if (n == nullptr || n->inputs.size() != 2) return false;
    if (n->is("Div")) {
      const Value& divisor = graph_.value(n->inputs[1]);
      if (!divisor.is_const()) return false;
      for (size_t k = 0; k < parts.size(); ++k) {
        const Pattern::Impl& i = parts[k].impl();
        if (i.kind != Kind::kNumber || i.value == 0 || !is_number(*divisor.data, 1 / i.value)) continue;
        std::vector<Pattern> rest = parts;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(k));
        if (covering(*n, shared, [&] { return factors(rest, false, n->inputs[0], next); })) return true;
      }
      return false;
    }
    if (!n->is("Mul")) return false;
    const unsigned all = (1U << parts.size()) - 1;
    for (unsigned left = 1; left < all; ++left) {
      std::vector<Pattern> a, b;
      for (size_t k = 0; k < parts.size(); ++k) ((left >> k & 1U) != 0 ? a : b).push_back(parts[k]);
      if (covering(*n, shared, [&] {
            return factors(a, false, n->inputs[0], [&] { return factors(b, false, n->inputs[1], next); });
          }))
        return true;
    }
    return false;
  }

  bool bind(const std::string& name, ValueId id, const Next& next) {
    if (name.empty()) return next();
    const auto [it, fresh] = found_.values.emplace(name, id);
    if (!fresh) return it->second == id && next();
    if (next()) return true;
    found_.values.erase(name);
    return false;
  }

  bool covering(Node& n, bool shared, const Next& next) {
    auto& list = shared ? found_.shared : found_.covered;
    if (std::find(list.begin(), list.end(), &n) != list.end()) return next();
    list.push_back(&n);
    if (next()) return true;
    list.pop_back();
    return false;
  }

  static constexpr int kMaxSteps = 20000;
  const Graph& graph_;
  Match& found_;
  int steps_ = 0;
};

}  // namespace

ValueId Match::at(std::string_view name) const {
  const auto it = values.find(name);
  if (it == values.end())
    throw Error(ErrorCode::kInternal, "pattern binds no value '" + std::string(name) + "'");
  return it->second;
}

bool is_number(const Tensor& t, double value) {
  if (t.numel() != 1 || !(is_float(t.dtype()) || is_integer(t.dtype()))) return false;
  const double v = t.at(0);
  if (v == value) return true;
  return is_float(t.dtype()) && value != 0 && std::isfinite(value) &&
         std::fabs(v - value) <= 1.5 * unit_in_last_place(t.dtype(), value);
}

Pattern Pattern::as(std::string name) const {
  auto i = copy_of(*this);
  i->name = std::move(name);
  return Pattern(i);
}

Pattern Pattern::where(NodeTest test) const {
  auto i = copy_of(*this);
  i->tests.push_back(std::move(test));
  return Pattern(i);
}

Pattern Pattern::attr(std::string name, int64_t wanted, int64_t fallback) const {
  return where([=](const Graph&, const Node& n) { return n.get_int(name, fallback) == wanted; });
}

Pattern Pattern::shared() const {
  auto i = copy_of(*this);
  i->shared = true;
  return Pattern(i);
}

Pattern Pattern::more_inputs() const {
  auto i = copy_of(*this);
  i->more_inputs = true;
  return Pattern(i);
}

namespace {
Pattern make(Kind kind, std::string name, std::vector<Pattern> parts = {}) {
  auto i = std::make_shared<Pattern::Impl>();
  i->kind = kind;
  i->name = std::move(name);
  i->parts = std::move(parts);
  return Pattern(i);
}
}  // namespace

Pattern any(std::string name) { return make(Kind::kAny, std::move(name)); }
Pattern constant(std::string name) { return make(Kind::kConstant, std::move(name)); }

Pattern num(double value, std::string name) {
  auto i = copy_of(make(Kind::kNumber, std::move(name)));
  i->value = value;
  return Pattern(i);
}

Pattern op(std::string name, std::vector<Pattern> inputs, std::string domain) {
  auto i = copy_of(make(Kind::kOp, {}, std::move(inputs)));
  i->op = std::move(name);
  i->domain = std::move(domain);
  return Pattern(i);
}

Pattern any_of(std::vector<Pattern> alternatives) { return make(Kind::kAnyOf, {}, std::move(alternatives)); }
Pattern product(std::vector<Pattern> factors) { return make(Kind::kProduct, {}, std::move(factors)); }

std::vector<std::string> root_ops(const Pattern& pattern) {
  const Pattern::Impl& i = pattern.impl();
  switch (i.kind) {
    case Kind::kOp: return {i.op};
    case Kind::kProduct: return {"Mul", "Div"};
    case Kind::kAnyOf: {
      std::vector<std::string> all;
      for (const Pattern& p : i.parts) {
        const auto some = root_ops(p);
        if (some.empty()) return {};
        all.insert(all.end(), some.begin(), some.end());
      }
      return all;
    }
    default: return {};
  }
}

bool match(const Graph& graph, Node& root, const Pattern& pattern, Match* found, std::string* why) {
  *found = Match{};
  found->root = &root;
  if (root.outputs.empty() || root.outputs[0] == kNoValue) return false;
  const auto inside = [&](const Node* n) {
    return std::find(found->covered.begin(), found->covered.end(), n) != found->covered.end();
  };
  // The last condition takes part in the search: another order or alternative may do without the node that is
  // used elsewhere.
  const Next closed = [&] {
    for (Node* n : found->covered) {
      if (n == &root) continue;
      for (const ValueId id : n->outputs) {
        if (id == kNoValue) continue;
        bool outside = graph.is_output(id);
        for (const Use& use : graph.value(id).uses) outside = outside || !inside(use.node);
        if (outside) {
          if (why != nullptr) *why = "'" + graph.value(id).name + "' is also used elsewhere";
          return false;
        }
      }
    }
    return true;
  };
  Matcher matcher(graph, *found);
  const bool yes = matcher.value(pattern, root.outputs[0], closed);
  return yes && !found->covered.empty() && (found->covered.front() == &root || inside(&root));
}

}  // namespace hone::ir
