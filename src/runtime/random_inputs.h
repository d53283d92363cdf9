// Seeded inputs for runs without data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hone/tensor.h"

namespace hone::runtime {

/// Floats normal(0,1), integers uniform in [0, 10), bools fair; input `index` has a stream of its own, so
/// adding an input changes no other. The same bits on every machine (no standard-library distributions).
Tensor random_input(DType dtype, const Shape& shape, uint64_t seed, size_t index);

}  // namespace hone::runtime
