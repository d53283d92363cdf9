// Padding joins what pads itself; means over the picture become pooling.
//
// What, when: Pad of spatial dimensions by a constant, in front of Conv (zeros), MaxPool (-inf, the
// neutral element: a pad of zeros is NOT what MaxPool pads with) and AveragePool (zeros, counted). The
// consumer must have explicit pads, and no ceil_mode, whose last window would be cut differently.
// ReduceMean over exactly the spatial dimensions of a rank 4 or higher tensor is GlobalAveragePool.
// Why: the padded copy of the tensor is never written.
// Example: Conv(Pad(x, [0,0,1,1, 0,0,1,1])) {pads = [0,0,0,0]} becomes Conv(x) {pads = [1,1,1,1]}
#include <cmath>

#include "optimize/rules/rules.h"
#include "optimize/shapes.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::any_of;
using ir::Node;
using ir::op;
using ir::Pattern;
using ir::ValueId;

const Pattern x = any("x");

// Pads of every dimension, begins then ends; nullopt unless constant and mode "constant".
std::optional<std::vector<int64_t>> pads_of(const RuleContext& c, int rank) {
  const Node& pad = c.node("pad");
  if (pad.get_string("mode", "constant") != "constant" || !pad.has_input(1)) return std::nullopt;
  const auto given = const_ints(c.graph, pad.inputs[1]);
  if (!given) return std::nullopt;
  if (!pad.has_input(3)) return given->size() == static_cast<size_t>(2 * rank) ? given : std::nullopt;
  const auto axes = const_ints(c.graph, pad.inputs[3]);
  if (!axes || given->size() != 2 * axes->size()) return std::nullopt;
  std::vector<int64_t> all(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t a = (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    if (a < 0 || a >= rank) return std::nullopt;
    all[static_cast<size_t>(a)] = (*given)[i];
    all[static_cast<size_t>(a + rank)] = (*given)[i + axes->size()];
  }
  return all;
}

// The value that is padded with; nullopt when it is computed.
std::optional<double> pad_value(const RuleContext& c) {
  const Node& pad = c.node("pad");
  if (!pad.has_input(2)) return 0.0;
  const ir::Value& v = c.graph.value(pad.inputs[2]);
  return v.is_const() && v.data->numel() == 1 ? std::optional<double>(v.data->at(0)) : std::nullopt;
}

std::string joins(const RuleContext& c, double neutral) {
  const Node& n = *c.match.root;
  if (!c.type("x").shape) return "the rank is unknown";
  const int rank = c.type("x").rank();
  if (n.get_string("auto_pad", "NOTSET") != "NOTSET") return "auto_pad";
  if (n.get_int("ceil_mode", 0) != 0) return "ceil_mode";
  const auto pads = pads_of(c, rank);
  if (!pads) return "pads are not constant, or not of mode constant";
  for (int i = 0; i < rank; ++i) {
    const int64_t begin = (*pads)[static_cast<size_t>(i)], end = (*pads)[static_cast<size_t>(i + rank)];
    if (begin < 0 || end < 0) return "a pad crops";
    if (i < 2 && (begin != 0 || end != 0)) return "batch or channels are padded";
  }
  const auto value = pad_value(c);
  if (!value || *value != neutral) return "the pad value is not the neutral element";
  return "";
}

std::string joins_zero(const RuleContext& c) { return joins(c, 0.0); }

// A written zero times an infinite weight is NaN, an implied one is nothing.
std::string joins_conv(const RuleContext& c) {
  if (const std::string why = joins_zero(c); !why.empty()) return why;
  const ir::Value& w = c.graph.value(c.match.root->inputs[1]);
  if (!w.is_const()) return "the weights are computed";
  for (const double v : to_doubles(*w.data))
    if (!std::isfinite(v)) return "a weight is not finite";
  return "";
}

std::string joins_max(const RuleContext& c) {
  if (!is_float(c.type("x").dtype)) return "not a floating type";
  if (c.match.root->get_int("storage_order", 0) != 0) return "storage order";
  return joins(c, -INFINITY);
}

std::string joins_average(const RuleContext& c) {
  const Node& n = *c.match.root;
  bool padded = false;
  for (const int64_t p : n.get_ints("pads")) padded = padded || p != 0;
  if (padded && n.get_int("count_include_pad", 0) == 0)
    return "the pool leaves its own pads out of the count";
  return joins_zero(c);
}

ir::AttrMap padded(const RuleContext& c) {
  const int rank = c.type("x").rank(), spatial = rank - 2;
  ir::AttrMap attrs = c.match.root->attrs;
  std::vector<int64_t> pads = c.match.root->get_ints("pads");
  pads.resize(static_cast<size_t>(2 * spatial), 0);
  const auto more = *pads_of(c, rank);
  for (int i = 0; i < spatial; ++i) {
    pads[static_cast<size_t>(i)] += more[static_cast<size_t>(2 + i)];
    pads[static_cast<size_t>(spatial + i)] += more[static_cast<size_t>(rank + 2 + i)];
  }
  attrs.insert_or_assign("pads", pads);
  return attrs;
}

ValueId padded_node(RuleContext& c) {
  std::vector<ValueId> inputs = c.match.root->inputs;
  inputs[0] = c.at("x");
  return c.trial.value(c.match.root->op, inputs, padded(c));
}

ValueId padded_average(RuleContext& c) {
  ir::AttrMap attrs = padded(c);
  attrs.insert_or_assign("count_include_pad", int64_t{1});
  return c.trial.value("AveragePool", {c.at("x")}, attrs);
}

std::string over_the_picture(const RuleContext& c) {
  const ir::TypeInfo& t = c.type("x");
  if (!t.shape || t.rank() < 4 || !is_float(t.dtype) || t.dtype == DType::kF64)
    return "not a picture of floats";
  const Node& n = *c.match.root;
  if (!n.has_input(1)) return "axes are not given";
  const auto axes = node_axes(c.graph, n, 1, t.rank());
  if (!axes || axes->size() != static_cast<size_t>(t.rank() - 2) || axes->front() != 2)
    return "not over the spatial dimensions";
  if (n.get_int("keepdims", 1) == 0 &&
      (!c.result_type().shape || !reshape_target(nullptr, *c.result_type().shape)))
    return "the shape cannot be written as a constant";
  return "";
}

ValueId global_average(RuleContext& c) {
  const ValueId y = c.trial.value("GlobalAveragePool", {c.at("x")});
  if (c.match.root->get_int("keepdims", 1) != 0) return y;
  return c.trial.value("Reshape",
                       {y, c.trial.ints("shape", *reshape_target(nullptr, *c.result_type().shape))});
}

Pattern pad() { return op("Pad", {x}).more_inputs().as("pad"); }

}  // namespace

const Rules& pool_rules() {
  static const Rules rules = {
      {"pad_conv", "Pad with zeros in front of Conv", Numerics::kExact, op("Conv", {pad()}).more_inputs(),
       joins_conv, padded_node},
      {"pad_max_pool", "Pad with -inf in front of MaxPool", Numerics::kExact, op("MaxPool", {pad()}),
       joins_max, padded_node},
      {"pad_average_pool", "Pad with zeros in front of AveragePool", Numerics::kExact,
       op("AveragePool", {pad()}), joins_average, padded_average},
      {"global_average_pool", "ReduceMean over the picture -> GlobalAveragePool", Numerics::kReassociates,
       op("ReduceMean", {x}).more_inputs(), over_the_picture, global_average},
  };
  return rules;
}

}  // namespace hone::optimize
