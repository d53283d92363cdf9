#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

const char* kConv = "  const %w: f32[2,2,1,1] = {1, 2, 3, 4}\n  const %b: f32[2,1,1] = {1, -1}\n";

std::string conv(const std::string& body, const std::string& outputs = "%y",
                 const std::string& more_inputs = "") {
  return "graph \"\" (%x: f32[N,2,3,3], %r: f32[N,2,3,3]" + more_inputs + ") {\n" + std::string(kConv) +
         body + "  return " + outputs + "\n}\n";
}

const std::vector<std::string> kLayers = {"fuse_layers"};

TEST(Layers, ConvolutionTakesWhatFollows) {
  const auto g =
      expect_ops(conv("  %a = Conv(%x, %w) {}\n  %c = Add(%a, %b)\n  %d = Add(%r, %c)\n  %y = Relu(%d)\n"),
                 kLayers, "Fused(Conv Add Add Relu)");
  EXPECT_EQ(g->nodes().front()->anchor, 0);
  EXPECT_EQ(g->nodes().front()->inputs.size(), 4U);
  expect_ops(conv("  const %lo: f32[] = {0}\n  const %hi: f32[] = {6}\n  %a = Conv(%x, %w)\n  %y = Clip(%a, "
                  "%lo, %hi)\n"),
             kLayers, "Fused(Conv Clip)");
}

TEST(Layers, BothBranchesOfAResidual) {  // the later convolution takes the sum
  expect_ops(conv("  %a = Conv(%x, %w)\n  %d = Conv(%r, %w)\n  %s = Add(%a, %d)\n  %y = Relu(%s)\n"), kLayers,
             "Conv Fused(Conv Add Relu)");
}

TEST(Layers, ValuesReadTwiceInside) {
  expect_ops(conv("  %a = Conv(%x, %w)\n  %t = Tanh(%a)\n  %y = Mul(%a, %t)\n"), kLayers,
             "Fused(Conv Tanh Mul)");
}

TEST(Layers, WhatIsReadElsewhereEndsALayer) {
  expect_ops(conv("  %a = Conv(%x, %w)\n  %y = Relu(%a)\n", "%y, %a"), kLayers, "Conv Relu");
  expect_ops(conv("  %a = Conv(%x, %w)\n  %c = Relu(%a)\n  %y = Tanh(%c)\n", "%y, %c"), kLayers,
             "Fused(Conv Relu) Tanh");
  expect_ops(conv("  %a = Conv(%x, %w)\n  %p = GlobalAveragePool(%a)\n  %y = Mul(%a, %p)\n"), kLayers,
             "Conv GlobalAveragePool Mul");
}

TEST(Layers, BroadcastGrowthEndsALayer) {
  expect_ops(conv("  %a = Conv(%g, %w)\n  %y = Mul(%a, %r)\n", "%y", ", %g: f32[N,2,1,1]"), kLayers,
             "Conv Mul");
  expect_ops(conv("  %a = Conv(%x, %w)\n  %y = Mul(%a, %g)\n", "%y", ", %g: f32[N,2,1,1]"), kLayers,
             "Fused(Conv Mul)");
}

TEST(Layers, OtherTypesStay) {
  expect_ops(conv("  %a = Conv(%x, %w)\n  %c = Cast(%a) {to = 10}\n  %y = Relu(%c)\n"), kLayers,
             "Conv Cast Relu");
  expect_ops(conv("  %a = Conv(%x, %w)\n  %c = Greater(%a, %r)\n  %y = Not(%c)\n"), kLayers,
             "Conv Greater Not");
}

TEST(Layers, MatMulAndGemm) {
  expect_ops(
      "graph \"\" (%x: f32[N,S,2], %r: f32[N,S,3]) {\n  const %w: f32[2,3] = {1, 2, 3, 4, 5, 6}\n  const %b: "
      "f32[3] = {1, 2, 3}\n  %a = MatMul(%x, %w)\n"
      "  %c = Add(%a, %b)\n  %g = Gelu(%c)\n  %y = Add(%g, %r)\n  return %y\n}\n",
      kLayers, "Fused(MatMul Add Gelu Add)", {{"S", 4}});
  expect_ops(
      "graph \"\" (%x: f32[4,2]) {\n  const %w: f32[2,3] = {1, 2, 3, 4, 5, 6}\n  %a = Gemm(%x, %w)\n  %y = "
      "Tanh(%a)\n  return %y\n}\n",
      kLayers, "Fused(Gemm Tanh)");
  // x x^T + x: the same tensor as operand and as residual
  expect_ops("graph \"\" (%x: f32[3,3]) {\n  %a = MatMul(%x, %x)\n  %y = Add(%a, %x)\n  return %y\n}\n",
             kLayers, "Fused(MatMul Add)");
}

TEST(Layers, ProgramsOfWhatRemains) {
  const std::vector<std::string> pw = {"fuse_pointwise"};
  expect_ops(
      "graph \"\" (%x: f32[N,4], %r: f32[N,4]) {\n  %a = Sigmoid(%x)\n  %b = Tanh(%r)\n  %y = Mul(%a, %b)\n  "
      "return %y\n}\n",
      pw, "Fused(Sigmoid Tanh Mul)");
  expect_ops(
      "graph \"\" (%x: f32[N,4], %r: f32[4]) {\n  const %k: f32[] = {2}\n  %a = Mul(%x, %k)\n  %b = Add(%a, "
      "%r)\n  %y = Exp(%b)\n  return %y\n}\n",
      pw, "Fused(Mul Add Exp)");
  // read in the middle: two programs, or one and a rest
  expect_ops(
      "graph \"\" (%x: f32[4]) {\n  %a = Sigmoid(%x)\n  %b = Tanh(%a)\n  %c = Neg(%b)\n  %y = Exp(%c)\n  "
      "return %y, %b\n}\n",
      pw, "Fused(Sigmoid Tanh) Fused(Neg Exp)");
}

TEST(Layers, ProgramsDoNotComputeSmallTensorsOverAndOver) {
  expect_ops(
      "graph \"\" (%x: f32[N,4], %r: f32[1,4]) {\n  %a = Exp(%r)\n  %y = Mul(%x, %a)\n  return %y\n}\n",
      {"fuse_pointwise"}, "Exp Mul");
}

TEST(Layers, ProgramsStayF32) {
  expect_ops("graph \"\" (%x: f64[4]) {\n  %a = Sigmoid(%x)\n  %y = Tanh(%a)\n  return %y\n}\n",
             {"fuse_pointwise"}, "Sigmoid Tanh");
  expect_ops("graph \"\" (%x: i64[4]) {\n  %a = Neg(%x)\n  %y = Abs(%a)\n  return %y\n}\n",
             {"fuse_pointwise"}, "Neg Abs");
}

TEST(Layers, NoCycleIsClosed) {
  // y = Mul(a, f(a)) with f = ReduceSum outside the program: a and y must not be one layer.
  expect_ops(
      "graph \"\" (%x: f32[4]) {\n  const %ax: i64[1] = {0}\n  %a = Exp(%x)\n  %s = ReduceSum(%a, %ax)\n  %y "
      "= Mul(%a, %s)\n  return %y\n}\n",
      {"fuse_pointwise"}, "Exp ReduceSum Mul");
}

TEST(Layers, LedgerCountsWhatDisappears) {
  const auto g = graph_of(
      "graph \"\" (%x: f32[N,4]) {\n  %a = Sigmoid(%x)\n  %b = Tanh(%a)\n  %y = Exp(%b)\n  return %y\n}\n");
  std::vector<LedgerRow> rows;
  run_passes(*g, {"fuse_pointwise"}, &rows);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].bytes_not_moved.text(),
            "64*N");  // two tensors of 16 N bytes, each written once and read once
}

TEST(Products, OfFewRowsWithConstantsMerge) {
  const auto qkv = [](const std::string& rows, const std::string& out = "%y") {
    return "graph \"\" (%x: f32[1," + rows +
           ",2]) {\n  const %wq: f32[2,3] = {1, 2, 3, 4, 5, 6}\n  const %wk: f32[2,2] = {7, 8, 9, 1}\n"
           "  const %bq: f32[3] = {1, 2, 3}\n  const %bk: f32[2] = {4, 5}\n  %q = MatMul(%x, %wq)\n  %qb = "
           "Add(%q, %bq)\n  %k = MatMul(%x, %wk)\n"
           "  %kb = Add(%k, %bk)\n  %y = Neg(%qb)\n  %z = Abs(%kb)\n  return " +
           out + ", %z\n}\n";
  };
  expect_ops(qkv("4"), {"merge_products"}, "MatMul Add Split Neg Abs");
  expect_unchanged(qkv("64"), {"merge_products"});
  expect_unchanged(qkv("N"), {"merge_products"});
  expect_unchanged(qkv("4", "%y, %q"), {"merge_products"});
}

}  // namespace
}  // namespace hone::optimize::testing
