// What If, Loop and Scan share: types in and out of a body, stacking of per-iteration results.
#pragma once

#include <memory>
#include <vector>

#include "ops/op.h"

namespace hone::ops {

/// The graph attribute, or fail.
std::shared_ptr<ir::Graph> body_of(InferContext& ctx, std::string_view attr);
const ir::Graph& body_of(const KernelContext& ctx, std::string_view attr);

/// Gives the body's captured values the types and contents of the node's trailing inputs.
void type_captures(InferContext& ctx, ir::Graph& body);
/// Types the body's formal inputs and infers it afresh.
void infer_body(InferContext& ctx, ir::Graph& body, const std::vector<TypeInfo>& inputs);

/// What holds of both types: equal dimensions stay, others become fresh symbols, unequal ranks make the shape
/// unknown.
TypeInfo join_types(InferContext& ctx, const TypeInfo& a, const TypeInfo& b);

/// Infers a body whose first `carried` formal inputs are fed back from outputs [first_output, first_output +
/// carried): widens their types until they hold in every iteration. `inputs` are the types of all formal
/// inputs; returns the carried types found.
std::vector<TypeInfo> infer_carried(InferContext& ctx, ir::Graph& body, std::vector<TypeInfo> inputs,
                                    size_t first_input, size_t carried, size_t first_output);

/// Collects one tensor an iteration and stacks them along a new axis.
class Stack {
 public:
  explicit Stack(const KernelContext& ctx) : ctx_(ctx) {}
  void push(Tensor t);
  /// The result with the new dimension at `axis` (of the result's rank), in reverse order if asked. Without
  /// any iteration the element's shape comes from the inferred type: unknown dimensions count 0.
  Tensor finish(int64_t axis, bool reverse, const TypeInfo& element, DType dtype) const;

 private:
  const KernelContext& ctx_;
  std::vector<Tensor> parts_;
  int64_t bytes_ = 0;
};

}  // namespace hone::ops
