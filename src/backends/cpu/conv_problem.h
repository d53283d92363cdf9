// Shared by the convolution tactics: geometry, layouts and preconditions of a Conv problem.
#pragma once

#include "backends/cpu/kernels/conv.h"
#include "backends/tactic.h"

namespace hone::backends::cpu {

/// Sizes, strides, dilations and beginning pads (auto_pad resolved through the destination's size) of a Conv
/// problem of 1 to 3 spatial dimensions.
Support conv_geometry(const Problem& problem, hone::cpu::ConvShape* shape);
/// The same of a ConvTranspose problem.
Support transposed_geometry(const Problem& problem, hone::cpu::ConvShape* shape);
/// Channels-last for data, result and full-size post-op operands.
void conv_layouts(Problem& problem);
/// What every f32 convolution tactic needs: types, constant weights, layouts, post-ops.
Support conv_supports(const Problem& problem);

}  // namespace hone::backends::cpu
