// Normalisations that exporters spell out become one operator.
//
// What: layer normalisation (mean, difference, mean of squares, square root, quotient; then scale and
// bias), RMS normalisation, group normalisation written as Reshape, InstanceNormalization, Reshape, scale,
// bias; scale and bias after InstanceNormalization folded into it.
// When: mean and variance run over the same last dimensions and keep them; epsilon is one number; scale
// and bias have exactly the shape of the normalised dimensions (a scale of one element broadcasts in the
// formula but not in every implementation of the operator, and a scale that would enlarge the result is no
// scale). f64 stays spelled out: the operator computes statistics in f32.
// Why: one pass over memory instead of nine, statistics in one kernel.
// Example: Div(Sub(x, m), Sqrt(Add(v, 1e-5))) * g + b becomes LayerNormalization(x, g, b) {axis = -1,
// epsilon = 1e-5}
#include <cmath>

#include "optimize/rules/rules.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::constant;
using ir::Dims;
using ir::num;
using ir::op;
using ir::Pattern;
using ir::ValueId;

const Pattern x = any("x");

Pattern add(Pattern a, Pattern b) { return op("Add", {std::move(a), std::move(b)}); }
Pattern sub(Pattern a, Pattern b) { return op("Sub", {std::move(a), std::move(b)}); }
Pattern mul(Pattern a, Pattern b) { return op("Mul", {std::move(a), std::move(b)}); }
Pattern mean_of(Pattern a, const char* name) {
  return op("ReduceMean", {std::move(a)}).more_inputs().as(name);
}
Pattern square(const Pattern& a) { return any_of({op("Pow", {a, num(2)}), mul(a, a)}); }

// a / sqrt(v), as a quotient or as a product with the reciprocal
Pattern over_root(const Pattern& a, const Pattern& v) {
  const Pattern root = op("Sqrt", {v});
  return any_of({op("Div", {a, root}), mul(a, op("Reciprocal", {root})), mul(a, op("Div", {num(1), root})),
                 mul(a, op("Pow", {v, num(-0.5)}))});
}

Pattern normalized() {
  const Pattern d = sub(x, mean_of(x, "mean"));
  return over_root(d, add(mean_of(square(d), "var"), constant("eps")));
}

Pattern rms_normalized() { return over_root(x, add(mean_of(square(x), "var"), constant("eps"))); }

// tf2onnx: x * r + (b - mean * r) with r = scale / sqrt(var + eps)
Pattern folded_layer_norm() {
  const Pattern m = mean_of(x, "mean");
  const Pattern d = sub(x, m);
  const Pattern r = over_root(constant("scale"), add(mean_of(square(d), "var"), constant("eps")));
  return add(mul(x, r), sub(constant("bias"), mul(m, r)));
}

// First of the reduced dimensions, when these are the last ones, all kept; nullopt otherwise.
std::optional<int> trailing_axis(const RuleContext& c, const char* name) {
  const int rank = c.type("x").rank();
  const ir::Node& n = c.node(name);
  if (!n.has_input(1) || n.get_int("keepdims", 1) == 0) return std::nullopt;
  const auto axes = node_axes(c.graph, n, 1, rank);
  if (!axes || axes->empty()) return std::nullopt;
  for (size_t i = 0; i < axes->size(); ++i)
    if ((*axes)[i] != rank - static_cast<int64_t>(axes->size() - i)) return std::nullopt;
  return static_cast<int>(axes->front());
}

std::string last_dims(const RuleContext& c) {
  const ir::TypeInfo& t = c.type("x");
  if (!t.shape) return "the rank is unknown";
  if (t.dtype != DType::kF32 && t.dtype != DType::kF16 && t.dtype != DType::kBF16)
    return "not f32, f16 or bf16";
  const auto var = trailing_axis(c, "var");
  if (!var) return "the statistics do not run over the last dimensions";
  if (c.has("mean") && trailing_axis(c, "mean") != var)
    return "mean and variance run over different dimensions";
  if (c.data("eps").numel() != 1) return "epsilon is not one number";
  for (int i = *var; i < t.rank(); ++i)
    if (static_dim(t, i) < 0) return "the normalised dimensions are not static";
  return "";
}

Shape normalized_shape(const RuleContext& c) {
  Shape s;
  for (int i = *trailing_axis(c, "var"); i < c.type("x").rank(); ++i) s.push_back(static_dim(c.type("x"), i));
  return s;
}

bool fits(const RuleContext& c, const char* name) {
  const auto shape = c.type(name).shape ? ir::const_dims(*c.type(name).shape) : std::nullopt;
  return shape && *shape == normalized_shape(c) && c.type(name).dtype == c.type("x").dtype;
}

std::string with_scale(const RuleContext& c) {
  if (const std::string why = last_dims(c); !why.empty()) return why;
  return fits(c, "scale") ? "" : "the scale does not have the shape of the normalised dimensions";
}

std::string with_scale_and_bias(const RuleContext& c) {
  if (const std::string why = with_scale(c); !why.empty()) return why;
  return fits(c, "bias") ? "" : "the bias does not have the shape of the normalised dimensions";
}

ir::AttrMap norm_attrs(const RuleContext& c) {
  return {{"axis", static_cast<int64_t>(*trailing_axis(c, "var")) - c.type("x").rank()},
          {"epsilon", static_cast<float>(c.data("eps").at(0))}};
}

ValueId ones(RuleContext& c) {
  const Shape s = normalized_shape(c);
  return c.trial.constant(
      "ones", from_doubles(c.type("x").dtype, s, std::vector<double>(static_cast<size_t>(numel(s)), 1.0)));
}

ValueId layer_norm(RuleContext& c) {
  return c.trial.value("LayerNormalization", {c.at("x"), ones(c)}, norm_attrs(c));
}
ValueId layer_norm_scale(RuleContext& c) {
  return c.trial.value("LayerNormalization", {c.at("x"), c.at("scale")}, norm_attrs(c));
}
ValueId layer_norm_bias(RuleContext& c) {
  return c.trial.value("LayerNormalization", {c.at("x"), c.at("scale"), c.at("bias")}, norm_attrs(c));
}
ValueId rms_norm(RuleContext& c) {
  return c.trial.value("RMSNormalization", {c.at("x"), ones(c)}, norm_attrs(c));
}
ValueId rms_norm_scale(RuleContext& c) {
  return c.trial.value("RMSNormalization", {c.at("x"), c.at("scale")}, norm_attrs(c));
}

// --- scale and bias after a LayerNormalization that a rule above made with ones ---

std::string plain_norm(const RuleContext& c) {
  const ir::Value& scale = c.value("ones");
  if (!all_equal(*scale.data, 1.0)) return "there is a scale already";
  const ir::Node& n = c.node("n");
  if (n.has_input(2)) return "there is a bias already";
  return same_type(c.type("ones"), c.type("scale"))
             ? ""
             : "the scale does not have the shape of the normalised dimensions";
}

ValueId scaled_norm(RuleContext& c) {
  const ir::Node& n = c.node("n");
  return c.trial.value(n.op, {c.at("x"), c.at("scale")}, n.attrs);
}

std::string no_bias(const RuleContext& c) {
  const ir::Node& n = c.node("n");
  if (n.has_input(2)) return "there is a bias already";
  const ir::TypeInfo& scale = c.graph.value(n.inputs[1]).type;
  return same_type(scale, c.type("bias")) ? ""
                                          : "the bias does not have the shape of the normalised dimensions";
}

ValueId biased_norm(RuleContext& c) {
  const ir::Node& n = c.node("n");
  return c.trial.value(n.op, {n.inputs[0], n.inputs[1], c.at("bias")}, n.attrs);
}

// --- InstanceNormalization ---

std::string folds_into_instance_norm(const RuleContext& c) {
  const PerChannel p = per_channel(c.data("k"), c.result_type(), 1);
  return p.why_not;
}

ValueId instance_norm_scale(RuleContext& c) {
  const auto k = per_channel(c.data("k"), c.result_type(), 1).values;
  auto scale = to_doubles(c.data("scale")), bias = to_doubles(c.data("bias"));
  for (size_t i = 0; i < k.size(); ++i) {
    scale[i] *= k[i];
    bias[i] *= k[i];
  }
  const Tensor& s = c.data("scale");
  return c.trial.value("InstanceNormalization",
                       {c.at("x"), c.trial.constant("scale", from_doubles(s.dtype(), s.shape(), scale)),
                        c.trial.constant("bias", from_doubles(s.dtype(), s.shape(), bias))},
                       c.node("n").attrs);
}

ValueId instance_norm_bias(RuleContext& c) {
  const auto k = per_channel(c.data("k"), c.result_type(), 1).values;
  auto bias = to_doubles(c.data("bias"));
  for (size_t i = 0; i < k.size(); ++i) bias[i] += k[i];
  const Tensor& s = c.data("bias");
  return c.trial.value(
      "InstanceNormalization",
      {c.at("x"), c.at("scale"), c.trial.constant("bias", from_doubles(s.dtype(), s.shape(), bias))},
      c.node("n").attrs);
}

Pattern instance_norm() {
  return op("InstanceNormalization", {x, constant("scale"), constant("bias")}).as("n");
}

std::string is_group_norm(const RuleContext& c) {
  const ir::TypeInfo& t = c.type("x");
  if (!t.shape || t.rank() < 3 || !same_type(t, c.result_type()))
    return "the result has another shape than the input";
  const ir::TypeInfo& g = c.type("g");  // [N, groups, rest]
  if (!g.shape || g.rank() != 3 || !((*g.shape)[0] == (*t.shape)[0]))
    return "not reshaped to [N, groups, rest]";
  const int64_t groups = static_dim(g, 1), channels = static_dim(t, 1);
  if (groups <= 0 || channels <= 0 || channels % groups != 0) return "channels are not a multiple of groups";
  if (!all_equal(c.data("scale"), 1.0) || !all_equal(c.data("bias"), 0.0)) return "scale and bias per group";
  return "";
}

ValueId group_norm(RuleContext& c) {
  const int64_t groups = static_dim(c.type("g"), 1), channels = static_dim(c.type("x"), 1);
  const DType t = c.type("x").dtype;
  const auto n = static_cast<size_t>(channels);
  return c.trial.value(
      "GroupNormalization",
      {c.at("x"), c.trial.constant("scale", from_doubles(t, {channels}, std::vector<double>(n, 1.0))),
       c.trial.constant("bias", from_doubles(t, {channels}, std::vector<double>(n, 0.0)))},
      {{"num_groups", groups}, {"epsilon", c.node("n").get_float("epsilon", 1e-5F)}});
}

Pattern grouped() {
  const Pattern in = op("Reshape", {x}).more_inputs().as("g");
  return op("Reshape", {op("InstanceNormalization", {in, constant("scale"), constant("bias")}).as("n")})
      .more_inputs();
}

Pattern group_norm_node() {
  return op("GroupNormalization", {x, constant("scale"), constant("bias")}).as("n");
}

template <bool kScale>
ValueId group_norm_affine(RuleContext& c) {
  const auto k = per_channel(c.data("k"), c.result_type(), 1).values;
  auto scale = to_doubles(c.data("scale")), bias = to_doubles(c.data("bias"));
  for (size_t i = 0; i < k.size(); ++i) {
    if (kScale) scale[i] *= k[i];
    bias[i] = kScale ? bias[i] * k[i] : bias[i] + k[i];
  }
  const Tensor& s = c.data("scale");
  return c.trial.value("GroupNormalization",
                       {c.at("x"), c.trial.constant("scale", from_doubles(s.dtype(), s.shape(), scale)),
                        c.trial.constant("bias", from_doubles(s.dtype(), s.shape(), bias))},
                       c.node("n").attrs);
}

}  // namespace

const Rules& norm_rules() {
  constexpr Numerics kClose = Numerics::kReassociates;
  static const Pattern norm_of_ones =
      any_of({op("LayerNormalization", {x, constant("ones")}).more_inputs().as("n"),
              op("RMSNormalization", {x, constant("ones")}).as("n")});
  static const Rules rules = {
      {"layer_norm_bias", "normalise, scale, bias -> LayerNormalization", kClose,
       add(mul(normalized(), any("scale")), any("bias")), with_scale_and_bias, layer_norm_bias},
      {"layer_norm_folded", "x r + (b - mean r), r = scale / sqrt(var + eps) -> LayerNormalization", kClose,
       folded_layer_norm(), with_scale_and_bias, layer_norm_bias},
      {"layer_norm_scale", "normalise, scale -> LayerNormalization", kClose, mul(normalized(), any("scale")),
       with_scale, layer_norm_scale},
      {"layer_norm", "(x - mean) / sqrt(var + eps) -> LayerNormalization", kClose, normalized(), last_dims,
       layer_norm},
      {"rms_norm_scale", "x / sqrt(mean of squares + eps), scale -> RMSNormalization", kClose,
       mul(rms_normalized(), any("scale")), with_scale, rms_norm_scale},
      {"rms_norm", "x / sqrt(mean of squares + eps) -> RMSNormalization", kClose, rms_normalized(), last_dims,
       rms_norm},
      {"norm_take_scale", "scale after a normalisation without", kClose, mul(norm_of_ones, constant("scale")),
       plain_norm, scaled_norm},
      {"norm_take_bias", "bias after a LayerNormalization without", kClose,
       add(op("LayerNormalization", {any(), any()}).as("n"), constant("bias")), no_bias, biased_norm},
      {"group_norm", "Reshape, InstanceNormalization, Reshape -> GroupNormalization", kClose, grouped(),
       is_group_norm, group_norm},
      {"group_norm_scale", "scale after GroupNormalization", kClose, mul(group_norm_node(), constant("k")),
       folds_into_instance_norm, group_norm_affine<true>},
      {"group_norm_bias", "bias after GroupNormalization", kClose, add(group_norm_node(), constant("k")),
       folds_into_instance_norm, group_norm_affine<false>},
      {"instance_norm_scale", "scale after InstanceNormalization", kClose,
       mul(instance_norm(), constant("k")), folds_into_instance_norm, instance_norm_scale},
      {"instance_norm_bias", "bias after InstanceNormalization", kClose, add(instance_norm(), constant("k")),
       folds_into_instance_norm, instance_norm_bias},
  };
  return rules;
}

}  // namespace hone::optimize
