// Nodes that change nothing are removed.
//
// What: an operator whose result is its first input, element for element and bit for bit.
// When: the types of input and result are known and equal (so no broadcast, no cast), and the operator is
// neutral by its attributes and constant inputs alone. Never by values that are computed: x*0 and x-x keep
// NaN and stay; a Cast that narrows stays, whatever undoes it later; x + 0 stays for floats, since -0 + 0
// is +0 (but x + -0 and x - 0 go).
// Why: exporters write many of these, and each hides a pattern from the rules that follow.
// Example: %b = Dropout(%a); %c = Relu(%b) becomes %c = Relu(%a)
#include <cmath>

#include "optimize/rules/rules.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::constant;
using ir::Node;
using ir::op;
using ir::Pattern;
using ir::ValueId;

const Pattern x = any("x");

ValueId input(RuleContext& c) { return c.at("x"); }

std::string types_equal(const RuleContext& c) {
  return same_type(c.type("x"), c.result_type()) ? "" : "input and result types are not known to be equal";
}

std::string with(const RuleContext& c, bool neutral, const char* reason) {
  const std::string why = types_equal(c);
  return !why.empty() ? why : neutral ? "" : reason;
}

const Node& root(const RuleContext& c) { return *c.match.root; }

// All elements of constant input i are `v`.
bool input_is(const RuleContext& c, size_t i, double v) {
  if (!root(c).has_input(i)) return false;
  const ir::Value& value = c.graph.value(root(c).inputs[i]);
  return value.is_const() && all_equal(*value.data, v);
}

// An Identity that gives a graph output its name stays: its input is a graph input, a constant, or an output
// itself.
std::string gives_no_name(const RuleContext& c) {
  if (!c.graph.is_output(root(c).outputs[0])) return "";
  return c.value("x").producer != nullptr && !c.graph.is_output(c.at("x"))
             ? ""
             : "a graph output has its name from here";
}

std::string identity_perm(const RuleContext& c) {
  const auto perm = root(c).get_ints("perm");
  bool same = !perm.empty();
  for (size_t i = 0; i < perm.size(); ++i) same = same && perm[i] == static_cast<int64_t>(i);
  const bool rank_1 = c.type("x").shape && c.type("x").rank() <= 1;
  return same || rank_1 ? "" : "the dimensions move";
}

std::string inference_dropout(const RuleContext& c) {
  if (!root(c).has_input(2)) return "";
  const ir::Value& v = c.graph.value(root(c).inputs[2]);
  return v.is_const() && v.data->at(0) == 0 ? "" : "training mode";
}

std::string zero_pads(const RuleContext& c) {
  const auto pads = const_ints(c.graph, root(c).inputs[1]);
  bool zero = pads.has_value();
  if (pads)
    for (const int64_t p : *pads) zero = zero && p == 0;
  return zero ? "" : "pads are not all zero";
}

std::string whole_slice(const RuleContext& c) {
  if (root(c).has_input(4)) {
    const auto steps = const_ints(c.graph, root(c).inputs[4]);
    if (!steps) return "steps are not constant";
    for (const int64_t s : *steps)
      if (s < 0) return "a reversing step";
  }
  return types_equal(c);
}

std::string unit_resize(const RuleContext& c) {
  const Node& n = root(c);
  if (n.get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") return "crops";
  const bool unit_scales = n.has_input(2) && input_is(c, 2, 1.0);
  const bool by_sizes = n.has_input(3) && !n.has_input(2);
  return with(c, unit_scales || by_sizes, "scales are not all 1");
}

std::string neutral(const RuleContext& c) {
  const ir::Value& k = c.graph.value(c.at("k"));
  const std::string& name = root(c).op;
  const Tensor& t = *k.data;
  const bool is_bool = t.dtype() == DType::kBool;
  if (!is_float(t.dtype()) && !is_integer(t.dtype()) && !is_bool) return "not a number";
  double wanted = 0;
  if (name == "Mul" || name == "Div" || name == "Pow" || name == "And") wanted = 1;
  if (!all_equal(t, wanted)) return "the constant is not neutral";
  if (is_float(t.dtype()) && (name == "Add" || name == "Sub")) {
    for (int64_t i = 0; i < t.numel(); ++i)
      if (std::signbit(t.at(i)) != (name == "Add")) return "-0 would change sign";
  }
  return types_equal(c);
}

// Every value of `narrow` is a value of `wide`.
bool holds_all(DType wide, DType narrow) {
  if (wide == narrow) return true;
  const auto mantissa = [](DType t) {
    switch (t) {
      case DType::kF64: return 53;
      case DType::kF32: return 24;
      case DType::kF16: return 11;
      case DType::kBF16: return 8;
      default: return 0;
    }
  };
  const bool f16_pair =
      (wide == DType::kF16 && narrow == DType::kBF16) || (wide == DType::kBF16 && narrow == DType::kF16);
  if (mantissa(narrow) > 0) return mantissa(wide) > mantissa(narrow) && !f16_pair;
  const auto bits = [](DType t) { return t == DType::kBool ? 1 : is_integer(t) ? dtype_bits(t) : 0; };
  if (bits(narrow) == 0) return false;
  if (mantissa(wide) > 0) return wide != DType::kF16 ? bits(narrow) <= mantissa(wide) : bits(narrow) <= 8;
  if (bits(wide) == 0 || wide == DType::kBool) return false;
  const bool unsigned_narrow = !is_signed_integer(narrow);
  if (is_signed_integer(wide))
    return bits(wide) > bits(narrow) || (bits(wide) == bits(narrow) && !unsigned_narrow);
  return unsigned_narrow && bits(wide) >= bits(narrow);
}

std::string lossless_round_trip(const RuleContext& c) {
  if (c.type("x").dtype == DType::kUndefined || c.result_type().dtype != c.type("x").dtype)
    return "the types differ";
  return holds_all(c.type("y").dtype, c.type("x").dtype) ? "" : "the inner Cast narrows";
}

std::string all_true(const RuleContext& c) {
  return with(c, input_is(c, 0, 1.0), "the condition is not constantly true");
}

std::string one_input(const RuleContext& c) { return root(c).inputs.size() == 1 ? "" : "several inputs"; }
std::string one_output(const RuleContext& c) {
  return root(c).outputs.size() == 1 ? types_equal(c) : "several outputs";
}
std::string no_bounds(const RuleContext& c) {
  return !root(c).has_input(1) && !root(c).has_input(2) ? "" : "has bounds";
}
std::string unit_repeats(const RuleContext& c) {
  return with(c, input_is(c, 1, 1.0), "repeats are not all 1");
}

Pattern unary(const char* name) { return op(name, {x}).more_inputs(); }

}  // namespace

const Rules& noop_rules() {
  static const Rules rules = {
      {"noop_identity", "Identity", Numerics::kExact, unary("Identity"), gives_no_name, input},
      {"noop_dropout", "Dropout outside training", Numerics::kExact, unary("Dropout"), inference_dropout,
       input},
      {"noop_transpose", "Transpose that moves nothing", Numerics::kExact, unary("Transpose"), identity_perm,
       input},
      {"noop_reshape", "Reshape to the same shape", Numerics::kExact, unary("Reshape"), types_equal, input},
      {"noop_flatten", "Flatten to the same shape", Numerics::kExact, unary("Flatten"), types_equal, input},
      {"noop_squeeze", "Squeeze of no dimension", Numerics::kExact, unary("Squeeze"), types_equal, input},
      {"noop_unsqueeze", "Unsqueeze of no dimension", Numerics::kExact, unary("Unsqueeze"), types_equal,
       input},
      {"noop_expand", "Expand to the same shape", Numerics::kExact, unary("Expand"), types_equal, input},
      {"noop_tile", "Tile once", Numerics::kExact, unary("Tile"), unit_repeats, input},
      {"noop_cast", "Cast to the same type", Numerics::kExact, unary("Cast"), types_equal, input},
      {"noop_cast_pair", "Cast to a wider type and back", Numerics::kExact,
       op("Cast", {op("Cast", {x}).as("y").shared()}), lossless_round_trip, input},
      {"noop_pad", "Pad by nothing", Numerics::kExact, unary("Pad"), zero_pads, input},
      {"noop_slice", "Slice of everything", Numerics::kExact, unary("Slice"), whole_slice, input},
      {"noop_concat", "Concat of one tensor", Numerics::kExact, unary("Concat"), one_input, input},
      {"noop_split", "Split into one piece", Numerics::kExact, unary("Split"), one_output, input},
      {"noop_variadic", "Sum, Max, Min or Mean of one tensor", Numerics::kExact,
       any_of({unary("Sum"), unary("Max"), unary("Min"), unary("Mean")}), one_input, input},
      {"noop_resize", "Resize by 1", Numerics::kExact, unary("Resize"), unit_resize, input},
      {"noop_clip", "Clip without bounds", Numerics::kExact, unary("Clip"), no_bounds, input},
      {"noop_where", "Where on a constant true condition", Numerics::kExact,
       op("Where", {constant(), x, any()}), all_true, input},
      {"noop_arithmetic", "x*1, x/1, x^1, x-0, x + -0, x and true, x or false", Numerics::kExact,
       any_of({op("Mul", {x, constant("k")}), op("Div", {x, constant("k")}), op("Pow", {x, constant("k")}),
               op("Add", {x, constant("k")}), op("Sub", {x, constant("k")}), op("And", {x, constant("k")}),
               op("Or", {x, constant("k")})}),
       neutral, input},
  };
  return rules;
}

}  // namespace hone::optimize
