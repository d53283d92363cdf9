// Body of kernels/reduce.cpp, compiled per ISA.
#include "backends/cpu/kernels/sums.inl"

namespace hone::cpu::HONE_ISA_NS {
namespace {

constexpr int64_t kReduceVecs = kReduceColumns / kWidth;
constexpr int64_t kAddsPerPart = 64;

/// The last step from an accumulated sum to the result.
HONE_INLINE double finish(Reduction kind, double acc, int64_t count) {
  switch (kind) {
    case Reduction::kMean: return acc / static_cast<double>(count);
    case Reduction::kL2: return std::sqrt(acc);
    case Reduction::kLogSum: return std::log(acc);
    default: return acc;
  }
}

HONE_INLINE bool is_square(Reduction kind) { return kind == Reduction::kL2 || kind == Reduction::kSumSquare; }

/// Extreme of a row with NaN kept; sign -1 gives the minimum (values are compared as -x).
HONE_INLINE float row_extreme(const float* p, int64_t n, bool maximum) {
  Vec best = set(-INFINITY);
  Mask bad = is_nan(zero());
  const Vec flip = set(maximum ? 0.0F : -0.0F);
  const auto keyed = [=](Vec v) HONE_LAMBDA_INLINE { return from_bits(bits(v) ^ bits(flip)); };
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Vec x = load(p + i);
    best = max(best, keyed(x));
    bad = bad | is_nan(x);
  }
  float m = reduce_max(best);
  bool nan = any(bad);
  for (; i < n; ++i) {
    const float x = maximum ? p[i] : -p[i];
    nan = nan || x != x;
    m = m > x ? m : x;
  }
  return nan ? NAN : maximum ? m : -m;
}

/// f(row pointer) for every row of a column block.
template <class F>
HONE_INLINE void each_line(const float* src, const ReduceSpan& s, F f) {
  for (int64_t i = 0; i < s.n_offsets; ++i) {
    const float* p = src + s.offsets[i];
    for (int64_t j = 0; j < s.n; ++j) f(p + j * s.stride);
  }
}
/// fn(first vector, Count<vectors>, lanes of the last) for pieces of a block of columns that fit registers.
template <int kCount>
struct Count {
  static constexpr int value = kCount;
};
template <class F>
HONE_INLINE void each_piece(int64_t cols, F fn) {
  int64_t v = 0;
  for (; (v + 4) * kWidth <= cols; v += 4) fn(v, Count<4>{}, kWidth);
  for (; (v + 1) * kWidth <= cols; ++v) fn(v, Count<1>{}, kWidth);
  if (v * kWidth < cols) fn(v, Count<1>{}, static_cast<int>(cols - v * kWidth));
}
template <int kCount>
HONE_INLINE Vec get_vec(const float* p, int v, int lanes) {
  return kCount == 1 && lanes < kWidth ? load_n(p, lanes) : load(p + v * kWidth);
}

/// total[c] = sum of f(v, x) over the lines.
template <class F>
HONE_INLINE void column_totals(const float* src, const ReduceSpan& s, int64_t cols, double* total, F f) {
  for (int64_t c = 0; c < cols; ++c) total[c] = 0;
  each_piece(cols, [&](int64_t v0, auto count, int lanes) HONE_LAMBDA_INLINE {
    constexpr int kCount = decltype(count)::value;
    Vec part[kCount];
    HONE_UNROLL
    for (int v = 0; v < kCount; ++v) part[v] = zero();
    const auto flush = [&]() HONE_LAMBDA_INLINE {
      float sums[kCount * kWidth];
      HONE_UNROLL
      for (int v = 0; v < kCount; ++v) {
        store(sums + v * kWidth, part[v]);
        part[v] = zero();
      }
      const int wanted = kCount == 1 ? lanes : kCount * kWidth;
      for (int c = 0; c < wanted; ++c) total[v0 * kWidth + c] += static_cast<double>(sums[c]);
    };
    int64_t added = 0;
    each_line(src + v0 * kWidth, s, [&](const float* p) HONE_LAMBDA_INLINE {
      HONE_UNROLL
      for (int v = 0; v < kCount; ++v) part[v] = part[v] + f(v0 + v, get_vec<kCount>(p, v, lanes));
      if (++added == kAddsPerPart) {
        flush();
        added = 0;
      }
    });
    flush();
  });
}

/// top[v] = extreme of the lines, NaN kept; compared as -x for the minimum, so top holds the negated minimum.
HONE_INLINE void column_extremes(const float* src, const ReduceSpan& s, int64_t cols, bool maximum,
                                 Vec* top) {
  const Vec flip = set(maximum ? 0.0F : -0.0F);
  each_piece(cols, [&](int64_t v0, auto count, int lanes) HONE_LAMBDA_INLINE {
    constexpr int kCount = decltype(count)::value;
    Vec best[kCount];
    Mask bad[kCount];
    HONE_UNROLL
    for (int v = 0; v < kCount; ++v) {
      best[v] = set(-INFINITY);
      bad[v] = is_nan(zero());
    }
    each_line(src + v0 * kWidth, s, [&](const float* p) HONE_LAMBDA_INLINE {
      HONE_UNROLL
      for (int v = 0; v < kCount; ++v) {
        const Vec x = get_vec<kCount>(p, v, lanes);
        best[v] = max(best[v], from_bits(bits(x) ^ bits(flip)));
        bad[v] = bad[v] | is_nan(x);
      }
    });
    HONE_UNROLL
    for (int v = 0; v < kCount; ++v) top[v0 + v] = select(bad[v], set(NAN), best[v]);
  });
}

}  // namespace

float reduce_row(Reduction kind, const float* src, const ReduceSpan& s) {
  double acc = kind == Reduction::kProd ? 1 : 0;
  float top = -INFINITY;
  bool nan = false;
  if (kind == Reduction::kMax || kind == Reduction::kMin || kind == Reduction::kLogSumExp) {
    const bool maximum = kind != Reduction::kMin;
    for (int64_t i = 0; i < s.n_offsets; ++i) {
      const float m = row_extreme(src + s.offsets[i], s.n, maximum), key = maximum ? m : -m;
      nan = nan || m != m;
      top = top > key ? top : key;
    }
    if (nan) return NAN;
    if (kind != Reduction::kLogSumExp) return maximum ? top : -top;
    if (std::isinf(top)) return top;
  }
  for (int64_t i = 0; i < s.n_offsets; ++i) {
    const float* p = src + s.offsets[i];
    switch (kind) {
      case Reduction::kProd:
        for (int64_t j = 0; j < s.n; ++j) acc *= static_cast<double>(p[j]);
        break;
      case Reduction::kL1: acc += row_sum_abs(p, s.n); break;
      case Reduction::kL2:
      case Reduction::kSumSquare: acc += row_sum_squares(p, s.n); break;
      case Reduction::kLogSumExp: acc += exp_row_sum(p, s.n, top); break;
      default: acc += row_sum(p, s.n); break;
    }
  }
  if (kind == Reduction::kLogSumExp) return static_cast<float>(static_cast<double>(top) + std::log(acc));
  return static_cast<float>(finish(kind, acc, s.count()));
}

void reduce_columns(Reduction kind, const float* src, const ReduceSpan& s, int64_t cols, float* dst) {
  double total[kReduceColumns];
  Vec top[kReduceVecs];
  const int64_t vecs = (cols + kWidth - 1) / kWidth;
  float lanes[kReduceColumns];
  if (kind == Reduction::kMax || kind == Reduction::kMin || kind == Reduction::kLogSumExp) {
    const bool maximum = kind != Reduction::kMin;
    column_extremes(src, s, cols, maximum, top);
    for (int64_t v = 0; v < vecs; ++v) store(lanes + v * kWidth, maximum ? top[v] : -top[v]);
    if (kind != Reduction::kLogSumExp) {
      for (int64_t c = 0; c < cols; ++c) dst[c] = lanes[c];
      return;
    }
    column_totals(src, s, cols, total,
                  [&](int64_t v, Vec x) HONE_LAMBDA_INLINE { return exp_negative(x - top[v]); });
    for (int64_t c = 0; c < cols; ++c)
      dst[c] = std::isfinite(lanes[c])
                   ? static_cast<float>(static_cast<double>(lanes[c]) + std::log(total[c]))
                   : lanes[c];
    return;
  }
  if (kind == Reduction::kProd) {
    for (int64_t c = 0; c < cols; ++c) total[c] = 1;
    each_line(src, s, [&](const float* p) {
      for (int64_t c = 0; c < cols; ++c) total[c] *= static_cast<double>(p[c]);
    });
  } else if (kind == Reduction::kL1) {
    column_totals(src, s, cols, total, [](int64_t, Vec x) HONE_LAMBDA_INLINE { return abs(x); });
  } else if (is_square(kind)) {
    column_totals(src, s, cols, total, [](int64_t, Vec x) HONE_LAMBDA_INLINE { return x * x; });
  } else {
    column_totals(src, s, cols, total, [](int64_t, Vec x) HONE_LAMBDA_INLINE { return x; });
  }
  for (int64_t c = 0; c < cols; ++c) {
    const bool fits =
        kind == Reduction::kProd || (is_square(kind) ? squares_in_range(total[c]) : sum_in_range(total[c]));
    if (!fits) {
      total[c] = 0;
      each_line(src, s, [&](const float* p) {
        const double x = p[c];
        total[c] += is_square(kind) ? x * x : kind == Reduction::kL1 ? std::fabs(x) : x;
      });
    }
    dst[c] = static_cast<float>(finish(kind, total[c], s.count()));
  }
}

}  // namespace hone::cpu::HONE_ISA_NS
