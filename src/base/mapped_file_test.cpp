#include "base/mapped_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "hone/error.h"

namespace hone {
namespace {

std::string temp(const char* name) {
  const std::string path = testing::TempDir() + "hone_mapped_" + std::to_string(getpid()) + "_" + name;
  std::remove(path.c_str());
  return path;
}

TEST(MappedFile, BytesOutliveTheFileName) {
  const std::string path = temp("a");
  FILE* f = std::fopen(path.c_str(), "wb");
  const std::string text(10000, 'x');
  std::fwrite(text.data(), 1, text.size(), f);
  std::fclose(f);
  MappedFile m = map_file(path);
  std::remove(path.c_str());
  ASSERT_EQ(m.size, text.size());
  drop_pages(m.data, m.size);
  EXPECT_EQ(std::memcmp(m.data, text.data(), text.size()), 0);
  const std::weak_ptr<const void> watch = m.owner;
  m = {};
  EXPECT_TRUE(watch.expired());
}

TEST(MappedFile, EmptyFilesAndOddOnes) {
  const std::string path = temp("e");
  std::fclose(std::fopen(path.c_str(), "wb"));
  EXPECT_EQ(map_file(path).size, 0u);
  std::remove(path.c_str());
  EXPECT_THROW(map_file(path), Error);
  EXPECT_THROW(map_file("/dev/zero"), Error);
  EXPECT_THROW(map_file(testing::TempDir()), Error);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(map_file(path), Error) << "and does not wait for a writer";
  std::remove(path.c_str());
}

}  // namespace
}  // namespace hone
