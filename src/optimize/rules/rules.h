// The rule tables, one per file of this folder, in the order in which the pipeline runs them.
#pragma once

#include "optimize/rewrite.h"

namespace hone::optimize {

const Rules& noop_rules();        ///< nodes that change nothing
const Rules& view_rules();        ///< Reshape, Squeeze, Unsqueeze, Flatten
const Rules& transpose_rules();   ///< Transpose
const Rules& activation_rules();  ///< activations spelled out
const Rules& softmax_rules();     ///< softmax spelled out
const Rules& norm_rules();        ///< normalisations spelled out
const Rules& pool_rules();        ///< pooling spelled out, Pad into what pads itself
const Rules& linear_rules();      ///< constants folded into Conv, ConvTranspose, Gemm, MatMul weights
const Rules& constant_rules();    ///< constants that follow one another
const Rules& attention_rules();   ///< scaled dot-product attention

// Helpers that several tables use.

/// Every element equals `v`.
bool all_equal(const Tensor& t, double v);
/// Elements in f64.
std::vector<double> to_doubles(const Tensor& t);
/// Rounded to `dtype` (a float type).
Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values);

/// A constant operand that acts per channel of a result of type `to`: extent C along dimension `axis`, 1
/// elsewhere, rank not above the result's; or one element for all. Returns C values, or why not.
struct PerChannel {
  std::vector<double> values;
  std::string why_not;
};
PerChannel per_channel(const Tensor& t, const ir::TypeInfo& to, int axis);

}  // namespace hone::optimize
