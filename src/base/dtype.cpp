#include "hone/dtype.h"

#include <iterator>

namespace hone {
namespace {

enum : uint8_t { kIsFloat = 1, kIsInt = 2, kIsSigned = 4 };

struct Row {
  const char* name;
  uint8_t bits;
  uint8_t flags;
};

// Indexed by DType.
constexpr Row kRows[] = {
    {"undefined", 0, 0},
    {"f32", 32, kIsFloat},
    {"u8", 8, kIsInt},
    {"i8", 8, kIsInt | kIsSigned},
    {"u16", 16, kIsInt},
    {"i16", 16, kIsInt | kIsSigned},
    {"i32", 32, kIsInt | kIsSigned},
    {"i64", 64, kIsInt | kIsSigned},
    {"string", 0, 0},
    {"bool", 8, 0},
    {"f16", 16, kIsFloat},
    {"f64", 64, kIsFloat},
    {"u32", 32, kIsInt},
    {"u64", 64, kIsInt},
    {"c64", 64, 0},
    {"c128", 128, 0},
    {"bf16", 16, kIsFloat},
    {"f8e4m3fn", 8, kIsFloat},
    {"f8e4m3fnuz", 8, kIsFloat},
    {"f8e5m2", 8, kIsFloat},
    {"f8e5m2fnuz", 8, kIsFloat},
    {"u4", 4, kIsInt},
    {"i4", 4, kIsInt | kIsSigned},
    {"f4e2m1", 4, kIsFloat},
    {"f8e8m0", 8, kIsFloat},
    {"u2", 2, kIsInt},
    {"i2", 2, kIsInt | kIsSigned},
};

const Row& row(DType t) {
  const auto i = static_cast<size_t>(t);
  return i < std::size(kRows) ? kRows[i] : kRows[0];
}

}  // namespace

int dtype_bits(DType t) { return row(t).bits; }
const char* dtype_name(DType t) { return row(t).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (size_t i = 1; i < std::size(kRows); ++i) {
    if (name == kRows[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_float(DType t) { return (row(t).flags & kIsFloat) != 0; }
bool is_integer(DType t) { return (row(t).flags & kIsInt) != 0; }
bool is_signed_integer(DType t) { return (row(t).flags & kIsSigned) != 0; }
bool is_narrow_float(DType t) { return is_float(t) && row(t).bits < 32; }

}  // namespace hone
