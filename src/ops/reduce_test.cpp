// Reductions, softmaxes, ArgMax, cumulative sums, TopK.
#include "support/op_expect.h"

namespace hone {
namespace {

using namespace testing;
using Ints = std::vector<int64_t>;

// Case E01.
TEST(Softmax, BeforeOpset13TheInputIsFlattened) {
  const Tensor x = f32({1, 2, 2}, {0, 0, 0, 0});
  for (const bool typed : {true, false}) {
    expect_values(run_old("Softmax", 11, {x}, {}, 1, typed)[0], {0.25, 0.25, 0.25, 0.25});
    expect_values(run_old("LogSoftmax", 1, {x}, {}, 1, typed)[0], std::vector<double>(4, std::log(0.25)));
    expect_values(run_old("Hardmax", 11, {x}, {}, 1, typed)[0], {1, 0, 0, 0});
    expect_values(run_old("Softmax", 11, {x}, {{"axis", int64_t{2}}}, 1, typed)[0], {0.5, 0.5, 0.5, 0.5});
    expect_values(run_old("Softmax", 11, {x}, {{"axis", int64_t{-3}}}, 1, typed)[0],
                  {0.25, 0.25, 0.25, 0.25});
  }
  expect_values(run("Softmax", {x})[0], {0.5, 0.5, 0.5, 0.5});
  EXPECT_EQ(run_old("Softmax", 11, {Tensor(DType::kF32, {0, 2, 2})})[0].shape(), (Shape{0, 2, 2}));
}

TEST(Softmax, ValuesAndLimits) {
  const double e = std::exp(1.0);
  expect_values(run("Softmax", {f32({2, 2}, {0, 1, 1000, 1000})})[0], {1 / (1 + e), e / (1 + e), 0.5, 0.5});
  expect_values(run("Softmax", {f32({2, 2}, {0, 1, 1, 0})}, {{"axis", int64_t{0}}})[0],
                {1 / (1 + e), e / (1 + e), e / (1 + e), 1 / (1 + e)});
  expect_values(run("Softmax", {f32({1, 2}, {-INFINITY, -INFINITY})})[0], {NAN, NAN});
  expect_values(run("Softmax", {f32({1, 2}, {-INFINITY, 3})})[0], {0, 1});
  expect_values(run("LogSoftmax", {f32({1, 2}, {0, 1000})})[0], {-1000, 0});
  expect_values(run("Hardmax", {f32({1, 3}, {1, 3, 3})})[0], {0, 1, 0});
  EXPECT_EQ(error_of("Softmax", {f32({2}, {1, 2})}, {{"axis", int64_t{1}}}), kModel);
}

TEST(Reduce, AxesKeepdimsAndNoop) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_values(run("ReduceSum", {x})[0], {21});
  EXPECT_EQ(run("ReduceSum", {x})[0].shape(), (Shape{1, 1}));
  expect_values(run("ReduceSum", {x, i64({1}, {0})})[0], {5, 7, 9});
  EXPECT_EQ(run("ReduceSum", {x, i64({1}, {-1})}, {{"keepdims", int64_t{0}}})[0].shape(), Shape{2});
  expect_values(run("ReduceSum", {x, Tensor(DType::kI64, {0})})[0], {21});
  expect_values(run("ReduceSum", {x, Tensor(DType::kI64, {0})}, {{"noop_with_empty_axes", int64_t{1}}})[0],
                {1, 2, 3, 4, 5, 6});
  expect_values(run("ReduceSumSquare", {x}, {{"noop_with_empty_axes", int64_t{1}}})[0],
                {1, 4, 9, 16, 25, 36});
  expect_values(run("ReduceSum", {f32({}, {5})})[0], {5});
  EXPECT_EQ(error_of("ReduceSum", {x, i64({1}, {2})}), kData);
  EXPECT_EQ(error_of("ReduceSum", {x, i64({2}, {0, -2})}), kData) << "the same axis twice";
}

TEST(Reduce, EveryKind) {
  const Tensor x = f32({2, 2}, {1, -2, 3, 4});
  const auto last = [&](const char* op) {
    return run(op, {x, i64({1}, {1})}, {{"keepdims", int64_t{0}}})[0];
  };
  expect_values(last("ReduceMean"), {-0.5, 3.5});
  expect_values(last("ReduceMax"), {1, 4});
  expect_values(last("ReduceMin"), {-2, 3});
  expect_values(last("ReduceProd"), {-2, 12});
  expect_values(last("ReduceL1"), {3, 7});
  expect_values(last("ReduceL2"), {std::sqrt(5.0), 5});
  expect_values(last("ReduceSumSquare"), {5, 25});
  expect_values(last("ReduceLogSum"), {NAN, std::log(7.0)});
  expect_values(last("ReduceLogSumExp"),
                {std::log(std::exp(1.0) + std::exp(-2.0)), std::log(std::exp(3.0) + std::exp(4.0))});
  expect_values(run("ReduceLogSumExp", {f32({2}, {1000, 1000})})[0], {1000 + std::log(2.0)});
}

TEST(Reduce, MiddleAxes) {
  const Tensor x = f32({2, 3, 2}, iota(12));
  expect_values(run("ReduceSum", {x, i64({1}, {1})})[0], {6, 9, 24, 27});
  expect_values(run("ReduceSum", {x, i64({2}, {0, 2})})[0], {14, 22, 30});
}

TEST(Reduce, EmptySets) {
  const Tensor none(DType::kF32, {2, 0});
  const auto over = [&](const char* op) { return run(op, {none, i64({1}, {1})})[0]; };
  expect_values(over("ReduceSum"), {0, 0});
  expect_values(over("ReduceProd"), {1, 1});
  expect_values(over("ReduceMax"), {-INFINITY, -INFINITY});
  expect_values(over("ReduceMin"), {INFINITY, INFINITY});
  expect_values(over("ReduceMean"), {NAN, NAN});
  expect_values(over("ReduceLogSum"), {-INFINITY, -INFINITY});
  expect_values(over("ReduceLogSumExp"), {-INFINITY, -INFINITY});
  expect_values(run("ReduceMax", {Tensor(DType::kI32, {0})})[0], {static_cast<double>(INT32_MIN)});
}

TEST(Reduce, IntegersBoolsAndNaN) {
  expect_values(run("ReduceSum", {i64({2}, {int64_t{1} << 53, 1})})[0],
                {0x1p53 + 0});  // exact inside, the comparison is in doubles
  EXPECT_EQ(run("ReduceSum", {i64({2}, {int64_t{1} << 53, 1})})[0].data<int64_t>()[0],
            (int64_t{1} << 53) + 1);
  expect_values(run("ReduceMean", {i32({2}, {-3, 0})})[0], {-1});
  expect_values(run("ReduceMax", {boolean({3}, {0, 1, 0})})[0], {1});
  expect_values(run("ReduceMin", {boolean({3}, {0, 1, 1})})[0], {0});
  expect_values(run("ReduceMax", {f32({3}, {1, NAN, 2})})[0], {NAN});
}

TEST(Reduce, AxesWereAnAttribute) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_values(run_old("ReduceMean", 13, {x}, {{"axes", Ints{0}}})[0], {2, 3});
  expect_values(run_old("ReduceSum", 11, {x}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}})[0], {3, 7});
  expect_values(run_old("ReduceSum", 11, {x})[0], {10});
}

TEST(Reduce, FollowsShapeArithmetic) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, ir::Dims{ir::Dim::symbol("N"), 3}});
  const auto shape = g.add_node("Shape", {x})->outputs[0];
  const auto n = g.add_node("ReduceProd", {shape}, {{"keepdims", int64_t{0}}})->outputs[0];
  ops::infer_graph(g);
  ASSERT_TRUE(g.value(n).contents);
  EXPECT_EQ((*g.value(n).contents)[0], ir::Dim(3) * ir::Dim::symbol("N"));
}

// Case E37.
TEST(ArgMax, FirstLastAndNaN) {
  const Tensor x = f32({4}, {5, 1, 5, 0});
  expect_values(run("ArgMax", {x})[0], {0});
  expect_values(run("ArgMax", {x}, {{"select_last_index", int64_t{1}}})[0], {2});
  expect_values(run("ArgMin", {x}, {{"keepdims", int64_t{0}}})[0], {3});
  EXPECT_EQ(run("ArgMin", {x}, {{"keepdims", int64_t{0}}})[0].shape(), Shape{});
  expect_values(run("ArgMax", {f32({3}, {1, NAN, 2})})[0], {1});
  expect_values(run("ArgMin", {f32({2, 2}, {3, 1, 2, 4})}, {{"axis", int64_t{-1}}})[0], {1, 0});
  EXPECT_EQ(error_of("ArgMax", {Tensor(DType::kF32, {2, 0})}, {{"axis", int64_t{1}}}), kData);
}

// Case E31.
TEST(CumSum, ExclusiveAndReverse) {
  const Tensor x = f32({4}, {1, 2, 3, 4}), axis = i32({}, {0});
  expect_values(run("CumSum", {x, axis})[0], {1, 3, 6, 10});
  expect_values(run("CumSum", {x, axis}, {{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}})[0],
                {9, 7, 4, 0});
  expect_values(run("CumSum", {f32({2, 2}, {1, 2, 3, 4}), i64({}, {-2})})[0], {1, 2, 4, 6});
  expect_values(run("CumProd", {x, axis})[0], {1, 2, 6, 24});
  EXPECT_NE(error_of("CumSum", {x, i32({}, {1})}), 0);
}

// Case E35.
TEST(TopK, TiesGoToTheLowerIndex) {
  const Tensor x = f32({6}, {1, 5, 5, 2, 5, 5});
  const auto y = run("TopK", {x, i64({1}, {3})}, {}, 2);
  expect_values(y[0], {5, 5, 5});
  expect_values(y[1], {1, 2, 4});
  expect_values(run("TopK", {x, i64({1}, {2})}, {{"largest", int64_t{0}}}, 2)[1], {0, 3});
  expect_values(run("TopK", {f32({2, 2}, {1, 2, 4, 3}), i64({1}, {1})}, {{"axis", int64_t{0}}}, 2)[1],
                {1, 1});
  expect_values(run("TopK", {i64({2}, {(int64_t{1} << 60) + 1, int64_t{1} << 60}), i64({1}, {1})}, {}, 2)[1],
                {0});
  EXPECT_EQ(run("TopK", {x, i64({1}, {0})}, {}, 2)[0].shape(), Shape{0});
  expect_values(run_old("TopK", 1, {x}, {{"k", int64_t{2}}}, 2)[0], {5, 5});
  EXPECT_NE(error_of("TopK", {x, i64({1}, {7})}, {}, 2), 0);
}

}  // namespace
}  // namespace hone
