// What the inference functions of many operators share: types, broadcasting, arithmetic on known integer
// contents.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ops/op.h"

namespace hone::ops {

/// Output 0 has the type of input 0.
void infer_same(InferContext& ctx);
/// Output 0 is the broadcast of all inputs; dtype of input 0, or the one given.
void infer_broadcast(InferContext& ctx);
void infer_broadcast_as(InferContext& ctx, DType dtype);

/// True when the expression cannot be negative, whatever its symbols (which are sizes, hence at least 0).
bool provably_nonneg(const Dim& d);
/// a == b, a < b: decided where both are known well enough.
std::optional<bool> decide_equal(const Dim& a, const Dim& b);
std::optional<bool> decide_less(const Dim& a, const Dim& b);

/// One result element from elements of the inputs; nullopt when it cannot be said.
using ContentsFn = std::function<std::optional<Dim>(const std::vector<Dim>&)>;
/// Contents of output 0 of an elementwise operator, where all inputs' contents are known. REQUIRES output 0
/// set.
void elementwise_contents(InferContext& ctx, const ContentsFn& fn);

/// True for i32, i64 and bool: the dtypes whose contents are followed.
bool follows_contents(DType t);

/// Contents of an input of such a dtype, bool constants included.
std::optional<Dims> known_contents(const InferContext& ctx, size_t i);

/// Contents of output 0 that picks elements of `known` at `offset` + strides * coordinates, for an output of
/// known shape.
void strided_contents(InferContext& ctx, const Dims& known, const std::vector<int64_t>& shape, int64_t offset,
                      const std::vector<int64_t>& strides);

/// A vector input's length, where known.
std::optional<int64_t> vector_length(const InferContext& ctx, size_t i);
/// An element type given by number in an attribute; fails when there is none of that number.
DType checked_dtype(const InferContext& ctx, int64_t number);
/// Fails when a dimension is a negative number, which sizes from a model's constants may be.
Dims checked_dims(const InferContext& ctx, Dims dims);
/// Dims of fresh symbols.
Dims unknown_dims(InferContext& ctx, size_t rank);

}  // namespace hone::ops
