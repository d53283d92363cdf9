// Scalar functions of the elementwise operators, in f64. One definition each: kernels, activations and
// pointwise programs call these. NaN in gives NaN out everywhere (ONNX leaves it open; NumPy's rule).
#pragma once

#include <cmath>

namespace hone::ops {

inline double fn_relu(double x) { return x < 0 ? 0.0 : x; }
inline double fn_leaky_relu(double x, double alpha) { return x < 0 ? alpha * x : x; }
inline double fn_clip(double x, double low, double high) {
  if (x < low) x = low;  // high wins where low > high
  if (x > high) x = high;
  return x;
}
inline double fn_sigmoid(double x) {
  if (x >= 0) return 1.0 / (1.0 + std::exp(-x));
  const double e = std::exp(x);  // no overflow for large negative x
  return e / (1.0 + e);
}
inline double fn_hard_sigmoid(double x, double alpha, double beta) {
  return fn_clip(alpha * x + beta, 0.0, 1.0);
}
inline double fn_hard_swish(double x) { return x * fn_clip(x / 6.0 + 0.5, 0.0, 1.0); }
inline double fn_swish(double x, double alpha) { return x * fn_sigmoid(alpha * x); }
inline double fn_gelu_erf(double x) { return 0.5 * x * (1.0 + std::erf(x * 0.70710678118654752440)); }
inline double fn_gelu_tanh(double x) {
  return 0.5 * x * (1.0 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
}
inline double fn_elu(double x, double alpha) { return x < 0 ? alpha * std::expm1(x) : x; }
inline double fn_selu(double x, double alpha, double gamma) {
  return gamma * (x <= 0 ? alpha * std::expm1(x) : x);
}
inline double fn_celu(double x, double alpha) { return x < 0 ? alpha * std::expm1(x / alpha) : x; }
inline double fn_softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
inline double fn_softsign(double x) { return x / (1.0 + std::fabs(x)); }
inline double fn_mish(double x) { return x * std::tanh(fn_softplus(x)); }
inline double fn_thresholded_relu(double x, double alpha) { return x != x || x > alpha ? x : 0.0; }
inline double fn_shrink(double x, double bias, double lambda) {
  if (x < -lambda) return x + bias;
  if (x > lambda) return x - bias;
  return x == x ? 0.0 : x;
}
inline double fn_sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x == 0 ? 0.0 : x; }
/// To nearest, ties to even, in the default rounding mode.
inline double fn_round(double x) { return std::nearbyint(x); }

}  // namespace hone::ops
