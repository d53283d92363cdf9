// Body of kernels/resize.cpp, compiled per ISA.

namespace hone::cpu::HONE_ISA_NS {
namespace {

/// kCount 0: `count` rows.
template <int kCount>
HONE_INLINE void blend(float* dst, const float* const* rows, const float* weights, int count, int64_t n) {
  if constexpr (kCount > 0) count = kCount;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    Vec sum = set(weights[0]) * load(rows[0] + i);
    for (int r = 1; r < count; ++r) sum = fma(set(weights[r]), load(rows[r] + i), sum);
    store(dst + i, sum);
  }
  if (i < n) {
    const int left = static_cast<int>(n - i);
    Vec sum = set(weights[0]) * load_n(rows[0] + i, left);
    for (int r = 1; r < count; ++r) sum = fma(set(weights[r]), load_n(rows[r] + i, left), sum);
    store_n(dst + i, sum, left);
  }
}

}  // namespace

void blend_rows(float* dst, const float* const* rows, const float* weights, int count, int64_t n) {
  switch (count) {
    case 1: return blend<1>(dst, rows, weights, count, n);
    case 2: return blend<2>(dst, rows, weights, count, n);
    case 4: return blend<4>(dst, rows, weights, count, n);
    default: return blend<0>(dst, rows, weights, count, n);
  }
}

void sample_row(float* dst, const float* row, const int32_t* index, const float* weight, int taps,
                int64_t n) {
  const Vec nil = zero();
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    Vec sum = nil;
    for (int t = 0; t < taps; ++t) {
      const Vec w = load(weight + t * n + i);
      const Vec x = gather(row, load_i(index + t * n + i));
      sum = select(eq(w, nil), sum, fma(w, x, sum));
    }
    store(dst + i, sum);
  }
  if (i < n) {
    const int left = static_cast<int>(n - i);
    Vec sum = nil;
    for (int t = 0; t < taps; ++t) {
      const Vec w = load_n(weight + t * n + i, left);
      const Vec x = gather(row, load_i_n(index + t * n + i, left));
      sum = select(eq(w, nil), sum, fma(w, x, sum));
    }
    store_n(dst + i, sum, left);
  }
}

}  // namespace hone::cpu::HONE_ISA_NS
