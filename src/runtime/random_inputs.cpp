#include "runtime/random_inputs.h"

#include <cmath>
#include <cstring>

#include "hone/error.h"
#include "ops/interpreter.h"

namespace hone::runtime {
namespace {

/// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t next(uint64_t& state) {
  uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

double uniform(uint64_t& state) { return (static_cast<double>(next(state) >> 11) + 0.5) * 0x1p-53; }

/// Sum of twelve uniforms minus 6: mean 0, variance 1, and the same bits everywhere since it only adds.
double normal(uint64_t& state) {
  double sum = -6.0;
  for (int i = 0; i < 12; ++i) sum += uniform(state);
  return sum;
}

}  // namespace

Tensor random_input(DType dtype, const Shape& shape, uint64_t seed, size_t index) {
  uint64_t state = seed * 0x2545F4914F6CDD1DULL + index * 0x9E3779B97F4A7C15ULL + 1;
  if (is_float(dtype)) {
    Tensor t(DType::kF32, shape);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(normal(state));
    return dtype == DType::kF32 ? t : ops::convert(t, dtype);
  }
  if (dtype == DType::kBool || is_integer(dtype)) {
    Tensor t(DType::kI64, shape);
    const uint64_t range = dtype == DType::kBool ? 2 : dtype_bits(dtype) < 5 ? 4 : 10;
    for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = static_cast<int64_t>(next(state) % range);
    return dtype == DType::kI64 ? t : ops::convert(t, dtype);
  }
  throw Error(ErrorCode::kUnsupported,
              std::string("cannot make up inputs of type ") + dtype_name(dtype) + "; give --inputs");
}

}  // namespace hone::runtime
