// Pools and global pools.
#include "support/op_expect.h"

namespace hone {
namespace {

using namespace testing;
using Ints = std::vector<int64_t>;

// Case E05.
TEST(AveragePool, CeilMode) {
  const Tensor x = f32({1, 1, 4, 4}, iota(16, 1));
  expect_values(run("AveragePool", {x},
                    {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}})[0],
                {6, 7.5, 12, 13.5});
  const ir::AttrMap attrs = {{"kernel_shape", Ints{7}},
                             {"strides", Ints{3}},
                             {"pads", Ints{3, 3}},
                             {"ceil_mode", int64_t{1}},
                             {"count_include_pad", int64_t{1}}};
  expect_values(run("AveragePool", {f32({1, 1, 9}, iota(9, 1))}, attrs)[0], {10.0 / 7, 4, 39.0 / 7, 4});
}

// Case E07: a window that starts in the right padding is dropped.
TEST(MaxPool, CeilModeDropsWindowsBehindTheInput) {
  const ir::AttrMap attrs = {
      {"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}, {"ceil_mode", int64_t{1}}};
  const Tensor y = run("MaxPool", {f32({1, 1, 4}, {-1, -2, -3, -4})}, attrs)[0];
  expect_values(y, {-1, -3});
}

TEST(MaxPool, IndicesCountPlanesAndStorageOrder) {
  const Tensor x = f32({1, 2, 2, 3}, {1, 5, 2, 0, 3, 9, 4, 4, 4, 4, 4, 4});
  const ir::AttrMap attrs = {{"kernel_shape", Ints{2, 2}}};
  const auto rows = run("MaxPool", {x}, attrs, 2);
  expect_values(rows[0], {5, 9, 4, 4});
  expect_values(rows[1], {1, 5, 6, 7});
  ir::AttrMap column = attrs;
  column["storage_order"] = int64_t{1};
  expect_values(run("MaxPool", {x}, column, 2)[1], {2, 5, 6, 8});
}

TEST(MaxPool, PaddingIsNeitherZeroNorCounted) {
  expect_values(
      run("MaxPool", {f32({1, 1, 2}, {-4, -8})}, {{"kernel_shape", Ints{2}}, {"pads", Ints{1, 1}}})[0],
      {-4, -4, -8});
  expect_values(run("MaxPool", {f32({1, 1, 3}, {1, NAN, 0})}, {{"kernel_shape", Ints{2}}})[0], {NAN, NAN});
  expect_values(run("MaxPool", {f32({1, 1, 2}, {-INFINITY, -INFINITY})}, {{"kernel_shape", Ints{2}}})[0],
                {-INFINITY});
  expect_values(run("MaxPool", {i8({1, 1, 3}, {-128, -3, -7})}, {{"kernel_shape", Ints{2}}})[0], {-3, -3});
}

TEST(MaxPool, DilationsAndAutoPad) {
  const Tensor x = f32({1, 1, 6}, {1, 2, 3, 6, 5, 4});
  expect_values(run("MaxPool", {x}, {{"kernel_shape", Ints{2}}, {"dilations", Ints{3}}})[0], {6, 5, 4});
  expect_values(
      run("MaxPool", {x},
          {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"auto_pad", std::string("SAME_UPPER")}})[0],
      {3, 6, 5});
  expect_values(
      run("MaxPool", {x},
          {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"auto_pad", std::string("SAME_LOWER")}})[0],
      {2, 6, 6});
  expect_values(run("MaxPool", {x},
                    {{"kernel_shape", Ints{3}},
                     {"strides", Ints{2}},
                     {"auto_pad", std::string("VALID")},
                     {"ceil_mode", int64_t{1}}})[0],
                {3, 6});
}

TEST(AveragePool, LeavesPaddingOutUnlessAsked) {
  const Tensor x = f32({1, 1, 3}, {3, 6, 9});
  ir::AttrMap attrs = {{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}};
  expect_values(run("AveragePool", {x}, attrs)[0], {4.5, 6, 7.5});
  attrs["count_include_pad"] = int64_t{1};
  expect_values(run("AveragePool", {x}, attrs)[0], {3, 6, 5});
}

TEST(LpPool, Norms) {
  const Tensor x = f32({1, 1, 3}, {3, -4, 0});
  expect_values(run("LpPool", {x}, {{"kernel_shape", Ints{2}}})[0], {5, 4});
  expect_values(run("LpPool", {x}, {{"kernel_shape", Ints{2}}, {"p", int64_t{1}}})[0], {7, 4});
  expect_values(run("LpPool", {x}, {{"kernel_shape", Ints{2}}, {"p", int64_t{3}}})[0], {std::cbrt(91.0), 4});
  expect_values(run_old("LpPool", 1, {x}, {{"kernel_shape", Ints{2}}, {"p", 1.0F}})[0], {7, 4});
  EXPECT_THROW(run_old("LpPool", 1, {x}, {{"kernel_shape", Ints{2}}, {"p", 1.5F}}), Error);
}

TEST(Pool, RefusesWhatMakesNoSense) {
  const Tensor x = f32({1, 1, 4}, iota(4));
  EXPECT_EQ(error_of("MaxPool", {x}), kModel) << "kernel_shape is required";
  EXPECT_EQ(error_of("MaxPool", {x}, {{"kernel_shape", Ints{0}}}), kModel);
  EXPECT_EQ(error_of("MaxPool", {x}, {{"kernel_shape", Ints{2, 2}}}), kModel);
  EXPECT_EQ(error_of("AveragePool", {x}, {{"kernel_shape", Ints{2}}, {"strides", Ints{0}}}), kModel);
  EXPECT_EQ(error_of("AveragePool", {x}, {{"kernel_shape", Ints{9}}}), kModel);
  EXPECT_EQ(error_of("MaxPool", {f32({3}, iota(3))}, {{"kernel_shape", Ints{2}}}), kModel);
}

TEST(Pool, InfersSymbolicSizes) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, ir::Dims{1, 8, ir::Dim::symbol("H")}});
  const ir::AttrMap floor = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 1}}};
  ir::AttrMap ceil = floor;
  ceil["ceil_mode"] = int64_t{1};
  const auto shape = [&](const ir::AttrMap& attrs) {
    const ir::Node* n = g.add_node("MaxPool", {x}, attrs);
    ops::infer_graph(g);
    return (*g.value(n->outputs[0]).type.shape)[2];
  };
  const ir::Dim low = shape(floor), high = shape(ceil);
  for (int64_t h = 1; h < 12; ++h) {
    EXPECT_EQ(low.eval({{"H", h}}), (h + 2 - 3) / 2 + 1) << h;
    EXPECT_EQ(high.eval({{"H", h}}), run("MaxPool", {f32({1, 8, h}, noise(8 * h))}, ceil)[0].dim(2)) << h;
  }
}

TEST(GlobalPool, OneNumberOfEachPlane) {
  const Tensor x = f32({1, 2, 2, 2}, {1, 2, 3, 6, -3, 4, 0, 0});
  expect_values(run("GlobalAveragePool", {x})[0], {3, 0.25});
  expect_values(run("GlobalMaxPool", {x})[0], {6, 4});
  expect_values(run("GlobalLpPool", {x})[0], {std::sqrt(50.0), 5});
  expect_values(run("GlobalLpPool", {x}, {{"p", int64_t{1}}})[0], {12, 7});
  expect_values(run_old("GlobalLpPool", 1, {x}, {{"p", 1.0F}})[0], {12, 7});
  EXPECT_EQ(run("GlobalAveragePool", {x})[0].shape(), (Shape{1, 2, 1, 1}));
  EXPECT_EQ(run("GlobalMaxPool", {Tensor(DType::kF32, {0, 2, 3})})[0].shape(), (Shape{0, 2, 1}));
  expect_values(run("GlobalMaxPool", {f32({1, 1, 3}, {1, NAN, 2})})[0], {NAN});
}

// Case B09: a mean of 50176 twos in f16 does not stall.
TEST(GlobalPool, AccumulatesWide) {
  const Tensor x = ops::convert(f32({1, 1, 224, 224}, std::vector<float>(224 * 224, 2)), DType::kF16);
  expect_values(run("GlobalAveragePool", {x})[0], {2});
}

}  // namespace
}  // namespace hone
