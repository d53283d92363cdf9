// Rules for the public headers. That each compiles alone, and twice, is shown by the generated units linked
// in here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/paths.h"

namespace {

struct Header {
  std::string name;
  std::vector<std::string> lines;
};

std::vector<Header> public_headers() {
  std::vector<Header> headers;
  const auto dir = hone::test::source_dir() / "include" / "hone";
  if (!std::filesystem::exists(dir)) return headers;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().extension() != ".h") continue;
    Header header{entry.path().filename().string(), {}};
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) header.lines.push_back(line);
    headers.push_back(std::move(header));
  }
  return headers;
}

TEST(PublicHeaders, HaveAtMost300Lines) {
  for (const Header& header : public_headers()) EXPECT_LE(header.lines.size(), 300u) << header.name;
}

TEST(PublicHeaders, IncludeOnlyTheStandardLibraryAndEachOther) {
  for (const Header& header : public_headers()) {
    for (const std::string& line : header.lines) {
      if (line.rfind("#include", 0) != 0) continue;
      const bool own = line.find("\"hone/") != std::string::npos;
      // A standard header has neither a folder nor an extension.
      const bool standard = line.find('<') != std::string::npos && line.find('/') == std::string::npos &&
                            line.find('.') == std::string::npos;
      EXPECT_TRUE(own || standard) << header.name << ": " << line;
    }
  }
}

TEST(PublicHeaders, OpenWithACommentThatSaysWhatTheyAreFor) {
  for (const Header& header : public_headers()) {
    ASSERT_FALSE(header.lines.empty()) << header.name;
    EXPECT_EQ(header.lines.front().rfind("//", 0), 0u) << header.name << ": " << header.lines.front();
  }
}

}  // namespace
