#include "hone/dtype.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(DType, NamesParseBack) {
  for (int i = 1; i <= 26; ++i) {
    const auto t = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(t)), t);
  }
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(parse_dtype("undefined"), std::nullopt);
  EXPECT_STREQ(dtype_name(static_cast<DType>(200)), "undefined");
  EXPECT_EQ(dtype_bits(static_cast<DType>(200)), 0);
}

TEST(DType, Classes) {
  EXPECT_EQ(dtype_bits(DType::kF32), 32);
  EXPECT_EQ(dtype_bits(DType::kI4), 4);
  EXPECT_EQ(dtype_bits(DType::kC128), 128);
  EXPECT_EQ(dtype_bits(DType::kString), 0);
  EXPECT_TRUE(is_float(DType::kF8E8M0));
  EXPECT_TRUE(is_narrow_float(DType::kBF16));
  EXPECT_FALSE(is_narrow_float(DType::kF32));
  EXPECT_TRUE(is_integer(DType::kU2));
  EXPECT_FALSE(is_integer(DType::kBool));
  EXPECT_TRUE(is_signed_integer(DType::kI4));
  EXPECT_FALSE(is_signed_integer(DType::kU64));
}

}  // namespace
}  // namespace hone
