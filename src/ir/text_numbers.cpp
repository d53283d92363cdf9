#include "ir/text_numbers.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/float16.h"
#include "base/str.h"

namespace hone::ir {
namespace {

std::string hex_bits(uint64_t bits) {
  std::string digits = hex_text(bits);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  return "0x" + digits;
}

std::optional<uint64_t> parse_hex(std::string_view s) {
  if (s.substr(0, 2) != "0x" || s.size() < 3 || s.size() > 18) return std::nullopt;
  uint64_t v = 0;
  for (const char c : s.substr(2)) {
    const int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (d < 0) return std::nullopt;
    v = v << 4 | static_cast<uint64_t>(d);
  }
  return v;
}

// Floats of any width as raw bits, and the bits of the NaN that plain `nan` stands for.
struct FloatType {
  int bits;
  uint64_t nan;
  double (*decode)(uint64_t);
  uint64_t (*encode)(double);
};

template <const NarrowFormat& F>
double decode_narrow(uint64_t b) {
  return narrow_decode(F, static_cast<uint32_t>(b));
}
template <const NarrowFormat& F>
uint64_t encode_narrow(double x) {
  return narrow_encode(F, x, false);
}

const FloatType* float_type(DType t) {
  static constexpr FloatType kF32{
      32, 0x7fc00000, [](uint64_t b) -> double { return std::bit_cast<float>(static_cast<uint32_t>(b)); },
      [](double x) -> uint64_t { return std::bit_cast<uint32_t>(static_cast<float>(x)); }};
  static constexpr FloatType kF64{64, 0x7ff8000000000000ull,
                                  [](uint64_t b) { return std::bit_cast<double>(b); },
                                  [](double x) { return std::bit_cast<uint64_t>(x); }};
  static constexpr FloatType kF16{16, 0x7e00, decode_narrow<kF16Format>, encode_narrow<kF16Format>};
  static constexpr FloatType kBf16{16, 0x7fc0, decode_narrow<kBf16Format>, encode_narrow<kBf16Format>};
  static constexpr FloatType kE4M3Fn{8, 0x7f, decode_narrow<kF8E4M3FnFormat>, encode_narrow<kF8E4M3FnFormat>};
  static constexpr FloatType kE4M3Fnuz{8, 0x80, decode_narrow<kF8E4M3FnuzFormat>,
                                       encode_narrow<kF8E4M3FnuzFormat>};
  static constexpr FloatType kE5M2{8, 0x7e, decode_narrow<kF8E5M2Format>, encode_narrow<kF8E5M2Format>};
  static constexpr FloatType kE5M2Fnuz{8, 0x80, decode_narrow<kF8E5M2FnuzFormat>,
                                       encode_narrow<kF8E5M2FnuzFormat>};
  static constexpr FloatType kE2M1{4, ~0ull, decode_narrow<kF4E2M1Format>, encode_narrow<kF4E2M1Format>};
  static constexpr FloatType kE8M0{8, 0xff, [](uint64_t b) { return f8e8m0_to_f64(static_cast<uint8_t>(b)); },
                                   [](double x) -> uint64_t { return to_f8e8m0(x); }};
  switch (t) {
    case DType::kF32:
    case DType::kC64: return &kF32;
    case DType::kF64:
    case DType::kC128: return &kF64;
    case DType::kF16: return &kF16;
    case DType::kBF16: return &kBf16;
    case DType::kF8E4M3FN: return &kE4M3Fn;
    case DType::kF8E4M3FNUZ: return &kE4M3Fnuz;
    case DType::kF8E5M2: return &kE5M2;
    case DType::kF8E5M2FNUZ: return &kE5M2Fnuz;
    case DType::kF4E2M1: return &kE2M1;
    case DType::kF8E8M0: return &kE8M0;
    default: return nullptr;
  }
}

uint64_t load_bits(const void* data, int bits, int64_t i) {
  const auto* p = static_cast<const uint8_t*>(data);
  if (bits < 8) {
    const int per = 8 / bits;
    return (p[i / per] >> (static_cast<int>(i % per) * bits)) & ((1u << bits) - 1);
  }
  uint64_t v = 0;
  std::memcpy(&v, p + i * (bits / 8), static_cast<size_t>(bits / 8));
  return v;
}

void store_bits(void* data, int bits, int64_t i, uint64_t v) {
  auto* p = static_cast<uint8_t*>(data);
  if (bits < 8) {
    const int per = 8 / bits;
    const int shift = static_cast<int>(i % per) * bits;
    const uint32_t mask = ((1u << bits) - 1) << shift;
    p[i / per] = static_cast<uint8_t>((p[i / per] & ~mask) | ((static_cast<uint32_t>(v) << shift) & mask));
    return;
  }
  std::memcpy(p + i * (bits / 8), &v, static_cast<size_t>(bits / 8));
}

}  // namespace

int64_t text_element_count(DType t, int64_t elements) {
  return t == DType::kC64 || t == DType::kC128 ? 2 * elements : elements;
}

std::string element_text(const Tensor& t, int64_t i) {
  if (const FloatType* f = float_type(t.dtype())) {
    const uint64_t bits = load_bits(t.raw(), f->bits, i);
    const double v = f->decode(bits);
    if (std::isnan(v)) return bits == f->nan ? "nan" : hex_bits(bits);
    return f->bits == 64 ? number_text(v) : number_text(static_cast<float>(v));
  }
  const int width = dtype_bits(t.dtype());
  uint64_t v = load_bits(t.raw(), width, i);
  if (is_signed_integer(t.dtype())) {
    const int shift = 64 - width;
    return std::to_string(static_cast<int64_t>(v << shift) >> shift);
  }
  return std::to_string(v);
}

bool parse_element(std::string_view text, Tensor* t, int64_t i) {
  if (const FloatType* f = float_type(t->dtype())) {
    uint64_t bits = 0;
    if (const auto hex = parse_hex(text)) {
      if (f->bits < 64 && *hex >> f->bits != 0) return false;
      bits = *hex;
    } else if (text == "nan") {
      if (f->nan == ~0ull) return false;
      bits = f->nan;
    } else if (f->bits == 64) {
      const auto v = parse_f64(text);
      if (!v || std::isnan(*v)) return false;
      bits = std::bit_cast<uint64_t>(*v);
    } else {
      const auto v = parse_f32(text);
      if (!v || std::isnan(*v)) return false;
      bits = f->encode(*v);
      // The shortest text of a value of this type is read back exactly; anything else is a mistake of the
      // writer.
      if (f->bits < 32 && f->decode(bits) != static_cast<double>(*v)) return false;
    }
    store_bits(t->raw(), f->bits, i, bits);
    return true;
  }
  const int width = dtype_bits(t->dtype());
  if (width == 0) return false;
  if (t->dtype() == DType::kU64) {
    uint64_t v = 0;
    if (text.empty() || text.size() > 20) return false;
    for (const char c : text) {
      if (c < '0' || c > '9' || __builtin_mul_overflow(v, uint64_t{10}, &v) ||
          __builtin_add_overflow(v, static_cast<uint64_t>(c - '0'), &v)) {
        return false;
      }
    }
    store_bits(t->raw(), 64, i, v);
    return true;
  }
  const auto v = parse_i64(text);
  if (!v) return false;
  if (is_signed_integer(t->dtype())) {
    const int shift = 64 - width;
    if (static_cast<int64_t>(static_cast<uint64_t>(*v) << shift) >> shift != *v) return false;
  } else if (*v < 0 || *v >> width != 0 || (t->dtype() == DType::kBool && *v > 1)) {
    return false;
  }
  store_bits(t->raw(), width, i, static_cast<uint64_t>(*v));
  return true;
}

std::string float_text(float v) {
  const auto bits = std::bit_cast<uint32_t>(v);
  if (std::isnan(v)) return bits == 0x7fc00000u ? "nan" : hex_bits(bits);
  std::string s = number_text(v);
  if (s.find_first_of(".en") == std::string::npos) s += ".0";
  return s;
}

std::optional<float> parse_float_text(std::string_view s) {
  if (const auto hex = parse_hex(s)) {
    if (*hex >> 32 != 0) return std::nullopt;
    return std::bit_cast<float>(static_cast<uint32_t>(*hex));
  }
  if (s == "nan") return std::bit_cast<float>(0x7fc00000u);
  if (s.find_first_of(".en") == std::string_view::npos) return std::nullopt;
  return parse_f32(s);
}

}  // namespace hone::ir
