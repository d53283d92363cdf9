// Rounding and ranges that the quantised operators share.
#pragma once

#include <utility>

#include "hone/dtype.h"

namespace hone::ops {

/// Lowest and highest value of an integer type of up to 32 bits.
std::pair<double, double> integer_range(DType t);
/// x rounded to f32, f16 or bf16; other types leave it.
double round_to(DType t, double x);

}  // namespace hone::ops
