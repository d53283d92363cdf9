#include "backends/cpu/simd.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu.h"

namespace hone::cpu {
namespace {
constexpr int kMax = 512;
struct SimdProbe {
  int width;
  float row[23][kMax];
  int32_t irow[5][kMax];
  float sum, largest, smallest, fma, fnma;
  bool any_all;
};
}  // namespace
}  // namespace hone::cpu

#define HONE_ISA_INL "backends/cpu/simd_test.inl"
#include "base/isa_foreach.h"

namespace hone::cpu {
namespace {

void probe(Isa isa, const float* a, const float* b, int n, SimdProbe& out) {
  switch (isa) {
    case Isa::kPortable: portable::simd_probe(a, b, n, out); break;
#if HONE_ISA_X86
    case Isa::kAvx2: avx2::simd_probe(a, b, n, out); break;
    case Isa::kAvx512: avx512::simd_probe(a, b, n, out); break;
#else
    default: break;
#endif
  }
}

uint32_t bits_of(float x) {
  uint32_t u = 0;
  std::memcpy(&u, &x, 4);
  return u;
}

::testing::AssertionResult same(float got, float want) {
  if ((std::isnan(got) && std::isnan(want)) || bits_of(got) == bits_of(want))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << got << " is not " << want;
}

int32_t to_i32(float x) {
  return std::isnan(x) || !(std::fabs(x) < 2147483648.0F) ? INT32_MIN : static_cast<int32_t>(x);
}

TEST(Simd, every_isa_agrees_with_scalar_code) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> special = {0.0F,
                                      -0.0F,
                                      1.0F,
                                      -1.0F,
                                      0.5F,
                                      -0.5F,
                                      1.5F,
                                      2.5F,
                                      -2.5F,
                                      3.7F,
                                      -3.7F,
                                      8388607.5F,
                                      8388609.0F,
                                      -1e10F,
                                      3e9F,
                                      -2147483648.0F,
                                      inf,
                                      -inf,
                                      nan,
                                      std::numeric_limits<float>::denorm_min(),
                                      std::numeric_limits<float>::max()};
  std::vector<float> a, b;
  for (float x : special)
    for (float y : special) {
      a.push_back(x);
      b.push_back(y);
    }
  const int n = static_cast<int>(a.size());
  ASSERT_LE(n, kMax);
  for (Isa isa : supported_isas()) {
    SCOPED_TRACE(std::string(isa_name(isa)));
    auto p = std::make_unique<SimdProbe>();
    probe(isa, a.data(), b.data(), n, *p);
    for (int i = 0; i < n; ++i) {
      const float x = a[i], y = b[i];
      SCOPED_TRACE(::testing::Message() << "x " << x << " y " << y);
      const float want[21] = {x + y,
                              x - y,
                              x * y,
                              x / y,
                              x < y ? x : y,
                              x > y ? x : y,
                              std::nearbyint(x),
                              std::floor(x),
                              std::ceil(x),
                              std::trunc(x),
                              std::fabs(x),
                              -x,
                              std::copysign(x, y),
                              x < y ? 1.F : 0.F,
                              x <= y ? 1.F : 0.F,
                              x == y ? 1.F : 0.F,
                              x != y ? 1.F : 0.F,
                              x > y ? 1.F : 0.F,
                              x >= y ? 1.F : 0.F,
                              std::isnan(x) || !(y < 0) ? 1.F : 0.F,
                              std::sqrt(x)};
      EXPECT_TRUE(same(p->row[21][i], x));
      const int second = i / p->width * p->width + 1;
      EXPECT_TRUE(same(p->row[22][i], second < n ? a[static_cast<size_t>(second)] : 0.0F));
      for (int r = 0; r < 21; ++r) EXPECT_TRUE(same(p->row[r][i], want[r])) << "row " << r;
      EXPECT_EQ(p->irow[0][i], to_i32(std::nearbyint(x)));
      EXPECT_EQ(p->irow[1][i], to_i32(x));
      const uint32_t bx = bits_of(x), by = bits_of(y);
      EXPECT_EQ(static_cast<uint32_t>(p->irow[2][i]), (bx << 3) ^ (by >> 5));
      EXPECT_EQ(static_cast<uint32_t>(p->irow[3][i]),
                static_cast<uint32_t>(static_cast<int32_t>(bx) >> 7) + by);
      const int32_t sx = static_cast<int32_t>(bx), sy = static_cast<int32_t>(by);
      EXPECT_EQ(static_cast<uint32_t>(p->irow[4][i]), static_cast<uint32_t>(sx > sy ? sx : sy) - 1U);
    }
    const float w = static_cast<float>(p->width);
    EXPECT_EQ(p->sum, w * (w + 1) / 2);
    EXPECT_EQ(p->largest, w);
    EXPECT_EQ(p->smallest, 1.0F);
    EXPECT_EQ(p->fma, 10.0F);
    EXPECT_EQ(p->fnma, -2.0F);
    EXPECT_TRUE(p->any_all);
  }
}

TEST(Simd, masked_stores_and_loads_touch_only_their_lanes) {
  for (Isa isa : supported_isas())
    for (int n = 1; n < 40; ++n) {
      auto p = std::make_unique<SimdProbe>();
      std::fill_n(&p->row[0][0], 23 * kMax, 7.0F);
      // The arrays end exactly at n: AddressSanitizer sees a load past them.
      std::vector<float> a(n, 2.0F), b(n, 3.0F);
      probe(isa, a.data(), b.data(), n, *p);
      EXPECT_EQ(p->row[0][n - 1], 5.0F);
      EXPECT_EQ(p->row[0][n], 7.0F);
    }
}

}  // namespace
}  // namespace hone::cpu
