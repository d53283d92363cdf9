// Quantisation per tensor, axis and block; integer products.
#include <cmath>

#include "ops/quantize.h"
#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;

TEST(Quantize, PerTensorRoundsHalfToEvenAndSaturates) {
  const Tensor x = f32({7}, {0, 1, 3, -3, 1000, -1000, NAN});
  EXPECT_EQ(values(run("QuantizeLinear", {x, f32({}, {2}), u8({}, {128})})[0]),
            (V{128, 128, 130, 126, 255, 0, 128}));
  EXPECT_EQ(values(run("QuantizeLinear", {x, f32({}, {2}), i8({}, {0})})[0]), (V{0, 0, 2, -2, 127, -128, 0}));
  EXPECT_EQ(values(run("DequantizeLinear", {u8({3}, {0, 128, 255}), f32({}, {2}), u8({}, {128})})[0]),
            (V{-256, 0, 254}));
}

TEST(Quantize, PerAxisAndBlocks) {
  const Tensor x = f32({2, 2}, {2, 4, 6, 9});
  EXPECT_EQ(values(run("QuantizeLinear", {x, f32({2}, {1, 2}), u8({2}, {0, 10})})[0]), (V{2, 12, 6, 14}));
  EXPECT_EQ(values(run("QuantizeLinear", {x, f32({2}, {1, 3}), u8({2}, {0, 1})}, {{"axis", int64_t{0}}})[0]),
            (V{2, 4, 3, 4}));
  EXPECT_EQ(values(run("DequantizeLinear", {i8({1, 4}, {1, 2, 3, 4}), f32({1, 2}, {10, 100})},
                       {{"block_size", int64_t{2}}})[0]),
            (V{10, 20, 300, 400}));
  EXPECT_EQ(error_of("DequantizeLinear", {i8({1, 4}, {1, 2, 3, 4}), f32({1, 3}, {1, 1, 1})},
                     {{"block_size", int64_t{2}}}),
            kData);
  EXPECT_EQ(error_of("QuantizeLinear", {x, f32({3}, {1, 1, 1}), u8({3}, {0, 0, 0})}), kData);
}

TEST(Quantize, NarrowTypes) {
  const Tensor q = run("QuantizeLinear", {f32({3}, {-100, 3, 100}), f32({}, {2})},
                       {{"output_dtype", static_cast<int64_t>(DType::kI4)}})[0];
  EXPECT_EQ(q.dtype(), DType::kI4);
  EXPECT_EQ(values(q), (V{-8, 2, 7}));
  EXPECT_EQ(values(run("DequantizeLinear", {q, f32({}, {2})})[0]), (V{-16, 4, 14}));
  const Tensor f8 = run("QuantizeLinear", {f32({2}, {1000, 3}), f32({}, {2})},
                        {{"output_dtype", static_cast<int64_t>(DType::kF8E4M3FN)}})[0];
  EXPECT_EQ(values(f8), (V{448, 1.5}));
}

TEST(Quantize, Dynamic) {
  const auto out = run("DynamicQuantizeLinear", {f32({6}, {0, 2, -3, -2.5F, 1.34F, 0.5F})}, {}, 3);
  EXPECT_EQ(values(out[0]), (V{153, 255, 0, 26, 221, 179}));
  EXPECT_NEAR(out[1].at(0), 5.0 / 255, 1e-8);
  EXPECT_EQ(out[2].at(0), 153);
  EXPECT_EQ(values(run("DynamicQuantizeLinear", {f32({2}, {0, 0})}, {}, 3)[0]), (V{0, 0}));
}

TEST(IntegerMatMul, ZeroPoints) {
  const Tensor a = u8({2, 3}, {11, 7, 3, 10, 6, 2}), b = u8({3, 2}, {1, 4, 2, 5, 3, 6});
  EXPECT_EQ(values(run("MatMulInteger", {a, b, u8({1}, {12}), u8({1}, {0})})[0]), (V{-38, -83, -44, -98}));
  // One zero point a row and one a column.
  EXPECT_EQ(values(run("MatMulInteger", {a, b, u8({2}, {12, 10}), u8({2}, {0, 1})})[0]),
            (V{-38, -68, -32, -56}));
  EXPECT_EQ(values(run("QLinearMatMul", {u8({1, 2}, {2, 3}), f32({}, {0.5F}), u8({}, {1}), u8({2, 1}, {3, 4}),
                                         f32({}, {0.5F}), u8({}, {2}), f32({}, {0.25F}), u8({}, {5})})[0]),
            (V{10}));
}

TEST(IntegerConv, PaddingMeansTheZeroPoint) {
  const Tensor x = u8({1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10}), w = u8({1, 1, 2, 2}, {1, 1, 1, 1});
  EXPECT_EQ(values(run("ConvInteger", {x, w, u8({}, {1})})[0]), (V{12, 16, 24, 28}));
  EXPECT_EQ(values(run("ConvInteger", {x, w, u8({}, {1})}, {{"pads", std::vector<int64_t>{1, 1, 0, 0}}})[0]),
            (V{1, 3, 5, 5, 12, 16, 11, 24, 28}));
  EXPECT_EQ(values(run("QLinearConv", {x, f32({}, {1}), u8({}, {1}), w, f32({1}, {1}), u8({1}, {0}),
                                       f32({}, {4}), u8({}, {3}), i32({1}, {2})})[0]),
            (V{7, 7, 9, 11}));
}

TEST(Quantize, Ranges) {
  EXPECT_EQ(ops::integer_range(DType::kI4), (std::pair<double, double>{-8, 7}));
  EXPECT_EQ(ops::integer_range(DType::kU16), (std::pair<double, double>{0, 65535}));
  EXPECT_EQ(ops::round_to(DType::kF16, 2049), 2048);
}

}  // namespace
}  // namespace hone
