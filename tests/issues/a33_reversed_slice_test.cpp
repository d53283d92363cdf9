// A33 (onnxsim #1293): a chain of shape data with a reversing Slice folds to the right numbers.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A33PadsChain) {
  const auto g = expect_case(
      "graph \"\" (%x: i64[4]) {\n  const %p: i64[4] = {1, 2, 3, 4}\n  const %s2: i64[2] = {-1, 2}\n  const "
      "%s1: i64[1] = {-1}\n  const %b: i64[1] = {-1}\n"
      "  const %e: i64[1] = {-9223372036854775808}\n  const %ax: i64[1] = {0}\n  %r = Reshape(%p, %s2)\n  %v "
      "= Slice(%r, %b, %e, %ax, %b)\n"
      "  %t = Transpose(%v) {perm = [1, 0]}\n  %f = Reshape(%t, %s1)\n  %y = Add(%f, %x)\n  return %y\n}\n",
      {i64({4}, {0, 0, 0, 0})}, {{3, 1, 4, 2}}, 0);
  EXPECT_EQ(g->num_nodes(), 1U);
}

TEST(Issues, A33PadsChainOfComputedSizes) {
  expect_case(
      "graph \"\" (%x: f32[A,B,C,D]) {\n  const %s2: i64[2] = {-1, 2}\n  const %s1: i64[1] = {-1}\n  const "
      "%b: i64[1] = {-1}\n"
      "  const %e: i64[1] = {-9223372036854775807}\n  const %ax: i64[1] = {0}\n  %p = Shape(%x)\n  %r = "
      "Reshape(%p, %s2)\n  %v = Slice(%r, %b, %e, %ax, %b)\n"
      "  %t = Transpose(%v) {perm = [1, 0]}\n  %y = Reshape(%t, %s1)\n  return %y\n}\n",
      {arange({1, 2, 3, 4})}, {{3, 1, 4, 2}}, 0);
}

}  // namespace
}  // namespace hone::issues
