// Transposes are merged, turned into views, and sunk towards the outputs, where they meet and cancel.
//
// What, when: two in a row are one; one that moves only dimensions of extent 1 is a Reshape; one above an
// operator that acts alike at every position (elementwise, with constants transposed along), or along
// dimensions that can be renamed (reductions, softmax, normalisation over the last dimension, MatMul by a
// constant matrix, Concat and Gather along a dimension), moves below it. Only when nothing else reads the
// transposed tensor, so that no Transpose is ever duplicated. A Transpose of a Gemm operand flips transA
// or transB if it really swaps (the identity permutation doesn't).
// Why: exporters from channels-last frameworks wrap every layer in a pair; attention patterns hide behind
// them; what is between a convolution and a Transpose can join the convolution's layer.
// Example: Relu(Transpose(Conv(x))) becomes Transpose(Relu(Conv(x)))
#include <algorithm>
#include <numeric>

#include "ops/interpreter.h"
#include "ops/op.h"
#include "optimize/rules/rules.h"
#include "optimize/shapes.h"

namespace hone::optimize {
namespace {

using ir::any;
using ir::constant;
using ir::Dims;
using ir::kNoValue;
using ir::Node;
using ir::op;
using ir::Pattern;
using ir::ValueId;

using Perm = std::vector<int64_t>;

const Pattern x = any("x");
const Pattern t = op("Transpose", {x}).as("t");

Perm perm_of(const Node& node, int rank) {
  Perm reversed(static_cast<size_t>(rank));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return node.get_ints("perm", reversed);
}

Perm perm_of_t(const RuleContext& c) { return perm_of(c.node("t"), c.type("x").rank()); }

std::string rank_known(const RuleContext& c) { return c.type("x").shape ? "" : "the rank is unknown"; }

ir::AttrMap with_attr(ir::AttrMap attrs, const char* name, ir::Attr value) {
  attrs.insert_or_assign(name, std::move(value));
  return attrs;
}

// --- merging ---

ValueId merge(RuleContext& c) {
  const Perm p = perm_of_t(c);
  const Perm q = perm_of(*c.match.root, c.type("x").rank());
  Perm both;
  for (const int64_t i : q) both.push_back(p[static_cast<size_t>(i)]);
  return c.trial.value("Transpose", {c.at("x")}, {{"perm", both}});
}

std::string moves_only_ones(const RuleContext& c) {
  if (!c.type("x").shape) return "the rank is unknown";
  const Dims& dims = *c.type("x").shape;
  int64_t last = -1;
  for (const int64_t p : perm_of(*c.match.root, c.type("x").rank())) {
    if (dims[static_cast<size_t>(p)] == ir::Dim(1)) continue;
    if (p < last) return "dimensions other than 1 move";
    last = p;
  }
  if (!c.result_type().shape || !reshape_target(&dims, *c.result_type().shape))
    return "the shape cannot be written as a constant";
  return "";
}

ValueId as_view(RuleContext& c) {
  const auto target = *reshape_target(&*c.type("x").shape, *c.result_type().shape);
  return c.trial.value("Reshape", {c.at("x"), c.trial.ints("shape", target)});
}

// --- Gemm ---

std::string swaps(const RuleContext& c) {
  if (const std::string why = rank_known(c); !why.empty()) return why;
  return perm_of_t(c) == Perm{1, 0} ? "" : "the permutation is not a swap";
}

template <int kInput>
ValueId flip(RuleContext& c) {
  const Node& gemm = *c.match.root;
  const char* name = kInput == 0 ? "transA" : "transB";
  std::vector<ValueId> inputs = gemm.inputs;
  inputs[kInput] = c.at("x");
  return c.trial.value("Gemm", inputs, with_attr(gemm.attrs, name, int64_t{1} - gemm.get_int(name, 0)));
}

// --- sinking ---

// Elementwise operators whose other inputs are the same Transpose of something, or constants that can be
// transposed along.
std::string sinks_elementwise(const RuleContext& c) {
  if (const std::string why = rank_known(c); !why.empty()) return why;
  const Node& n = *c.match.root;
  const ops::OpDef* def = ops::find_op(n.domain, n.op);
  if (def == nullptr || !def->elementwise || n.num_captures != 0) return "not elementwise";
  const int rank = c.type("x").rank();
  const Perm p = perm_of_t(c);
  for (const ValueId id : n.inputs) {
    if (id == kNoValue || id == c.at("t")) continue;
    const ir::Value& v = c.graph.value(id);
    if (v.is_const() && v.data->rank() <= rank) continue;
    const bool same = v.producer != nullptr && v.producer->is("Transpose") && c.graph.sole_user(id) == &n &&
                      c.graph.value(v.producer->inputs[0]).type.shape &&
                      c.graph.value(v.producer->inputs[0]).type.rank() == rank &&
                      perm_of(*v.producer, rank) == p;
    if (!same) return "another input is not transposed alike";
  }
  return "";
}

// A constant as it must look above the Transpose: padded with ones to the rank, dimensions moved back.
ValueId transposed_back(RuleContext& c, ValueId id, const Perm& p) {
  const Tensor& k = *c.graph.value(id).data;
  if (k.numel() == 1 && k.rank() == 0) return id;
  Shape padded(p.size() - k.shape().size(), 1);
  padded.insert(padded.end(), k.shape().begin(), k.shape().end());
  Perm inverse(p.size());
  Shape shape(p.size());
  for (size_t i = 0; i < p.size(); ++i) {
    inverse[static_cast<size_t>(p[i])] = static_cast<int64_t>(i);
    shape[static_cast<size_t>(p[i])] = padded[i];
  }
  if (k.numel() == 1) return c.trial.constant(c.graph.value(id).name, k.reshaped(shape));
  const Tensor in = k.reshaped(padded);
  auto out = ops::run_op(*ops::find_op("", "Transpose"), {{"perm", inverse}}, {&in}, {k.dtype()});
  return c.trial.constant(c.graph.value(id).name, std::move(out[0]));
}

ValueId sink_elementwise(RuleContext& c) {
  const Node& n = *c.match.root;
  const Perm p = perm_of_t(c);
  std::vector<ValueId> inputs;
  for (const ValueId id : n.inputs) {
    if (id == kNoValue) {
      inputs.push_back(id);
    } else if (c.graph.value(id).is_const()) {
      inputs.push_back(transposed_back(c, id, p));
    } else {
      inputs.push_back(c.graph.value(id).producer->inputs[0]);
    }
  }
  const ValueId y = c.trial.value(n.op, inputs, n.attrs, n.domain);
  return c.trial.value("Transpose", {y}, {{"perm", p}});
}

std::string sinks_reduction(const RuleContext& c) {
  if (const std::string why = rank_known(c); !why.empty()) return why;
  const Node& n = *c.match.root;
  if (!n.has_input(1)) return "axes are not given";
  return node_axes(c.graph, n, 1, c.type("x").rank()) ? "" : "axes are not constant";
}

ValueId sink_reduction(RuleContext& c) {
  const Node& n = *c.match.root;
  const int rank = c.type("x").rank();
  const Perm p = perm_of_t(c);
  std::vector<int64_t> axes;
  std::vector<bool> reduced(static_cast<size_t>(rank), false);
  const std::vector<int64_t> given = *node_axes(c.graph, n, 1, rank);
  for (const int64_t a : given) {
    axes.push_back(p[static_cast<size_t>(a)]);
    reduced[static_cast<size_t>(axes.back())] = true;
  }
  std::sort(axes.begin(), axes.end());
  std::vector<ValueId> inputs = n.inputs;
  inputs[0] = c.at("x");
  inputs[1] = c.trial.ints("axes", axes);
  const ValueId y = c.trial.value(n.op, inputs, n.attrs);
  if (n.get_int("keepdims", 1) != 0) return c.trial.value("Transpose", {y}, {{"perm", p}});
  Perm kept;  // the permutation of the dimensions that stay, renumbered
  for (const int64_t d : p)
    if (!reduced[static_cast<size_t>(d)])
      kept.push_back(d - std::count(reduced.begin(), reduced.begin() + d, true));
  return c.trial.value("Transpose", {y}, {{"perm", kept}});
}

ValueId sink_axis(RuleContext& c) {  // Softmax, LogSoftmax
  const Node& n = *c.match.root;
  const Perm p = perm_of_t(c);
  const int64_t axis = p[static_cast<size_t>(node_axis(n, c.type("x").rank(), -1))];
  const ValueId y = c.trial.value(n.op, {c.at("x")}, with_attr(n.attrs, "axis", axis));
  return c.trial.value("Transpose", {y}, {{"perm", p}});
}

std::string last_stays(const RuleContext& c) {
  if (const std::string why = rank_known(c); !why.empty()) return why;
  const int rank = c.type("x").rank();
  const Node& n = *c.match.root;
  if (perm_of_t(c).back() != rank - 1) return "the last dimension moves";
  if (n.is("MatMul")) {
    const ir::Value& w = c.graph.value(n.inputs[1]);
    return rank >= 3 && w.is_const() && w.data->rank() == 2 ? "" : "not a product with a constant matrix";
  }
  if (node_axis(n, rank, -1) != rank - 1) return "not over the last dimension";
  for (size_t i = 1; i < n.inputs.size(); ++i) {
    const ir::TypeInfo& s = c.graph.value(n.inputs[i]).type;
    if (!s.shape || s.rank() > 1) return "scale or bias is no vector";
  }
  return "";
}

ValueId sink_last(RuleContext& c) {
  const Node& n = *c.match.root;
  std::vector<ValueId> inputs = n.inputs;
  inputs[0] = c.at("x");
  const ValueId y = c.trial.value(n.op, inputs, n.attrs, n.domain);
  return c.trial.value("Transpose", {y}, {{"perm", perm_of_t(c)}});
}

std::string sinks_concat(const RuleContext& c) {
  if (const std::string why = rank_known(c); !why.empty()) return why;
  const Node& n = *c.match.root;
  const int rank = c.type("x").rank();
  const Perm p = perm_of_t(c);
  for (const ValueId id : n.inputs) {
    const Node* producer = c.graph.value(id).producer;
    if (producer == nullptr || !producer->is("Transpose") || c.graph.sole_user(id) != &n ||
        perm_of(*producer, rank) != p)
      return "an input is not transposed alike";
  }
  return "";
}

ValueId sink_concat(RuleContext& c) {
  const Node& n = *c.match.root;
  const Perm p = perm_of_t(c);
  std::vector<ValueId> inputs;
  for (const ValueId id : n.inputs) inputs.push_back(c.graph.value(id).producer->inputs[0]);
  const int64_t axis = p[static_cast<size_t>(node_axis(n, c.type("x").rank(), 0))];
  const ValueId y = c.trial.value("Concat", inputs, {{"axis", axis}});
  return c.trial.value("Transpose", {y}, {{"perm", p}});
}

// One slice of a transposed tensor: every reader of the Transpose must be of this kind, so that in the end it
// goes.
std::string sinks_gather(const RuleContext& c) {
  if (const std::string why = rank_known(c); !why.empty()) return why;
  for (const ir::Use& use : c.value("t").uses) {
    if (!use.node->is("Gather") || use.index != 0) return "the Transpose has other readers";
    const ir::Value& index = c.graph.value(use.node->inputs[1]);
    if (!index.is_const() || index.data->rank() != 0) return "the index is not one constant number";
  }
  return c.graph.is_output(c.at("t")) ? "the Transpose is an output" : "";
}

ValueId sink_gather(RuleContext& c) {
  const Node& n = *c.match.root;
  const Perm p = perm_of_t(c);
  const int64_t axis = p[static_cast<size_t>(node_axis(n, c.type("x").rank(), 0))];
  const ValueId y = c.trial.value("Gather", {c.at("x"), n.inputs[1]}, {{"axis", axis}});
  Perm kept;
  for (const int64_t d : p)
    if (d != axis) kept.push_back(d > axis ? d - 1 : d);
  return c.trial.value("Transpose", {y}, {{"perm", kept}});
}

std::string sinks_squeeze(const RuleContext& c) {
  if (const std::string why = rank_known(c); !why.empty()) return why;
  const Node& n = *c.match.root;
  return n.has_input(1) && node_axes(c.graph, n, 1, c.type("x").rank()) ? "" : "axes are not constant";
}

ValueId sink_squeeze(RuleContext& c) {
  const Perm p = perm_of_t(c);
  std::vector<int64_t> axes;
  const std::vector<int64_t> given = *node_axes(c.graph, *c.match.root, 1, c.type("x").rank());
  for (const int64_t a : given) axes.push_back(p[static_cast<size_t>(a)]);
  std::sort(axes.begin(), axes.end());
  const ValueId y = c.trial.value("Squeeze", {c.at("x"), c.trial.ints("axes", axes)});
  Perm kept;
  for (const int64_t d : p) {
    if (std::binary_search(axes.begin(), axes.end(), d)) continue;
    kept.push_back(d - (std::lower_bound(axes.begin(), axes.end(), d) - axes.begin()));
  }
  return c.trial.value("Transpose", {y}, {{"perm", kept}});
}

// Any operator with a Transpose among its inputs, at place 0 or 1.
Pattern elementwise_over_t() {
  std::vector<Pattern> ways;
  for (const ops::OpDef* def : ops::all_ops()) {
    if (!def->elementwise) continue;
    ways.push_back(op(def->name, {t}, def->domain).more_inputs());
    ways.push_back(op(def->name, {any(), t}, def->domain).more_inputs());
  }
  return any_of(ways);
}

Pattern each(std::initializer_list<const char*> names, const Pattern& in) {
  std::vector<Pattern> ways;
  for (const char* name : names) ways.push_back(op(name, {in}).more_inputs());
  return any_of(ways);
}

}  // namespace

const Rules& transpose_rules() {
  static const Rules rules = {
      {"transpose_merge", "Transpose after Transpose", Numerics::kExact,
       op("Transpose", {op("Transpose", {x}).as("t").shared()}), rank_known, merge},
      {"transpose_view", "a Transpose that moves only dimensions of extent 1 is a Reshape", Numerics::kExact,
       op("Transpose", {x}), moves_only_ones, as_view},
      {"transpose_gemm_a", "Gemm of a transposed A flips transA", Numerics::kExact,
       op("Gemm", {t}).more_inputs(), swaps, flip<0>},
      {"transpose_gemm_b", "Gemm of a transposed B flips transB", Numerics::kExact,
       op("Gemm", {any(), t}).more_inputs(), swaps, flip<1>},
      {"transpose_sink_elementwise", "Transpose below elementwise operators", Numerics::kExact,
       elementwise_over_t(), sinks_elementwise, sink_elementwise},
      {"transpose_sink_reduction", "Transpose below reductions", Numerics::kReassociates,
       each({"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceL1"}, t),
       sinks_reduction, sink_reduction},
      {"transpose_sink_softmax", "Transpose below Softmax", Numerics::kReassociates,
       each({"Softmax", "LogSoftmax"}, t), rank_known, sink_axis},
      {"transpose_sink_rows",
       "Transpose below what acts on rows: MatMul by a constant, normalisation over the last dimension",
       Numerics::kExact, each({"MatMul", "LayerNormalization", "RMSNormalization"}, t), last_stays,
       sink_last},
      {"transpose_sink_concat", "Transpose below Concat", Numerics::kExact, op("Concat", {t}).more_inputs(),
       sinks_concat, sink_concat},
      {"transpose_sink_gather", "Transpose below Gather of one slice", Numerics::kExact,
       op("Gather", {op("Transpose", {x}).as("t").shared(), any()}), sinks_gather, sink_gather},
      {"transpose_sink_squeeze", "Transpose below Squeeze", Numerics::kExact,
       op("Squeeze", {t}).more_inputs(), sinks_squeeze, sink_squeeze},
  };
  return rules;
}

}  // namespace hone::optimize
