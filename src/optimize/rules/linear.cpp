// Constants are folded into the weights of Conv, ConvTranspose, Gemm and MatMul.
//
// What: BatchNormalization behind them; Mul, Div, Add, Sub by a constant that acts per output channel;
// alpha and beta of Gemm. A BatchNormalization elsewhere becomes Mul and Add. A Gemm between two Reshapes
// that only merge and restore leading dimensions is a MatMul and an Add on the original shape.
// When: weights (and bias) are constants, the linear node's result has no other reader, and the constant
// does not enlarge the result. The new weights are new constants: one that two layers share stays as it is
// for the other.
// Why: the whole pass over the activation disappears.
// Example: BatchNormalization(Conv(x, W, b)) becomes Conv(x, W', b')   with W'[o] = W[o] s[o], b'[o] =
// (b[o] - mean[o]) s[o] + bias[o]
#include <cmath>

#include "optimize/rules/rules.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::constant;
using ir::kNoValue;
using ir::Node;
using ir::op;
using ir::Pattern;
using ir::ValueId;

const Pattern x = any("x");

// A linear node with constant weights, seen as: result channel `c` = sum over some weights + bias[c].
struct Linear {
  std::string why_not;
  const Node* node = nullptr;
  const Tensor* weights = nullptr;
  const Tensor* bias = nullptr;  // null: none
  int64_t channels = 0;
  int channel_axis = 1;  // of the result
};

Linear linear_of(const RuleContext& c, const char* name) {
  Linear l;
  l.node = &c.node(name);
  const Node& n = *l.node;
  const ir::Value& w = c.graph.value(n.inputs[1]);
  if (!w.is_const()) return l.why_not = "the weights are computed", l;
  if (!is_float(w.data->dtype())) return l.why_not = "the weights are not floats", l;
  l.weights = w.data.get();
  if (n.has_input(2)) {
    const ir::Value& b = c.graph.value(n.inputs[2]);
    if (!b.is_const()) return l.why_not = "the bias is computed", l;
    l.bias = b.data.get();
  }
  const Tensor& t = *l.weights;
  if (n.is("Conv")) {
    l.channels = t.dim(0);
  } else if (n.is("ConvTranspose")) {
    l.channels = t.dim(1) * n.get_int("group", 1);
  } else if (n.is("Gemm")) {
    if (n.get_float("alpha", 1) != 1 || n.get_float("beta", 1) != 1)
      return l.why_not = "alpha or beta is not 1", l;
    l.channels = n.get_int("transB", 0) != 0 ? t.dim(0) : t.dim(1);
    if (l.bias != nullptr && l.bias->numel() != l.channels && l.bias->numel() != 1)
      return l.why_not = "the bias is a matrix", l;
    if (l.bias != nullptr && l.bias->rank() == 2 && l.bias->dim(0) != 1)
      return l.why_not = "the bias is a column", l;
  } else {  // MatMul
    if (t.rank() != 2) return l.why_not = "the weights are not a matrix", l;
    l.channels = t.dim(1);
    const ir::TypeInfo& in = c.graph.value(n.inputs[0]).type;
    if (!in.shape || in.rank() < 2) return l.why_not = "a vector", l;
  }
  l.channel_axis = n.is("MatMul") ? c.graph.value(n.outputs[0]).type.rank() - 1 : 1;
  return l;
}

// Weights multiplied by s per output channel.
Tensor scaled(const Linear& l, const std::vector<double>& s) {
  std::vector<double> w = to_doubles(*l.weights);
  const Node& n = *l.node;
  const auto channels = static_cast<size_t>(l.channels);
  if (n.is("Conv") || (n.is("Gemm") && n.get_int("transB", 0) != 0)) {
    const size_t per = channels == 0 ? 0 : w.size() / channels;
    for (size_t o = 0; o < channels; ++o)
      for (size_t i = 0; i < per; ++i) w[o * per + i] *= s[o];
  } else if (n.is("ConvTranspose")) {  // [in, out / group, k...]: input i belongs to group i / (in / group)
    const auto in = static_cast<size_t>(l.weights->dim(0)), out = static_cast<size_t>(l.weights->dim(1));
    const auto group = static_cast<size_t>(n.get_int("group", 1));
    const size_t per = in * out == 0 ? 0 : w.size() / (in * out);
    for (size_t i = 0; i < in; ++i)
      for (size_t o = 0; o < out; ++o)
        for (size_t k = 0; k < per; ++k) w[(i * out + o) * per + k] *= s[i / (in / group) * out + o];
  } else {
    for (size_t i = 0; i < w.size(); ++i) w[i] *= s[i % channels];
  }
  return from_doubles(l.weights->dtype(), l.weights->shape(), w);
}

std::vector<double> bias_or_zero(const Linear& l) {
  const auto n = static_cast<size_t>(l.channels);
  if (l.bias == nullptr) return std::vector<double>(n, 0.0);
  std::vector<double> b = to_doubles(*l.bias);
  if (b.size() != n) b.assign(n, b[0]);
  return b;
}

// The linear node again with other weights and bias (empty: none). A MatMul takes no bias: Add follows.
ValueId rebuilt(RuleContext& c, const Linear& l, ValueId weights, const std::vector<double>& bias) {
  const Node& n = *l.node;
  std::vector<ValueId> inputs = {n.inputs[0], weights};
  const auto make_bias = [&] {
    return c.trial.constant("bias", from_doubles(l.weights->dtype(), {l.channels}, bias));
  };
  if (!bias.empty() && !n.is("MatMul")) inputs.push_back(make_bias());
  const ValueId y = c.trial.value(n.op, inputs, n.attrs);
  return !bias.empty() && n.is("MatMul") ? c.trial.value("Add", {y, make_bias()}) : y;
}

// --- BatchNormalization ---

struct Affine {
  std::string why_not;
  std::vector<double> scale, shift;  // y = x * scale + shift, per channel
};

Affine affine_of(const RuleContext& c, const Node& bn) {
  if (bn.get_int("training_mode", 0) != 0) return {"training mode", {}, {}};
  std::vector<std::vector<double>> p;  // scale, bias, mean, var
  for (size_t i = 1; i < 5; ++i) {
    const ir::Value& v = c.graph.value(bn.inputs[i]);
    if (!v.is_const()) return {"a parameter is computed", {}, {}};
    p.push_back(to_doubles(*v.data));
  }
  Affine a;
  const double epsilon = bn.get_float("epsilon", 1e-5F);
  for (size_t i = 0; i < p[0].size(); ++i) {
    a.scale.push_back(p[0][i] / std::sqrt(p[3][i] + epsilon));
    a.shift.push_back(p[1][i] - p[2][i] * a.scale.back());
  }
  return a;
}

std::string folds_batch_norm(const RuleContext& c) {
  const Linear l = linear_of(c, "l");
  if (!l.why_not.empty()) return l.why_not;
  if (l.channel_axis != 1) return "the channels are not dimension 1";
  const Affine a = affine_of(c, *c.match.root);
  if (!a.why_not.empty()) return a.why_not;
  return static_cast<int64_t>(a.scale.size()) == l.channels ? "" : "channel counts differ";
}

ValueId fold_batch_norm(RuleContext& c) {
  const Linear l = linear_of(c, "l");
  const Affine a = affine_of(c, *c.match.root);
  std::vector<double> bias = bias_or_zero(l);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = bias[i] * a.scale[i] + a.shift[i];
  return rebuilt(c, l, c.trial.constant("weights", scaled(l, a.scale)), bias);
}

std::string splits_batch_norm(const RuleContext& c) {
  if (!c.type("x").shape || c.type("x").rank() < 2) return "the rank is unknown or below 2";
  return affine_of(c, *c.match.root).why_not;
}

ValueId split_batch_norm(RuleContext& c) {
  const Affine a = affine_of(c, *c.match.root);
  Shape shape(static_cast<size_t>(c.type("x").rank() - 1), 1);
  shape[0] = static_cast<int64_t>(a.scale.size());
  const DType t = c.type("x").dtype;
  const ValueId y =
      c.trial.value("Mul", {c.at("x"), c.trial.constant("scale", from_doubles(t, shape, a.scale))});
  return c.trial.value("Add", {y, c.trial.constant("shift", from_doubles(t, shape, a.shift))});
}

// --- Mul, Div, Add, Sub by constants ---

std::string folds_constant(const RuleContext& c) {
  const Linear l = linear_of(c, "l");
  if (!l.why_not.empty()) return l.why_not;
  const PerChannel k = per_channel(c.data("k"), c.type("l"), l.channel_axis);
  if (!k.why_not.empty()) return k.why_not;
  if (!same_type(c.type("l"), c.result_type())) return "the constant enlarges the result";
  for (const double v : k.values)
    if (!std::isfinite(v) || (c.match.root->is("Div") && v == 0)) return "the constant is not finite";
  return "";
}

// A bias behind MatMul stays an Add: the layer takes it as its post-op.
std::string folds_addend(const RuleContext& c) {
  if (c.node("l").is("MatMul")) return "MatMul has no bias";
  return folds_constant(c);
}

ValueId fold_factor(RuleContext& c) {
  const Linear l = linear_of(c, "l");
  std::vector<double> k = per_channel(c.data("k"), c.type("l"), l.channel_axis).values;
  if (c.match.root->is("Div"))
    for (double& v : k) v = 1 / v;
  std::vector<double> bias;
  if (l.bias != nullptr) {
    bias = bias_or_zero(l);
    for (size_t i = 0; i < bias.size(); ++i) bias[i] *= k[i];
  }
  return rebuilt(c, l, c.trial.constant("weights", scaled(l, k)), bias);
}

ValueId fold_addend(RuleContext& c) {
  const Linear l = linear_of(c, "l");
  const std::vector<double> k = per_channel(c.data("k"), c.type("l"), l.channel_axis).values;
  std::vector<double> bias = bias_or_zero(l);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] += c.match.root->is("Sub") ? -k[i] : k[i];
  return rebuilt(c, l, l.node->inputs[1], bias);
}

// (MatMul(x, W) + b) * k: the factor passes the bias first.
std::string factor_passes_bias(const RuleContext& c) {
  const Linear l = linear_of(c, "l");
  if (!l.why_not.empty()) return l.why_not;
  if (!l.node->is("MatMul")) return "not a MatMul";
  const PerChannel b = per_channel(c.data("b"), c.type("l"), l.channel_axis);
  return b.why_not.empty() ? folds_constant(c) : b.why_not;
}

ValueId factor_into_both(RuleContext& c) {
  const Linear l = linear_of(c, "l");
  std::vector<double> k = per_channel(c.data("k"), c.type("l"), l.channel_axis).values;
  std::vector<double> b = per_channel(c.data("b"), c.type("l"), l.channel_axis).values;
  if (c.match.root->is("Div"))
    for (double& v : k) v = 1 / v;
  for (size_t i = 0; i < b.size(); ++i) b[i] *= k[i];
  return rebuilt(c, l, c.trial.constant("weights", scaled(l, k)), b);
}

// --- Gemm ---

std::string has_factors(const RuleContext& c) {
  const Node& n = *c.match.root;
  const float alpha = n.get_float("alpha", 1), beta = n.get_float("beta", 1);
  if (alpha == 1 && (beta == 1 || !n.has_input(2))) return "alpha and beta are 1";
  if (!is_float(c.type("x").dtype)) return "not floats";
  if (alpha != 1 && !c.graph.value(n.inputs[1]).is_const()) return "B is computed";
  if (beta != 1 && n.has_input(2) && !c.graph.value(n.inputs[2]).is_const()) return "C is computed";
  return std::isfinite(alpha) && std::isfinite(beta) ? "" : "a factor is not finite";
}

ValueId plain_gemm(RuleContext& c) {
  const Node& n = *c.match.root;
  std::vector<ValueId> inputs = n.inputs;
  const auto times = [&](size_t i, float factor) {
    if (factor == 1 || !n.has_input(i)) return;
    const Tensor& t = *c.graph.value(inputs[i]).data;
    std::vector<double> v = to_doubles(t);
    for (double& e : v) e *= static_cast<double>(factor);
    inputs[i] = c.trial.constant("scaled", from_doubles(t.dtype(), t.shape(), v));
  };
  times(1, n.get_float("alpha", 1));
  times(2, n.get_float("beta", 1));
  ir::AttrMap attrs = n.attrs;
  attrs.erase("alpha");
  attrs.erase("beta");
  return c.trial.value("Gemm", inputs, attrs);
}

// The target of the Reshape behind the Gemm, with N in its last place exchanged for K.
std::optional<std::vector<int64_t>> rows_target(const RuleContext& c, int64_t k) {
  const ir::Value& shape = c.graph.value(c.match.root->inputs[1]);
  if (!shape.is_const()) return std::nullopt;
  std::vector<int64_t> target = shape.data->to_i64();
  if (target.size() < 2) return std::nullopt;
  if (c.match.root->get_int("allowzero", 0) != 0)
    for (const int64_t d : target)
      if (d == 0) return std::nullopt;  // a zero that means zero
  for (size_t i = 0; i < target.size(); ++i)
    if (target[i] == 0 && i > 0) return std::nullopt;  // copies a dimension that the rows don't have
  if (static_dim(c.result_type(), -1) != static_dim(c.type("g"), 1)) return std::nullopt;
  if (target.back() == -1) {
    for (const int64_t d : target)
      if (d == 0) return std::nullopt;
  }
  target.back() = k;
  return target;
}

std::string is_rows_product(const RuleContext& c) {
  const Linear l = linear_of(c, "g");
  if (!l.why_not.empty()) return l.why_not;
  if (l.node->get_int("transA", 0) != 0) return "A is transposed";
  const int64_t k = l.node->get_int("transB", 0) != 0 ? l.weights->dim(1) : l.weights->dim(0);
  return rows_target(c, k) ? "" : "the Reshape does more than restore leading dimensions";
}

ValueId rows_product(RuleContext& c) {
  const Linear l = linear_of(c, "g");
  const bool transposed = l.node->get_int("transB", 0) != 0;
  const int64_t k = transposed ? l.weights->dim(1) : l.weights->dim(0);
  ValueId w = l.node->inputs[1];
  if (transposed) {
    const std::vector<double> from = to_doubles(*l.weights);
    std::vector<double> to(from.size());
    const auto rows = static_cast<size_t>(k), cols = static_cast<size_t>(l.channels);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < cols; ++j) to[i * cols + j] = from[j * rows + i];
    w = c.trial.constant(c.graph.value(w).name, from_doubles(l.weights->dtype(), {k, l.channels}, to));
  }
  const ValueId r = c.trial.value("Reshape", {l.node->inputs[0], c.trial.ints("shape", *rows_target(c, k))});
  const ValueId y = c.trial.value("MatMul", {r, w});
  return l.bias != nullptr ? c.trial.value("Add", {y, l.node->inputs[2]}) : y;
}

Pattern conv_like() {
  return any_of({op("Conv", {x, constant()}).more_inputs().as("l"),
                 op("ConvTranspose", {x, constant()}).more_inputs().as("l"),
                 op("Gemm", {x, constant()}).more_inputs().as("l"), op("MatMul", {x, constant()}).as("l")});
}

}  // namespace

const Rules& linear_rules() {
  constexpr Numerics kClose = Numerics::kReassociates;
  const Pattern k = constant("k");
  static const Rules rules = {
      {"gemm_factors", "alpha and beta of Gemm into its constants", kClose,
       op("Gemm", {x, any()}).more_inputs(), has_factors, plain_gemm},
      {"gemm_rows", "Gemm on merged leading dimensions -> MatMul, Add on the original shape", kClose,
       op("Reshape", {op("Gemm", {any(), constant()}).more_inputs().as("g"), constant()}), is_rows_product,
       rows_product},
      {"batch_norm_fold", "BatchNormalization into the weights in front of it", kClose,
       op("BatchNormalization", {conv_like()}).more_inputs(), folds_batch_norm, fold_batch_norm},
      {"batch_norm_affine", "BatchNormalization elsewhere -> Mul, Add", kClose,
       op("BatchNormalization", {x}).more_inputs(), splits_batch_norm, split_batch_norm},
      {"scale_fold", "Mul, Div by a constant per channel into the weights in front of it", kClose,
       any_of({op("Mul", {conv_like(), k}), op("Div", {conv_like(), k})}), folds_constant, fold_factor},
      {"bias_scale_fold", "the same behind the bias of a MatMul", kClose,
       any_of({op("Mul", {op("Add", {conv_like(), constant("b")}), k}),
               op("Div", {op("Add", {conv_like(), constant("b")}), k})}),
       factor_passes_bias, factor_into_both},
      {"bias_fold", "Add, Sub of a constant per channel into the bias in front of it", kClose,
       any_of({op("Add", {conv_like(), k}), op("Sub", {conv_like(), k})}), folds_addend, fold_addend},
  };
  return rules;
}

}  // namespace hone::optimize
