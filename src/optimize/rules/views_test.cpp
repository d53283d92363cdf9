#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

const std::vector<std::string> kViews = {"reshape_target", "expand_target", "view_merge", "dead_code"};

TEST(Views, ChainsBecomeOneReshape) {
  const auto g = expect_ops(
      "graph \"\" (%x: f32[N,6,4]) {\n  const %s: i64[2] = {-1, 4}\n  const %a: i64[1] = {1}\n  %a0 = "
      "Neg(%x)\n  %r = Reshape(%a0, %s)\n"
      "  %u = Unsqueeze(%r, %a)\n  %z = Abs(%u)\n  return %z\n}\n",
      kViews, "Neg Reshape Abs");
  EXPECT_EQ(g->value(g->outputs()[0]).type.text(), "f32[6*N,1,4]");
}

TEST(Views, AChainThatEndsWhereItBeganGoes) {
  expect_ops(
      "graph \"\" (%x: f32[N,6,4]) {\n  const %s: i64[2] = {-1, 24}\n  const %t: i64[3] = {-1, 6, 4}\n  %a = "
      "Neg(%x)\n  %r = Reshape(%a, %s)\n"
      "  %u = Reshape(%r, %t)\n  %z = Abs(%u)\n  return %z\n}\n",
      {"view_merge", "noop_reshape", "dead_code"}, "Neg Abs");
}

TEST(Views, ShapeArithmeticDies) {
  // Reshape(x, [Shape(x)[0], Shape(x)[1], 3, 4]) as exporters write it.
  expect_ops(
      "graph \"\" (%x: f32[N,S,12]) {\n  const %i0: i64[] = {0}\n  const %i1: i64[] = {1}\n  const %ax: "
      "i64[1] = {0}\n  const %h: i64[2] = {3, 4}\n"
      "  %sh = Shape(%x)\n  %n = Gather(%sh, %i0)\n  %s = Gather(%sh, %i1)\n  %nu = Unsqueeze(%n, %ax)\n  "
      "%su = Unsqueeze(%s, %ax)\n"
      "  %c = Concat(%nu, %su, %h) {axis = 0}\n  %r = Reshape(%x, %c)\n  %z = Abs(%r)\n  return %z\n}\n",
      kViews, "Reshape Abs", {{"N", 2}, {"S", 5}});
}

TEST(Views, ATargetThatIsAmbiguousForZeroStaysComputed) {
  expect_unchanged(
      "graph \"\" (%x: f32[N,S,4]) {\n  const %i1: i64[1] = {1}\n  const %h: i64[2] = {-1, 4}\n  const %two: "
      "i64[1] = {2}\n  %sh = Shape(%x)\n  %s = Gather(%sh, %i1)\n"
      "  %s2 = Mul(%s, %two)\n  %c = Concat(%s2, %h) {axis = 0}\n  %r = Reshape(%x, %c)\n  return %r\n}\n",
      {"reshape_target"});
}

TEST(Views, SqueezesAreCountedOneAfterTheOther) {  // case A19
  const auto g = expect_ops(
      "graph \"\" (%x: f32[1,2,1,1]) {\n  const %a: i64[1] = {0}\n  const %b: i64[1] = {1}\n  %s = "
      "Squeeze(%x, %a)\n  %t = Squeeze(%s, %b)\n"
      "  %z = Abs(%t)\n  return %z\n}\n",
      kViews, "Reshape Abs");
  EXPECT_EQ(g->value(g->outputs()[0]).type.text(), "f32[2,1]");
}

TEST(Views, ASplitMovesAboveATransposeAndMeetsTheMerge) {
  // Attention keys of the PyTorch exporter: [B,H,S,D] merged, transposed, split again.
  const auto g = expect_ops(
      "graph \"\" (%x: f32[B,3,S,4]) {\n  const %m: i64[3] = {-1, 5, 4}\n  const %s: i64[4] = {-1, 3, 4, "
      "5}\n  const %z0: i64[1] = {0}\n"
      "  const %z5: i64[1] = {5}\n  const %two: i64[1] = {2}\n  %a = Neg(%x)\n  %f: f32[B,3,5,4] = Slice(%a, "
      "%z0, %z5, %two)\n"
      "  %r = Reshape(%f, %m)\n  %t = Transpose(%r) {perm = [0, 2, 1]}\n  %u = Reshape(%t, %s)\n  %z = "
      "Abs(%u)\n  return %z\n}\n",
      {"reshape_above_transpose", "view_merge", "noop_reshape", "dead_code"}, "Neg Slice Transpose Abs",
      {{"B", 2}, {"S", 5}});
  for (const auto& n : g->nodes())
    if (n->is("Transpose")) {
      EXPECT_EQ(n->get_ints("perm"), (std::vector<int64_t>{0, 1, 3, 2}));
    }
}

TEST(Views, ASandwichThatPermutesWithoutAConstantTarget) {
  // Heads and batch are both symbols or copied from another place: no target for [B,H,S,D] -> [B*H,S,D] is a
  // constant.
  expect_ops(
      "graph \"\" (%x: f32[B,3,S,4]) {\n  const %i0: i64[1] = {0}\n  const %i2: i64[1] = {2}\n  const %m1: "
      "i64[1] = {-1}\n  const %three: i64[1] = {3}\n"
      "  const %four: i64[1] = {4}\n  %sh = Shape(%x)\n  %b = Gather(%sh, %i0)\n  %s = Gather(%sh, %i2)\n  "
      "%m = Concat(%m1, %s, %four) {axis = 0}\n"
      "  %o = Concat(%b, %three, %four, %s) {axis = 0}\n  %r = Reshape(%x, %m)\n  %t = Transpose(%r) {perm = "
      "[0, 2, 1]}\n  %u = Reshape(%t, %o)\n"
      "  %z = Abs(%u)\n  return %z\n}\n",
      {"view_sandwich", "dead_code"}, "Transpose Abs", {{"B", 2}, {"S", 5}});
}

TEST(Views, AMergeBetweenTransposesLetsThemMeet) {
  // Attention output of torchvision: [B,H,S,D] -> [S,B,H,D] -> [S,B,H*D] -> [B,S,H*D].
  const auto g = expect_ops(
      "graph \"\" (%x: f32[B,2,5,3]) {\n  const %m: i64[3] = {5, -1, 6}\n  %a = Neg(%x)\n  %t = "
      "Transpose(%a) {perm = [2, 0, 1, 3]}\n"
      "  %r = Reshape(%t, %m)\n  %u = Transpose(%r) {perm = [1, 0, 2]}\n  %z = Abs(%u)\n  return %z\n}\n",
      {"transpose_around_merge", "transpose_merge", "noop_transpose", "dead_code"},
      "Neg Transpose Reshape Abs", {{"B", 3}});
  for (const auto& n : g->nodes())
    if (n->is("Transpose")) {
      EXPECT_EQ(n->get_ints("perm"), (std::vector<int64_t>{0, 2, 1, 3}));
    }
  expect_unchanged(
      "graph \"\" (%x: f32[B,2,5,3]) {\n  const %m: i64[3] = {-1, 5, 6}\n  %t = Transpose(%x) {perm = [0, 2, "
      "1, 3]}\n  %r = Reshape(%t, %m)\n"
      "  return %r\n}\n",
      {"transpose_around_merge"});
}

TEST(Views, AReshapeThatMixesDimensionsStaysBelow) {
  expect_unchanged(
      "graph \"\" (%x: f32[2,6]) {\n  const %s: i64[2] = {4, 3}\n  %t = Transpose(%x) {perm = [1, 0]}\n  %r "
      "= Reshape(%t, %s)\n  return %r\n}\n",
      {"reshape_above_transpose"});
}

TEST(Views, AnExpandThatBroadcastingDoesGoes) {
  expect_ops(
      "graph \"\" (%x: f32[N,3,S], %m: f32[N,1,S]) {\n  const %one: i64[3] = {1, 3, 1}\n  %e = Expand(%m, "
      "%one)\n  %y = Add(%x, %e)\n  return %y\n}\n",
      {"needless_expand", "dead_code"}, "Add");
  // Here nobody else brings the extent 3.
  expect_unchanged(
      "graph \"\" (%x: f32[N,1,S], %m: f32[N,1,S]) {\n  const %one: i64[3] = {1, 3, 1}\n  %e = Expand(%m, "
      "%one)\n  %y = Add(%x, %e)\n  return %y\n}\n",
      {"needless_expand"});
}

TEST(Views, ExpandOfAComputedShape) {
  expect_ops(
      "graph \"\" (%x: f32[N,1]) {\n  const %four: i64[1] = {4}\n  const %i: i64[1] = {0}\n  %sh = "
      "Shape(%x)\n  %n = Gather(%sh, %i)\n"
      "  %c = Concat(%n, %four) {axis = 0}\n  %e = Expand(%x, %c)\n  %y = Abs(%e)\n  return %y\n}\n",
      kViews, "Expand Abs");
}

}  // namespace
}  // namespace hone::optimize::testing
