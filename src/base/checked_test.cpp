#include "base/checked.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(Checked, ThrowsExactlyOnOverflow) {
  EXPECT_EQ(checked_add(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_THROW(checked_add(INT64_MAX, 1), Error);
  EXPECT_THROW(checked_sub(INT64_MIN, 1), Error);
  EXPECT_EQ(checked_mul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_THROW(checked_mul(int64_t{1} << 32, int64_t{1} << 31), Error);
  EXPECT_THROW(checked_mul(INT64_MIN, -1), Error);
}

TEST(Checked, DivisionRoundsAsNamed) {
  for (int64_t a = -20; a <= 20; ++a) {
    for (int64_t b = -6; b <= 6; ++b) {
      if (b == 0) continue;
      const int64_t f = checked_floordiv(a, b);
      EXPECT_LE(f * b * (b > 0 ? 1 : -1), a * (b > 0 ? 1 : -1));
      EXPECT_GT((f + 1) * b * (b > 0 ? 1 : -1), a * (b > 0 ? 1 : -1));
      EXPECT_EQ(checked_ceildiv(a, b), -checked_floordiv(-a, b));
    }
  }
  EXPECT_THROW(checked_floordiv(1, 0), Error);
  EXPECT_THROW(checked_ceildiv(1, 0), Error);
  EXPECT_THROW(checked_floordiv(INT64_MIN, -1), Error);
  EXPECT_THROW(checked_ceildiv(INT64_MIN, -1), Error);
}

}  // namespace
}  // namespace hone
