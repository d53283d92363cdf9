#include "hone/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/float16.h"
#include "hone/error.h"

namespace hone {
namespace {

constexpr size_t kAlignment = 64;

std::shared_ptr<void> allocate(int64_t bytes) {
  // One extra vector of slack: kernels may load whole vectors at the tail. Never null, so that empty tensors
  // have an address.
  const size_t size = (static_cast<size_t>(bytes) + 2 * kAlignment - 1) / kAlignment * kAlignment;
  void* p = std::aligned_alloc(kAlignment, size);
  if (p == nullptr) {
    throw Error(ErrorCode::kOutOfMemory, "cannot allocate " + std::to_string(bytes) + " bytes for a tensor");
  }
  return std::shared_ptr<void>(p, [](void* q) { std::free(q); });
}

/// Element `i` of a type narrower than a byte: `bits` bits, the first element in the lowest bits.
uint32_t packed_element(const void* data, int bits, int64_t i) {
  const int per_byte = 8 / bits;
  const uint8_t byte = static_cast<const uint8_t*>(data)[i / per_byte];
  return (byte >> (static_cast<int>(i % per_byte) * bits)) & ((1u << bits) - 1);
}

int64_t sign_extend(uint32_t value, int bits) {
  const int64_t limit = int64_t{1} << (bits - 1);
  const auto v = static_cast<int64_t>(value);
  return v >= limit ? v - 2 * limit : v;
}

template <class T>
T load(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return v;
}

int64_t integer_at(DType t, const void* data, int64_t i) {
  switch (t) {
    case DType::kI8: return load<int8_t>(data, i);
    case DType::kU8: return load<uint8_t>(data, i);
    case DType::kBool: return load<uint8_t>(data, i) != 0;
    case DType::kI16: return load<int16_t>(data, i);
    case DType::kU16: return load<uint16_t>(data, i);
    case DType::kI32: return load<int32_t>(data, i);
    case DType::kU32: return load<uint32_t>(data, i);
    case DType::kI64: return load<int64_t>(data, i);
    case DType::kU64: return static_cast<int64_t>(load<uint64_t>(data, i));
    case DType::kI4: return sign_extend(packed_element(data, 4, i), 4);
    case DType::kU4: return packed_element(data, 4, i);
    case DType::kI2: return sign_extend(packed_element(data, 2, i), 2);
    case DType::kU2: return packed_element(data, 2, i);
    default: throw Error(ErrorCode::kInternal, std::string("not an integer tensor: ") + dtype_name(t));
  }
}

}  // namespace

int64_t numel(const Shape& shape) {
  for (const int64_t d : shape) {
    if (d < 0) throw Error(ErrorCode::kInvalidModel, "negative dimension " + std::to_string(d));
  }
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t n = 1;
  for (const int64_t d : shape) {
    if (!try_mul(n, d, &n))
      throw Error(ErrorCode::kInvalidModel, "the element count of a tensor overflows 64 bits");
  }
  return n;
}

int64_t dtype_bytes(DType t, int64_t count) {
  const int bits = dtype_bits(t);
  if (bits < 8) {
    const int64_t per_byte = bits == 0 ? 1 : 8 / bits;
    return bits == 0 ? 0 : count / per_byte + (count % per_byte != 0 ? 1 : 0);
  }
  int64_t bytes = 0;
  if (!try_mul(count, bits / 8, &bytes)) {
    throw Error(ErrorCode::kInvalidModel, "the byte count of a tensor overflows 64 bits");
  }
  return bytes;
}

std::string type_text(DType t, const Shape& shape) {
  std::string s = dtype_name(t);
  s += '[';
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != 0) s += ',';
    s += std::to_string(shape[i]);
  }
  return s + ']';
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), numel_(hone::numel(shape_)), data_(allocate(nbytes())) {}

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  std::memset(t.raw(), 0, static_cast<size_t>(t.nbytes()));
  return t;
}

Tensor Tensor::view(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner) {
  Tensor t;
  t.dtype_ = dtype;
  t.shape_ = std::move(shape);
  t.numel_ = hone::numel(t.shape_);
  (void)t.nbytes();  // throws when the byte count overflows
  // The aliasing constructor keeps `owner`; constness is dropped because views and blocks share one type.
  t.data_ = std::shared_ptr<void>(std::const_pointer_cast<void>(std::move(owner)), const_cast<void*>(data));
  return t;
}

Tensor Tensor::i64_vector(const std::vector<int64_t>& values) {
  return of<int64_t>(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}
Tensor Tensor::i64_scalar(int64_t value) { return of<int64_t>(DType::kI64, {}, {value}); }
Tensor Tensor::f32_scalar(float value) { return of<float>(DType::kF32, {}, {value}); }

Tensor Tensor::reshaped(Shape shape) const {
  const int64_t count = hone::numel(shape);
  if (count != numel_) {
    throw Error(ErrorCode::kInternal, "reshape of " + type_text() + " to " + hone::type_text(dtype_, shape) +
                                          " changes the element count");
  }
  Tensor t = *this;
  t.shape_ = std::move(shape);
  return t;
}

Tensor Tensor::clone() const {
  if (!defined()) return {};
  Tensor t(dtype_, shape_);
  if (numel_ != 0) std::memcpy(t.raw(), raw(), static_cast<size_t>(nbytes()));
  return t;
}

std::vector<int64_t> Tensor::to_i64() const {
  if (!is_integer(dtype_) && dtype_ != DType::kBool) {
    throw Error(ErrorCode::kInternal, std::string("to_i64 of a tensor of type ") + dtype_name(dtype_));
  }
  std::vector<int64_t> out(static_cast<size_t>(numel_));
  for (int64_t i = 0; i < numel_; ++i) out[static_cast<size_t>(i)] = integer_at(dtype_, raw(), i);
  return out;
}

double Tensor::at(int64_t i) const {
  const void* p = raw();
  switch (dtype_) {
    case DType::kF32: return load<float>(p, i);
    case DType::kF64: return load<double>(p, i);
    case DType::kF16: return f16_to_f32(load<uint16_t>(p, i));
    case DType::kBF16: return bf16_to_f32(load<uint16_t>(p, i));
    case DType::kF8E4M3FN: return f8e4m3fn_to_f32(load<uint8_t>(p, i));
    case DType::kF8E4M3FNUZ: return f8e4m3fnuz_to_f32(load<uint8_t>(p, i));
    case DType::kF8E5M2: return f8e5m2_to_f32(load<uint8_t>(p, i));
    case DType::kF8E5M2FNUZ: return f8e5m2fnuz_to_f32(load<uint8_t>(p, i));
    case DType::kF8E8M0: return f8e8m0_to_f64(load<uint8_t>(p, i));
    case DType::kF4E2M1: return f4e2m1_to_f32(static_cast<uint8_t>(packed_element(p, 4, i)));
    case DType::kU64: return static_cast<double>(load<uint64_t>(p, i));
    default: return static_cast<double>(integer_at(dtype_, p, i));
  }
}

}  // namespace hone
