// A13 (onnx/optimizer #255, onnxsim #255, aimet #3506): folding a BatchNormalization must not change weights
// that another layer shares.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A13TwoConvolutionsShareTheirWeights) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[1,2,1,1]) {\n  const %w: f32[2,2,1,1] = {1, 2, 3, 4}\n  const %s1: f32[2] = {2, "
      "2}\n  const %zero: f32[2] = {0, 0}\n"
      "  const %one: f32[2] = {1, 1}\n  const %s2: f32[2] = {10, 10}\n  const %v2: f32[2] = {4, 4}\n  %c1 = "
      "Conv(%x, %w)\n"
      "  %y1 = BatchNormalization(%c1, %s1, %zero, %zero, %one) {epsilon = 0.0}\n  %c2 = Conv(%x, %w)\n"
      "  %y2 = BatchNormalization(%c2, %s2, %one, %one, %v2) {epsilon = 0.0}\n  return %y1, %y2\n}\n",
      {f32({1, 2, 1, 1}, {1, 1})}, {{6, 14}, {11, 31}});
  EXPECT_FALSE(has_op(*g, "BatchNormalization"));
}

}  // namespace
}  // namespace hone::issues
