// A09 (ONNX Runtime #17320, #4110): a sum that is normalised and a graph output at once keeps being an
// output.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A09TheSumStaysAnOutput) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[2,2], %r: f32[2,2]) {\n  const %s: f32[2] = {1, 2}\n  %a = Add(%x, %r)\n  %y = "
      "LayerNormalization(%a, %s)\n"
      "  return %y, %a\n}\n",
      {f32({2, 2}, {2, 2, 2, 2}), f32({2, 2}, {3, 3, 3, 2})}, {{0, 0, 0.99998, -1.99996}, {5, 5, 5, 4}});
  EXPECT_EQ(g->value(g->outputs()[1]).name, "a");
}

}  // namespace
}  // namespace hone::issues
