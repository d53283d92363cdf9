// convert(): element type conversion of whole tensors, rounded once.
#include <cstring>

#include "base/float16.h"
#include "hone/error.h"
#include "ops/dispatch.h"
#include "ops/interpreter.h"

namespace hone::ops {
namespace {

template <class From, class To>
void convert_loop(const Tensor& from, Tensor* to, To (*fn)(From)) {
  const From* s = from.data<From>();
  To* d = to->data<To>();
  for (int64_t i = 0, n = from.numel(); i < n; ++i) d[i] = fn(s[i]);
}

/// The pairs that run on whole models; false for any other.
bool convert_fast(const Tensor& from, Tensor* to) {
  const auto is = [&](DType a, DType b) { return from.dtype() == a && to->dtype() == b; };
  if (is(DType::kF32, DType::kF64))
    convert_loop<float, double>(from, to, [](float x) { return static_cast<double>(x); });
  else if (is(DType::kF64, DType::kF32))
    convert_loop<double, float>(from, to, [](double x) { return static_cast<float>(x); });
  else if (is(DType::kF16, DType::kF32))
    convert_loop<uint16_t, float>(from, to, [](uint16_t x) { return f16_to_f32(x); });
  else if (is(DType::kBF16, DType::kF32))
    convert_loop<uint16_t, float>(from, to, [](uint16_t x) { return bf16_to_f32(x); });
  else if (is(DType::kF16, DType::kF64))
    convert_loop<uint16_t, double>(from, to, [](uint16_t x) { return static_cast<double>(f16_to_f32(x)); });
  else if (is(DType::kBF16, DType::kF64))
    convert_loop<uint16_t, double>(from, to, [](uint16_t x) { return static_cast<double>(bf16_to_f32(x)); });
  else if (is(DType::kF32, DType::kF16))
    convert_loop<float, uint16_t>(from, to, [](float x) { return f32_to_f16(x); });
  else if (is(DType::kF32, DType::kBF16))
    convert_loop<float, uint16_t>(from, to, [](float x) { return f32_to_bf16(x); });
  else
    return false;
  return true;
}

void store_float(DType t, void* data, int64_t i, double x) {
  const auto byte = [&](uint8_t b) { static_cast<uint8_t*>(data)[i] = b; };
  switch (t) {
    case DType::kF32: static_cast<float*>(data)[i] = static_cast<float>(x); break;
    case DType::kF64: static_cast<double*>(data)[i] = x; break;
    case DType::kF16: static_cast<uint16_t*>(data)[i] = f64_to_f16(x); break;
    case DType::kBF16: static_cast<uint16_t*>(data)[i] = f64_to_bf16(x); break;
    case DType::kF8E4M3FN: byte(to_f8e4m3fn(x)); break;
    case DType::kF8E4M3FNUZ: byte(to_f8e4m3fnuz(x)); break;
    case DType::kF8E5M2: byte(to_f8e5m2(x)); break;
    case DType::kF8E5M2FNUZ: byte(to_f8e5m2fnuz(x)); break;
    case DType::kF8E8M0: byte(to_f8e8m0(x)); break;
    case DType::kF4E2M1: {
      uint8_t& b = static_cast<uint8_t*>(data)[i / 2];
      const int shift = static_cast<int>(i % 2) * 4;
      b = static_cast<uint8_t>((b & ~(0xf << shift)) | (to_f4e2m1(x) << shift));
      break;
    }
    default: throw Error(ErrorCode::kInternal, std::string("not a float type: ") + dtype_name(t));
  }
}

/// The low bits of an integer, as two's complement stores them.
void store_integer(DType t, void* data, int64_t i, int64_t v) {
  const int bits = dtype_bits(t);
  if (t == DType::kBool) {
    static_cast<uint8_t*>(data)[i] = v != 0 ? 1 : 0;
  } else if (bits < 8) {
    const int per_byte = 8 / bits, shift = static_cast<int>(i % per_byte) * bits,
              mask = ((1 << bits) - 1) << shift;
    uint8_t& b = static_cast<uint8_t*>(data)[i / per_byte];
    b = static_cast<uint8_t>((b & ~mask) | ((static_cast<int>(v) << shift) & mask));
  } else {
    std::memcpy(static_cast<char*>(data) + i * (bits / 8), &v,
                static_cast<size_t>(bits / 8));  // little-endian low bytes
  }
}

/// Truncates towards zero and saturates; NaN gives 0.
int64_t saturating_integer(DType t, double x) {
  int64_t out = 0;
  if (dispatch_integer(
          t, [&](auto tag) { out = static_cast<int64_t>(to_integer<typename decltype(tag)::type>(x)); }))
    return out;
  const int bits = dtype_bits(t);
  const int64_t low = is_signed_integer(t) ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = low + (int64_t{1} << bits) - 1;
  const auto v = to_integer<int64_t>(x);
  return v < low ? low : v > high ? high : v;
}

}  // namespace

Tensor convert(const Tensor& t, DType to) {
  if (t.dtype() == to) return t;
  const bool from_integer = is_integer(t.dtype()) || t.dtype() == DType::kBool;
  const bool to_integer_type = is_integer(to) || to == DType::kBool;
  if ((!from_integer && !is_float(t.dtype())) || (!to_integer_type && !is_float(to))) {
    throw Error(ErrorCode::kUnsupported,
                std::string("conversion from ") + dtype_name(t.dtype()) + " to " + dtype_name(to));
  }
  Tensor out = dtype_bits(to) < 8 ? Tensor::zeros(to, t.shape()) : Tensor(to, t.shape());
  if (convert_fast(t, &out)) return out;
  if (from_integer && to_integer_type) {
    const std::vector<int64_t> values = t.to_i64();
    for (size_t i = 0; i < values.size(); ++i)
      store_integer(to, out.raw(), static_cast<int64_t>(i), values[i]);
    return out;
  }
  for (int64_t i = 0, n = t.numel(); i < n; ++i) {
    const double x = t.at(i);
    if (to == DType::kBool) {
      static_cast<uint8_t*>(out.raw())[i] = x != 0 ? 1 : 0;
    } else if (to_integer_type) {
      store_integer(to, out.raw(), i, saturating_integer(to, x));
    } else {
      store_float(to, out.raw(), i, x);
    }
  }
  return out;
}

}  // namespace hone::ops
