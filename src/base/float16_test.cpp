#include "base/float16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace hone {
namespace {

struct Named {
  const char* name;
  NarrowFormat format;
};
const Named kFormats[] = {{"f16", kF16Format},           {"bf16", kBf16Format},
                          {"f8e4m3fn", kF8E4M3FnFormat}, {"f8e4m3fnuz", kF8E4M3FnuzFormat},
                          {"f8e5m2", kF8E5M2Format},     {"f8e5m2fnuz", kF8E5M2FnuzFormat},
                          {"f4e2m1", kF4E2M1Format}};

// Every pattern decodes by the textbook formula, written here a second time with ldexp.
TEST(NarrowFloat, DecodingIsTheFormula) {
  for (const Named& n : kFormats) {
    const NarrowFormat& f = n.format;
    for (uint32_t bits = 0; bits < 2 * f.sign_bit(); ++bits) {
      const double v = narrow_decode(f, bits);
      if (!std::isfinite(v)) continue;
      const int e = static_cast<int>((bits & (f.sign_bit() - 1)) >> f.man);
      const double m = static_cast<double>(bits & ((1u << f.man) - 1)) / (1 << f.man);
      const double want = std::ldexp(e == 0 ? m : 1 + m, (e == 0 ? 1 : e) - f.bias);
      ASSERT_EQ(v, (bits & f.sign_bit()) != 0 ? -want : want) << n.name << " " << bits;
    }
  }
}

TEST(NarrowFloat, LargestFiniteValues) {
  EXPECT_EQ(narrow_decode(kF16Format, kF16Format.max_bits()), 65504);
  EXPECT_EQ(narrow_decode(kF8E4M3FnFormat, kF8E4M3FnFormat.max_bits()), 448);
  EXPECT_EQ(narrow_decode(kF8E4M3FnuzFormat, kF8E4M3FnuzFormat.max_bits()), 240);
  EXPECT_EQ(narrow_decode(kF8E5M2Format, kF8E5M2Format.max_bits()), 57344);
  EXPECT_EQ(narrow_decode(kF8E5M2FnuzFormat, kF8E5M2FnuzFormat.max_bits()), 57344);
  EXPECT_EQ(narrow_decode(kF4E2M1Format, kF4E2M1Format.max_bits()), 6);
}

// For every pair of neighbours: both values, their midpoint, and the doubles next to the midpoint.
TEST(NarrowFloat, EncodingRoundsToNearestEvenEverywhere) {
  for (const Named& n : kFormats) {
    const NarrowFormat& f = n.format;
    for (uint32_t bits = 0; bits < f.max_bits(); ++bits) {
      const double lo = narrow_decode(f, bits);
      const double hi = narrow_decode(f, bits + 1);
      ASSERT_LT(lo, hi);
      const double mid = lo + (hi - lo) / 2;
      const uint32_t even = (bits & 1) == 0 ? bits : bits + 1;
      for (const bool saturate : {false, true}) {
        ASSERT_EQ(narrow_encode(f, lo, saturate), bits) << n.name;
        ASSERT_EQ(narrow_encode(f, mid, saturate), even) << n.name << " " << mid;
        ASSERT_EQ(narrow_encode(f, std::nextafter(mid, 0.0), saturate), bits) << n.name << " " << mid;
        ASSERT_EQ(narrow_encode(f, std::nextafter(mid, HUGE_VAL), saturate), bits + 1)
            << n.name << " " << mid;
        const uint32_t negative =
            f.specials == NarrowFormat::Specials::kFnuz && even == 0 ? 0 : f.sign_bit() | even;
        ASSERT_EQ(narrow_encode(f, -mid, saturate), negative) << n.name << " " << -mid;
      }
    }
    ASSERT_EQ(narrow_encode(f, narrow_decode(f, f.max_bits()), false), f.max_bits());
  }
}

TEST(NarrowFloat, OverflowInfinityAndNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Named& n : kFormats) {
    const NarrowFormat& f = n.format;
    const double max = narrow_decode(f, f.max_bits());
    const double ulp = max - narrow_decode(f, f.max_bits() - 1);
    // Where the next step would be: exactly half way rounds to even, up or down by the format's last pattern.
    const double half = max + ulp / 2;
    for (const double x : {inf, 1e300, std::nextafter(half, inf)}) {
      EXPECT_EQ(narrow_decode(f, narrow_encode(f, x, true)), max) << n.name << " " << x;
      EXPECT_EQ(narrow_decode(f, narrow_encode(f, -x, true)), -max) << n.name << " " << x;
      const double hard = narrow_decode(f, narrow_encode(f, x, false));
      switch (f.specials) {
        case NarrowFormat::Specials::kIeee: EXPECT_EQ(hard, inf) << n.name; break;
        case NarrowFormat::Specials::kNone: EXPECT_EQ(hard, max) << n.name; break;
        default: EXPECT_TRUE(std::isnan(hard)) << n.name;
      }
    }
    EXPECT_EQ(narrow_decode(f, narrow_encode(f, std::nextafter(half, 0.0), false)), max) << n.name;
    const double from_nan = narrow_decode(f, narrow_encode(f, nan, true));
    EXPECT_TRUE(f.specials == NarrowFormat::Specials::kNone ? from_nan == 6 : std::isnan(from_nan)) << n.name;
    for (const double tiny : {std::numeric_limits<double>::denorm_min(), 1e-300}) {
      EXPECT_EQ(narrow_decode(f, narrow_encode(f, tiny, true)), 0) << n.name;
    }
  }
  EXPECT_EQ(to_f8e4m3fnuz(-0.0), 0);
  EXPECT_EQ(to_f8e4m3fn(-0.0), 0x80);
}

// The values of the ONNX Cast documentation, as users meet them.
TEST(NarrowFloat, CastExamples) {
  EXPECT_EQ(f8e4m3fn_to_f32(to_f8e4m3fn(460, false)), 448);
  EXPECT_TRUE(std::isnan(f8e4m3fn_to_f32(to_f8e4m3fn(470, false))));
  EXPECT_EQ(f8e4m3fn_to_f32(to_f8e4m3fn(470)), 448);
  EXPECT_EQ(f8e4m3fn_to_f32(to_f8e4m3fn(0x1p-9)), 0.001953125f);
  EXPECT_EQ(f8e4m3fn_to_f32(to_f8e4m3fn(0.0009)), 0);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(0.33333334f)), 0.33398438f);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.00390625f)), 1.0f);
  EXPECT_EQ(bf16_to_f32(f32_to_bf16(1.01171875f)), 1.015625f);
  EXPECT_EQ(f16_to_f32(f32_to_f16(123456.7f)), std::numeric_limits<float>::infinity());
  EXPECT_EQ(f16_to_f32(f32_to_f16(0.1f)), 0.099975586f);
}

// The fast f32 paths against the general one: all 2^16 upper halves with rounding-critical lower halves, and
// random ones.
TEST(NarrowFloat, FastPathsAgreeWithTheGeneralOne) {
  std::mt19937 rng(1);
  std::vector<uint32_t> lows{0,      1,      0xfff,  0x1000, 0x1001, 0x1fff, 0x2000, 0x3000,
                             0x7fff, 0x8000, 0x8001, 0xefff, 0xf000, 0xf001, 0xffff};
  for (int i = 0; i < 5; ++i) lows.push_back(rng() & 0xffff);
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (const uint32_t low : lows) {
      const float x = std::bit_cast<float>(high << 16 | low);
      if (std::isnan(x)) {
        ASSERT_TRUE(std::isnan(f16_to_f32(f32_to_f16(x))));
        ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(x))));
        continue;
      }
      ASSERT_EQ(f32_to_f16(x), f64_to_f16(x)) << x;
      ASSERT_EQ(f32_to_bf16(x), f64_to_bf16(x)) << x;
    }
  }
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float f = f16_to_f32(static_cast<uint16_t>(h));
    const double d = narrow_decode(kF16Format, h);
    ASSERT_TRUE(std::isnan(f) ? std::isnan(d) : (f == d && std::signbit(f) == std::signbit(d))) << h;
    ASSERT_EQ(f32_to_f16(f) & (std::isnan(f) ? 0x7c00u : 0xffffu), h & (std::isnan(f) ? 0x7c00u : 0xffffu));
  }
}

TEST(NarrowFloat, RoundingOnceFromF64) {
  // Through f32 this would round up twice: to the f32 midpoint, then to even.
  const double x = 1.0 + 0x1p-11 + 0x1p-30;
  EXPECT_EQ(f64_to_f16(x), 0x3c01);
  EXPECT_EQ(f32_to_f16(static_cast<float>(x)), 0x3c00);
}

TEST(NarrowFloat, PowerOfTwoScales) {
  for (uint32_t b = 0; b < 0xff; ++b) {
    const double v = f8e8m0_to_f64(static_cast<uint8_t>(b));
    EXPECT_EQ(v, std::ldexp(1.0, static_cast<int>(b) - 127));
    for (const E8M0Round r : {E8M0Round::kUp, E8M0Round::kDown, E8M0Round::kNearest})
      EXPECT_EQ(to_f8e8m0(v, r, false), b);
  }
  EXPECT_EQ(to_f8e8m0(3, E8M0Round::kUp), 129);
  EXPECT_EQ(to_f8e8m0(3, E8M0Round::kDown), 128);
  EXPECT_EQ(to_f8e8m0(3, E8M0Round::kNearest), 129) << "ties go up";
  EXPECT_EQ(to_f8e8m0(2.9, E8M0Round::kNearest), 128);
  EXPECT_EQ(to_f8e8m0(0), 0);
  EXPECT_EQ(to_f8e8m0(0, E8M0Round::kNearest, false), 0xff);
  EXPECT_EQ(to_f8e8m0(HUGE_VAL), 0xfe);
  EXPECT_EQ(to_f8e8m0(HUGE_VAL, E8M0Round::kNearest, false), 0xff);
  EXPECT_EQ(to_f8e8m0(1e300, E8M0Round::kDown), 0xfe);
  EXPECT_EQ(to_f8e8m0(-1), 0xff);
  EXPECT_TRUE(std::isnan(f8e8m0_to_f32(0xff)));
}

}  // namespace
}  // namespace hone
