// Element types of tensors, their widths and names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hone {

/// Element type. The values are ONNX TensorProto.DataType and are written into files: do not change them.
enum class DType : uint8_t {
  kUndefined = 0,
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kU16 = 4,
  kI16 = 5,
  kI32 = 6,
  kI64 = 7,
  kString = 8,
  kBool = 9,  ///< one byte, 0 or 1
  kF16 = 10,
  kF64 = 11,
  kU32 = 12,
  kU64 = 13,
  kC64 = 14,
  kC128 = 15,
  kBF16 = 16,
  kF8E4M3FN = 17,
  kF8E4M3FNUZ = 18,
  kF8E5M2 = 19,
  kF8E5M2FNUZ = 20,
  kU4 = 21,  ///< two elements a byte, the first in the low half
  kI4 = 22,
  kF4E2M1 = 23,
  kF8E8M0 = 24,
  kU2 = 25,  ///< four elements a byte, the first in the lowest bits
  kI2 = 26,
};

/// Bits of one element; 0 for kUndefined and kString.
int dtype_bits(DType t);
/// Short name: f32 f16 bf16 f8e4m3fn i8 u8 i32 i64 bool ... ; "undefined" for an unknown value.
const char* dtype_name(DType t);
std::optional<DType> parse_dtype(std::string_view name);

bool is_float(DType t);    ///< any floating type, 4 to 64 bits
bool is_integer(DType t);  ///< any integer type, 2 to 64 bits; bool is not one
bool is_signed_integer(DType t);
/// Floats narrower than 32 bits: their arithmetic is done in f32 or wider and rounded once.
bool is_narrow_float(DType t);

}  // namespace hone
