// A11 (ONNX Runtime #32418): a Transpose with the identity permutation in front of Gemm is no transB.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A11IdentityTransposeInFrontOfGemm) {
  expect_case(
      "graph \"\" (%x: f32[3,4], %w: f32[4,5]) {\n  const %b: f32[5] = {1, 1, 1, 1, 1}\n  %t = Transpose(%w) "
      "{perm = [0, 1]}\n"
      "  %y = Gemm(%x, %t, %b)\n  return %y\n}\n",
      {f32({3, 4}, std::vector<float>(12, 1)), arange({4, 5})},
      {{31, 35, 39, 43, 47, 31, 35, 39, 43, 47, 31, 35, 39, 43, 47}});
}

TEST(Issues, A11RealTransposeInFrontOfASquareGemm) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[1,2], %w: f32[2,2]) {\n  %t = Transpose(%w) {perm = [1, 0]}\n  %y = Gemm(%x, "
      "%t)\n  return %y\n}\n",
      {f32({1, 2}, {1, 10}), arange({2, 2})}, {{10, 32}});
  EXPECT_FALSE(has_op(*g, "Transpose"));
}

}  // namespace
}  // namespace hone::issues
