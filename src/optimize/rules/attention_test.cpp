#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

const std::vector<std::string> kPasses = {"attention", "transpose_merge", "noop_transpose", "dead_code"};

struct Parts {
  std::string mask_input = ", %mask: f32[B,1,1,5]";
  std::string constants = "  const %c: f32[] = {0.5}\n";
  std::string scores = "  %s0 = MatMul(%q, %kt)\n  %s1 = Mul(%s0, %c)\n";
  std::string masked = "  %s2 = Add(%s1, %mask)\n";
  std::string softmax = "  %p = Softmax(%s2) {axis = -1}\n";
  std::string values = "  %y = MatMul(%p, %v)\n";
  std::string keys = "f32[B,2,5,4]";
  std::string returned = "%y";
  std::string text() const {
    return "graph \"\" (%q: f32[B,2,3,4], %k: " + keys + ", %v: f32[B,2,5,6]" + mask_input + ") {\n" +
           constants + "  %kt = Transpose(%k) {perm = [0, 1, 3, 2]}\n" + scores + masked + softmax + values +
           "  return " + returned + "\n}\n";
  }
};

Parts finite_mask() {  // Where-built, as exporters write it
  Parts p;
  p.mask_input = ", %m: bool[B,1,1,5]";
  p.constants += "  const %zero: f32[] = {0}\n  const %low: f32[] = {-3.4028235e+38}\n";
  p.masked = "  %mask = Where(%m, %zero, %low)\n  %s2 = Add(%s1, %mask)\n";
  return p;
}

Parts no_mask() {
  Parts p;
  p.mask_input = "";
  p.masked = "";
  p.softmax = "  %p = Softmax(%s1) {axis = -1}\n";
  return p;
}

TEST(Attention, ScaleOnTheScores) {
  const auto g = expect_ops(no_mask().text(), kPasses, "Attention");
  EXPECT_EQ(g->nodes().front()->get_float("scale", 0), 0.5F);
  Parts div = no_mask();
  div.constants = "  const %c: f32[] = {2}\n";
  div.scores = "  %s0 = MatMul(%q, %kt)\n  %s1 = Div(%s0, %c)\n";
  expect_ops(div.text(), kPasses, "Attention");
  Parts none = no_mask();
  none.scores = "  %s1 = MatMul(%q, %kt)\n";
  expect_ops(none.text(), kPasses, "Attention");
}

TEST(Attention, ScaleOnBothSides) {
  Parts p = no_mask();
  p.constants = "  const %c: f32[] = {0.70710678}\n";
  p.scores = "  %qs = Mul(%q, %c)\n  %ks = Mul(%kt, %c)\n  %s1 = MatMul(%qs, %ks)\n";
  expect_ops(p.text(), kPasses, "Attention", {}, 1e-6);
  p.scores = "  %qs = Mul(%q, %c)\n  %s1 = MatMul(%qs, %kt)\n";
  expect_ops(p.text(), kPasses, "Attention", {}, 1e-6);
}

TEST(Attention, AMaskMadeOfFiniteNumbers) { expect_ops(finite_mask().text(), kPasses, "Where Attention"); }

TEST(Attention, AMaskThatMayExcludeARowNeedsTheGuard) {
  Parts p;  // a floating graph input may hold -inf
  expect_unchanged(p.text(), {"attention"});
  Parts inf = finite_mask();
  inf.constants = "  const %c: f32[] = {0.5}\n  const %zero: f32[] = {0}\n  const %low: f32[] = {-inf}\n";
  expect_unchanged(inf.text(), {"attention"});
  inf.constants += "  const %o: f32[] = {0}\n";
  inf.values = "  %n = IsNaN(%p)\n  %g = Where(%n, %o, %p)\n  %y = MatMul(%g, %v)\n";
  expect_ops(inf.text(), kPasses, "Where Attention");
}

TEST(Attention, AConstantMaskIsReadRowByRow) {
  Parts p;
  p.mask_input = "";
  p.constants +=
      "  const %mask: f32[3,5] = {0, -inf, -inf, -inf, -inf, 0, 0, -inf, -inf, -inf, 0, 0, 0, 0, 0}\n";
  expect_ops(p.text(), kPasses, "Attention");
  p.constants =
      "  const %c: f32[] = {0.5}\n  const %mask: f32[3,5] = {-inf, -inf, -inf, -inf, -inf, 0, 0, 0, 0, 0, 0, "
      "0, 0, 0, 0}\n";
  expect_unchanged(p.text(), {"attention"});
}

TEST(Attention, AMaskOfOneColumnStays) {  // the operator would fill it with -inf
  Parts p = finite_mask();
  p.mask_input = ", %m: bool[B,1,3,1]";
  expect_unchanged(p.text(), {"attention"});
}

TEST(Attention, WhatIsNotAttentionStays) {
  Parts axis = no_mask();
  axis.softmax = "  %p = Softmax(%s1) {axis = 2}\n";
  expect_unchanged(axis.text(), {"attention"});
  Parts read = no_mask();
  read.returned = "%y, %p";
  expect_unchanged(read.text(), {"attention"});
  Parts heads = no_mask();
  heads.keys = "f32[B,1,5,4]";
  expect_unchanged(heads.text(), {"attention"});
  Parts vector = no_mask();
  vector.constants = "  const %c: f32[5] = {1, 2, 3, 4, 5}\n";
  expect_unchanged(vector.text(), {"attention"});
}

TEST(Attention, RepeatedHeadsAreGroups) {
  const auto text = [](const std::string& axis, const std::string& shape) {
    return "graph \"\" (%q: f32[B,6,3,4], %k: f32[B,2,5,4], %v: f32[B,2,5,4]) {\n  const %a: i64[1] = {" +
           axis + "}\n  const %e: i64[5] = {" + shape +
           "}\n  const %r: i64[4] = {0, 6, 5, 4}\n  %k1 = Unsqueeze(%k, %a)\n  %k2 = Expand(%k1, %e)\n  %k3 "
           "= Reshape(%k2, %r)\n  %v1 = Unsqueeze(%v, %a)\n"
           "  %v2 = Expand(%v1, %e)\n  %v3 = Reshape(%v2, %r)\n  %y = Attention(%q, %k3, %v3) {scale = "
           "0.5}\n  return %y\n}\n";
  };
  expect_ops(text("2", "1, 1, 3, 1, 1"), {"attention_grouped", "view_merge", "noop_reshape", "dead_code"},
             "Attention");
  // Heads in turn (k0 k1 k0 k1 ...) are another grouping.
  expect_unchanged(text("1", "1, 3, 1, 1, 1"), {"attention_grouped"});
}

TEST(Attention, HeadsMoveInside) {
  expect_ops(
      "graph \"\" (%q: f32[B,S,8], %k: f32[B,T,8], %v: f32[B,T,12]) {\n  const %s: i64[4] = {0, 0, 2, 4}\n  "
      "const %sv: i64[4] = {0, 0, 2, 6}\n"
      "  const %o: i64[3] = {0, 0, 12}\n  %q4 = Reshape(%q, %s)\n  %k4 = Reshape(%k, %s)\n  %v4 = "
      "Reshape(%v, %sv)\n"
      "  %qt = Transpose(%q4) {perm = [0, 2, 1, 3]}\n  %kt = Transpose(%k4) {perm = [0, 2, 1, 3]}\n  %vt = "
      "Transpose(%v4) {perm = [0, 2, 1, 3]}\n"
      "  %a = Attention(%qt, %kt, %vt) {scale = 0.5}\n  %at = Transpose(%a) {perm = [0, 2, 1, 3]}\n  %y = "
      "Reshape(%at, %o)\n  return %y\n}\n",
      {"attention_heads", "view_merge", "noop_reshape", "dead_code"}, "Attention", {{"S", 3}, {"T", 5}});
}

}  // namespace
}  // namespace hone::optimize::testing
