// Sums, sums of squares and maxima of contiguous rows. Included by an .inl, per ISA.
// Accuracy: f32 partial sums over blocks of kSumBlock elements (at most 16 additions a lane and accumulator),
// blocks added in f64.
namespace hone::cpu::HONE_ISA_NS {

inline constexpr int64_t kSumBlock = 1024;

alignas(64) inline constexpr float kLaneNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
/// The first n lanes.
HONE_INLINE Mask first_lanes(int n) { return lt(load(kLaneNumbers), set(static_cast<float>(n))); }

/// exp(x) for x <= 0 that gives 0 below -87, where the result would be subnormal: arithmetic on subnormals
/// traps into microcode, at a hundred times the cost, and a softmax over masked scores is full of them.
/// Relative error 2 ulp above; NaN stays NaN.
HONE_INLINE Vec exp_negative(Vec x) {
  const Vec bound = set(-87.0F);
  Vec r;
  const Vec n = exp_reduce(max(bound, x), r);
  const Vec p = fma(r * r, exp_tail(r), r) + set(1.0F);
  const Vec scale = from_bits(shl<23>(to_int(n) + set_i(127)));
  return select(lt(x, bound), zero(), p * scale);
}

/// Sum over i of f(p[i]) for an f that maps +0 to 0 (a tail's missing lanes are +0).
template <class F>
HONE_INLINE double sum_map(const float* p, int64_t n, F f) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = begin + kSumBlock < n ? begin + kSumBlock : n;
    Vec s0 = zero(), s1 = zero(), s2 = zero(), s3 = zero();
    int64_t i = begin;
    for (; i + 4 * kWidth <= end; i += 4 * kWidth) {
      s0 = s0 + f(load(p + i));
      s1 = s1 + f(load(p + i + kWidth));
      s2 = s2 + f(load(p + i + 2 * kWidth));
      s3 = s3 + f(load(p + i + 3 * kWidth));
    }
    for (; i + kWidth <= end; i += kWidth) s0 = s0 + f(load(p + i));
    if (i < end) s1 = s1 + f(load_n(p + i, static_cast<int>(end - i)));
    total += static_cast<double>(reduce_add((s0 + s1) + (s2 + s3)));
  }
  return total;
}

/// f32 squares and sums leave their range long before the result does; outside this band sums are done again
/// in f64.
HONE_INLINE bool sum_in_range(double sum) { return sum < 1e37 && sum > -1e37; }
HONE_INLINE bool squares_in_range(double sum) { return sum < 1e37 && sum > 1e-25; }

HONE_NOINLINE inline double wide_sum(const float* p, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(p[i]);
  return total;
}
HONE_NOINLINE inline double wide_square_deviations(const float* p, int64_t n, double mean) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(p[i]) - mean;
    total += d * d;
  }
  return total;
}

HONE_INLINE double row_sum(const float* p, int64_t n) {
  const double total = sum_map(p, n, [](Vec v) HONE_LAMBDA_INLINE { return v; });
  return sum_in_range(total) ? total : wide_sum(p, n);
}
HONE_INLINE double row_sum_squares(const float* p, int64_t n) {
  const double total = sum_map(p, n, [](Vec v) HONE_LAMBDA_INLINE { return v * v; });
  return squares_in_range(total) ? total : wide_square_deviations(p, n, 0);
}
HONE_INLINE double row_sum_abs(const float* p, int64_t n) {
  const double total = sum_map(p, n, [](Vec v) HONE_LAMBDA_INLINE { return abs(v); });
  if (sum_in_range(total)) return total;
  double wide = 0;
  for (int64_t i = 0; i < n; ++i) wide += std::fabs(static_cast<double>(p[i]));
  return wide;
}

/// A double as two floats: hi + lo is the mean to 48 bits, so that (x - hi) - lo loses nothing where x is
/// near it.
struct SplitMean {
  float hi, lo;
};
HONE_INLINE SplitMean split_mean(double mean) {
  const float hi = static_cast<float>(mean);
  const float lo = static_cast<float>(mean - static_cast<double>(hi));
  return {hi, std::isfinite(lo) ? lo : 0.0F};
}

/// Mean and variance about a first estimate: one more pass finds what rounding took from the estimate, which
/// matters when the mean is large against the deviation. Math: with d = x - estimate, mean = estimate + sum d
/// / n, n * var = sum d^2 - (sum d)^2 / n.
struct Moments {
  double mean;
  double squares;  ///< n * variance
};
HONE_INLINE Moments corrected(double estimate, double sum_d, double sum_dd, int64_t n) {
  const double shift = sum_d * (1.0 / static_cast<double>(n));  // the reciprocal waits for nothing
  return {estimate + shift, sum_dd - sum_d * shift};
}
HONE_NOINLINE inline Moments wide_moments(const float* p, int64_t n, int64_t stride) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(p[i * stride]);
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(p[i * stride]) - mean;
    squares += d * d;
  }
  return {mean, squares};
}

HONE_INLINE Moments row_moments(const float* p, int64_t n) {
  const double estimate = row_sum(p, n) / static_cast<double>(n);
  const SplitMean mean = split_mean(estimate);
  const Vec hi = set(mean.hi), lo = set(mean.lo);
  double sum = 0, squares = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = begin + kSumBlock < n ? begin + kSumBlock : n;
    Vec s0 = zero(), s1 = zero(), q0 = zero(), q1 = zero();
    int64_t i = begin;
    for (; i + 2 * kWidth <= end; i += 2 * kWidth) {
      const Vec d0 = (load(p + i) - hi) - lo, d1 = (load(p + i + kWidth) - hi) - lo;
      s0 = s0 + d0;
      s1 = s1 + d1;
      q0 = fma(d0, d0, q0);
      q1 = fma(d1, d1, q1);
    }
    for (; i < end; i += kWidth) {
      const int left = end - i < kWidth ? static_cast<int>(end - i) : kWidth;
      const Vec d = select(first_lanes(left), (load_n(p + i, left) - hi) - lo, zero());
      s0 = s0 + d;
      q0 = fma(d, d, q0);
    }
    sum += static_cast<double>(reduce_add(s0 + s1));
    squares += static_cast<double>(reduce_add(q0 + q1));
  }
  if (!squares_in_range(squares)) return wide_moments(p, n, 1);
  return corrected(static_cast<double>(mean.hi) + static_cast<double>(mean.lo), sum, squares, n);
}

/// Largest element; a NaN may or may not win. n >= 1.
HONE_INLINE float row_max(const float* p, int64_t n) {
  Vec m0 = set(-INFINITY), m1 = m0;
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    m0 = max(m0, load(p + i));
    m1 = max(m1, load(p + i + kWidth));
  }
  for (; i < n; i += kWidth) {
    const int left = n - i < kWidth ? static_cast<int>(n - i) : kWidth;
    m0 = max(m0, select(first_lanes(left), load_n(p + i, left), set(-INFINITY)));
  }
  return reduce_max(max(m0, m1));
}

/// dst = exp(src - m) for m the row's maximum; returns the sum. dst may equal src.
HONE_INLINE double exp_row(const float* src, float* dst, int64_t n, float m) {
  const Vec vm = set(m);
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t end = begin + kSumBlock < n ? begin + kSumBlock : n;
    Vec s0 = zero(), s1 = zero();
    int64_t i = begin;
    for (; i + 2 * kWidth <= end; i += 2 * kWidth) {
      const Vec e0 = exp_negative(load(src + i) - vm), e1 = exp_negative(load(src + i + kWidth) - vm);
      store(dst + i, e0);
      store(dst + i + kWidth, e1);
      s0 = s0 + e0;
      s1 = s1 + e1;
    }
    for (; i < end; i += kWidth) {
      const int left = end - i < kWidth ? static_cast<int>(end - i) : kWidth;
      const Vec e = select(first_lanes(left), exp_negative(load_n(src + i, left) - vm), zero());
      store_n(dst + i, e, left);
      s1 = s1 + e;
    }
    total += static_cast<double>(reduce_add(s0 + s1));
  }
  return total;
}
/// The same sum without storing.
HONE_INLINE double exp_row_sum(const float* src, int64_t n, float m) {
  const Vec vm = set(m);
  const int tail = static_cast<int>(n % kWidth);
  double total = sum_map(src, n - tail, [=](Vec v) HONE_LAMBDA_INLINE { return exp_negative(v - vm); });
  if (tail > 0) {
    const Vec e = exp_negative(load_n(src + n - tail, tail) - vm);
    total += static_cast<double>(reduce_add(select(first_lanes(tail), e, zero())));
  }
  return total;
}

}  // namespace hone::cpu::HONE_ISA_NS
