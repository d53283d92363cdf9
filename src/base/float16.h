// Narrow floating types: f16, bf16, the 8-bit types of ONNX, f4e2m1 and the power-of-two scale f8e8m0.
//
// Math: decoding is exact. Encoding rounds the real value once, to nearest with ties to even, from f32 or f64
// alike; subnormals are kept. Overflow, [x] being the rounded value and max the largest finite one:
//   f16, bf16            [x] > max and inf give inf
//   f8, saturate         [x] > max and inf give max (of the sign)
//   f8, not saturating   [x] > max and inf give inf in f8e5m2, NaN in the others (they have no inf)
//   f4e2m1               has neither inf nor NaN: always saturates; NaN gives +max
// The fnuz types have one NaN (0x80) and no -0. Encodings are the low bits of the returned integer.
// Source: IEEE 754, the OCP 8-bit and MX formats, ONNX Cast-28.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace hone {

/// How a small binary float lays out its bits: sign, `exp` bits, `man` bits.
struct NarrowFormat {
  enum class Specials : uint8_t {
    kIeee,  ///< all-ones exponent: inf and NaN
    kFn,    ///< no inf; NaN is all ones below the sign
    kFnuz,  ///< no inf, no -0; NaN is the pattern of -0
    kNone,  ///< no inf, no NaN
  };
  int exp;
  int man;
  int bias;
  Specials specials;

  constexpr uint32_t sign_bit() const { return 1u << (exp + man); }
  /// Pattern of the largest finite value.
  constexpr uint32_t max_bits() const {
    const uint32_t all = sign_bit() - 1;
    switch (specials) {
      case Specials::kIeee: return all - (1u << man);
      case Specials::kFn: return all - 1;
      default: return all;
    }
  }
  constexpr uint32_t nan_bits() const {
    switch (specials) {
      case Specials::kIeee: return sign_bit() - 1 - (1u << man) + 1 + (1u << (man - 1));  // quiet
      case Specials::kFn: return sign_bit() - 1;
      case Specials::kFnuz: return sign_bit();
      default: return max_bits();
    }
  }
};

inline constexpr NarrowFormat kF16Format{5, 10, 15, NarrowFormat::Specials::kIeee};
inline constexpr NarrowFormat kBf16Format{8, 7, 127, NarrowFormat::Specials::kIeee};
inline constexpr NarrowFormat kF8E4M3FnFormat{4, 3, 7, NarrowFormat::Specials::kFn};
inline constexpr NarrowFormat kF8E4M3FnuzFormat{4, 3, 8, NarrowFormat::Specials::kFnuz};
inline constexpr NarrowFormat kF8E5M2Format{5, 2, 15, NarrowFormat::Specials::kIeee};
inline constexpr NarrowFormat kF8E5M2FnuzFormat{5, 2, 16, NarrowFormat::Specials::kFnuz};
inline constexpr NarrowFormat kF4E2M1Format{2, 1, 1, NarrowFormat::Specials::kNone};

/// 2^e as a double, for -1022 <= e <= 1023.
inline double pow2(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

/// Exact value of a pattern.
inline double narrow_decode(const NarrowFormat& f, uint32_t bits) {
  using S = NarrowFormat::Specials;
  const bool negative = (bits & f.sign_bit()) != 0;
  const uint32_t magnitude = bits & (f.sign_bit() - 1);
  const double sign = negative ? -1.0 : 1.0;
  if (f.specials == S::kFnuz && bits == f.sign_bit()) return std::bit_cast<double>(0x7ff8000000000000ull);
  if (f.specials == S::kFn && magnitude == f.sign_bit() - 1) {
    return std::copysign(std::bit_cast<double>(0x7ff8000000000000ull), sign);
  }
  const int e = static_cast<int>(magnitude >> f.man);
  const uint32_t m = magnitude & ((1u << f.man) - 1);
  if (f.specials == S::kIeee && e == (1 << f.exp) - 1) {
    const uint64_t payload = static_cast<uint64_t>(m) << (52 - f.man);
    return std::copysign(std::bit_cast<double>(0x7ff0000000000000ull | payload), sign);
  }
  if (e == 0) return sign * m * pow2(1 - f.bias - f.man);
  return sign * (m + (1u << f.man)) * pow2(e - f.bias - f.man);
}

/// Pattern nearest to x. `saturate` as in the table above; ignored by formats with kNone.
inline uint32_t narrow_encode(const NarrowFormat& f, double x, bool saturate) {
  using S = NarrowFormat::Specials;
  const uint64_t raw = std::bit_cast<uint64_t>(x);
  const uint32_t sign = (raw >> 63) != 0 ? f.sign_bit() : 0;
  const uint64_t magnitude = raw & 0x7fffffffffffffffull;
  if (magnitude > 0x7ff0000000000000ull) {  // NaN
    if (f.specials == S::kFnuz || f.specials == S::kNone) return f.nan_bits();
    return sign | f.nan_bits();
  }
  uint32_t bits = 0;
  bool overflow = magnitude == 0x7ff0000000000000ull;
  if (!overflow && magnitude != 0) {
    // Exponent of the unit in the last place that x is rounded to: that of its binade, not below the
    // subnormals' one.
    const int binade = static_cast<int>(magnitude >> 52) - 1023;  // f64 subnormals are far below every format
    const int min_binade = 1 - f.bias;
    const int ulp = (binade < min_binade ? min_binade : binade) - f.man;
    // q = |x| / 2^ulp, exact, is below 2^(man+1); what is below a quarter of the last place rounds to 0
    // anyway.
    double q = 0;
    if (binade - ulp >= -2) q = std::bit_cast<double>(magnitude) * pow2(-ulp);
    const auto floor_q = static_cast<uint32_t>(q);
    const double rest = q - floor_q;
    uint32_t r = floor_q;
    if (rest > 0.5 || (rest == 0.5 && (r & 1) != 0)) ++r;
    const int e = ulp + f.man - min_binade;          // 0 for the lowest normal binade and the subnormals
    bits = r + (static_cast<uint32_t>(e) << f.man);  // the hidden bit of r carries into the exponent
    overflow = e > (1 << f.exp) || bits > f.max_bits();
  }
  if (!overflow) return (f.specials == S::kFnuz && bits == 0) ? 0 : (sign | bits);
  if (saturate || f.specials == S::kNone) return sign | f.max_bits();
  if (f.specials == S::kIeee) return sign | (f.max_bits() + 1);  // inf
  return f.specials == S::kFnuz ? f.nan_bits() : (sign | f.nan_bits());
}

/// f32 to bf16, overflow to inf; NaN stays NaN.
inline uint16_t f32_to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((u >> 16) | 0x0040u);
  return static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
inline float bf16_to_f32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// f16 to f32, exact.
inline float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  const float value = static_cast<float>(magnitude) * 0x1p-24f;  // subnormals are multiples of 2^-24
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
}

/// f32 to f16, overflow to inf; NaN stays NaN.
inline uint16_t f32_to_f16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const auto sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and above
  if (magnitude >= 0x38800000u) {  // normal results (rounding may carry into inf)
    const uint32_t rounded = magnitude + 0x0fffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  // Subnormal results: adding 0.5 puts 2^-24 at the last bit of the f32 mantissa, which rounds to nearest
  // even.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
}

/// From f64, rounded once (through f32 it would round twice).
inline uint16_t f64_to_f16(double x) { return static_cast<uint16_t>(narrow_encode(kF16Format, x, false)); }
inline uint16_t f64_to_bf16(double x) { return static_cast<uint16_t>(narrow_encode(kBf16Format, x, false)); }

inline float f8e4m3fn_to_f32(uint8_t b) { return static_cast<float>(narrow_decode(kF8E4M3FnFormat, b)); }
inline float f8e4m3fnuz_to_f32(uint8_t b) { return static_cast<float>(narrow_decode(kF8E4M3FnuzFormat, b)); }
inline float f8e5m2_to_f32(uint8_t b) { return static_cast<float>(narrow_decode(kF8E5M2Format, b)); }
inline float f8e5m2fnuz_to_f32(uint8_t b) { return static_cast<float>(narrow_decode(kF8E5M2FnuzFormat, b)); }
inline float f4e2m1_to_f32(uint8_t b) { return static_cast<float>(narrow_decode(kF4E2M1Format, b & 0xfu)); }

inline uint8_t to_f8e4m3fn(double x, bool saturate = true) {
  return static_cast<uint8_t>(narrow_encode(kF8E4M3FnFormat, x, saturate));
}
inline uint8_t to_f8e4m3fnuz(double x, bool saturate = true) {
  return static_cast<uint8_t>(narrow_encode(kF8E4M3FnuzFormat, x, saturate));
}
inline uint8_t to_f8e5m2(double x, bool saturate = true) {
  return static_cast<uint8_t>(narrow_encode(kF8E5M2Format, x, saturate));
}
inline uint8_t to_f8e5m2fnuz(double x, bool saturate = true) {
  return static_cast<uint8_t>(narrow_encode(kF8E5M2FnuzFormat, x, saturate));
}
inline uint8_t to_f4e2m1(double x) { return static_cast<uint8_t>(narrow_encode(kF4E2M1Format, x, true)); }

/// f8e8m0 holds 2^(b - 127), 0xff is NaN; there is no zero, sign or inf.
inline double f8e8m0_to_f64(uint8_t b) {
  return b == 0xff ? std::bit_cast<double>(0x7ff8000000000000ull) : pow2(static_cast<int>(b) - 127);
}
inline float f8e8m0_to_f32(uint8_t b) { return static_cast<float>(f8e8m0_to_f64(b)); }

enum class E8M0Round : uint8_t {
  kUp,       ///< to the power of two not below x
  kDown,     ///< to the power of two not above x
  kNearest,  ///< to the nearest power of two, ties up
};
/// Out of range, zero included: the nearest end of the range with `saturate`, else NaN. Negative values and
/// NaN give NaN.
inline uint8_t to_f8e8m0(double x, E8M0Round round = E8M0Round::kUp, bool saturate = true) {
  if (std::isnan(x) || x < 0) return 0xff;
  if (std::isinf(x)) return saturate ? 0xfe : 0xff;
  if (x < pow2(-127)) {
    if (!saturate && (x < pow2(-128) * 1.5 || round != E8M0Round::kNearest)) return 0xff;
    return 0;
  }
  const uint64_t raw = std::bit_cast<uint64_t>(x);
  int e = static_cast<int>(raw >> 52) - 1023;
  const uint64_t fraction = raw & 0xfffffffffffffull;
  if (round == E8M0Round::kUp && fraction != 0) ++e;
  if (round == E8M0Round::kNearest && fraction >= 0x8000000000000ull) ++e;
  if (e > 127) return saturate ? 0xfe : 0xff;
  return static_cast<uint8_t>(e + 127);
}

}  // namespace hone
