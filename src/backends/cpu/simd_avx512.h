// AVX-512 half of simd.h: sixteen lanes. Include simd.h instead, which opens the target region.
#pragma once

namespace hone::cpu::avx512 {

inline constexpr int kWidth = 16;

struct Vec {
  __m512 v;
};
struct IVec {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};

HONE_INLINE Vec set(float x) { return {_mm512_set1_ps(x)}; }
HONE_INLINE Vec zero() { return {_mm512_setzero_ps()}; }
HONE_INLINE Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
HONE_INLINE void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
HONE_INLINE __mmask16 lanes_below(int n) { return static_cast<__mmask16>((1U << n) - 1U); }
HONE_INLINE Vec load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(lanes_below(n), p)}; }
HONE_INLINE void store_n(float* p, Vec a, int n) { _mm512_mask_storeu_ps(p, lanes_below(n), a.v); }

HONE_INLINE Vec keep(Vec a) {
  __asm__("" : "+v"(a.v));
  return a;
}
HONE_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
HONE_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
HONE_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
HONE_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
HONE_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
HONE_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }

HONE_INLINE IVec set_i(int32_t x) { return {_mm512_set1_epi32(x)}; }
HONE_INLINE IVec bits(Vec a) { return {_mm512_castps_si512(a.v)}; }
HONE_INLINE Vec from_bits(IVec a) { return {_mm512_castsi512_ps(a.v)}; }
HONE_INLINE IVec load_i(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
HONE_INLINE IVec load_i_n(const int32_t* p, int n) { return {_mm512_maskz_loadu_epi32(lanes_below(n), p)}; }
HONE_INLINE void store_i(int32_t* p, IVec a) { _mm512_storeu_si512(p, a.v); }
HONE_INLINE void store_i_n(int32_t* p, IVec a, int n) { _mm512_mask_storeu_epi32(p, lanes_below(n), a.v); }
HONE_INLINE IVec operator+(IVec a, IVec b) { return {_mm512_add_epi32(a.v, b.v)}; }
HONE_INLINE IVec operator-(IVec a, IVec b) { return {_mm512_sub_epi32(a.v, b.v)}; }
HONE_INLINE IVec operator&(IVec a, IVec b) { return {_mm512_and_si512(a.v, b.v)}; }
HONE_INLINE IVec operator|(IVec a, IVec b) { return {_mm512_or_si512(a.v, b.v)}; }
HONE_INLINE IVec operator^(IVec a, IVec b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int n>
HONE_INLINE IVec shl(IVec a) {
  return {_mm512_slli_epi32(a.v, n)};
}
template <int n>
HONE_INLINE IVec shr(IVec a) {
  return {_mm512_srli_epi32(a.v, n)};
}
template <int n>
HONE_INLINE IVec sar(IVec a) {
  return {_mm512_srai_epi32(a.v, n)};
}

HONE_INLINE Mask eq(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
HONE_INLINE Mask ne(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }
HONE_INLINE Mask lt(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
HONE_INLINE Mask le(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
HONE_INLINE Mask gt(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
HONE_INLINE Mask ge(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
HONE_INLINE Mask is_nan(Vec a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
HONE_INLINE Mask gt_i(IVec a, IVec b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }
HONE_INLINE Mask eq_i(IVec a, IVec b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
HONE_INLINE Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.v & b.v)}; }
HONE_INLINE Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.v | b.v)}; }
HONE_INLINE Mask operator~(Mask a) { return {static_cast<__mmask16>(~a.v)}; }
HONE_INLINE bool any(Mask m) { return m.v != 0; }
HONE_INLINE bool all(Mask m) { return m.v == 0xFFFF; }
HONE_INLINE Vec select(Mask m, Vec a, Vec b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }
HONE_INLINE IVec select_i(Mask m, IVec a, IVec b) { return {_mm512_mask_blend_epi32(m.v, b.v, a.v)}; }

HONE_INLINE Vec operator-(Vec a) { return from_bits(bits(a) ^ set_i(INT32_MIN)); }
HONE_INLINE Vec abs(Vec a) { return from_bits(bits(a) & set_i(INT32_MAX)); }
HONE_INLINE Vec copysign(Vec mag, Vec sgn) {
  return from_bits((bits(mag) & set_i(INT32_MAX)) | (bits(sgn) & set_i(INT32_MIN)));
}
HONE_INLINE Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
HONE_INLINE Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
HONE_INLINE Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }

HONE_INLINE IVec to_int(Vec a) { return {_mm512_cvtps_epi32(a.v)}; }
HONE_INLINE IVec trunc_to_int(Vec a) { return {_mm512_cvttps_epi32(a.v)}; }
HONE_INLINE Vec to_float(IVec a) { return {_mm512_cvtepi32_ps(a.v)}; }
HONE_INLINE Vec round(Vec a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
HONE_INLINE Vec floor(Vec a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}
HONE_INLINE Vec ceil(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)}; }
HONE_INLINE Vec trunc(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)}; }

HONE_INLINE Vec gather(const float* p, IVec i) { return {_mm512_i32gather_ps(i.v, p, 4)}; }

HONE_INLINE Vec permute(Vec a, IVec i) { return {_mm512_permutexvar_ps(i.v, a.v)}; }

HONE_INLINE float reduce_add(Vec a) {
  const __m256 w = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 h = _mm_add_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
  const __m128 q = _mm_add_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_shuffle_ps(q, q, 1)));
}
HONE_INLINE float reduce_max(Vec a) {
  const __m256 w = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 h = _mm_max_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
  const __m128 q = _mm_max_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_shuffle_ps(q, q, 1)));
}
HONE_INLINE float reduce_min(Vec a) {
  const __m256 w = _mm256_min_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 h = _mm_min_ps(_mm256_castps256_ps128(w), _mm256_extractf128_ps(w, 1));
  const __m128 q = _mm_min_ps(h, _mm_movehl_ps(h, h));
  return _mm_cvtss_f32(_mm_min_ss(q, _mm_shuffle_ps(q, q, 1)));
}

}  // namespace hone::cpu::avx512
