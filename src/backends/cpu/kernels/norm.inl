// Body of kernels/norm.cpp, compiled per ISA.
#include "backends/cpu/kernels/sums.inl"

namespace hone::cpu::HONE_ISA_NS {
namespace {

constexpr int64_t kNormColumns = 256;  ///< columns of a statistics block
constexpr int64_t kRowsPerPart = 64;   ///< additions into one f32 partial sum

/// f(i, count) -> Vec for every vector of a row, stored to dst.
template <class F>
HONE_INLINE void each_vec(float* dst, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(dst + i, f(i, kWidth));
  if (i < n) store_n(dst + i, f(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}
HONE_INLINE Vec part(const float* p, int64_t i, int count) {
  return count == kWidth ? load(p + i) : load_n(p + i, count);
}

HONE_INLINE void affine_one(const float* src, float* dst, int64_t n, SplitMean mean, float a, float b) {
  const Vec hi = set(mean.hi), lo = set(mean.lo), va = set(a), vb = set(b);
  each_vec(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
    return fma((part(src, i, count) - hi) - lo, va, vb);
  });
}

/// One piece of column_sums: kVecs vectors of columns, of the last only `lanes` where kPartial.
template <int kVecs, bool kPartial, bool kCentred>
void column_piece(const float* src, int64_t rows, int64_t stride, int lanes, const float* hi, const float* lo,
                  double* sum, double* squares) {
  const auto get = [lanes](const float* p, int v) HONE_LAMBDA_INLINE {
    return kPartial && v == kVecs - 1 ? load_n(p + v * kWidth, lanes) : load(p + v * kWidth);
  };
  const int cols = kPartial ? (kVecs - 1) * kWidth + lanes : kVecs * kWidth;
  Vec h[kVecs], l[kVecs];
  HONE_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    h[v] = kCentred ? get(hi, v) : zero();
    l[v] = kCentred ? get(lo, v) : zero();
  }
  for (int c = 0; c < cols; ++c) sum[c] = squares[c] = 0;
  for (int64_t r = 0; r < rows; r += kRowsPerPart) {
    const int64_t end = rows < r + kRowsPerPart ? rows : r + kRowsPerPart;
    Vec s[kVecs], q[kVecs];
    HONE_UNROLL
    for (int v = 0; v < kVecs; ++v) s[v] = q[v] = zero();
    for (int64_t k = r; k < end; ++k) {
      const float* p = src + k * stride;
      HONE_UNROLL
      for (int v = 0; v < kVecs; ++v) {
        Vec x = get(p, v);
        if constexpr (kCentred) {
          x = (x - h[v]) - l[v];
          q[v] = fma(x, x, q[v]);
        }
        s[v] = s[v] + x;
      }
    }
    float sums[kVecs * kWidth], squared[kVecs * kWidth];
    HONE_UNROLL
    for (int v = 0; v < kVecs; ++v) {
      store(sums + v * kWidth, s[v]);
      store(squared + v * kWidth, q[v]);
    }
    for (int c = 0; c < cols; ++c) {
      sum[c] += static_cast<double>(sums[c]);
      squares[c] += static_cast<double>(squared[c]);
    }
  }
}

/// sum[c] over rows of x, or with means given of d = x - mean, and then squares[c] of d^2; f64 totals.
template <bool kCentred>
void column_sums(const float* src, int64_t rows, int64_t stride, int64_t cols, const float* hi,
                 const float* lo, double* sum, double* squares) {
  int64_t c = 0;
  const auto piece = [&](auto fn, int lanes) HONE_LAMBDA_INLINE {
    fn(src + c, rows, stride, lanes, kCentred ? hi + c : nullptr, kCentred ? lo + c : nullptr, sum + c,
       squares + c);
  };
  for (; c + 4 * kWidth <= cols; c += 4 * kWidth) piece(column_piece<4, false, kCentred>, kWidth);
  const int left = static_cast<int>(cols - c), lanes = (left - 1) % kWidth + 1;
  switch ((left + kWidth - 1) / kWidth) {
    case 1: return piece(column_piece<1, true, kCentred>, lanes);
    case 2: return piece(column_piece<2, true, kCentred>, lanes);
    case 3: return piece(column_piece<3, true, kCentred>, lanes);
    case 4: return piece(column_piece<4, true, kCentred>, lanes);
    default: return;
  }
}

/// Moments of a group of neighbouring columns, in f64.
HONE_NOINLINE Moments wide_group(const float* src, int64_t rows, int64_t stride, int64_t cols) {
  double sum = 0, squares = 0;
  const double n = static_cast<double>(rows * cols);
  for (int64_t r = 0; r < rows; ++r) sum += wide_sum(src + r * stride, cols);
  for (int64_t r = 0; r < rows; ++r) squares += wide_square_deviations(src + r * stride, cols, sum / n);
  return {sum / n, squares};
}

/// Rows whose deviations do not fit f32, in f64 throughout. step: 0 for one scale and bias, 1 for one an
/// element; null scale is 1.
HONE_NOINLINE void affine_wide(const float* src, float* dst, int64_t n, double mean, double inverse,
                               const float* scale, const float* bias, int64_t step) {
  for (int64_t i = 0; i < n; ++i) {
    const double v = (static_cast<double>(src[i]) - mean) * inverse;
    dst[i] = static_cast<float>(v * (scale == nullptr ? 1.0 : static_cast<double>(scale[i * step])) +
                                (bias == nullptr ? 0.0 : static_cast<double>(bias[i * step])));
  }
}

HONE_INLINE Vec inverse_power(Vec s, float beta) {
  const Vec one = set(1.0F);
  if (beta == 0.75F) return one / (sqrt(s) * sqrt(sqrt(s)));
  if (beta == 0.5F) return one / sqrt(s);
  if (beta == 1.0F) return one / s;
  return exp(set(-beta) * log(s));
}

}  // namespace

void norm_row(const NormRow& norm, const float* src, float* dst, int64_t n, float* stats) {
  const Moments m = norm.centred ? row_moments(src, n) : Moments{0, row_sum_squares(src, n)};
  const double full_mean = m.mean, squares = m.squares;
  const SplitMean mean = split_mean(full_mean);
  const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(n) + norm.epsilon);
  stats[0] = static_cast<float>(full_mean);
  stats[1] = static_cast<float>(inverse);
  const float *scale = norm.scale, *bias = norm.bias;
  if (!squares_in_range(squares)) return affine_wide(src, dst, n, full_mean, inverse, scale, bias, 1);
  const Vec hi = set(mean.hi), lo = set(mean.lo), inv = set(static_cast<float>(inverse));
  if (scale != nullptr && bias != nullptr)
    each_vec(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
      return fma(((part(src, i, count) - hi) - lo) * inv, part(scale, i, count), part(bias, i, count));
    });
  else if (scale != nullptr)
    each_vec(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
      return ((part(src, i, count) - hi) - lo) * inv * part(scale, i, count);
    });
  else
    each_vec(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
      return ((part(src, i, count) - hi) - lo) * inv;
    });
}

void group_norm_plain(const float* src, float* dst, int64_t channels, int64_t plane, const float* scale,
                      const float* bias, double epsilon) {
  const int64_t n = channels * plane;
  const Moments m = row_moments(src, n);
  const double full_mean = m.mean, squares = m.squares;
  const SplitMean mean = split_mean(full_mean);
  const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  for (int64_t c = 0; c < channels; ++c)
    if (!squares_in_range(squares))
      affine_wide(src + c * plane, dst + c * plane, plane, full_mean, inverse, scale + c, bias + c, 0);
    else
      affine_one(src + c * plane, dst + c * plane, plane, mean,
                 static_cast<float>(inverse * static_cast<double>(scale[c])), bias[c]);
}

void group_norm_last(const float* src, float* dst, int64_t rows, int64_t stride, int64_t channels,
                     int64_t groups, const float* scale, const float* bias, double epsilon, float* scratch) {
  const int64_t total = channels * groups;
  float *hi = scratch, *lo = scratch + total, *a = scratch + 2 * total;
  double sums[kNormColumns], squares[kNormColumns];
  const double count = static_cast<double>(rows * channels);
  const auto set_mean = [&](int64_t first, double mean) {
    const SplitMean m = split_mean(mean);
    for (int64_t k = first; k < first + channels; ++k) {
      hi[k] = m.hi;
      lo[k] = m.lo;
    }
  };
  // Running sums of a group cross the borders of column blocks.
  double group_sum = 0, group_squares = 0;
  bool wide = false;
  for (int64_t c0 = 0; c0 < total; c0 += kNormColumns) {
    const int64_t cols = total - c0 < kNormColumns ? total - c0 : kNormColumns;
    column_sums<false>(src + c0, rows, stride, cols, nullptr, nullptr, sums, squares);
    for (int64_t c = 0; c < cols; ++c) {
      group_sum += sums[c];
      if ((c0 + c + 1) % channels != 0) continue;
      set_mean(c0 + c + 1 - channels, group_sum / count);
      group_sum = 0;
    }
  }
  for (int64_t c0 = 0; c0 < total; c0 += kNormColumns) {
    const int64_t cols = total - c0 < kNormColumns ? total - c0 : kNormColumns;
    column_sums<true>(src + c0, rows, stride, cols, hi + c0, lo + c0, sums, squares);
    for (int64_t c = 0; c < cols; ++c) {
      group_sum += sums[c];
      group_squares += squares[c];
      if ((c0 + c + 1) % channels != 0) continue;
      const int64_t first = c0 + c + 1 - channels;
      Moments m = corrected(static_cast<double>(hi[first]) + static_cast<double>(lo[first]), group_sum,
                            group_squares, rows * channels);
      if (!squares_in_range(group_squares)) {
        wide = true;
        m = wide_group(src + first, rows, stride, channels);
      }
      set_mean(first, m.mean);
      const double inverse = 1.0 / std::sqrt(m.squares / count + epsilon);
      for (int64_t k = first; k < first + channels; ++k)
        a[k] = static_cast<float>(inverse * static_cast<double>(scale[k]));
      group_sum = group_squares = 0;
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* p = src + r * stride;
    if (wide) {  // the product may fit f32 where the difference does not
      for (int64_t c = 0; c < total; ++c)
        dst[r * stride + c] = static_cast<float>(
            (static_cast<double>(p[c]) - (static_cast<double>(hi[c]) + static_cast<double>(lo[c]))) *
                static_cast<double>(a[c]) +
            static_cast<double>(bias[c]));
      continue;
    }
    each_vec(dst + r * stride, total, [=](int64_t i, int n) HONE_LAMBDA_INLINE {
      return fma((part(p, i, n) - part(hi, i, n)) - part(lo, i, n), part(a, i, n), part(bias, i, n));
    });
  }
}

void centre_scale(bool each, const float* src, float* dst, int64_t n, const float* mean, const float* a,
                  const float* b) {
  if (!each) return affine_one(src, dst, n, {*mean, 0}, *a, *b);
  each_vec(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
    return fma(part(src, i, count) - part(mean, i, count), part(a, i, count), part(b, i, count));
  });
}

void lrn_columns(const float* src, float* dst, int64_t channels, int64_t inner, int64_t cols, int64_t size,
                 float alpha, float beta, float bias) {
  const Vec factor = set(alpha / static_cast<float>(size)), base = set(bias);
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t low = c - (size - 1) / 2 > 0 ? c - (size - 1) / 2 : 0;
    const int64_t high = c + size / 2 < channels - 1 ? c + size / 2 : channels - 1;
    each_vec(dst + c * inner, cols, [=](int64_t i, int n) HONE_LAMBDA_INLINE {
      Vec sum = zero();
      for (int64_t k = low; k <= high; ++k) {
        const Vec x = part(src + k * inner, i, n);
        sum = sum + x * x;
      }
      return part(src + c * inner, i, n) * inverse_power(fma(sum, factor, base), beta);
    });
  }
}

void lrn_pixel(const float* src, float* dst, int64_t channels, int64_t size, float alpha, float beta,
               float bias, float* padded) {
  const Vec factor = set(alpha / static_cast<float>(size)), base = set(bias);
  const int64_t before = (size - 1) / 2;
  for (int64_t i = 0; i < before; ++i) padded[i] = 0;
  for (int64_t i = before + channels; i < channels + size + 32; ++i) padded[i] = 0;
  each_vec(padded + before, channels, [=](int64_t i, int n) HONE_LAMBDA_INLINE {
    const Vec x = part(src, i, n);
    return x * x;
  });
  each_vec(dst, channels, [=](int64_t i, int n) HONE_LAMBDA_INLINE {
    Vec sum = zero();
    for (int64_t k = 0; k < size; ++k) sum = sum + load(padded + i + k);
    return part(src, i, n) * inverse_power(fma(sum, factor, base), beta);
  });
}

}  // namespace hone::cpu::HONE_ISA_NS
