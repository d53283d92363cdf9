// A01 (TensorRT #4606): a Clip from 0 to 6 is not a Relu; its upper bound must survive fusing.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A01ClipKeepsItsUpperBound) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[2,3]) {\n  const %w: f32[3,4] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}\n  const "
      "%b: f32[4] = {-100, 0, 1, 2}\n"
      "  const %lo: f32[] = {0}\n  const %hi: f32[] = {6}\n  %m = MatMul(%x, %w)\n  %a = Add(%m, %b)\n  %y = "
      "Clip(%a, %lo, %hi)\n  return %y\n}\n",
      {f32({2, 3}, {1, 1, 1, .1F, .1F, .1F})}, {{0, 6, 6, 6, 0, 1.5, 2.8, 4.1}});
  EXPECT_EQ(g->num_nodes(), 1U);
  EXPECT_FALSE(has_op(*g, "Relu"));
}

}  // namespace
}  // namespace hone::issues
