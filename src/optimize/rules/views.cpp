// Reshape, Squeeze, Unsqueeze and Flatten: chains become one Reshape, computed targets become constants,
// splits move above transposes.
//
// What, when: a Reshape whose result shape can be written as a constant that holds for every binding of
// the symbols (shapes.h) no longer needs the nodes that computed it. Two views in a row are one Reshape to
// the last shape: dimensions are taken from the inferred shapes, never from merged axis lists, so Squeeze
// [0] then Squeeze [1] counts its axes right. An Expand whose only effect is what broadcasting does anyway
// goes (the consumer's type must stay). A Reshape between two Transposes is moved so that these can meet.
// Why: shape arithmetic dies, attention and layer patterns become visible, fewer steps.
// Example: Reshape(Transpose(Reshape(x, [B*H,S,D]), 0 2 1), [B,H,D,S]) of x [B,H,S,D] becomes Transpose(x,
// 0 1 3 2)
#include <algorithm>

#include "optimize/rules/rules.h"
#include "optimize/shapes.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::Dims;
using ir::Node;
using ir::op;
using ir::Pattern;
using ir::ValueId;

const Pattern x = any("x");

const Dims* dims_of(const RuleContext& c, std::string_view name) {
  return c.type(name).shape ? &*c.type(name).shape : nullptr;
}

std::optional<std::vector<int64_t>> target(const RuleContext& c) {
  if (!c.result_type().shape) return std::nullopt;
  return reshape_target(dims_of(c, "x"), *c.result_type().shape);
}

std::string has_target(const RuleContext& c) {
  return target(c) ? "" : "the shape cannot be written as a constant";
}

ValueId reshape(RuleContext& c) {
  return c.trial.value("Reshape", {c.at("x"), c.trial.ints("shape", *target(c))});
}

std::string dynamic_reshape(const RuleContext& c) {
  return c.graph.value(c.match.root->inputs[1]).is_const() ? "the shape is constant" : has_target(c);
}

std::string dynamic_expand(const RuleContext& c) {
  if (c.graph.value(c.match.root->inputs[1]).is_const()) return "the shape is constant";
  if (dims_of(c, "x") == nullptr || !c.result_type().shape) return "the rank is unknown";
  return expand_target(*dims_of(c, "x"), *c.result_type().shape)
             ? ""
             : "the shape cannot be written as a constant";
}

ValueId expand(RuleContext& c) {
  return c.trial.value(
      "Expand", {c.at("x"), c.trial.ints("shape", *expand_target(*dims_of(c, "x"), *c.result_type().shape))});
}

std::vector<int64_t> permutation(const RuleContext& c) {
  std::vector<int64_t> reversed;
  for (int i = c.type("x").rank() - 1; i >= 0; --i) reversed.push_back(i);
  return c.node("t").get_ints("perm", reversed);
}

// The shape to which x is split, and the permutation of the split dimensions.
struct Split {
  Dims dims;
  std::vector<int64_t> perm;
};

std::optional<Split> split_above(const RuleContext& c) {
  if (dims_of(c, "x") == nullptr || dims_of(c, "t") == nullptr || !c.result_type().shape) return std::nullopt;
  const Dims& to = *c.result_type().shape;
  const auto groups = split_groups(*dims_of(c, "t"), to);
  if (!groups) return std::nullopt;
  const std::vector<int64_t> perm = permutation(c);
  std::vector<size_t> first(perm.size());  // of each dimension of x: where its pieces stand in the result
  std::vector<int> count(perm.size());
  size_t at = 0;
  for (size_t i = 0; i < perm.size(); ++i) {
    first[static_cast<size_t>(perm[i])] = at;
    count[static_cast<size_t>(perm[i])] = (*groups)[i];
    at += static_cast<size_t>((*groups)[i]);
  }
  Split s;
  std::vector<size_t> begin(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) {
    begin[d] = s.dims.size();
    for (int k = 0; k < count[d]; ++k) s.dims.push_back(to[first[d] + static_cast<size_t>(k)]);
  }
  for (size_t i = 0; i < perm.size(); ++i)
    for (int k = 0; k < (*groups)[i]; ++k)
      s.perm.push_back(static_cast<int64_t>(begin[static_cast<size_t>(perm[i])]) + k);
  return s;
}

std::string splits(const RuleContext& c) {
  const auto s = split_above(c);
  if (!s) return "the Reshape does more than split dimensions";
  return reshape_target(dims_of(c, "x"), s->dims) ? "" : "the shape cannot be written as a constant";
}

ValueId split_then_transpose(RuleContext& c) {
  const Split s = *split_above(c);
  const ValueId r =
      c.trial.value("Reshape", {c.at("x"), c.trial.ints("shape", *reshape_target(dims_of(c, "x"), s.dims))});
  return c.trial.value("Transpose", {r}, {{"perm", s.perm}});
}

// Merge, transpose, split of o: a permutation of the dimensions of o?
std::string undoes_the_merge(const RuleContext& c) {
  const auto s = split_above(c);
  if (!s) return "the Reshape does more than split dimensions";
  return dims_of(c, "o") != nullptr && s->dims == *dims_of(c, "o")
             ? ""
             : "the split is not that of the tensor before";
}

ValueId permuted(RuleContext& c) {
  return c.trial.value("Transpose", {c.at("o")}, {{"perm", split_above(c)->perm}});
}

// A Reshape that merges dimensions behind a Transpose: first bring the merged ones together, merge, then
// permute what is left. The last dimension stays last, so that the second Transpose can sink below what acts
// on rows.
struct Merge {
  std::vector<int64_t> first, second;
  Dims dims;  // between them
};

std::optional<Merge> merge_between(const RuleContext& c) {
  if (dims_of(c, "x") == nullptr || dims_of(c, "t") == nullptr || !c.result_type().shape) return std::nullopt;
  const Dims &to = *c.result_type().shape, &t = *dims_of(c, "t");
  const auto groups = split_groups(to, t);  // a merge is a split backwards
  if (!groups || to.size() < 2 || to.size() >= t.size() ||
      std::find(groups->begin(), groups->end(), 0) != groups->end())
    return std::nullopt;
  const std::vector<int64_t> perm = permutation(c);
  std::vector<std::pair<int64_t, size_t>>
      order;  // groups by the first of their dimensions in x, the last one last
  std::vector<std::vector<int64_t>> members;
  size_t at = 0;
  for (size_t g = 0; g < groups->size(); ++g) {
    members.emplace_back(perm.begin() + static_cast<std::ptrdiff_t>(at),
                         perm.begin() + static_cast<std::ptrdiff_t>(at) + (*groups)[g]);
    at += static_cast<size_t>((*groups)[g]);
    const bool last = g + 1 == groups->size();
    order.emplace_back(last ? INT64_MAX : *std::min_element(members[g].begin(), members[g].end()), g);
  }
  std::sort(order.begin(), order.end());
  Merge m;
  m.second.resize(order.size());
  for (size_t place = 0; place < order.size(); ++place) {
    const size_t g = order[place].second;
    m.first.insert(m.first.end(), members[g].begin(), members[g].end());
    m.dims.push_back(to[g]);
    m.second[g] = static_cast<int64_t>(place);
  }
  if (m.first == perm) return std::nullopt;
  return m;
}

std::optional<std::vector<int64_t>> merge_target(const RuleContext& c, const Merge& m) {
  Dims from;
  for (const int64_t d : m.first) from.push_back((*dims_of(c, "x"))[static_cast<size_t>(d)]);
  return reshape_target(&from, m.dims);
}

std::string merges_later(const RuleContext& c) {
  const auto m = merge_between(c);
  if (!m) return "the Reshape does not merge dimensions that could meet first";
  return merge_target(c, *m) ? "" : "the shape cannot be written as a constant";
}

ValueId meet_merge_permute(RuleContext& c) {
  const Merge m = *merge_between(c);
  const ValueId t = c.trial.value("Transpose", {c.at("x")}, {{"perm", m.first}});
  const ValueId r = c.trial.value("Reshape", {t, c.trial.ints("shape", *merge_target(c, m))});
  return c.trial.value("Transpose", {r}, {{"perm", m.second}});
}

Pattern view_of(const Pattern& in) {
  return any_of({op("Reshape", {in}).more_inputs(), op("Squeeze", {in}).more_inputs(),
                 op("Unsqueeze", {in}).more_inputs(), op("Flatten", {in}).more_inputs()});
}

Pattern shared_view_of(const Pattern& in) {
  return any_of({op("Reshape", {in}).more_inputs().shared(), op("Squeeze", {in}).more_inputs().shared(),
                 op("Unsqueeze", {in}).more_inputs().shared(), op("Flatten", {in}).more_inputs().shared()});
}

}  // namespace

const Rules& view_rules() {
  static const Rules rules = {
      {"reshape_target", "a computed Reshape shape that can be written as a constant", Numerics::kExact,
       op("Reshape", {x}).more_inputs(), dynamic_reshape, reshape},
      {"expand_target", "a computed Expand shape that can be written as a constant", Numerics::kExact,
       op("Expand", {x}).more_inputs(), dynamic_expand, expand},
      {"view_merge", "Reshape, Squeeze, Unsqueeze, Flatten in a row", Numerics::kExact,
       view_of(shared_view_of(x)), has_target, reshape},
      {"view_sandwich", "merge, transpose, split that is a permutation", Numerics::kExact,
       op("Reshape", {op("Transpose", {shared_view_of(any("o")).as("x")}).as("t")}).more_inputs(),
       undoes_the_merge, permuted},
      {"transpose_around_merge",
       "Transpose, merging Reshape -> Transpose, Reshape, Transpose of fewer dimensions", Numerics::kExact,
       op("Reshape", {op("Transpose", {x}).as("t")}).more_inputs(), merges_later, meet_merge_permute},
      {"reshape_above_transpose", "a Reshape that splits dimensions moves above a Transpose",
       Numerics::kExact,
       any_of({op("Reshape", {op("Transpose", {x}).as("t")}).more_inputs(),
               op("Unsqueeze", {op("Transpose", {x}).as("t")}).more_inputs()}),
       splits, split_then_transpose},
  };
  return rules;
}

}  // namespace hone::optimize
