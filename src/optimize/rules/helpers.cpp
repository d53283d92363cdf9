#include <algorithm>

#include "ops/interpreter.h"
#include "optimize/rules/rules.h"

namespace hone::optimize {

bool all_equal(const Tensor& t, double v) {
  for (int64_t i = 0; i < t.numel(); ++i)
    if (t.at(i) != v) return false;
  return true;
}

std::vector<double> to_doubles(const Tensor& t) {
  const int64_t n = t.numel();
  std::vector<double> out(static_cast<size_t>(n));
  if (t.dtype() == DType::kF32) {
    const auto* p = t.data<float>();
    std::copy(p, p + n, out.begin());
  } else {
    for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] = t.at(i);
  }
  return out;
}

Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values) {
  if (dtype == DType::kF32) {
    Tensor t(dtype, shape);
    for (size_t i = 0; i < values.size(); ++i) t.data<float>()[i] = static_cast<float>(values[i]);
    return t;
  }
  const Tensor wide = Tensor::of<double>(DType::kF64, shape, values);
  return dtype == DType::kF64 ? wide : ops::convert(wide, dtype);
}

PerChannel per_channel(const Tensor& t, const ir::TypeInfo& to, int axis) {
  if (!to.shape) return {{}, "the rank is unknown"};
  const int rank = to.rank();
  const int64_t channels = static_dim(to, axis);
  if (channels < 0) return {{}, "the number of channels is not static"};
  if (t.rank() > rank) return {{}, "the constant has a higher rank than the result"};
  if (t.numel() == 1) return {std::vector<double>(static_cast<size_t>(channels), t.at(0)), ""};
  for (int i = 0; i < t.rank(); ++i) {
    const int dim = rank - t.rank() + i;
    if (t.dim(i) != (dim == axis ? channels : 1))
      return {{}, "the constant " + t.type_text() + " does not act per channel"};
  }
  if (t.numel() != channels) return {{}, "the constant " + t.type_text() + " does not act per channel"};
  return {to_doubles(t), ""};
}

}  // namespace hone::optimize
