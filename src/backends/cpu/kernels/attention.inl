// Body of kernels/attention.cpp, compiled per ISA.
#include "backends/cpu/kernels/sums.inl"

namespace hone::cpu::HONE_ISA_NS {
namespace {

/// s = f(s, i, count); returns the maximum, which a NaN may or may not be.
template <class F>
HONE_INLINE float map_max(float* s, int64_t n, F f) {
  Vec top = set(-INFINITY);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) {
    const Vec x = f(load(s + i), i, kWidth);
    store(s + i, x);
    top = max(top, x);
  }
  if (i < n) {
    const int left = static_cast<int>(n - i);
    const Vec x = f(load_n(s + i, left), i, left);
    store_n(s + i, x, left);
    top = max(top, select(first_lanes(left), x, set(-INFINITY)));
  }
  return reduce_max(top);
}

HONE_INLINE Vec part_of(const float* p, int64_t i, int count) {
  return count == kWidth ? load(p + i) : load_n(p + i, count);
}

}  // namespace

float attention_softmax(float* s, int64_t n, float scale, float softcap, const float* mask, int64_t step) {
  const Vec vs = set(scale);
  float top;
  if (softcap > 0) {
    const Vec cap = set(softcap), inverse = set(1.0F / softcap);
    map_max(s, n, [=](Vec x, int64_t, int) HONE_LAMBDA_INLINE { return cap * tanh(x * vs * inverse); });
    const Vec one = set(mask != nullptr && step == 0 ? *mask : 0.0F);
    top = map_max(s, n, [=](Vec x, int64_t i, int count) HONE_LAMBDA_INLINE {
      return mask != nullptr && step == 1 ? x + part_of(mask, i, count) : x + one;
    });
  } else if (mask == nullptr) {
    top = map_max(s, n, [=](Vec x, int64_t, int) HONE_LAMBDA_INLINE { return x * vs; });
  } else if (step == 1) {
    top = map_max(s, n, [=](Vec x, int64_t i, int count) HONE_LAMBDA_INLINE {
      return fma(x, vs, part_of(mask, i, count));
    });
  } else {
    const Vec one = set(*mask);
    top = map_max(s, n, [=](Vec x, int64_t, int) HONE_LAMBDA_INLINE { return fma(x, vs, one); });
  }
  if (top == -INFINITY) {
    bool nan = false;
    for (int64_t i = 0; i < n; ++i) nan = nan || s[i] != s[i];
    if (nan) return NAN;
    for (int64_t i = 0; i < n; ++i) s[i] = 0;
    return 0;
  }
  return static_cast<float>(1.0 / exp_row(s, s, n, top));
}

void attention_scale(float* dst, int64_t n, float factor) {
  const Vec f = set(factor);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(dst + i, load(dst + i) * f);
  if (i < n) store_n(dst + i, load_n(dst + i, static_cast<int>(n - i)) * f, static_cast<int>(n - i));
}

void attention_dots(const float* q, int64_t size, const float* k, int64_t stride, int64_t keys, float* s) {
  int64_t j = 0;
  for (; j + 4 <= keys; j += 4) {
    const float* p = k + j * stride;
    Vec a0 = zero(), a1 = a0, a2 = a0, a3 = a0;
    int64_t i = 0;
    for (; i + kWidth <= size; i += kWidth) {
      const Vec x = load(q + i);
      a0 = fma(x, load(p + i), a0);
      a1 = fma(x, load(p + stride + i), a1);
      a2 = fma(x, load(p + 2 * stride + i), a2);
      a3 = fma(x, load(p + 3 * stride + i), a3);
    }
    if (i < size) {
      const int left = static_cast<int>(size - i);
      const Vec x = load_n(q + i, left);
      a0 = fma(x, load_n(p + i, left), a0);
      a1 = fma(x, load_n(p + stride + i, left), a1);
      a2 = fma(x, load_n(p + 2 * stride + i, left), a2);
      a3 = fma(x, load_n(p + 3 * stride + i, left), a3);
    }
    s[j] = reduce_add(a0);
    s[j + 1] = reduce_add(a1);
    s[j + 2] = reduce_add(a2);
    s[j + 3] = reduce_add(a3);
  }
  for (; j < keys; ++j) {
    const float* p = k + j * stride;
    Vec a = zero();
    int64_t i = 0;
    for (; i + kWidth <= size; i += kWidth) a = fma(load(q + i), load(p + i), a);
    if (i < size)
      a = fma(load_n(q + i, static_cast<int>(size - i)), load_n(p + i, static_cast<int>(size - i)), a);
    s[j] = reduce_add(a);
  }
}

void attention_sum(const float* p, int64_t keys, const float* v, int64_t stride, int64_t size, float* dst) {
  int64_t c = 0;
  for (; c + 4 * kWidth <= size; c += 4 * kWidth) {
    Vec a0 = zero(), a1 = a0, a2 = a0, a3 = a0;
    for (int64_t j = 0; j < keys; ++j) {
      const float* row = v + j * stride + c;
      const Vec w = set(p[j]);
      a0 = fma(w, load(row), a0);
      a1 = fma(w, load(row + kWidth), a1);
      a2 = fma(w, load(row + 2 * kWidth), a2);
      a3 = fma(w, load(row + 3 * kWidth), a3);
    }
    store(dst + c, a0);
    store(dst + c + kWidth, a1);
    store(dst + c + 2 * kWidth, a2);
    store(dst + c + 3 * kWidth, a3);
  }
  for (; c < size; c += kWidth) {
    const int left = size - c < kWidth ? static_cast<int>(size - c) : kWidth;
    Vec a = zero();
    for (int64_t j = 0; j < keys; ++j) a = fma(set(p[j]), load_n(v + j * stride + c, left), a);
    store_n(dst + c, a, left);
  }
}

}  // namespace hone::cpu::HONE_ISA_NS
