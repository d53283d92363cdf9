// The C++ snippet of README.md compiles and runs: the lines between the marks below are the README's, word
// for word.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

// snippet begins
#include "hone/builder.h"
#include "hone/session.h"
// snippet ends
#include "support/paths.h"

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Readme, SnippetRuns) {
  std::filesystem::current_path(hone::test::source_dir());
  // snippet begins
  hone::Engine engine = hone::build("demo/fashion_resnet.onnx", {});
  hone::Session session(engine);
  std::vector<hone::NamedTensor> outputs = session.run(hone::random_inputs(engine.inputs(), {}, /*seed=*/1));
  // snippet ends
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs[0].tensor.shape(), (hone::Shape{1, 10}));
}

TEST(Readme, SnippetIsTheOneTested) {
  const std::string readme = read(hone::test::source_dir() / "README.md");
  std::istringstream here(read(hone::test::source_dir() / "tests/e2e/readme_test.cpp"));
  bool inside = false;
  int lines = 0;
  for (std::string line; std::getline(here, line);) {
    const size_t text = line.find_first_not_of(' ');
    if (text == std::string::npos) continue;
    line = line.substr(text);
    if (line == "// snippet begins" || line == "// snippet ends") {
      inside = line == "// snippet begins";
    } else if (inside) {
      EXPECT_NE(readme.find(line), std::string::npos) << line;
      ++lines;
    }
  }
  EXPECT_EQ(lines, 5);
}

}  // namespace
