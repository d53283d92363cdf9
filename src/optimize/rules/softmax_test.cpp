#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::string spelled(const std::string& max_axis, const std::string& sum_axis, const std::string& keep = "1") {
  return "graph \"\" (%x: f32[2,3,4]) {\n  const %a: i64[1] = {" + max_axis + "}\n  const %b: i64[1] = {" +
         sum_axis +
         "}\n  %m = ReduceMax(%x, %a)\n  %d = Sub(%x, %m)\n  %e = Exp(%d)\n  %s = ReduceSum(%e, %b) "
         "{keepdims = " +
         keep + "}\n  %y = Div(%e, %s)\n  return %y\n}\n";
}

TEST(Softmax, SpelledOut) {
  const auto g = expect_ops(spelled("1", "-2"), {"softmax"}, "Softmax");
  EXPECT_EQ(g->nodes().front()->get_int("axis", -1), 1);
}

TEST(Softmax, OverDifferentDimensionsStays) { expect_unchanged(spelled("1", "2"), {"softmax"}); }

TEST(Softmax, WithoutTheMaximumStays) {
  expect_unchanged(
      "graph \"\" (%x: f32[2,3]) {\n  const %a: i64[1] = {1}\n  %e = Exp(%x)\n  %s = ReduceSum(%e, %a)\n  %y "
      "= Div(%e, %s)\n  return %y\n}\n",
      {"softmax"});
}

TEST(Softmax, LogOfSoftmax) {
  expect_ops("graph \"\" (%x: f32[2,3]) {\n  %s = Softmax(%x) {axis = 0}\n  %y = Log(%s)\n  return %y\n}\n",
             {"log_softmax"}, "LogSoftmax");
  expect_unchanged("graph \"\" (%x: f32[2,3]) {\n  %s = Softmax(%x)\n  %y = Log(%s)\n  return %y, %s\n}\n",
                   {"log_softmax"});
}

}  // namespace
}  // namespace hone::optimize::testing
