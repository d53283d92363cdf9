// Body of kernels/softmax.cpp, compiled per ISA.
#include "backends/cpu/kernels/sums.inl"

namespace hone::cpu::HONE_ISA_NS {
namespace {

template <class F>
HONE_INLINE void map_row(const float* src, float* dst, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(dst + i, f(load(src + i)));
  if (i < n) {
    const int left = static_cast<int>(n - i);
    store_n(dst + i, f(load_n(src + i, left)), left);
  }
}

/// state[c] over the rows of a block of columns: f(state, x) for every element.
template <class F>
HONE_INLINE void fold_columns(const float* src, int64_t n, int64_t stride, int64_t cols, Vec* state, F f) {
  for (int64_t r = 0; r < n; ++r) {
    const float* p = src + r * stride;
    int64_t c = 0, v = 0;
    for (; c + kWidth <= cols; c += kWidth, ++v) state[v] = f(state[v], load(p + c));
    if (c < cols) state[v] = f(state[v], load_n(p + c, static_cast<int>(cols - c)));
  }
}

template <class F>
HONE_INLINE void map_columns(const float* src, float* dst, int64_t n, int64_t stride, int64_t cols, F f) {
  for (int64_t r = 0; r < n; ++r) {
    const float* p = src + r * stride;
    float* q = dst + r * stride;
    int64_t c = 0, v = 0;
    for (; c + kWidth <= cols; c += kWidth, ++v) store(q + c, f(v, load(p + c)));
    if (c < cols) {
      const int left = static_cast<int>(cols - c);
      store_n(q + c, f(v, load_n(p + c, left)), left);
    }
  }
}

constexpr int64_t kColumnVecs = (kAxisColumns + kWidth - 1) / kWidth;
constexpr int64_t kRowsPerSum = 32;  // additions into one f32 partial sum

/// sums[v] = sum over rows of f(v, x), partial sums of kRowsPerSum rows.
template <class F>
HONE_INLINE void sum_columns(const float* src, int64_t n, int64_t stride, int64_t cols, Vec* sums, F f) {
  const int64_t vecs = (cols + kWidth - 1) / kWidth;
  for (int64_t v = 0; v < vecs; ++v) sums[v] = zero();
  Vec part[kColumnVecs];
  for (int64_t r = 0; r < n; r += kRowsPerSum) {
    const int64_t rows = n - r < kRowsPerSum ? n - r : kRowsPerSum;
    for (int64_t v = 0; v < vecs; ++v) part[v] = zero();
    for (int64_t k = 0; k < rows; ++k) {
      const float* p = src + (r + k) * stride;
      int64_t c = 0, v = 0;
      for (; c + kWidth <= cols; c += kWidth, ++v) part[v] = part[v] + f(v, load(p + c));
      if (c < cols) part[v] = part[v] + f(v, load_n(p + c, static_cast<int>(cols - c)));
    }
    for (int64_t v = 0; v < vecs; ++v) sums[v] = sums[v] + part[v];
  }
}

/// Lp in f64, for columns whose f32 norm would overflow, underflow or be zero.
HONE_NOINLINE void lp_columns_wide(AxisNorm kind, const float* src, float* dst, int64_t n, int64_t stride,
                                   int64_t cols) {
  for (int64_t c = 0; c < cols; ++c) {
    double sum = 0;
    for (int64_t r = 0; r < n; ++r) {
      const double x = src[r * stride + c];
      sum += kind == AxisNorm::kL1 ? std::fabs(x) : x * x;
    }
    const double norm = kind == AxisNorm::kL1 ? sum : std::sqrt(sum);
    for (int64_t r = 0; r < n; ++r)
      dst[r * stride + c] =
          norm == 0 ? 0.0F : static_cast<float>(static_cast<double>(src[r * stride + c]) / norm);
  }
}

}  // namespace

void axis_norm_row(AxisNorm kind, const float* src, float* dst, int64_t n) {
  if (kind == AxisNorm::kSoftmax) {
    const double sum = exp_row(src, dst, n, row_max(src, n));
    const Vec scale = set(static_cast<float>(1.0 / sum));
    map_row(dst, dst, n, [=](Vec v) HONE_LAMBDA_INLINE { return v * scale; });
  } else if (kind == AxisNorm::kLogSoftmax) {
    const float m = row_max(src, n);
    const Vec vm = set(m), log_sum = set(static_cast<float>(std::log(exp_row_sum(src, n, m))));
    map_row(src, dst, n, [=](Vec v) HONE_LAMBDA_INLINE { return (v - vm) - log_sum; });
  } else {
    const double norm = kind == AxisNorm::kL1 ? row_sum_abs(src, n) : std::sqrt(row_sum_squares(src, n));
    if (!(norm > 1e-30 && norm < 1e37)) {  // the reciprocal would leave f32; also zero and NaN
      for (int64_t i = 0; i < n; ++i)
        dst[i] = norm == 0 ? 0.0F : static_cast<float>(static_cast<double>(src[i]) / norm);
      return;
    }
    const Vec scale = set(static_cast<float>(1.0 / norm));
    map_row(src, dst, n, [=](Vec v) HONE_LAMBDA_INLINE { return v * scale; });
  }
}

void axis_norm_columns(AxisNorm kind, const float* src, float* dst, int64_t n, int64_t stride, int64_t cols) {
  Vec sum[kColumnVecs], top[kColumnVecs];
  const int64_t vecs = (cols + kWidth - 1) / kWidth;
  const Vec one = set(1.0F);
  if (kind == AxisNorm::kSoftmax || kind == AxisNorm::kLogSoftmax) {
    for (int64_t v = 0; v < vecs; ++v) top[v] = set(-INFINITY);
    fold_columns(src, n, stride, cols, top, [](Vec s, Vec x) HONE_LAMBDA_INLINE { return max(s, x); });
  }
  if (kind == AxisNorm::kSoftmax) {
    map_columns(src, dst, n, stride, cols,
                [&](int64_t v, Vec x) HONE_LAMBDA_INLINE { return exp_negative(x - top[v]); });
    sum_columns(dst, n, stride, cols, sum, [](int64_t, Vec x) HONE_LAMBDA_INLINE { return x; });
    for (int64_t v = 0; v < vecs; ++v) sum[v] = one / sum[v];
    map_columns(dst, dst, n, stride, cols, [&](int64_t v, Vec x) HONE_LAMBDA_INLINE { return x * sum[v]; });
  } else if (kind == AxisNorm::kLogSoftmax) {
    sum_columns(src, n, stride, cols, sum,
                [&](int64_t v, Vec x) HONE_LAMBDA_INLINE { return exp_negative(x - top[v]); });
    for (int64_t v = 0; v < vecs; ++v) sum[v] = log(sum[v]);
    map_columns(src, dst, n, stride, cols,
                [&](int64_t v, Vec x) HONE_LAMBDA_INLINE { return (x - top[v]) - sum[v]; });
  } else {
    if (kind == AxisNorm::kL1)
      sum_columns(src, n, stride, cols, sum, [](int64_t, Vec x) HONE_LAMBDA_INLINE { return abs(x); });
    else
      sum_columns(src, n, stride, cols, sum, [](int64_t, Vec x) HONE_LAMBDA_INLINE { return x * x; });
    bool plain = true;
    for (int64_t v = 0; v < vecs; ++v) {
      const bool full = (v + 1) * kWidth <= cols;
      float lanes[kWidth];
      store(lanes, sum[v]);
      for (int i = 0; i < (full ? kWidth : static_cast<int>(cols % kWidth)); ++i)
        plain = plain && lanes[i] < 1e37F && lanes[i] > 1e-25F;
      sum[v] = one / (kind == AxisNorm::kL2 ? sqrt(sum[v]) : sum[v]);
    }
    if (!plain) return lp_columns_wide(kind, src, dst, n, stride, cols);
    map_columns(src, dst, n, stride, cols, [&](int64_t v, Vec x) HONE_LAMBDA_INLINE { return x * sum[v]; });
  }
}

}  // namespace hone::cpu::HONE_ISA_NS
