// Batch, instance, group, layer, RMS, Lp, local response and mean-variance normalization.
#include "support/op_expect.h"

namespace hone {
namespace {

using namespace testing;
using Ints = std::vector<int64_t>;

TEST(BatchNormalization, InferenceAndTraining) {
  const Tensor x = f32({2, 2, 1}, {1, 10, 3, 30}), scale = f32({2}, {2, 1}), bias = f32({2}, {0, 5}),
               mean = f32({2}, {1, 20}), var = f32({2}, {4, 25});
  const ir::AttrMap eps0 = {{"epsilon", 0.0F}};
  expect_values(run("BatchNormalization", {x, scale, bias, mean, var}, eps0)[0], {0, 3, 2, 7});
  ir::AttrMap training = eps0;
  training["training_mode"] = int64_t{1};
  training["momentum"] = 0.75F;
  const auto t = run("BatchNormalization", {x, scale, bias, mean, var}, training, 3);
  expect_values(t[0], {-2, 4, 2, 6});
  expect_values(t[1], {0.75 * 1 + 0.25 * 2, 20});
  expect_values(t[2], {0.75 * 4 + 0.25 * 1, 0.75 * 25 + 0.25 * 100});
}

TEST(BatchNormalization, OlderVersions) {
  const std::vector<Tensor> in = {f32({1, 1, 2}, {1, 3}), f32({1}, {2}), f32({1}, {1}), f32({1}, {1}),
                                  f32({1}, {4})};
  const ir::AttrMap old = {{"epsilon", 0.0F}, {"is_test", int64_t{1}}, {"spatial", int64_t{1}}};
  expect_values(run_old("BatchNormalization", 6, in, old)[0], {1, 3});
  expect_values(run_old("BatchNormalization", 9, in, {{"epsilon", 0.0F}}, 5)[0], {1, 3});
  EXPECT_THROW(run_old("BatchNormalization", 7, in, {{"spatial", int64_t{0}}}), Error);
}

TEST(InstanceNormalization, EachPlaneByItself) {
  const Tensor y =
      run("InstanceNormalization", {f32({1, 2, 2}, {1, 3, 10, 30}), f32({2}, {1, 2}), f32({2}, {0, 1})},
          {{"epsilon", 0.0F}})[0];
  expect_values(y, {-1, 1, -1, 3});
}

// Case E03.
TEST(GroupNormalization, StatisticsOfTheGroup) {
  const Tensor x = f32({1, 2, 2}, {1, 2, 11, 12});
  const ir::AttrMap attrs = {{"num_groups", int64_t{1}}, {"epsilon", 0.0F}};
  const std::vector<double> want = {-1.094541, -0.895534, 0.895534, 1.094541};
  expect_values(run("GroupNormalization", {x, f32({2}, {1, 1}), f32({2}, {0, 0})}, attrs)[0], want, 1e-5);
  for (const bool typed : {true, false}) {
    expect_values(run_old("GroupNormalization", 18, {x, f32({1}, {1}), f32({1}, {0})}, attrs, 1, typed)[0],
                  want, 1e-5);
  }
  const Tensor two =
      run_old("GroupNormalization", 18, {f32({1, 4, 1}, {1, 3, 10, 30}), f32({2}, {1, 2}), f32({2}, {0, 5})},
              {{"num_groups", int64_t{2}}, {"epsilon", 0.0F}})[0];
  expect_values(two, {-1, 1, 3, 7});
  EXPECT_EQ(
      error_of("GroupNormalization", {x, f32({2}, {1, 1}), f32({2}, {0, 0})}, {{"num_groups", int64_t{3}}}),
      kModel);
  EXPECT_EQ(
      error_of("GroupNormalization", {x, f32({2}, {1, 1}), f32({2}, {0, 0})}, {{"num_groups", int64_t{0}}}),
      kModel);
}

TEST(LayerNormalization, ValuesAndStatistics) {
  const Tensor x = f32({2, 4}, {1, 2, 3, 4, 10, 20, 30, 40});
  const auto y = run("LayerNormalization", {x, f32({4}, {2, 2, 2, 2}), f32({4}, {1, 1, 1, 1})}, {}, 3);
  expect_values(y[0], {-1.683271, 0.105576, 1.894424, 3.683271, -1.683282, 0.105573, 1.894427, 3.683282},
                1e-5);
  expect_values(y[1], {2.5, 25});
  expect_values(y[2], {1 / std::sqrt(1.25 + 1e-5), 1 / std::sqrt(125 + 1e-5)});
  EXPECT_EQ(y[1].shape(), (Shape{2, 1}));
}

// Cases A05, A07.
TEST(LayerNormalization, ScalesThatBroadcast) {
  const Tensor x = f32({2, 4}, {1, 2, 3, 4, 10, 20, 30, 40});
  expect_values(run("LayerNormalization", {x, f32({1}, {2}), f32({1}, {1})})[0],
                {-1.683271, 0.105576, 1.894424, 3.683271, -1.683282, 0.105573, 1.894427, 3.683282}, 1e-5);
  const Tensor by_row = run("LayerNormalization", {x, f32({2, 1}, {1, 10})})[0];
  expect_values(by_row, {-1.341636, -0.447212, 0.447212, 1.341636, -13.41641, -4.472136, 4.472136, 13.41641},
                1e-5);
  EXPECT_NE(error_of("LayerNormalization", {f32({1, 1}, {7}), f32({2}, {3, 5})}), 0)
      << "a scale may not widen X";
}

// Case B01: the variance of f16 values exceeds 65504 without harm.
TEST(LayerNormalization, F16DoesNotOverflow) {
  const auto h = [](const std::vector<float>& v) {
    return ops::convert(f32({static_cast<int64_t>(v.size())}, v), DType::kF16);
  };
  const Tensor y = run("LayerNormalization", {h({400, -400, 200, -200}), h({1, 1, 1, 1})})[0];
  EXPECT_EQ(y.dtype(), DType::kF16);
  expect_values(y, {1.264648, -1.264648, 0.632324, -0.632324}, 1e-6);
}

TEST(RMSNormalization, Values) {
  expect_values(run("RMSNormalization", {f32({1, 2}, {3, 4}), f32({2}, {1, 2})}, {{"epsilon", 0.0F}})[0],
                {3 / std::sqrt(12.5), 8 / std::sqrt(12.5)});
}

TEST(LpNormalization, ZeroNormGivesZero) {
  const Tensor x = f32({2, 2}, {3, 4, 0, 0});
  expect_values(run("LpNormalization", {x})[0], {0.6, 0.8, 0, 0});
  expect_values(run("LpNormalization", {x}, {{"p", int64_t{1}}, {"axis", int64_t{0}}})[0], {1, 1, 0, 0});
  EXPECT_EQ(error_of("LpNormalization", {x}, {{"p", int64_t{3}}}), kModel);
}

TEST(LRN, NeighbouringChannels) {
  const Tensor y = run("LRN", {f32({1, 3, 1}, {1, 2, 3})},
                       {{"size", int64_t{2}}, {"alpha", 2.0F}, {"beta", 1.0F}, {"bias", 1.0F}})[0];
  expect_values(y, {1.0 / 6, 2.0 / 14, 3.0 / 10});  // even sizes reach one further up than down
  EXPECT_EQ(error_of("LRN", {f32({1, 3, 1}, {1, 2, 3})}), kModel);
}

TEST(MeanVarianceNormalization, AlongTheAxes) {
  expect_values(run("MeanVarianceNormalization", {f32({2, 2, 1, 1}, {1, 10, 3, 30})})[0], {-1, -1, 1, 1});
  expect_values(run("MeanVarianceNormalization", {f32({1, 2}, {5, 9})}, {{"axes", Ints{1}}})[0], {-1, 1});
}

}  // namespace
}  // namespace hone
