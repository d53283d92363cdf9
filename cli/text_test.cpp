#include "text.h"

#include <gtest/gtest.h>

namespace hone::cli {
namespace {

TEST(Text, Quantities) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(int64_t{5} << 30), "5.00 GiB");
  EXPECT_EQ(ms_text(1234), "1.23 s");
  EXPECT_EQ(ms_text(0.0123), "12.3 us");
  EXPECT_EQ(ms_text(0.00001), "10.0 ns");
  EXPECT_EQ(count_text(1, "layer"), "1 layer");
  EXPECT_EQ(count_text(2, "layer"), "2 layers");
  EXPECT_EQ(percent_text(0.5), "50.0 %");
}

TEST(Text, ControlCharactersAndBrokenUtf8AreSpelledOut) {
  EXPECT_EQ(printable("a\x1b[31m\n"), "a\\x1b[31m\\x0a");
  EXPECT_EQ(printable("a\nb", true), "a\nb");
  EXPECT_EQ(printable("caf\xc3\xa9 \xff\xc3"), "caf\xc3\xa9 \\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "C1 controls drive terminals too";
}

TEST(Text, TheMiddleGivesWay) {
  EXPECT_EQ(shortened("abcdefghij", 10), "abcdefghij");
  EXPECT_EQ(shortened("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(shortened("ééééé", 5), "ééééé");
}

TEST(Table, ColumnsLineUpAndFitTheWidth) {
  Table table({{"name", Table::Align::kLeft, true}, {"n", Table::Align::kRight}});
  table.row({"short", "1"});
  table.row({std::string(60, 'x'), "1000"});
  const std::string text = table.text(40);
  size_t start = 0, lines = 0;
  while (start < text.size()) {
    const size_t end = text.find('\n', start);
    std::string line = text.substr(start, end - start);
    size_t columns = 0;
    for (const char c : line) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    EXPECT_LE(columns, 40U) << line;
    EXPECT_NE(line.back(), ' ');
    start = end + 1;
    ++lines;
  }
  EXPECT_EQ(lines, 3U);
  EXPECT_NE(text.find("  1\n"), std::string::npos);
}

}  // namespace
}  // namespace hone::cli
