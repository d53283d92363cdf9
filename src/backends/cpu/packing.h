// Packings of constants: the order in which a kernel streams its weights. A packing's name carries every
// parameter, so that packed bytes can be turned back into the plain weight (the reference on an engine,
// inspect) without anything else.
#pragma once

#include <string>

#include "backends/cpu/kernels/conv.h"
#include "hone/tensor.h"

namespace hone::backends::cpu {

/// Stem of the packing of a transposed convolution's weights, with the geometry that decides the order of its
/// taps.
std::string deconv_packing(const hone::cpu::ConvShape& shape);

/// The plain weight rewritten; an opaque 1-D u8 or f32 tensor. Errors: kInternal for an unknown packing.
Tensor pack_constant(const std::string& packing, const Tensor& plain);
/// The inverse, exact.
Tensor unpack_constant(const std::string& packing, const Tensor& packed, DType dtype, const Shape& dims);

}  // namespace hone::backends::cpu
