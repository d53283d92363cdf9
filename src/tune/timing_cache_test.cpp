#include "tune/timing_cache.h"

#include <gtest/gtest.h>

#include "hone/error.h"

namespace hone::tune {
namespace {

TEST(TimingCache, TextRoundTrip) {
  TimingCache c;
  c.put("cpu-avx2", "Relu(f32[2]) -> f32[2]", "act__avx2", {1200, 1e-7});
  c.put("cpu-avx512", "Relu(f32[2]) -> f32[2]", "act__avx512", {800, -1});
  const TimingCache back = TimingCache::parse(c.text());
  EXPECT_EQ(back.text(), c.text());
  EXPECT_EQ(back.find("cpu-avx2", "Relu(f32[2]) -> f32[2]", "act__avx2")->time_ns, 1200);
  EXPECT_FALSE(back.find("cpu-avx2", "Relu(f32[2]) -> f32[2]", "act__avx512"));
}

TEST(TimingCache, MergeIsAssociativeAndCommutative) {
  TimingCache a, b, c;
  a.put("t", "p", "x", {5, 0});
  b.put("t", "p", "x", {3, 1e-6});
  c.put("t", "p", "x", {3, 1e-7});
  c.put("t", "q", "x", {9, 0});
  TimingCache ab = a, ba = b;
  ab.merge(b);
  ab.merge(c);
  TimingCache bc = c;
  bc.merge(ba);
  bc.merge(a);
  EXPECT_EQ(ab.text(), bc.text());
  EXPECT_EQ(ab.find("t", "p", "x")->time_ns, 3);
}

TEST(TimingCache, MalformedLinesNameTheirNumber) {
  for (const char* bad : {"# hone timing cache 1\na\tb\tc\n", "# hone timing cache 1\nt\tp\tx\tfast\t0\n",
                          "something else\n", "# hone timing cache 1\nt\tp\tx\tnan\t0\n"}) {
    try {
      TimingCache::parse(bad);
      FAIL() << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidData);
      EXPECT_NE(e.message().find("line "), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hone::tune
