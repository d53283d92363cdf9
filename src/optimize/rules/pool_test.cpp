#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::string padded(const std::string& pads, const std::string& value, const std::string& node,
                   const std::string& mode = "constant") {
  return "graph \"\" (%x: f32[1,2,4,4]) {\n  const %p: i64[8] = {" + pads + "}\n  const %v: f32[] = {" +
         value + "}\n  const %w: f32[1,2,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}\n  %a = Pad(%x, %p, %v) {mode = \"" +
         mode + "\"}\n  %y = " + node + "\n  return %y\n}\n";
}

const char* kSpatial = "0, 0, 1, 1, 0, 0, 1, 2";

TEST(Pads, JoinAConvolution) {
  const auto g =
      expect_ops(padded(kSpatial, "0", "Conv(%a, %w) {pads = [1, 0, 0, 1]}"), {"pad_conv"}, "Conv");
  EXPECT_EQ(g->nodes().front()->get_ints("pads"), (std::vector<int64_t>{2, 1, 1, 3}));
  expect_unchanged(padded(kSpatial, "1", "Conv(%a, %w)"), {"pad_conv"});
  std::string infinite = padded(kSpatial, "0", "Conv(%a, %w)");
  infinite.replace(infinite.find("7, 8}"), 5, "7, inf}");
  expect_unchanged(infinite, {"pad_conv"});
  expect_unchanged(padded("0, 1, 0, 0, 0, 0, 0, 0", "0", "Neg(%a)"), {"pad_conv"});
  expect_unchanged(padded("1, 0, 0, 0, 0, 0, 0, 0", "0", "Conv(%a, %w)"), {"pad_conv"});
  expect_unchanged(padded("0, 0, -1, 0, 0, 0, 0, 0", "0", "Conv(%a, %w)"), {"pad_conv"});
  expect_unchanged(padded(kSpatial, "0", "Conv(%a, %w)", "reflect"), {"pad_conv"});
  expect_unchanged(padded(kSpatial, "0", "Conv(%a, %w) {auto_pad = \"SAME_UPPER\"}"), {"pad_conv"});
}

TEST(Pads, JoinMaxPoolOnlyWhenNeutral) {
  const std::string pool = "MaxPool(%a) {kernel_shape = [2, 2], strides = [2, 2]}";
  expect_unchanged(padded(kSpatial, "0", pool), {"pad_max_pool"});  // case A03
  const auto g = expect_ops(padded("0, 0, 1, 1, 0, 0, 1, 1", "-inf", pool), {"pad_max_pool"}, "MaxPool");
  EXPECT_EQ(g->nodes().front()->get_ints("pads"), (std::vector<int64_t>{1, 1, 1, 1}));
}

TEST(Pads, JoinAveragePoolCounted) {
  const std::string pool = "AveragePool(%a) {kernel_shape = [2, 2]";
  const auto g = expect_ops(padded(kSpatial, "0", pool + "}"), {"pad_average_pool"}, "AveragePool");
  EXPECT_EQ(g->nodes().front()->get_int("count_include_pad", 0), 1);
  expect_ops(padded(kSpatial, "0", pool + ", pads = [1, 0, 0, 0], count_include_pad = 1}"),
             {"pad_average_pool"}, "AveragePool");
  expect_unchanged(padded(kSpatial, "0", pool + ", pads = [1, 0, 0, 0]}"), {"pad_average_pool"});
  expect_unchanged(padded(kSpatial, "0", pool + ", ceil_mode = 1}"), {"pad_average_pool"});
  expect_unchanged(padded(kSpatial, "2", pool + "}"), {"pad_average_pool"});
}

TEST(Pools, MeanOverThePicture) {
  const auto mean = [](const std::string& axes, const std::string& keep) {
    return "graph \"\" (%x: f32[N,2,4,4]) {\n  const %a: i64[2] = {" + axes +
           "}\n  %y = ReduceMean(%x, %a) {keepdims = " + keep + "}\n  return %y\n}\n";
  };
  expect_ops(mean("2, 3", "1"), {"global_average_pool"}, "GlobalAveragePool");
  expect_ops(mean("-1, -2", "0"), {"global_average_pool"}, "GlobalAveragePool Reshape");
  expect_unchanged(mean("1, 2", "1"), {"global_average_pool"});
}

}  // namespace
}  // namespace hone::optimize::testing
