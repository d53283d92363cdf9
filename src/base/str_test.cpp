#include "base/str.h"

#include <gtest/gtest.h>

#include <limits>

namespace hone {
namespace {

TEST(Str, SplitJoinTrim) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
  EXPECT_EQ(join({"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join_some({"a", "b", "c"}, ", ", 2), "a, b ... (1 more)");
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim("  "), "");
}

TEST(Str, Globs) {
  EXPECT_TRUE(glob_match("fuse.*", "fuse.conv"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("a?c*", "abcd"));
  EXPECT_TRUE(glob_match("*a*b", "xaxbxb"));
  EXPECT_FALSE(glob_match("a?c", "ac"));
  EXPECT_FALSE(glob_match("fuse", "fuse.conv"));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_FALSE(glob_match(std::string(50, '*') + "b", std::string(5000, 'a')));
}

TEST(Str, QuotingRoundTripsEveryByte) {
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  all +=
      "\"\\ gr\xc3\xb6\xc3\x9f"
      "er \xe2\x82\xac \xf0\x9f\x98\x80 \xed\xa0\x80 \xc0\xaf";
  const std::string q = quote(all);
  for (const char c : q) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  EXPECT_TRUE(is_utf8(q));
  std::string_view rest = q;
  EXPECT_EQ(unquote(&rest), all);
  EXPECT_TRUE(rest.empty());
  EXPECT_EQ(quote("a\n\x01\xc3\xb6"), "\"a\\n\\x01\xc3\xb6\"");
  for (std::string_view bad : {"", "x", "\"", "\"\\", "\"\\q\"", "\"\\x1\"", "\"\\xg1\""}) {
    std::string_view s = bad;
    EXPECT_EQ(unquote(&s), std::nullopt) << bad;
    EXPECT_EQ(s, bad);
  }
}

TEST(Str, Numbers) {
  EXPECT_EQ(number_text(0.1f), "0.1");
  EXPECT_EQ(number_text(1.0), "1");
  EXPECT_EQ(number_text(-std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(fixed_text(3.14159, 3), "3.142");
  EXPECT_EQ(bytes_text(512), "512 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(int64_t{4} << 30), "4.0 GiB");
  EXPECT_EQ(bytes_text((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(time_text(850), "850 ns");
  EXPECT_EQ(time_text(12345), "12.3 us");
  EXPECT_EQ(time_text(4.56e6), "4.56 ms");
  EXPECT_EQ(time_text(1.5e10), "15.0 s");
  EXPECT_EQ(hex_text(0xabc), "0000000000000abc");
  EXPECT_EQ(parse_i64("-12"), -12);
  for (const char* bad : {"", " 8", "+8", "8 ", "1e9", "9223372036854775808", "0x10"})
    EXPECT_EQ(parse_i64(bad), std::nullopt) << bad;
  EXPECT_EQ(parse_f64("1e-3"), 1e-3);
  EXPECT_EQ(parse_f64("1e-3x"), std::nullopt);
  EXPECT_EQ(parse_f32("0.1"), 0.1f);
}

TEST(Str, Utf8) {
  EXPECT_TRUE(is_utf8("gr\xc3\xb6\xc3\x9f"));
  for (const char* bad : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80"})
    EXPECT_FALSE(is_utf8(bad));
}

}  // namespace
}  // namespace hone
