// A small operand read with the shape of a larger one.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace hone::ops {

/// Values of an operand that broadcasts (one way) to a shape: element i of the shape is values[i % period]
/// when the operand covers trailing dimensions alone, which is the usual case, else all are written out
/// (period = number of elements).
struct Spread {
  std::vector<double> values;
  int64_t period = 1;
  double at(int64_t i) const { return values[static_cast<size_t>(i % period)]; }
};

/// Fails, naming the operand, when it does not broadcast to `as` without changing it.
Spread spread_over(const KernelContext& ctx, const char* name, const Tensor& t, const Shape& as);

}  // namespace hone::ops
