// Constants that follow one another are one, also across views.
//
// What: (x + a) + b is x + (a + b), (x * a) * b is x * (a * b); an addition or product with a constant
// between two views that undo each other happens on the shape outside.
// When: a and b are constants whose combination takes at most kMaxBytes, nothing reads the inner result,
// and neither constant enlarges x. Across views: each dimension of x is split into dimensions along which
// the constant varies fully or not at all.
// Why: one pass less over the tensor; window attention adds its position bias and its window mask in this
// way, and is recognised only then.
// Example: Reshape(Add(Reshape(x, [N,4,H,S,S]), @m: [1,4,1,S,S]), [4*N,H,S,S]) becomes Add(x, ...) for N =
// 1
#include <algorithm>

#include "ops/interpreter.h"
#include "optimize/rules/rules.h"
#include "optimize/shapes.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::constant;
using ir::Dim;
using ir::Dims;
using ir::op;
using ir::Pattern;
using ir::ValueId;

constexpr int64_t kMaxBytes = 8 << 20;

const Pattern x = any("x");

std::string combines(const RuleContext& c) {
  if (!same_type(c.type("x"), c.type("y")) || !same_type(c.type("y"), c.result_type()))
    return "a constant enlarges the result";
  if (!is_float(c.type("x").dtype)) return "not floats";
  const Shape &a = c.data("a").shape(), &b = c.data("b").shape();
  Shape both(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < both.size(); ++i) {
    const int64_t da = i < a.size() ? a[a.size() - 1 - i] : 1, db = i < b.size() ? b[b.size() - 1 - i] : 1;
    both[both.size() - 1 - i] = std::max(da, db);
  }
  return dtype_bytes(c.type("x").dtype, numel(both)) <= kMaxBytes ? "" : "the combination is too large";
}

ValueId combined(RuleContext& c) {
  const std::string& name = c.match.root->op;
  const Tensor &a = c.data("a"), &b = c.data("b");
  auto k = ops::run_op(*ops::find_op("", name), {}, {&a, &b}, {a.dtype()});
  return c.trial.value(name, {c.at("x"), c.trial.constant(c.value("a").name, std::move(k[0]))});
}

// The constant's shape on the dimensions of x; nullopt when it varies along a part of one.
std::optional<Shape> outside_shape(const RuleContext& c) {
  const ir::TypeInfo &t = c.type("x"), &inner = c.type("v");
  if (!known(t) || !known(inner)) return std::nullopt;
  const auto groups = split_groups(*t.shape, *inner.shape);
  const Tensor& k = c.data("k");
  if (!groups || k.rank() > inner.rank()) return std::nullopt;
  Shape padded(static_cast<size_t>(inner.rank() - k.rank()), 1);
  padded.insert(padded.end(), k.shape().begin(), k.shape().end());
  Shape out;
  size_t at = 0;
  for (const int count : *groups) {
    int64_t extent = 1;
    bool varies = false, repeats = false;
    for (int i = 0; i < count; ++i, ++at) {
      const bool one = (*inner.shape)[at] == Dim(1);
      varies = varies || padded[at] != 1;
      repeats = repeats || (padded[at] == 1 && !one);
      extent *= padded[at];
    }
    if (varies && repeats) return std::nullopt;
    out.push_back(extent);
  }
  return out;
}

std::string views_undo(const RuleContext& c) {
  if (!same_type(c.type("x"), c.result_type())) return "the views do not undo each other";
  if (!same_type(c.type("v"), c.type("y"))) return "the constant enlarges the result";
  return outside_shape(c) ? "" : "the constant varies along a part of a dimension";
}

ValueId outside(RuleContext& c) {
  const ValueId k = c.trial.constant(c.value("k").name, c.data("k").reshaped(*outside_shape(c)));
  return c.trial.value(c.node("y").op, {c.at("x"), k});
}

Pattern view_of(const Pattern& in) {
  return any_of({op("Reshape", {in}).more_inputs(), op("Unsqueeze", {in}).more_inputs(),
                 op("Squeeze", {in}).more_inputs()});
}

Pattern between_views(const char* name) {
  const Pattern v =
      any_of({op("Reshape", {x}).more_inputs().as("v"), op("Unsqueeze", {x}).more_inputs().as("v")});
  return view_of(op(name, {v, constant("k")}).as("y"));
}

Pattern twice(const char* name) { return op(name, {op(name, {x, constant("a")}).as("y"), constant("b")}); }

}  // namespace

const Rules& constant_rules() {
  static const Rules rules = {
      {"combine_constants", "(x + a) + b, (x * a) * b with constants", Numerics::kReassociates,
       any_of({twice("Add"), twice("Mul")}), combines, combined},
      {"constant_outside_views", "a constant added or multiplied between two views", Numerics::kExact,
       any_of({between_views("Add"), between_views("Mul")}), views_undo, outside},
  };
  return rules;
}

}  // namespace hone::optimize
