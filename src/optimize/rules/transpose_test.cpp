#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::vector<std::string> transposes() {
  std::vector<std::string> names;
  for (const Pass& p : all_passes())
    if (std::string_view(p.name).starts_with("transpose_") || std::string_view(p.name) == "noop_transpose")
      names.emplace_back(p.name);
  for (const char* again : {"transpose_merge", "noop_transpose", "dead_code"}) names.emplace_back(again);
  return names;
}

std::string chain(const std::string& type, const std::string& body, const std::string& constants = "") {
  return "graph \"\" (%x: " + type + ", %w: " + type + ") {\n" + constants + body + "  return %y\n}\n";
}

TEST(Transpose, TwoAreOneAndInversesCancel) {
  expect_ops(chain("f32[2,3,4]",
                   "  %a = Transpose(%x) {perm = [1, 2, 0]}\n  %b = Transpose(%a) {perm = [0, 2, 1]}\n  %y = "
                   "Neg(%b)\n"),
             {"transpose_merge", "dead_code"}, "Transpose Neg");
  expect_ops(chain("f32[2,3,4]",
                   "  %n = Neg(%x)\n  %a = Transpose(%n) {perm = [1, 2, 0]}\n  %b = Transpose(%a) {perm = "
                   "[2, 0, 1]}\n  %y = Abs(%b)\n"),
             {"transpose_merge", "noop_transpose", "dead_code"}, "Neg Abs");
  expect_ops(chain("f32[2,3]", "  %a = Transpose(%x)\n  %b = Transpose(%a)\n  %y = Abs(%b)\n"),
             {"transpose_merge", "noop_transpose", "dead_code"}, "Abs");
}

TEST(Transpose, MovingOnlyOnesIsAView) {
  expect_ops(chain("f32[N,1,4,1]", "  %a = Transpose(%x) {perm = [0, 2, 1, 3]}\n  %y = Neg(%a)\n"),
             {"transpose_view"}, "Reshape Neg");
  expect_unchanged(chain("f32[N,1,4,2]", "  %a = Transpose(%x) {perm = [0, 1, 3, 2]}\n  %y = Neg(%a)\n"),
                   {"transpose_view"});
}

TEST(Transpose, SinksBelowElementwise) {
  const std::string nhwc = "  %a = Transpose(%x) {perm = [0, 2, 3, 1]}\n";
  const std::string back = "  %y = Transpose(%c) {perm = [0, 3, 1, 2]}\n";
  std::vector<std::string> passes = {"transpose_sink_elementwise", "transpose_merge", "noop_transpose",
                                     "dead_code"};
  expect_ops(chain("f32[2,3,4,5]", nhwc + "  %c = Relu(%a)\n" + back), passes, "Relu");
  expect_ops(chain("f32[2,3,4,5]", nhwc + "  %c = Add(%a, %k)\n" + back, "  const %k: f32[3] = {1, 2, 3}\n"),
             passes, "Add");
  expect_ops(chain("f32[2,3,4,5]", nhwc + "  %c = Mul(%k, %a)\n" + back,
                   "  const %k: f32[4,1,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}\n"),
             passes, "Mul");
  expect_ops(
      chain("f32[2,3,4,5]", nhwc + "  %b = Transpose(%w) {perm = [0, 2, 3, 1]}\n  %c = Sub(%a, %b)\n" + back),
      passes, "Sub");
  expect_ops(chain("f32[2,3,4,5]", nhwc + "  %c = Clip(%a, %lo, %hi)\n" + back,
                   "  const %lo: f32[] = {-1}\n  const %hi: f32[] = {1}\n"),
             passes, "Clip");
}

TEST(Transpose, DoesNotSinkWhereItWouldBeDoubled) {
  const std::string nhwc = "  %a = Transpose(%x) {perm = [0, 2, 3, 1]}\n";
  expect_unchanged(chain("f32[2,4,4,4]", nhwc + "  %y = Add(%a, %w)\n"), {"transpose_sink_elementwise"});
  expect_unchanged(
      chain("f32[2,3,4,5]",
            nhwc + "  %b = Transpose(%w) {perm = [0, 3, 2, 1]}\n  %c = Transpose(%b) {perm = [0, 2, 1, 3]}\n"
                   "  %d = Relu(%a)\n  %y = Add(%d, %a)\n"),
      {"transpose_sink_elementwise"});
}

TEST(Transpose, SinksBelowReductionsAndSoftmax) {
  const std::string t = "  %a = Transpose(%x) {perm = [0, 2, 1]}\n";
  const std::string axes = "  const %ax: i64[1] = {1}\n";
  const auto passes = transposes();
  expect_ops(chain("f32[2,3,4]", t + "  %m = ReduceMean(%a, %ax)\n  %y = Neg(%m)\n", axes),
             {"transpose_sink_reduction"}, "ReduceMean Transpose Neg");
  expect_ops(chain("f32[2,3,4]", t + "  %m = ReduceSum(%a, %ax) {keepdims = 0}\n  %y = Neg(%m)\n", axes),
             {"transpose_sink_reduction", "noop_transpose"}, "ReduceSum Neg");
  expect_ops(
      chain("f32[2,3,4]", t + "  %s = Softmax(%a) {axis = 1}\n  %y = Transpose(%s) {perm = [0, 2, 1]}\n"),
      passes, "Softmax");
}

TEST(Transpose, SinksBelowRowOperatorsOnlyWhenRowsStay) {
  const std::string w = "  const %m: f32[4,2] = {1, 2, 3, 4, 5, 6, 7, 8}\n";
  expect_ops(chain("f32[2,3,4]",
                   "  %a = Transpose(%x) {perm = [1, 0, 2]}\n  %b = MatMul(%a, %m)\n  %y = Transpose(%b) "
                   "{perm = [1, 0, 2]}\n",
                   w),
             transposes(), "MatMul");
  expect_unchanged(chain("f32[4,3,2]", "  %a = Transpose(%x) {perm = [2, 1, 0]}\n  %y = MatMul(%a, %m)\n", w),
                   {"transpose_sink_rows"});
  expect_unchanged(chain("f32[2,3,4]", "  %a = Transpose(%x) {perm = [1, 0, 2]}\n  %y = MatMul(%a, %m)\n",
                         "  const %m: f32[3,4,2] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, "
                         "4, 5, 6, 7, 8}\n"),
                   {"transpose_sink_rows"});
}

TEST(Transpose, SinksBelowConcatOfTransposed) {
  expect_ops(chain("f32[2,3,4]",
                   "  %a = Transpose(%x) {perm = [0, 2, 1]}\n  %b = Transpose(%w) {perm = [0, 2, 1]}\n"
                   "  %c = Concat(%a, %b) {axis = -1}\n  %y = Transpose(%c) {perm = [0, 2, 1]}\n"),
             transposes(), "Concat");
  expect_unchanged(
      chain("f32[2,3,3]", "  %a = Transpose(%x) {perm = [0, 2, 1]}\n  %y = Concat(%a, %w) {axis = -1}\n"),
      {"transpose_sink_concat"});
}

TEST(Transpose, SinksBelowSlicesWhenEveryReaderIsOne) {
  const std::string t = "  %a = Transpose(%x) {perm = [2, 0, 3, 1]}\n";
  const std::string idx = "  const %i: i64[] = {0}\n  const %j: i64[] = {1}\n";
  expect_ops(
      chain("f32[2,5,3,4]",
            t + "  %q = Gather(%a, %i) {axis = 0}\n  %k = Gather(%a, %j) {axis = 0}\n  %y = Sub(%q, %k)\n",
            idx),
      {"transpose_sink_gather", "dead_code", "transpose_sink_elementwise", "dead_code"},
      "Gather Gather Sub Transpose");
  expect_unchanged(chain("f32[2,5,3,4]",
                         t + "  %q = Gather(%a, %i) {axis = 0}\n  %r = Neg(%a)\n  %y = Sub(%r, %q)\n", idx),
                   {"transpose_sink_gather"});
}

TEST(Transpose, SinksBelowSqueeze) {
  expect_ops(chain("f32[2,1,3,4]",
                   "  %a = Transpose(%x) {perm = [3, 0, 1, 2]}\n  %s = Squeeze(%a, %ax)\n  %y = Neg(%s)\n",
                   "  const %ax: i64[1] = {2}\n"),
             {"transpose_sink_squeeze"}, "Squeeze Transpose Neg");
}

TEST(Transpose, GemmOperandsFlipOnlyForARealSwap) {
  const std::string k =
      "  const %b: f32[4,5] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2}\n";
  auto g = expect_ops(chain("f32[4,3]", "  %a = Transpose(%x)\n  %y = Gemm(%a, %b)\n", k),
                      {"transpose_gemm_a", "dead_code"}, "Gemm");
  EXPECT_EQ(g->nodes().front()->get_int("transA", 0), 1);
  g = expect_ops(chain("f32[3,4]", "  %a = Transpose(%x)\n  %y = Gemm(%a, %b) {transA = 1}\n", k),
                 {"transpose_gemm_a", "dead_code"}, "Gemm");
  EXPECT_EQ(g->nodes().front()->get_int("transA", 0), 0);
  g = expect_ops(chain("f32[3,4]", "  %a = Transpose(%w)\n  %y = Gemm(%x, %a)\n"),
                 {"transpose_gemm_b", "dead_code"}, "Gemm");
  EXPECT_EQ(g->nodes().front()->get_int("transB", 0), 1);
  // Case A11: the identity permutation is no transposition.
  expect_unchanged(chain("f32[3,4]", "  %a = Transpose(%x) {perm = [0, 1]}\n  %y = Gemm(%a, %b)\n", k),
                   {"transpose_gemm_a", "transpose_gemm_b"});
}

}  // namespace
}  // namespace hone::optimize::testing
