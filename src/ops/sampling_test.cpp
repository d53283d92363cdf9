// Sampling, regions, transforms, products over indices, losses, random numbers.
#include <cmath>

#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;

void expect_near(const Tensor& t, const V& want, double tolerance = 1e-5) {
  ASSERT_EQ(t.numel(), static_cast<int64_t>(want.size())) << t.type_text();
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(t.at(static_cast<int64_t>(i)), want[i], tolerance) << i;
}

TEST(GridSample, ModesAndPadding) {
  const Tensor x = f32({1, 1, 1, 4}, {1, 2, 3, 4});
  const auto sample = [&](std::vector<float> at, ir::AttrMap attrs) {
    std::vector<float> grid;
    for (const float v : at) grid.insert(grid.end(), {v, 0});
    return run("GridSample", {x, f32({1, 1, static_cast<int64_t>(at.size()), 2}, grid)}, attrs)[0];
  };
  expect_near(sample({-1, 0, 1}, {{"align_corners", int64_t{1}}}), {1, 2.5, 4});
  expect_near(sample({-1, 0, 1}, {}), {0.5, 2.5, 2});  // half of the outer element lies outside
  expect_near(sample({-1, 1}, {{"padding_mode", std::string("border")}}), {1, 4});
  expect_near(
      sample({-1.5F, 1.75F}, {{"padding_mode", std::string("reflection")}, {"align_corners", int64_t{1}}}),
      {1.75, 2.875});
  expect_near(sample({-0.9F, 0.3F, 2}, {{"mode", std::string("nearest")}}), {1, 3, 0});
  expect_near(sample({NAN}, {}), {0});
  expect_near(sample({-1.0F / 4}, {{"mode", std::string("cubic")}}), {2});
}

TEST(AffineGrid, Identity) {
  const Tensor theta = f32({1, 2, 3}, {1, 0, 0, 0, 1, 0});
  expect_near(run("AffineGrid", {theta, i64({4}, {1, 1, 1, 2})})[0], {-0.5, 0, 0.5, 0});
  expect_near(run("AffineGrid", {theta, i64({4}, {1, 1, 2, 2})}, {{"align_corners", int64_t{1}}})[0],
              {-1, -1, 1, -1, -1, 1, 1, 1});
}

TEST(NonMaxSuppression, KeepsTheBest) {
  const Tensor boxes = f32({1, 3, 4}, {0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 0, 10, 1, 11}),
               scores = f32({1, 1, 3}, {0.9F, 0.75F, 0.6F});
  EXPECT_EQ(
      values(run("NonMaxSuppression", {boxes, scores, i64({1}, {3}), f32({1}, {0.5F}), f32({1}, {0})})[0]),
      (V{0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(values(run("NonMaxSuppression", {boxes, scores, i64({1}, {1}), f32({1}, {0.5F})})[0]),
            (V{0, 0, 0}));
  // E39: nothing above the threshold, no padding.
  EXPECT_EQ(run("NonMaxSuppression", {boxes, scores, i64({1}, {3}), f32({1}, {0.5F}), f32({1}, {0.95F})})[0]
                .shape(),
            (Shape{0, 3}));
  EXPECT_EQ(run("NonMaxSuppression", {boxes, scores})[0].shape(), (Shape{0, 3}));
}

TEST(Regions, RoiAlignMaxRoiPoolUnpool) {
  const Tensor x = f32({1, 1, 2, 2}, {1, 2, 3, 4});
  expect_near(
      run("RoiAlign", {x, f32({1, 4}, {0, 0, 2, 2}), i64({1}, {0})}, {{"sampling_ratio", int64_t{1}}})[0],
      {2.5});
  EXPECT_EQ(error_of("RoiAlign", {x, f32({1, 4}, {0, 0, 2, 2}), i64({1}, {1})}), kData);
  EXPECT_EQ(error_of("RoiAlign", {x, f32({1, 4}, {0, 0, INFINITY, 2}), i64({1}, {0})}), kData);
  EXPECT_EQ(values(run("MaxRoiPool", {x, f32({1, 5}, {0, 0, 0, 1, 1})},
                       {{"pooled_shape", std::vector<int64_t>{1, 2}}})[0]),
            (V{3, 4}));
  EXPECT_EQ(error_of("MaxRoiPool", {x, f32({1, 5}, {-1, 0, 0, 1, 1})},
                     {{"pooled_shape", std::vector<int64_t>{1, 2}}}),
            kData);
  const ir::AttrMap pool{{"kernel_shape", std::vector<int64_t>{2}}, {"strides", std::vector<int64_t>{2}}};
  EXPECT_EQ(values(run("MaxUnpool", {f32({1, 1, 2}, {5, 6}), i64({1, 1, 2}, {1, 2})}, pool)[0]),
            (V{0, 5, 6, 0}));
  EXPECT_EQ(error_of("MaxUnpool", {f32({1, 1, 2}, {5, 6}), i64({1, 1, 2}, {1, 4})}, pool), kData);
}

Tensor iota(Shape shape, float first) {
  Tensor t(DType::kF32, shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = first + static_cast<float>(i);
  return t;
}

Tensor einsum(const char* equation, const std::vector<Tensor>& in) {
  return run("Einsum", in, {{"equation", std::string(equation)}})[0];
}

TEST(Einsum, FieldCases) {  // E29
  EXPECT_EQ(values(einsum("abc,cd,def->abd", {iota({1, 2, 2}, 1), iota({2, 2}, 1), iota({2, 1, 2}, 1)})),
            (V{21, 70, 45, 154}));
  EXPECT_EQ(values(einsum("ijk->ki", {iota({2, 3, 4}, 0)})), (V{12, 48, 15, 51, 18, 54, 21, 57}));
  EXPECT_EQ(values(einsum("ii->i", {iota({3, 3}, 0)})), (V{0, 4, 8}));
  EXPECT_EQ(values(einsum("bij, bjk", {f32({1, 1, 2}, {1, 2}), f32({1, 2, 1}, {3, 4})})), (V{11}));
  // Ellipses of rank 1 and 0 broadcast.
  const Tensor y = einsum("...ij,...jk->...ik", {iota({2, 1, 2}, 1), iota({2, 1}, 1)});
  EXPECT_EQ(y.shape(), (Shape{2, 1, 1}));
  EXPECT_EQ(values(y), (V{5, 11}));
  EXPECT_EQ(values(einsum("i,i->", {iota({3}, 1), iota({3}, 1)})), (V{14}));
  EXPECT_EQ(values(einsum("ij->", {iota({0, 3}, 1)})), (V{0}));
  EXPECT_EQ(error_of("Einsum", {iota({2, 2}, 0)}, {{"equation", std::string("ijk->i")}}), kModel);
  EXPECT_EQ(error_of("Einsum", {iota({2, 2}, 0)}, {{"equation", std::string("i?->i")}}), kModel);
  EXPECT_EQ(error_of("Einsum", {iota({2, 2}, 0)}, {{"equation", std::string("ij->ik")}}), kModel);
}

TEST(Det, Elimination) {
  expect_near(run("Det", {f32({2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0})})[0], {-2, -1});
  EXPECT_EQ(run("Det", {f32({1, 1}, {0})})[0].at(0), 0);
}

TEST(Dft, ForwardInverseOneSided) {
  const Tensor x = f32({1, 4, 1}, {1, 2, 3, 4});
  const Tensor y = run("DFT", {x, Tensor(), i64({}, {1})})[0];
  expect_near(y, {10, 0, -2, 2, -2, 0, -2, -2});
  expect_near(run("DFT", {y, Tensor(), i64({}, {1})}, {{"inverse", int64_t{1}}})[0],
              {1, 0, 2, 0, 3, 0, 4, 0});
  const Tensor half = run("DFT", {x, Tensor(), i64({}, {1})}, {{"onesided", int64_t{1}}})[0];
  expect_near(half, {10, 0, -2, 2, -2, 0});
  expect_near(
      run("DFT", {half, Tensor(), i64({}, {1})}, {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}})[0],
      {1, 2, 3, 4});
  // A length that is not a power of two, and zero padding.
  expect_near(run("DFT", {f32({1, 3, 1}, {1, 2, 3}), Tensor(), i64({}, {1})})[0],
              {6, 0, -1.5, 0.8660254, -1.5, -0.8660254});
  expect_near(run("DFT", {f32({1, 2, 1}, {1, 2}), i64({}, {3}), i64({}, {1})})[0],
              {3, 0, 0, -1.7320508, 0, 1.7320508});
  EXPECT_EQ(error_of("DFT", {x, i64({}, {0}), i64({}, {1})}), kData);
  EXPECT_EQ(error_of("DFT", {x, Tensor(), i64({}, {2})}), kData);
}

TEST(Signal, StftAndWindows) {
  const Tensor y = run("STFT", {f32({1, 4, 1}, {1, 2, 3, 4}), i64({}, {2}), f32({2}, {1, 0.5F})})[0];
  EXPECT_EQ(y.shape(), (Shape{1, 2, 2, 2}));
  expect_near(y, {2, 0, 0, 0, 5, 0, 1, 0});
  EXPECT_EQ(error_of("STFT", {f32({1, 4, 1}, {1, 2, 3, 4}), i64({}, {0}), f32({2}, {1, 1})}), kData);
  expect_near(run("HannWindow", {i64({}, {4})})[0], {0, 0.5, 1, 0.5});
  expect_near(run("HammingWindow", {i64({}, {3})}, {{"periodic", int64_t{0}}})[0], {0.0869565, 1, 0.0869565});
  expect_near(run("BlackmanWindow", {i64({}, {3})}, {{"periodic", int64_t{0}}})[0], {0, 1, 0});
}

TEST(Loss, ReductionsAndIgnoredTargets) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(run("NegativeLogLikelihoodLoss", {x, i64({2}, {2, 0})},
                       {{"reduction", std::string("none")}})[0]),
            (V{-3, -4}));
  expect_near(run("NegativeLogLikelihoodLoss", {x, i64({2}, {2, 0}), f32({3}, {1, 1, 3})})[0], {-13.0 / 4});
  expect_near(run("NegativeLogLikelihoodLoss", {x, i64({2}, {2, -7})}, {{"ignore_index", int64_t{-7}}})[0],
              {-3});
  EXPECT_EQ(error_of("NegativeLogLikelihoodLoss", {x, i64({2}, {3, 0})}), kData);
  expect_near(run("SoftmaxCrossEntropyLoss", {f32({1, 2}, {0, 0}), i64({1}, {1})}, {}, 2)[0], {0.6931472});
}

TEST(Random, SameSeedSameNumbers) {
  const ir::AttrMap attrs{{"shape", std::vector<int64_t>{1000}}, {"seed", 3.0F}};
  const V a = values(run("RandomUniform", {}, attrs)[0]);
  EXPECT_EQ(a, values(run("RandomUniform", {}, attrs)[0]));
  double sum = 0;
  for (const double v : a) {
    EXPECT_TRUE(v >= 0 && v <= 1);
    sum += v;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.05);
  const V n = values(run("RandomNormal", {}, attrs)[0]);
  double mean = 0, square = 0;
  for (const double v : n) mean += v / 1000, square += v * v / 1000;
  EXPECT_NEAR(mean, 0, 0.1);
  EXPECT_NEAR(square, 1, 0.15);
  EXPECT_EQ(values(run("Multinomial", {f32({1, 2}, {-INFINITY, 0})}, {{"sample_size", int64_t{3}}})[0]),
            (V{1, 1, 1}));
  EXPECT_EQ(values(run("Bernoulli", {f32({2}, {0, 1})})[0]), (V{0, 1}));
}

TEST(Dropout, InferenceIsTheIdentity) {
  const auto out = run("Dropout", {f32({3}, {1, 2, 3})}, {}, 2);
  EXPECT_EQ(values(out[0]), (V{1, 2, 3}));
  EXPECT_EQ(values(out[1]), (V{1, 1, 1}));
  const auto train = run("Dropout", {f32({3}, {1, 2, 3}), f32({}, {0.5F}), boolean({}, {1})}, {}, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(train[0].at(i), train[1].at(i) * 2 * (i + 1));
}

}  // namespace
}  // namespace hone
