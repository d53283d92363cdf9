// What an operator is: schema, adapters from older opsets, shape inference, reference kernel, cost. One file
// an operator (or a family that shares its kernel), one row in ops.inc; every other part of the program finds
// operators through find_op().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hone/error.h"
#include "hone/tensor.h"
#include "ir/graph.h"

namespace hone::ops {

using ir::AttrMap;
using ir::Dim;
using ir::Dims;
using ir::TypeInfo;

/// Shape and type inference of one node. Math and rules: the ONNX text of the IR's opset.
/// Errors: `fail` throws kInvalidModel with the node's context; unknown input types or ranks are legal and
/// give unknown outputs.
class InferContext {
 public:
  InferContext(ir::Graph& graph, ir::Node& node) : graph_(graph), node_(node) {}

  ir::Graph& graph() { return graph_; }
  const ir::Node& node() const { return node_; }
  ir::Node& mutable_node() { return node_; }  ///< inference of If/Loop/Scan descends into subgraphs
  size_t num_inputs() const { return node_.inputs.size() - static_cast<size_t>(node_.num_captures); }
  size_t num_outputs() const { return node_.outputs.size(); }
  bool has_input(size_t i) const { return i < num_inputs() && node_.inputs[i] != ir::kNoValue; }
  bool has_output(size_t i) const { return i < num_outputs() && node_.outputs[i] != ir::kNoValue; }

  /// Type of an input; an absent input or unknown type gives kUndefined and no shape.
  const TypeInfo& input(size_t i) const;
  DType dtype(size_t i) const { return input(i).dtype; }
  bool has_shape(size_t i) const { return input(i).shape.has_value(); }
  const Dims& shape(size_t i) const { return *input(i).shape; }  ///< REQUIRES has_shape(i)
  /// Constant contents of an input, or nullptr.
  const Tensor* constant(size_t i) const;
  /// Integer contents of an input as dimensions, where known (constants included); else nullopt.
  std::optional<Dims> contents(size_t i) const;
  /// The same where every element is a known integer.
  std::optional<std::vector<int64_t>> const_ints(size_t i) const;

  /// Sets an output; merges with what is declared (a contradiction fails, naming both).
  void set_output(size_t i, DType dtype, std::optional<Dims> shape);
  void set_output(size_t i, const TypeInfo& type) { set_output(i, type.dtype, type.shape); }
  /// Contents of an integer output (shape arithmetic); at most kMaxContents elements are kept.
  void set_contents(size_t i, Dims contents);
  /// A symbol for a dimension that depends on data. Where an output already has a dimension there, that one
  /// stays (set_output).
  Dim fresh_symbol();

  /// Axis in [-rank, rank) made non-negative; fails otherwise.
  int axis(int64_t axis, int rank) const;
  std::vector<int> axes(const std::vector<int64_t>& axes,
                        int rank) const;  ///< each as above, duplicates fail
  /// NumPy broadcasting with symbols: equal symbols are equal; a symbol against an integer above 1 gives the
  /// integer; two different symbols give max(a,b) checked when they are bound.
  Dims broadcast(const Dims& a, const Dims& b) const;
  [[noreturn]] void fail(const std::string& message,
                         std::source_location where = std::source_location::current()) const;

  static constexpr size_t kMaxContents = 1024;

 private:
  ir::Graph& graph_;
  ir::Node& node_;
  Dims fresh_;  ///< symbols made by this inference
};

/// One execution of a reference kernel.
/// Arithmetic: products and sums in f64 in a fixed order, transcendentals in f64, rounded once to the
/// output's type; the same bits on every ISA and for every number of threads. In oracle mode every float
/// tensor is f64 and nothing is rounded.
class KernelContext {
 public:
  const AttrMap& attrs;
  /// nullptr for an absent optional input.
  std::span<const Tensor* const> inputs;
  /// Dtypes of the outputs (f64 for floats in oracle mode); kUndefined for an absent output.
  std::span<const DType> out_dtypes;
  bool oracle = false;
  /// Where outputs go; empty: fresh memory. Gets index, dtype, shape; may return a view of planned memory.
  std::function<Tensor(size_t, DType, const Shape&)> allocate;
  std::vector<Tensor> outputs;
  /// Runs a subgraph attribute with the given inputs (formal inputs; captures are supplied by the
  /// interpreter).
  std::function<std::vector<Tensor>(const ir::Graph&, std::vector<Tensor>)> run_subgraph;
  const ErrorContext* where = nullptr;

  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  const Tensor& in(size_t i) const { return *inputs[i]; }
  bool wants(size_t i) const { return i < out_dtypes.size() && out_dtypes[i] != DType::kUndefined; }
  /// Allocates output i with its declared dtype, or the one given.
  Tensor& out(size_t i, const Shape& shape);
  Tensor& out(size_t i, DType dtype, const Shape& shape);
  /// Sets output i to a tensor that shares another's bytes (Identity, Reshape).
  void set_out(size_t i, Tensor tensor);
  int axis(int64_t axis, int rank) const;
  /// Run-time contents are wrong (index out of range, shapes that do not broadcast): throws kInvalidData with
  /// the node's context.
  [[noreturn]] void fail(const std::string& message,
                         std::source_location where = std::source_location::current()) const;
  int64_t get_int(std::string_view n, int64_t d) const { return ir::attr_int(attrs, n, d); }
  float get_float(std::string_view n, float d) const { return ir::attr_float(attrs, n, d); }
  std::string get_string(std::string_view n, std::string_view d) const {
    return ir::attr_string(attrs, n, d);
  }
  std::vector<int64_t> get_ints(std::string_view n, std::vector<int64_t> d = {}) const {
    return ir::attr_ints(attrs, n, std::move(d));
  }
};

/// How the interpreter hands narrow floats (f16, bf16, f8, f4) to a kernel.
enum class NarrowFloats : uint8_t {
  kWiden,   ///< default: narrow float inputs arrive as f32 (f64 in oracle mode), f32 outputs are rounded to
            ///< the node's type afterwards
  kNative,  ///< the kernel takes every dtype of the schema itself: data movement by element size, Cast,
            ///< quantisation
};

/// Work of one node, for the tuner, the ledger and the roofline.
struct Cost {
  double flops = 0;  ///< floating-point operations, a multiply-add counting two
  double transcendentals = 0;
};

/// Rewrites a node written for an older opset so that it means the same at the IR's opset. Called once with
/// the newest schema version not above the model's opset; may insert nodes before it through the graph.
struct AdaptContext {
  ir::Graph& graph;
  ir::Node& node;
  int since;  ///< schema version the node was written for
  [[noreturn]] void fail(const std::string& message,
                         std::source_location where = std::source_location::current()) const;
  /// A constant int64 vector input (axes, sizes) made from values.
  ir::ValueId ints(const std::string& name, const std::vector<int64_t>& values);
};

struct OpDef {
  const char* domain = "";
  const char* name = "";
  void (*infer)(InferContext&) = nullptr;
  void (*kernel)(KernelContext&) = nullptr;
  /// nullptr: every older schema version means the same on the attributes and inputs that it has.
  void (*adapt)(AdaptContext&) = nullptr;
  Cost (*cost)(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs) = nullptr;
  NarrowFloats narrow = NarrowFloats::kWiden;
  /// Same inputs, same outputs: may be folded and merged. False for Random*, Dropout in training, ...
  bool deterministic = true;
  /// Each output element depends on the elements at the same (broadcast) position alone: may join a pointwise
  /// program.
  bool elementwise = false;
};

/// nullptr when unknown. Domain "ai.onnx" equals "".
const OpDef* find_op(std::string_view domain, std::string_view name);
std::span<const OpDef* const> all_ops();

/// Rows of ops.inc declare `const OpDef& op_<Name>()`; an op's file defines it.
/// Default cost of a data-movement or elementwise op: one operation an output element.
Cost elementwise_cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs);

}  // namespace hone::ops
