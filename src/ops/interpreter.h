// Runs a graph on reference kernels: the `ref` backend and, without rounding, the oracle that decides who is
// right.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hone/tensor.h"
#include "ir/graph.h"
#include "ops/op.h"

namespace hone::ops {

struct InterpretOptions {
  bool oracle = false;  ///< floats in f64, nothing rounded; outputs come back as f64
  /// Called after each node with its outputs (taps, statistics, verification). Fused layers report their own
  /// outputs only.
  std::function<void(const ir::Node&, const std::vector<Tensor>&)> observe;
};

/// Inputs and results in the order of graph.inputs() and graph.outputs(). Tensors are dropped after their
/// last use. Errors: kInvalidArgument for inputs that do not match; kInvalidData, kUnsupported from kernels,
/// naming the node.
std::vector<Tensor> interpret(const ir::Graph& graph, const std::vector<Tensor>& inputs,
                              const InterpretOptions& options = {});

/// One node alone (a fused layer through its body). `allocate` as in KernelContext. Widening and rounding of
/// narrow floats is done here.
std::vector<Tensor> run_node(const ir::Graph& graph, const ir::Node& node,
                             const std::vector<const Tensor*>& inputs, bool oracle = false,
                             const std::function<Tensor(size_t, DType, const Shape&)>& allocate = {});

/// A kernel by operator name, without a graph: what the ref tactic and folding use. `out_dtypes` as in
/// KernelContext.
std::vector<Tensor> run_op(const OpDef& op, const AttrMap& attrs, const std::vector<const Tensor*>& inputs,
                           const std::vector<DType>& out_dtypes, bool oracle = false,
                           const ErrorContext* where = nullptr,
                           const std::function<Tensor(size_t, DType, const Shape&)>& allocate = {});

/// Copies with conversion: to f64 for the oracle, with rounding (nearest even, saturating as Cast does) to
/// any dtype.
Tensor convert(const Tensor& t, DType to);

}  // namespace hone::ops
