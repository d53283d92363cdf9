// Body of kernels/pointwise.cpp, compiled per ISA.
#include "backends/cpu/kernels/act.inl"

namespace hone::cpu::HONE_ISA_NS {
namespace {

template <class F>
HONE_INLINE void each(float* dst, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(dst + i, f(i, kWidth));
  if (i < n) store_n(dst + i, f(i, static_cast<int>(n - i)), static_cast<int>(n - i));
}
/// A chunk's vector at i: a full load where the count is the constant kWidth, else a masked one.
HONE_INLINE Vec at(const float* p, int64_t i, int count) {
  return count == kWidth ? load(p + i) : load_n(p + i, count);
}

template <ops::Act kAct>
void pw_act(float* dst, const float* a, const float*, const float*, int64_t n, float alpha, float beta) {
  const Vec va = set(alpha), vb = set(beta);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(dst + i, act<kAct>(load(a + i), va, vb));
  if (i < n) {
    const int left = static_cast<int>(n - i);
    store_n(dst + i, act<kAct>(load_n(a + i, left), va, vb), left);
  }
}

/// Functions without a vector form, one element at a time in f64.
void pw_sin(float* dst, const float* a, const float*, const float*, int64_t n, float, float) {
  for (int64_t i = 0; i < n; ++i) dst[i] = static_cast<float>(std::sin(static_cast<double>(a[i])));
}
void pw_cos(float* dst, const float* a, const float*, const float*, int64_t n, float, float) {
  for (int64_t i = 0; i < n; ++i) dst[i] = static_cast<float>(std::cos(static_cast<double>(a[i])));
}

template <PwTail kTail>
HONE_INLINE Vec pw_tail(Vec x, Vec alpha, Vec beta) {
  if constexpr (kTail == kReluTail) return max(zero(), x);
  if constexpr (kTail == kClipTail) return min(beta, max(alpha, x));
  return x;
}

template <int kOp>
HONE_INLINE Vec pw_binary(Vec a, Vec b) {
  if constexpr (kOp == 0) return a + b;
  if constexpr (kOp == 1) return a - b;
  if constexpr (kOp == 2) return a * b;
  if constexpr (kOp == 3) return a / b;
  // min and max give b when either is NaN, so a NaN in b comes through and one in a needs the select.
  if constexpr (kOp == 4) return select(is_nan(a), a, min(a, b));
  return select(is_nan(a), a, max(a, b));
}

template <int kOp, PwForm kForm, PwTail kTail>
void pw_binary_loop(float* dst, const float* a, const float* b, const float*, int64_t n, float alpha,
                    float beta) {
  const Vec va = set(alpha), vb = set(beta);
  const Vec one = set(kForm == kVecOne ? *b : kForm == kOneVec ? *a : 0.0F);
  each(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
    const Vec x = kForm == kOneVec ? one : at(a, i, count);
    const Vec y = kForm == kVecOne ? one : at(b, i, count);
    return pw_tail<kTail>(pw_binary<kOp>(x, y), va, vb);
  });
}

template <PwForm kForm>
void pw_pow(float* dst, const float* a, const float* b, const float*, int64_t n, float, float) {
  if constexpr (kForm == kVecOne) {
    // Exponents that normalisations and energies use; each within 1 ulp of pow.
    const float e = *b;
    const Vec one = set(1.0F);
    if (e == 2.0F)
      return each(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
        const Vec x = at(a, i, count);
        return x * x;
      });
    if (e == 3.0F)
      return each(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
        const Vec x = at(a, i, count);
        return x * x * x;
      });
    if (e == 1.0F)
      return each(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE { return at(a, i, count); });
    if (e == -1.0F)
      return each(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE { return one / at(a, i, count); });
    // pow(-0, 1/2) is +0 and pow(-inf, 1/2) is +inf, where sqrt gives -0 and NaN.
    if (e == 0.5F)
      return each(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
        const Vec x = at(a, i, count);
        return select(eq(x, set(-INFINITY)), set(INFINITY), sqrt(x + zero()));
      });
  }
  const double one = kForm == kOneVec ? *a : kForm == kVecOne ? *b : 0.0F;
  for (int64_t i = 0; i < n; ++i)
    dst[i] = static_cast<float>(std::pow(kForm == kOneVec ? one : static_cast<double>(a[i]),
                                         kForm == kVecOne ? one : static_cast<double>(b[i])));
}

template <bool kOneB, bool kOneC, PwTail kTail>
void pw_mul_add(float* dst, const float* a, const float* b, const float* c, int64_t n, float alpha,
                float beta) {
  const Vec va = set(alpha), vb = set(beta);
  const Vec one_b = set(kOneB ? *b : 0.0F), one_c = set(kOneC ? *c : 0.0F);
  each(dst, n, [=](int64_t i, int count) HONE_LAMBDA_INLINE {
    const Vec y = kOneB ? one_b : at(b, i, count);
    const Vec z = kOneC ? one_c : at(c, i, count);
    return pw_tail<kTail>(fma(at(a, i, count), y, z), va, vb);
  });
}

void pw_fill(float* dst, const float* a, const float*, const float*, int64_t n, float, float) {
  const Vec v = set(*a);
  each(dst, n, [=](int64_t, int) HONE_LAMBDA_INLINE { return v; });
}

template <int kOp, PwForm kForm>
void pw_tails(PwFn (&row)[3]) {
  row[kNoTail] = pw_binary_loop<kOp, kForm, kNoTail>;
  row[kReluTail] = pw_binary_loop<kOp, kForm, kReluTail>;
  row[kClipTail] = pw_binary_loop<kOp, kForm, kClipTail>;
}
template <int kOp>
void pw_forms(PwTable& t) {
  pw_tails<kOp, kVecVec>(t.binary[kOp][kVecVec]);
  pw_tails<kOp, kVecOne>(t.binary[kOp][kVecOne]);
  pw_tails<kOp, kOneVec>(t.binary[kOp][kOneVec]);
}
template <bool kOneB, bool kOneC>
void pw_mul_add_tails(PwFn (&row)[3]) {
  row[kNoTail] = pw_mul_add<kOneB, kOneC, kNoTail>;
  row[kReluTail] = pw_mul_add<kOneB, kOneC, kReluTail>;
  row[kClipTail] = pw_mul_add<kOneB, kOneC, kClipTail>;
}
template <int... kActs>
void pw_acts(PwTable& t, std::integer_sequence<int, kActs...>) {
  ((t.act[kActs] = pw_act<static_cast<ops::Act>(kActs)>), ...);
}

PwTable make_pw_table() {
  PwTable t{};
  pw_acts(t, std::make_integer_sequence<int, static_cast<int>(ops::Act::kIdentity) + 1>());
  t.act[static_cast<int>(ops::Act::kSin)] = pw_sin;
  t.act[static_cast<int>(ops::Act::kCos)] = pw_cos;
  pw_forms<0>(t);
  pw_forms<1>(t);
  pw_forms<2>(t);
  pw_forms<3>(t);
  pw_forms<4>(t);
  pw_forms<5>(t);
  for (int tail = 0; tail < 3; ++tail) {
    t.binary[6][kVecVec][tail] = pw_pow<kVecVec>;
    t.binary[6][kVecOne][tail] = pw_pow<kVecOne>;
    t.binary[6][kOneVec][tail] = pw_pow<kOneVec>;
  }
  pw_mul_add_tails<false, false>(t.mul_add[0][0]);
  pw_mul_add_tails<false, true>(t.mul_add[0][1]);
  pw_mul_add_tails<true, false>(t.mul_add[1][0]);
  pw_mul_add_tails<true, true>(t.mul_add[1][1]);
  t.fill = pw_fill;
  return t;
}

}  // namespace

const PwTable& pw_table() {
  static const PwTable table = make_pw_table();
  return table;
}

}  // namespace hone::cpu::HONE_ISA_NS
