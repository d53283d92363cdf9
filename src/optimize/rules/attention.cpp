// Scaled dot-product attention becomes one operator.
//
// What: MatMul(q, k^T), a number on any of the three, optionally + mask, Softmax over the keys, optionally
// the guard that PyTorch writes against rows without any key (NaN -> 0), MatMul with v.
// When: q, k, v are [batch, heads, length, size] with equal batch and heads, the mask's last dimension is
// the number of keys (the operator would fill a shorter one with -inf) and its others are equal or 1. The
// operator gives zeros for a row whose mask is -inf throughout, the plain formula NaN: without the guard
// such a row must be impossible: no mask, a constant one that leaves each row a key, or one computed from
// finite numbers only.
// Why: the scores are never written: the largest tensors of a transformer.
// Example: MatMul(Softmax(MatMul(q, Transpose(k)) * 0.125 + m), v) becomes Attention(q, k, v, m) {scale =
// 0.125}
#include <cmath>

#include "optimize/rules/rules.h"
#include "optimize/shapes.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::constant;
using ir::Dim;
using ir::Dims;
using ir::Graph;
using ir::kNoValue;
using ir::Node;
using ir::num;
using ir::op;
using ir::Pattern;
using ir::Value;
using ir::ValueId;

bool by_one_number(const Graph& graph, const Node& n) {
  for (const ValueId id : n.inputs) {
    const Value& v = graph.value(id);
    if (v.is_const() && v.data->numel() == 1 && std::isfinite(v.data->at(0)) && v.data->at(0) != 0)
      return true;
  }
  return false;
}

// v, v * name, or v / (name/)
Pattern maybe_scaled(const Pattern& v, const std::string& name) {
  return any_of({op("Mul", {v, constant(name)}).where(by_one_number),
                 op("Div", {v, constant(name + "/")}).where(by_one_number), v});
}

double scale_of(const RuleContext& c) {
  double scale = 1;
  for (const char* name : {"sq", "sk", "s"}) {
    if (c.has(name)) scale *= c.data(name).at(0);
    if (c.has(std::string(name) + "/")) scale /= c.data(std::string(name) + "/").at(0);
  }
  return scale;
}

// Could an element be -inf? Infinities come from constants and from floating graph inputs; sums and products
// of finite numbers are finite.
bool may_be_infinite(const Graph& graph, ValueId id, int depth = 0) {
  if (id == kNoValue) return false;
  const Value& v = graph.value(id);
  if (v.is_const()) {
    if (!is_float(v.data->dtype())) return false;
    for (int64_t i = 0; i < v.data->numel(); ++i)
      if (!std::isfinite(v.data->at(i))) return true;
    return false;
  }
  if (v.type.dtype != DType::kUndefined && !is_float(v.type.dtype)) return false;
  if (v.producer == nullptr || depth > 32) return true;
  const Node& n = *v.producer;
  static constexpr const char* kFinite[] = {"Where",  "Cast",    "Mul",       "Add",     "Sub",       "Neg",
                                            "Expand", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Slice",
                                            "Gather", "Concat",  "Identity",  "Flatten", "Tile"};
  bool listed = false;
  for (const char* name : kFinite) listed = listed || n.is(name);
  if (!listed) return true;
  for (const ValueId in : n.inputs)
    if (may_be_infinite(graph, in, depth + 1)) return true;
  return false;
}

// Could a whole row of the mask be -inf?
bool may_exclude_a_row(const Graph& graph, ValueId mask) {
  const Value& v = graph.value(mask);
  if (!v.is_const()) return may_be_infinite(graph, mask);
  const Tensor& t = *v.data;
  if (t.rank() == 0 || t.numel() == 0) return !std::isfinite(t.rank() == 0 ? t.at(0) : 0.0);
  const int64_t keys = t.dim(t.rank() - 1);
  for (int64_t row = 0; row < t.numel() / keys; ++row) {
    bool open = false;
    for (int64_t k = 0; k < keys && !open; ++k) open = t.at(row * keys + k) > -INFINITY;
    if (!open) return true;
  }
  return false;
}

std::string is_attention(const RuleContext& c) {
  for (const char* name : {"q", "kt", "v"}) {
    if (!known(c.type(name)) || c.type(name).rank() != 4)
      return std::string(name) + " is not of a known rank 4";
    if (!is_float(c.type(name).dtype) || c.type(name).dtype != c.type("q").dtype)
      return "element types differ";
  }
  const Dims &q = *c.type("q").shape, &k = *c.type("kt").shape, &v = *c.type("v").shape;
  for (size_t i = 0; i < 2; ++i)
    if (!(q[i] == k[i]) || !(q[i] == v[i])) return "batch or heads differ";
  const int64_t axis = c.node("p").get_int("axis", -1);
  if (axis != -1 && axis != 3) return "Softmax does not run over the keys";
  if (!(scale_of(c) > 0) || !std::isfinite(scale_of(c))) return "the scale is not positive";
  const Node* kt = c.value("kt").producer;
  if (kt == nullptr || !kt->is("Transpose")) return "the keys are not transposed";
  const bool guarded = c.has("guard");
  if (!c.has("mask")) return "";
  const ir::TypeInfo& m = c.type("mask");
  if (!known(m) || m.rank() > 4 || m.rank() < 1) return "the mask's rank is unknown, 0 or above 4";
  const Dims scores = {q[0], q[1], q[2], k[3]};
  for (int i = 1; i <= m.rank(); ++i) {
    const Dim& d = (*m.shape)[static_cast<size_t>(m.rank() - i)];
    const bool fits = d == scores[static_cast<size_t>(4 - i)] || (i > 1 && d == Dim(1));
    if (!fits) return "the mask " + m.text() + " does not fit the scores " + dims_text(scores);
  }
  if (m.dtype == DType::kBool) return guarded ? "" : "a row without keys would be NaN";
  if (m.dtype != c.type("q").dtype) return "the mask has another element type";
  if (!guarded && may_exclude_a_row(c.graph, c.at("mask")))
    return "a row whose mask is -inf throughout would be NaN";
  return "";
}

ValueId attention(RuleContext& c) {
  const ValueId k = c.trial.value("Transpose", {c.at("kt")}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  std::vector<ValueId> inputs = {c.at("q"), k, c.at("v")};
  if (c.has("mask")) inputs.push_back(c.at("mask"));
  return c.trial.value("Attention", inputs, {{"scale", static_cast<float>(scale_of(c))}});
}

Pattern formula() {
  const Pattern product = op("MatMul", {maybe_scaled(any("q"), "sq"), maybe_scaled(any("kt"), "sk")});
  const Pattern scores = maybe_scaled(product, "s");
  const Pattern masked =
      any_of({op("Add", {scores, any("mask")}), op("Where", {any("mask"), scores, num(-INFINITY)}), scores});
  const Pattern p = op("Softmax", {masked}).as("p");
  const Pattern guarded = any_of({op("Where", {op("IsNaN", {p}), num(0), p}).as("guard"), p});
  return op("MatMul", {guarded, any("v")});
}

// --- heads inside the operator ---

// An operand is Transpose(x4, 0 2 1 3) of x4 [batch, length, heads, size]: the 3-D operand [batch, length,
// heads * size].
bool is_split(const RuleContext& c, const char* name) {
  const ir::TypeInfo& t = c.type(name);
  return known(t) && t.rank() == 4 && static_dim(t, 2) > 0 && static_dim(t, 3) > 0;
}

bool swaps_heads(const Graph&, const Node& n) {
  return n.get_ints("perm") == std::vector<int64_t>{0, 2, 1, 3};
}

std::vector<int64_t> merged_heads(const ir::TypeInfo& t) {
  return {0, 0, static_dim(t, 2) * static_dim(t, 3)};
}

std::string heads_outside(const RuleContext& c) {
  for (const char* name : {"q4", "k4", "v4"})
    if (!is_split(c, name)) return "an operand is not split into heads of static number and size";
  const ir::TypeInfo &y = c.result_type(), &q = c.type("q4"), &v = c.type("v4");
  if (!known(y) || y.rank() != 3 || !((*y.shape)[0] == (*q.shape)[0]) || !((*y.shape)[1] == (*q.shape)[1]) ||
      static_dim(y, 2) != static_dim(q, 2) * static_dim(v, 3))
    return "the result is not merged to [batch, length, hidden]";
  return "";
}

ValueId with_heads(RuleContext& c) {
  const Node& a = c.node("a");
  std::vector<ValueId> inputs = a.inputs;
  size_t i = 0;
  for (const char* name : {"q4", "k4", "v4"})
    inputs[i++] = c.trial.value("Reshape", {c.at(name), c.trial.ints("shape", merged_heads(c.type(name)))});
  ir::AttrMap attrs = a.attrs;
  attrs.insert_or_assign("q_num_heads", static_dim(c.type("q4"), 2));
  attrs.insert_or_assign("kv_num_heads", static_dim(c.type("k4"), 2));
  return c.trial.value("Attention", inputs, attrs);
}

// The Transpose of an operand may have other readers: it costs the same then.
Pattern heads(const std::string& n) { return op("Transpose", {any(n + "4")}).where(swaps_heads).shared(); }

// --- repeated keys and values ---

// n1 [batch, heads, 1, length, size] expanded to r and merged to [batch, heads * r, length, size]: what
// grouped-query models do in front of the product.
bool is_repeated(const RuleContext& c, const std::string& n) {
  const ir::TypeInfo &one = c.type(n + "1"), &wide = c.type(n + "5"), &merged = c.type(n + "4");
  if (!known(one) || one.rank() != 5 || !known(wide) || wide.rank() != 5 || !known(merged) ||
      merged.rank() != 4)
    return false;
  const Dims &a = *one.shape, &b = *wide.shape, &y = *merged.shape;
  return a[2] == Dim(1) && b[2].is_const() && a[0] == b[0] && a[1] == b[1] && a[3] == b[3] && a[4] == b[4] &&
         y[0] == a[0] && y[1] == a[1] * b[2] && y[2] == a[3] && y[3] == a[4];
}

std::string repeats_heads(const RuleContext& c) {
  if (c.match.root->inputs.size() > 4 || c.match.root->has("q_num_heads"))
    return "a past, or operands of rank 3";
  for (const char* n : {"k", "v"})
    if (!is_repeated(c, n)) return "keys or values are not repeated heads";
  return static_dim(c.type("k1"), 1) > 0 && static_dim(c.type("k1"), 1) == static_dim(c.type("v1"), 1)
             ? ""
             : "heads are not static or differ";
}

ValueId grouped(RuleContext& c) {
  std::vector<ValueId> inputs = c.match.root->inputs;
  const ValueId axes = c.trial.ints("axes", {2});
  inputs[1] = c.trial.value("Squeeze", {c.at("k1"), axes});
  inputs[2] = c.trial.value("Squeeze", {c.at("v1"), axes});
  return c.trial.value("Attention", inputs, c.match.root->attrs);
}

Pattern repeated(const std::string& n) {
  return op("Reshape", {op("Expand", {any(n + "1")}).more_inputs().as(n + "5").shared()})
      .more_inputs()
      .as(n + "4")
      .shared();
}

}  // namespace

const Rules& attention_rules() {
  static const Rules rules = {
      {"attention", "softmax(q k^T * scale + mask) v -> Attention", Numerics::kReassociates, formula(),
       is_attention, attention},
      {"attention_grouped", "keys and values repeated per group of heads -> Attention with fewer key heads",
       Numerics::kExact, op("Attention", {any("q"), repeated("k"), repeated("v")}).more_inputs(),
       repeats_heads, grouped},
      {"attention_heads", "splitting into heads and merging back -> Attention on [batch, length, hidden]",
       Numerics::kExact,
       op("Reshape",
          {op("Transpose", {op("Attention", {heads("q"), heads("k"), heads("v")}).more_inputs().as("a")})
               .where(swaps_heads)})
           .more_inputs(),
       heads_outside, with_heads},
  };
  return rules;
}

}  // namespace hone::optimize
