// Activations as functions of one vector: act<kind>(x, alpha, beta). Included by an .inl, per ISA, after
// backends/cpu/vmath.h. Math and NaN rules: ops::Act and ops/scalar_math.h. kSin and kCos have no vector form
// and pass x through; callers treat them apart.

namespace hone::cpu::HONE_ISA_NS {

template <ops::Act kAct>
HONE_INLINE Vec act(Vec x, Vec alpha, Vec beta) {
  using ops::Act;
  const Vec nil = zero();
  const Vec one = set(1.0F);
  if constexpr (kAct == Act::kRelu) return max(nil, x);
  if constexpr (kAct == Act::kLeakyRelu) return select(lt(x, nil), x * alpha, x);
  if constexpr (kAct == Act::kClip) return min(beta, max(alpha, x));
  if constexpr (kAct == Act::kSigmoid) return sigmoid(x);
  if constexpr (kAct == Act::kHardSigmoid) return min(one, max(nil, x * alpha + beta));
  if constexpr (kAct == Act::kHardSwish) return x * min(one, max(nil, x * set(1.0F / 6.0F) + set(0.5F)));
  if constexpr (kAct == Act::kSwish) return x * sigmoid(x * alpha);
  if constexpr (kAct == Act::kTanh) return tanh(x);
  if constexpr (kAct == Act::kGeluErf) return gelu_erf(x);
  if constexpr (kAct == Act::kGeluTanh) return gelu_tanh(x);
  if constexpr (kAct == Act::kElu) return select(lt(x, nil), alpha * expm1(x), x);
  if constexpr (kAct == Act::kSelu) return beta * select(le(x, nil), alpha * expm1(x), x);
  if constexpr (kAct == Act::kCelu) return select(lt(x, nil), alpha * expm1(x / alpha), x);
  if constexpr (kAct == Act::kSoftplus) return softplus(x);
  if constexpr (kAct == Act::kMish) return x * tanh(softplus(x));
  if constexpr (kAct == Act::kAbs) return abs(x);
  if constexpr (kAct == Act::kNeg) return -x;
  if constexpr (kAct == Act::kExp) return exp(x);
  if constexpr (kAct == Act::kLog) return log(x);
  if constexpr (kAct == Act::kSqrt) return sqrt(x);
  if constexpr (kAct == Act::kReciprocal) return one / x;
  if constexpr (kAct == Act::kErf) return erf(x);
  if constexpr (kAct == Act::kFloor) return floor(x);
  if constexpr (kAct == Act::kCeil) return ceil(x);
  if constexpr (kAct == Act::kRound) return round(x);
  if constexpr (kAct == Act::kSign)
    return select(gt(x, nil), one, select(lt(x, nil), -one, select(is_nan(x), x, nil)));
  if constexpr (kAct == Act::kSoftsign) return x / (one + abs(x));
  if constexpr (kAct == Act::kThresholdedRelu) return select(gt(x, alpha) | is_nan(x), x, nil);
  return x;
}

}  // namespace hone::cpu::HONE_ISA_NS
