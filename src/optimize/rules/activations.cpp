// Activations that exporters spell out become one operator.
//
// What: the formulas below, in any order and association of their products.
// When: every constant is the right one to about one unit in its last place (1.41 is not the square root
// of 2), and nothing inside the formula is used elsewhere. Clip after Clip (Relu being a Clip from 0) is
// one Clip whose bounds are the first's bounds seen through the second, in that order: Relu then
// Clip(-5,-1) is constantly -1, the other way round constantly 0.
// Why: one pass over memory instead of five, and a layer can take an activation as its post-op.
// Example: x * 0.5 * (1 + Erf(x / 1.4142135)) becomes Gelu(x)
#include <cmath>
#include <limits>

#include "optimize/rules/rules.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::constant;
using ir::kNoValue;
using ir::Node;
using ir::num;
using ir::op;
using ir::Pattern;
using ir::product;
using ir::ValueId;

const Pattern x = any("x");
const double kSqrt2 = std::sqrt(2.0);
const double kSqrt2OverPi = std::sqrt(2.0 / 3.14159265358979323846);
constexpr double kGeluCube = 0.044715;

std::string is_floating(const RuleContext& c) {
  return is_float(c.type("x").dtype) ? "" : "not a floating type";
}

Pattern add(Pattern a, Pattern b) { return op("Add", {std::move(a), std::move(b)}); }
Pattern pow(const Pattern& a, double e) { return op("Pow", {a, num(e)}); }

Pattern gelu_erf() { return product({x, num(0.5), add(op("Erf", {product({x, num(1 / kSqrt2)})}), num(1))}); }

// x + 0.044715 x^3, or x (1 + 0.044715 x^2)
Pattern gelu_tanh() {
  const Pattern cube = any_of({product({num(kGeluCube), pow(x, 3)}), product({num(kGeluCube), x, x, x}),
                               product({num(kGeluCube), pow(x, 2), x})});
  const Pattern square = any_of({product({num(kGeluCube), pow(x, 2)}), product({num(kGeluCube), x, x})});
  const Pattern inner = any_of(
      {product({num(kSqrt2OverPi), add(x, cube)}), product({num(kSqrt2OverPi), x, add(num(1), square)})});
  return product({x, num(0.5), add(op("Tanh", {inner}), num(1))});
}

ValueId gelu(RuleContext& c) { return c.trial.value("Gelu", {c.at("x")}); }
ValueId gelu_approximate(RuleContext& c) {
  return c.trial.value("Gelu", {c.at("x")}, {{"approximate", std::string("tanh")}});
}

ValueId swish(RuleContext& c) { return c.trial.value("Swish", {c.at("x")}); }
std::string scalar_alpha(const RuleContext& c) {
  if (c.data("a").numel() != 1) return "alpha is not one number";
  return is_floating(c);
}
ValueId swish_alpha(RuleContext& c) {
  return c.trial.value("Swish", {c.at("x")}, {{"alpha", static_cast<float>(c.data("a").at(0))}});
}

ValueId mish(RuleContext& c) { return c.trial.value("Mish", {c.at("x")}); }
ValueId hard_swish(RuleContext& c) { return c.trial.value("HardSwish", {c.at("x")}); }

Pattern clip06(const Pattern& in) {
  return any_of({op("Clip", {in, num(0), num(6)}), op("Min", {op("Relu", {in}), num(6)}),
                 op("Min", {op("Max", {in, num(0)}), num(6)})});
}

std::string is_sixth(const RuleContext& c) {
  const Node& h = c.node("h");
  const bool sixth = h.get_float("alpha", 0.2F) == 1.0F / 6.0F && h.get_float("beta", 0.5F) == 0.5F;
  return sixth ? is_floating(c) : "not clip(x/6 + 1/2, 0, 1)";
}

ValueId hard_sigmoid(RuleContext& c) {
  return c.trial.value("HardSigmoid", {c.at("x")}, {{"alpha", 1.0F / 6.0F}, {"beta", 0.5F}});
}

ValueId relu(RuleContext& c) { return c.trial.value("Relu", {c.at("x")}); }

// --- bounds ---

struct Bounds {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
  bool known = true;
  double clamp(double v) const { return std::fmin(std::fmax(v, lo), hi); }
};

Bounds bounds_of(const ir::Graph& graph, const Node& n) {
  Bounds b;
  if (n.is("Relu")) {
    b.lo = 0;
    return b;
  }
  const auto read = [&](size_t i, double* to) {
    if (!n.has_input(i)) return;
    const ir::Value& v = graph.value(n.inputs[i]);
    if (!v.is_const() || v.data->numel() != 1 || std::isnan(v.data->at(0))) {
      b.known = false;
    } else {
      *to = v.data->at(0);
    }
  };
  read(1, &b.lo);
  read(2, &b.hi);
  if (b.lo > b.hi) b.lo = b.hi;  // ONNX: the maximum wins
  return b;
}

std::string is_relu(const RuleContext& c) {
  const Bounds b = bounds_of(c.graph, *c.match.root);
  if (!b.known || b.lo != 0) return "the lower bound is not 0";
  return std::isinf(b.hi) ? is_floating(c) : "has an upper bound";
}

std::string merges(const RuleContext& c) {
  if (!bounds_of(c.graph, c.node("y")).known || !bounds_of(c.graph, *c.match.root).known)
    return "bounds are not constant";
  return is_floating(c);
}

ValueId merged_clip(RuleContext& c) {
  const Bounds first = bounds_of(c.graph, c.node("y"));
  const Bounds second = bounds_of(c.graph, *c.match.root);
  const DType t = c.type("x").dtype;
  const double lo = second.clamp(first.lo), hi = second.clamp(first.hi);
  if (lo == 0 && std::isinf(hi)) return c.trial.value("Relu", {c.at("x")});
  std::vector<ValueId> inputs = {c.at("x"), kNoValue, kNoValue};
  if (!std::isinf(lo)) inputs[1] = c.trial.constant("min", from_doubles(t, {}, {lo}));
  if (!std::isinf(hi)) inputs[2] = c.trial.constant("max", from_doubles(t, {}, {hi}));
  while (inputs.back() == kNoValue) inputs.pop_back();
  return c.trial.value("Clip", inputs);
}

std::string bounded(const RuleContext& c) {
  return c.data("k").numel() == 1 && !std::isnan(c.data("k").at(0)) ? is_floating(c)
                                                                    : "the bound is not one number";
}

ValueId min_as_clip(RuleContext& c) {
  return c.trial.value("Clip", {c.at("x"), kNoValue, c.trial.constant("max", c.data("k").reshaped({}))});
}
ValueId max_as_clip(RuleContext& c) {
  return c.trial.value("Clip", {c.at("x"), c.trial.constant("min", c.data("k").reshaped({}))});
}

}  // namespace

const Rules& activation_rules() {
  constexpr Numerics kClose = Numerics::kReassociates;
  static const Rules rules = {
      {"gelu_erf", "x/2 (1 + erf(x/sqrt 2)) -> Gelu", kClose, gelu_erf(), is_floating, gelu},
      {"gelu_tanh", "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) -> Gelu, approximate", kClose, gelu_tanh(),
       is_floating, gelu_approximate},
      {"swish_alpha", "x sigmoid(a x) -> Swish", kClose,
       op("Mul", {x, op("Sigmoid", {op("Mul", {x, constant("a")})})}), scalar_alpha, swish_alpha},
      {"swish", "x sigmoid(x) -> Swish", kClose, op("Mul", {x, op("Sigmoid", {x})}), is_floating, swish},
      {"mish", "x tanh(softplus(x)) -> Mish", kClose, op("Mul", {x, op("Tanh", {op("Softplus", {x})})}),
       is_floating, mish},
      {"hard_swish_clip", "x clip(x + 3, 0, 6) / 6 -> HardSwish", kClose,
       product({x, clip06(add(x, num(3))), num(1.0 / 6)}), is_floating, hard_swish},
      {"hard_sigmoid_clip", "clip(x + 3, 0, 6) / 6 -> HardSigmoid", kClose,
       product({clip06(add(x, num(3))), num(1.0 / 6)}), is_floating, hard_sigmoid},
      {"hard_swish", "x HardSigmoid(x, 1/6, 1/2) -> HardSwish", kClose,
       op("Mul", {x, op("HardSigmoid", {x}).as("h")}), is_sixth, hard_swish},
      {"min_clip", "Min with a number -> Clip", Numerics::kExact, op("Min", {x, constant("k")}), bounded,
       min_as_clip},
      {"max_clip", "Max with a number -> Clip", Numerics::kExact, op("Max", {x, constant("k")}), bounded,
       max_as_clip},
      {"clip_merge", "Clip or Relu after Clip or Relu -> Clip", Numerics::kExact,
       any_of({op("Clip", {any_of({op("Clip", {x}).more_inputs().as("y"), op("Relu", {x}).as("y")})})
                   .more_inputs(),
               op("Relu", {any_of({op("Clip", {x}).more_inputs().as("y"), op("Relu", {x}).as("y")})})}),
       merges, merged_clip},
      {"clip_relu", "Clip from 0 -> Relu", Numerics::kExact, op("Clip", {x}).more_inputs(), is_relu, relu},
  };
  return rules;
}

}  // namespace hone::optimize
