// Softmax that exporters spell out becomes one operator.
//
// What: exp(x - max(x)) / sum(exp(x - max(x))) over one dimension, and log(softmax(x)).
// When: maximum and sum run over the same single dimension and keep it. Without the subtraction of the
// maximum the formula overflows where Softmax doesn't, so that form stays.
// Why: one pass instead of five; attention is recognised by its Softmax.
// Example: Div(Exp(Sub(x, ReduceMax(x))), ReduceSum(...)) becomes Softmax(x)
#include "optimize/rules/rules.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::op;
using ir::Pattern;
using ir::ValueId;

const Pattern x = any("x");

Pattern shifted_exp() {
  return op("Exp", {op("Sub", {x, op("ReduceMax", {x}).more_inputs().as("max")})}).as("e");
}

std::optional<int64_t> one_axis(const RuleContext& c, const ir::Node& n, int rank) {
  const auto axes = node_axes(c.graph, n, 1, rank);
  if (!axes || axes->size() != 1 || n.get_int("keepdims", 1) == 0) return std::nullopt;
  return axes->front();
}

std::string same_axis(const RuleContext& c) {
  if (!c.type("x").shape || !is_float(c.type("x").dtype)) return "type or rank is unknown";
  const int rank = c.type("x").rank();
  const auto a = one_axis(c, c.node("max"), rank), b = one_axis(c, c.node("sum"), rank);
  if (!a || !b) return "not over one kept dimension";
  return *a == *b ? "" : "maximum and sum run over different dimensions";
}

ValueId softmax(RuleContext& c) {
  return c.trial.value("Softmax", {c.at("x")}, {{"axis", *one_axis(c, c.node("max"), c.type("x").rank())}});
}

ValueId log_softmax(RuleContext& c) {
  return c.trial.value("LogSoftmax", {c.at("x")}, {{"axis", c.node("s").get_int("axis", -1)}});
}

}  // namespace

const Rules& softmax_rules() {
  static const Rules rules = {
      {"softmax", "exp(x - max) / sum(exp(x - max)) -> Softmax", Numerics::kReassociates,
       op("Div", {shifted_exp(), op("ReduceSum", {shifted_exp()}).more_inputs().as("sum")}), same_axis,
       softmax},
      {"log_softmax", "log(softmax(x)) -> LogSoftmax", Numerics::kReassociates,
       op("Log", {op("Softmax", {x}).as("s")}), nullptr, log_softmax},
  };
  return rules;
}

}  // namespace hone::optimize
