// A35: bounds merge in the order in which they apply.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

const std::vector<float> kValues = {-10, -3, -0.5F, 0, 2, 5, 10};

std::string two(const std::string& first, const std::string& second) {
  return "graph \"\" (%x: f32[7]) {\n  const %m5: f32[] = {-5}\n  const %m1: f32[] = {-1}\n  const %c0: "
         "f32[] = {0}\n  const %c3: f32[] = {3}\n"
         "  const %c4: f32[] = {4}\n  const %c6: f32[] = {6}\n  %a = " +
         first + "\n  %y = " + second + "\n  return %y\n}\n";
}

TEST(Issues, A35ReluThenNegativeClip) {
  expect_case(two("Relu(%x)", "Clip(%a, %m5, %m1)"), {f32({7}, kValues)}, {std::vector<double>(7, -1)}, 0);
}
TEST(Issues, A35NegativeClipThenRelu) {
  expect_case(two("Clip(%x, %m5, %m1)", "Relu(%a)"), {f32({7}, kValues)}, {std::vector<double>(7, 0)}, 0);
}
TEST(Issues, A35ClipThenHigherClip) {
  expect_case(two("Clip(%x, %c0, %c3)", "Clip(%a, %c4, %c6)"), {f32({7}, kValues)},
              {std::vector<double>(7, 4)}, 0);
}
TEST(Issues, A35NanPasses) {
  expect_case(two("Relu(%x)", "Clip(%a, %c0, %c6)"), {f32({7}, {NAN, -1, 0, 1, 6, 7, INFINITY})},
              {{NAN, 0, 0, 1, 6, 6, 6}}, 0);
}

}  // namespace
}  // namespace hone::issues
