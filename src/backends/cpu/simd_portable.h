// Portable half of simd.h: four lanes as a compiler vector, any architecture. Include simd.h instead.
#pragma once

#include "base/isa_region.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace hone::cpu::portable {

inline constexpr int kWidth = 4;

typedef float F4 __attribute__((vector_size(16)));
typedef int32_t I4 __attribute__((vector_size(16)));
typedef uint32_t U4 __attribute__((vector_size(16)));

struct Vec {
  F4 v;
};
struct IVec {
  I4 v;
};
/// All ones or all zeros per lane.
struct Mask {
  I4 v;
};

HONE_INLINE Vec set(float x) { return {F4{x, x, x, x}}; }
HONE_INLINE Vec zero() { return {F4{}}; }
HONE_INLINE Vec load(const float* p) {
  Vec r;
  std::memcpy(&r.v, p, sizeof(r.v));
  return r;
}
HONE_INLINE void store(float* p, Vec a) { std::memcpy(p, &a.v, sizeof(a.v)); }
HONE_INLINE Vec load_n(const float* p, int n) {
  Vec r = zero();
  for (int i = 0; i < n; ++i) r.v[i] = p[i];
  return r;
}
HONE_INLINE void store_n(float* p, Vec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}

HONE_INLINE Vec keep(Vec a) {
#if HONE_ISA_X86
  __asm__("" : "+x"(a.v));
#endif
  return a;
}
HONE_INLINE Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
HONE_INLINE Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
HONE_INLINE Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
HONE_INLINE Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
HONE_INLINE Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
HONE_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {c.v - a.v * b.v}; }

HONE_INLINE IVec set_i(int32_t x) { return {I4{x, x, x, x}}; }
HONE_INLINE IVec bits(Vec a) { return {(I4)a.v}; }
HONE_INLINE Vec from_bits(IVec a) { return {(F4)a.v}; }
HONE_INLINE IVec load_i(const int32_t* p) {
  IVec r;
  std::memcpy(&r.v, p, sizeof(r.v));
  return r;
}
HONE_INLINE IVec load_i_n(const int32_t* p, int n) {
  IVec r = set_i(0);
  for (int i = 0; i < n; ++i) r.v[i] = p[i];
  return r;
}
HONE_INLINE void store_i(int32_t* p, IVec a) { std::memcpy(p, &a.v, sizeof(a.v)); }
HONE_INLINE void store_i_n(int32_t* p, IVec a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
HONE_INLINE IVec operator+(IVec a, IVec b) { return {(I4)((U4)a.v + (U4)b.v)}; }
HONE_INLINE IVec operator-(IVec a, IVec b) { return {(I4)((U4)a.v - (U4)b.v)}; }
HONE_INLINE IVec operator&(IVec a, IVec b) { return {a.v & b.v}; }
HONE_INLINE IVec operator|(IVec a, IVec b) { return {a.v | b.v}; }
HONE_INLINE IVec operator^(IVec a, IVec b) { return {a.v ^ b.v}; }
template <int n>
HONE_INLINE IVec shl(IVec a) {
  return {(I4)((U4)a.v << n)};
}
template <int n>
HONE_INLINE IVec shr(IVec a) {
  return {(I4)((U4)a.v >> n)};
}
template <int n>
HONE_INLINE IVec sar(IVec a) {
  return {a.v >> n};
}

HONE_INLINE Mask eq(Vec a, Vec b) { return {a.v == b.v}; }
HONE_INLINE Mask ne(Vec a, Vec b) { return {a.v != b.v}; }
HONE_INLINE Mask lt(Vec a, Vec b) { return {a.v < b.v}; }
HONE_INLINE Mask le(Vec a, Vec b) { return {a.v <= b.v}; }
HONE_INLINE Mask gt(Vec a, Vec b) { return {a.v > b.v}; }
HONE_INLINE Mask ge(Vec a, Vec b) { return {a.v >= b.v}; }
HONE_INLINE Mask is_nan(Vec a) { return {a.v != a.v}; }
HONE_INLINE Mask gt_i(IVec a, IVec b) { return {a.v > b.v}; }
HONE_INLINE Mask eq_i(IVec a, IVec b) { return {a.v == b.v}; }
HONE_INLINE Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
HONE_INLINE Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
HONE_INLINE Mask operator~(Mask a) { return {~a.v}; }
HONE_INLINE bool any(Mask m) { return (m.v[0] | m.v[1] | m.v[2] | m.v[3]) != 0; }
HONE_INLINE bool all(Mask m) { return (m.v[0] & m.v[1] & m.v[2] & m.v[3]) != 0; }
HONE_INLINE Vec select(Mask m, Vec a, Vec b) { return {(F4)((m.v & (I4)a.v) | (~m.v & (I4)b.v))}; }
HONE_INLINE IVec select_i(Mask m, IVec a, IVec b) { return {(m.v & a.v) | (~m.v & b.v)}; }

HONE_INLINE Vec operator-(Vec a) { return from_bits(bits(a) ^ set_i(INT32_MIN)); }
HONE_INLINE Vec abs(Vec a) { return from_bits(bits(a) & set_i(INT32_MAX)); }
HONE_INLINE Vec copysign(Vec mag, Vec sgn) {
  return from_bits((bits(mag) & set_i(INT32_MAX)) | (bits(sgn) & set_i(INT32_MIN)));
}
HONE_INLINE Vec min(Vec a, Vec b) { return select(lt(a, b), a, b); }
HONE_INLINE Vec max(Vec a, Vec b) { return select(gt(a, b), a, b); }
HONE_INLINE Vec sqrt(Vec a) {
  return {
      F4{__builtin_sqrtf(a.v[0]), __builtin_sqrtf(a.v[1]), __builtin_sqrtf(a.v[2]), __builtin_sqrtf(a.v[3])}};
}

HONE_INLINE IVec trunc_to_int(Vec a) {
  // The comparison is false on NaN too, so the conversion never sees a value it has no answer for.
  const Mask ok = lt(abs(a), set(2147483648.0F));
  return select_i(ok, {__builtin_convertvector(select(ok, a, zero()).v, I4)}, set_i(INT32_MIN));
}
HONE_INLINE Vec to_float(IVec a) { return {__builtin_convertvector(a.v, F4)}; }
HONE_INLINE Vec round(Vec a) {
  // Adding 2^23 leaves no fraction bits: the sum is rounded to nearest even by the hardware.
  const Vec big = set(8388608.0F);
  const Vec r = (abs(a) + big) - big;
  return select(lt(abs(a), big), copysign(r, a), a);
}
HONE_INLINE Vec trunc(Vec a) {
  return select(lt(abs(a), set(8388608.0F)), copysign(to_float(trunc_to_int(a)), a), a);
}
HONE_INLINE Vec floor(Vec a) {
  const Vec t = trunc(a);
  return select(gt(t, a), copysign(t - set(1.0F), a), t);
}
HONE_INLINE Vec ceil(Vec a) {
  const Vec t = trunc(a);
  return select(lt(t, a), copysign(t + set(1.0F), a), t);
}
HONE_INLINE IVec to_int(Vec a) { return trunc_to_int(round(a)); }

HONE_INLINE Vec gather(const float* p, IVec i) { return {F4{p[i.v[0]], p[i.v[1]], p[i.v[2]], p[i.v[3]]}}; }

HONE_INLINE Vec permute(Vec a, IVec i) {
#if defined(__clang__)
  return {F4{a.v[i.v[0]], a.v[i.v[1]], a.v[i.v[2]], a.v[i.v[3]]}};
#else
  return {__builtin_shuffle(a.v, i.v)};
#endif
}

HONE_INLINE float reduce_add(Vec a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
HONE_INLINE float reduce_max(Vec a) {
  const auto pick = [](float x, float y) { return x > y ? x : y; };
  return pick(pick(a.v[0], a.v[2]), pick(a.v[1], a.v[3]));
}
HONE_INLINE float reduce_min(Vec a) {
  const auto pick = [](float x, float y) { return x < y ? x : y; };
  return pick(pick(a.v[0], a.v[2]), pick(a.v[1], a.v[3]));
}

}  // namespace hone::cpu::portable
