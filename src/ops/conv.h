// What Conv and ConvTranspose share.
#pragma once

#include <vector>

#include "ops/op.h"
#include "ops/window.h"

namespace hone::ops {

/// All elements as doubles: for biases and other small vectors.
std::vector<double> to_doubles(const Tensor& t);

/// Ranks, groups, channels and bias fit together; fails naming what does not.
void check_conv_operands(const KernelContext& ctx, const Tensor& x, const Tensor& weights, bool transposed);

}  // namespace hone::ops
