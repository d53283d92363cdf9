#include "base/file_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include "hone/error.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct Dir {
  fs::path path = fs::path(testing::TempDir()) / ("hone_writer_" + std::to_string(getpid()));
  Dir() { fs::create_directories(path); }
  ~Dir() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
};

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}

TEST(FileWriter, AppearsWholeOnCommit) {
  Dir dir;
  const std::string path = dir.file("a");
  FileWriter w(path);
  w.write("head");
  w.align(64);
  const std::string big(300000, 'x');
  w.write(big);
  w.write("tail");
  EXPECT_EQ(w.size(), 64 + 300000 + 4);
  EXPECT_FALSE(fs::exists(path));
  w.commit();
  EXPECT_EQ(read(path), "head" + std::string(60, '\0') + big + "tail");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path), {}), 1);
}

TEST(FileWriter, LeavesNothingWithoutCommit) {
  Dir dir;
  { std::ofstream(dir.file("a")) << "old"; }
  {
    FileWriter w(dir.file("a"));
    w.write("new");
  }
  EXPECT_EQ(read(dir.file("a")), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path), {}), 1);
  EXPECT_THROW(FileWriter(dir.file("none/a")), Error);
}

TEST(FileWriter, ReplacesALinkRatherThanFollowingIt) {
  Dir dir;
  { std::ofstream(dir.file("precious")) << "keep"; }
  fs::create_symlink(dir.file("precious"), dir.file("a"));
  FileWriter w(dir.file("a"));
  w.write("new");
  w.commit();
  EXPECT_EQ(read(dir.file("precious")), "keep");
  EXPECT_EQ(read(dir.file("a")), "new");
  EXPECT_FALSE(fs::is_symlink(dir.file("a")));
}

}  // namespace
}  // namespace hone
