#include "support/op_expect.h"

namespace hone {
namespace {

using namespace testing;

TEST(MatMul, RanksAndBroadcast) {
  const Tensor m = f32({2, 3}, {1, 2, 3, 4, 5, 6}), v = f32({3}, {1, 0, -1});
  expect_values(run("MatMul", {m, v})[0], {-2, -2});
  expect_values(run("MatMul", {f32({2}, {1, -1}), m})[0], {-3, -3, -3});
  EXPECT_EQ(run("MatMul", {v, v})[0].shape(), Shape{});
  expect_values(run("MatMul", {v, v})[0], {2});
  const Tensor y = run("MatMul", {f32({2, 1, 2, 3}, iota(12)), f32({4, 3, 1}, iota(12))})[0];
  EXPECT_EQ(y.shape(), (Shape{2, 4, 2, 1}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t c = 0; c < 4; ++c) {
      for (int64_t i = 0; i < 2; ++i) {
        double want = 0;
        for (int64_t k = 0; k < 3; ++k)
          want += static_cast<double>((b * 2 + i) * 3 + k) * static_cast<double>(c * 3 + k);
        EXPECT_EQ(y.at((b * 4 + c) * 2 + i), want);
      }
    }
  }
}

TEST(MatMul, SizesAroundTheBlocks) {
  for (const int64_t m : {1, 5, 65}) {
    for (const int64_t n : {1, 17, 129}) {
      for (const int64_t k : {1, 193, 400}) {
        const Tensor a = f32({m, k}, noise(m * k)), b = f32({k, n}, noise(k * n, 2));
        const Tensor y = run("MatMul", {a, b})[0];
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (int64_t p = 0; p < k; ++p) sum += a.at(i * k + p) * b.at(p * n + j);
            ASSERT_EQ(y.at(i * n + j), static_cast<double>(static_cast<float>(sum)))
                << m << " " << n << " " << k;
          }
        }
      }
    }
  }
}

TEST(MatMul, IntegersWrapAndStayExact) {
  expect_values(run("MatMul", {i64({1, 2}, {int64_t{1} << 40, 3}), i64({2, 1}, {5, 7})})[0],
                {5.0 * 0x1p40 + 21});
  EXPECT_EQ(run("MatMul", {i32({1, 1}, {1 << 30}), i32({1, 1}, {4})})[0].data<int32_t>()[0], 0);
}

TEST(MatMul, EmptyDimensions) {
  EXPECT_EQ(run("MatMul", {Tensor(DType::kF32, {0, 3}), f32({3, 2}, iota(6))})[0].shape(), (Shape{0, 2}));
  expect_values(run("MatMul", {Tensor(DType::kF32, {2, 0}), Tensor(DType::kF32, {0, 2})})[0], {0, 0, 0, 0});
  EXPECT_EQ(run("MatMul", {Tensor(DType::kF32, {0, 2, 3}), f32({3, 2}, iota(6))})[0].shape(),
            (Shape{0, 2, 2}));
}

TEST(MatMul, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of("MatMul", {f32({2, 3}, iota(6)), f32({2, 3}, iota(6))}), kModel);
  EXPECT_EQ(error_of("MatMul", {f32({}, {1}), f32({2, 3}, iota(6))}), kModel);
  EXPECT_EQ(error_of("MatMul", {f32({2, 1, 1}, iota(2)), f32({3, 1, 1}, iota(3))}), kModel);
}

TEST(Gemm, TransposesScalesAndBroadcastsC) {
  const Tensor a = f32({2, 3}, iota(6)), b = f32({4, 3}, iota(12));
  const Tensor y = run("Gemm", {a, b, f32({2, 1}, {100, 200})},
                       {{"transB", int64_t{1}}, {"alpha", 0.5F}, {"beta", 2.0F}})[0];
  expect_values(y, {202.5, 207, 211.5, 216, 407, 425, 443, 461});
  const Tensor t =
      run("Gemm", {f32({3, 2}, {0, 3, 1, 4, 2, 5}), f32({3, 4}, {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11})},
          {{"transA", int64_t{1}}})[0];
  expect_values(t, {5, 14, 23, 32, 14, 50, 86, 122});
  expect_values(run_old("Gemm", 6, {f32({1, 2}, {1, 2}), f32({2, 1}, {3, 4}), f32({1}, {5})},
                        {{"broadcast", int64_t{1}}})[0],
                {16});
  expect_values(run("Gemm", {i32({1, 2}, {1, 2}), i32({2, 1}, {3, 4}), i32({}, {5})})[0], {16});
}

TEST(Gemm, RefusesWhatDoesNotFit) {
  const Tensor a = f32({2, 3}, iota(6)), b = f32({3, 4}, iota(12));
  EXPECT_EQ(error_of("Gemm", {a, b, f32({3}, iota(3))}), kModel);
  EXPECT_EQ(error_of("Gemm", {a, b}, {{"transA", int64_t{1}}}), kModel);
  EXPECT_EQ(error_of("Gemm", {a, f32({}, {1})}), kModel);
}

}  // namespace
}  // namespace hone
