// Where a test finds the program it tests and the files it reads, from any build directory.
#pragma once

#include <filesystem>
#include <string>

namespace hone::test {

// The repository root.
inline std::filesystem::path source_dir() { return HONE_SOURCE_DIR; }

// The build directory this test binary belongs to: test binaries lie in <build>/tests.
inline std::filesystem::path build_dir() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

// The `hone` program of the same build. The file exists when the cli folder was built.
inline std::filesystem::path cli_path() { return build_dir() / "hone"; }

}  // namespace hone::test
