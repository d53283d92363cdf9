// Unary, binary, variadic, comparison, selection and conversion operators.
#include <cmath>
#include <limits>

#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

void expect_near(const Tensor& t, const V& want, double tolerance = 1e-6) {
  const V have = values(t);
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(have[i])) << i;
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(have[i], want[i]) << i;
    } else {
      EXPECT_NEAR(have[i], want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << i;
    }
  }
}

TEST(Unary, KnownValues) {
  const Tensor x = f32({3}, {0.5F, 1, 2});
  expect_near(run("Exp", {x})[0], {1.6487212707, 2.7182818285, 7.3890560989});
  expect_near(run("Log", {x})[0], {-0.6931471806, 0, 0.6931471806});
  expect_near(run("Sqrt", {x})[0], {0.7071067812, 1, 1.4142135624});
  expect_near(run("Reciprocal", {x})[0], {2, 1, 0.5});
  expect_near(run("Erf", {x})[0], {0.5204998778, 0.8427007929, 0.9953222650});
  expect_near(run("Tanh", {x})[0], {0.4621171573, 0.7615941560, 0.9640275801});
  expect_near(run("Acosh", {x})[0], {NAN, 0, 1.3169578969});
  expect_near(run("Atanh", {f32({2}, {0.5F, 1})})[0], {0.5493061443, INFINITY}, 1e-6);
}

TEST(Unary, RoundTiesToEven) {
  expect_near(run("Round", {f32({6}, {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 2.3F})})[0], {0, 2, 2, 0, -2, 2});
}

TEST(Unary, IntegersKeepTheirType) {
  expect_near(run("Abs", {i32({3}, {-5, 0, INT32_MIN})})[0], {5, 0, -2147483648.0});
  expect_near(run("Neg", {i8({3}, {-128, 1, -1})})[0], {-128, -1, 1});
  expect_near(run("Sign", {u8({2}, {0, 9})})[0], {0, 1});
  expect_near(run("Relu", {i32({3}, {-5, 0, 7})})[0], {0, 0, 7});
}

TEST(Activation, KnownValues) {
  const Tensor x = f32({4}, {-3, -0.5F, 0.5F, 3});
  expect_near(run("HardSigmoid", {x})[0], {0, 0.4, 0.6, 1});
  expect_near(run("HardSwish", {x})[0], {0, -0.2083333, 0.2916667, 3});
  expect_near(run("LeakyRelu", {x}, {{"alpha", 0.1F}})[0], {-0.3, -0.05, 0.5, 3});
  expect_near(run("Elu", {x})[0], {-0.9502129316, -0.3934693403, 0.5, 3});
  expect_near(run("Celu", {x}, {{"alpha", 2.0F}})[0], {2 * std::expm1(-1.5), 2 * std::expm1(-0.25), 0.5, 3});
  expect_near(run("Selu", {x})[0], {-1.6705687, -0.6917582, 0.5253505, 3.152103});
  expect_near(run("Softplus", {f32({3}, {-100, 0, 100})})[0], {3.7200759760e-44, 0.6931471806, 100});
  expect_near(run("Softsign", {x})[0], {-0.75, -1.0 / 3, 1.0 / 3, 0.75});
  expect_near(run("Gelu", {x})[0], {-0.0040496940, -0.1542687694, 0.3457312306, 2.9959503});
  expect_near(run("Gelu", {x}, {{"approximate", std::string("tanh")}})[0],
              {-0.0036373920, -0.1542859, 0.3457140, 2.9963627});
  expect_near(run("Sigmoid", {f32({3}, {-1000, 0, 1000})})[0], {0, 0.5, 1});
  expect_near(run("Swish", {x}, {{"alpha", 1.0F}})[0],
              {-0.1422776195, -0.1887703344, 0.3112296656, 2.8577223805});
  expect_near(run("Mish", {x})[0], {-0.1456474, -0.2207438, 0.3752452, 2.9865349}, 1e-5);
  expect_near(run("ThresholdedRelu", {x})[0], {0, 0, 0, 3});
  expect_near(run("Shrink", {x}, {{"bias", 1.0F}, {"lambd", 1.5F}})[0], {-2, 0, 0, 2});
  expect_near(run("PRelu", {f32({2, 2}, {-1, 2, -3, -4}), f32({2}, {0.5F, 0.25F})})[0], {-0.5, 2, -1.5, -1});
}

TEST(Elementwise, NanStaysNan) {  // E15
  const Tensor x = f32({1}, {kNaN});
  for (const char* op : {"Relu", "LeakyRelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish",
                         "ThresholdedRelu", "Shrink", "Sign"}) {
    EXPECT_TRUE(std::isnan(run(op, {x})[0].at(0))) << op;
  }
  EXPECT_TRUE(std::isnan(run("Clip", {x, f32({}, {0}), f32({}, {1})})[0].at(0)));
  for (const char* op : {"Max", "Min"}) {
    EXPECT_TRUE(std::isnan(run(op, {x, f32({1}, {1})})[0].at(0))) << op;
    EXPECT_TRUE(std::isnan(run(op, {f32({1}, {1}), x})[0].at(0))) << op;
    EXPECT_TRUE(std::isnan(run(op, {x, f32({}, {1}), f32({}, {2})})[0].at(0))) << op;
  }
}

TEST(Binary, Broadcasts) {
  EXPECT_EQ(values(run("Add", {f32({2, 1}, {1, 2}), f32({3}, {10, 20, 30})})[0]),
            (V{11, 21, 31, 12, 22, 32}));
  EXPECT_EQ(values(run("Sub", {f32({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), f32({2, 1}, {1, 2})})[0]),
            (V{0, 1, 1, 2, 4, 5, 5, 6}));
  EXPECT_EQ(values(run("Mul", {f32({1, 3, 1}, {1, 2, 3}), f32({2, 1, 2}, {1, 2, 3, 4})})[0]),
            (V{1, 2, 2, 4, 3, 6, 3, 4, 6, 8, 9, 12}));
  EXPECT_EQ(run("Add", {f32({0, 3}, {}), f32({1}, {1})})[0].shape(), (Shape{0, 3}));
  EXPECT_EQ(run("Add", {f32({2, 0}, {}), f32({2, 1}, {1, 2})})[0].shape(), (Shape{2, 0}));
  EXPECT_EQ(values(run("Add", {f32({}, {1}), f32({}, {2})})[0]), (V{3}));
  EXPECT_EQ(error_of("Add", {f32({2}, {1, 2}), f32({3}, {1, 2, 3})}), kModel);
}

TEST(Binary, IntegerDivisionTruncates) {
  EXPECT_EQ(values(run("Div", {i32({4}, {7, -7, 7, INT32_MIN}), i32({4}, {2, 2, -2, -1})})[0]),
            (V{3, -3, -3, -2147483648.0}));
  EXPECT_EQ(error_of("Div", {i64({1}, {1}), i64({1}, {0})}), kData);
  EXPECT_EQ(values(run("Mod", {i32({4}, {-4, 7, 5, -5}), i32({4}, {2, -3, 3, 3})})[0]), (V{0, -2, 2, 1}));
  EXPECT_EQ(values(run("Mod", {i32({2}, {7, -7}), i32({2}, {-3, 3})}, {{"fmod", int64_t{1}}})[0]),
            (V{1, -1}));
  expect_near(
      run("Mod", {f32({3}, {-4.3F, 7.2F, 5.0F}), f32({3}, {2.1F, -3.4F, 8.0F})}, {{"fmod", int64_t{1}}})[0],
      {-0.1, 0.4, 5}, 1e-5);
  expect_near(run("Mod", {f32({3}, {-4.3F, 7.2F, 3}), f32({3}, {2.1F, -3.4F, -kInf})})[0],
              {2.0, -3.0, -INFINITY}, 1e-5);
  EXPECT_EQ(error_of("Mod", {i64({1}, {1}), i64({1}, {0})}), kData);
}

TEST(Binary, Pow) {  // E33
  expect_near(run("Pow", {f32({6}, {-2, -8, 0, 0, -2, 1e-4F}), f32({6}, {2, 1.0F / 3, 0, 0.5F, 3, 2})})[0],
              {4, NAN, 1, 0, -8, 1e-8}, 1e-9);
  EXPECT_EQ(values(run("Pow", {i32({3}, {1, 2, 3}), f32({3}, {4, -1, 0.5F})})[0]), (V{1, 0, 1}));
  EXPECT_EQ(values(run("Pow", {i64({4}, {3, -1, 2, -2}), i64({4}, {4, -3, -1, 3})})[0]), (V{81, -1, 0, -8}));
  EXPECT_EQ(values(run("Pow", {f32({2}, {3, 4}), i64({}, {2})})[0]), (V{9, 16}));
}

TEST(Binary, ShapeArithmetic) {
  // 64-bit sums are exact (E25).
  EXPECT_EQ(run("Add", {i64({2}, {3000000000, int64_t{1} << 40}), i64({}, {1})})[0].to_i64(),
            (std::vector<int64_t>{3000000001, (int64_t{1} << 40) + 1}));
}

TEST(Variadic, Values) {
  EXPECT_EQ(values(run("Mean", {f32({2, 1}, {1, 3}), f32({2}, {5, 7})})[0]), (V{3, 4, 4, 5}));  // E49
  EXPECT_EQ(values(run("Sum", {f32({2}, {1, 2}), f32({1}, {10}), f32({2}, {100, 200})})[0]), (V{111, 212}));
  EXPECT_EQ(values(run("Max", {i32({2}, {1, 5}), i32({1}, {3})})[0]), (V{3, 5}));
  EXPECT_EQ(values(run("Min", {i64({2}, {1, 5})})[0]), (V{1, 5}));
  // One rounding: in f32 the small terms would vanish.
  EXPECT_EQ(run("Sum", {f32({1}, {1e8F}), f32({1}, {3}), f32({1}, {3})})[0].at(0),
            static_cast<double>(1e8F + 6.0F + 2.0F));
}

TEST(Compare, Values) {
  const Tensor a = f32({3}, {1, 2, kNaN}), b = f32({3}, {2, 2, kNaN});
  EXPECT_EQ(values(run("Equal", {a, b})[0]), (V{0, 1, 0}));
  EXPECT_EQ(values(run("Less", {a, b})[0]), (V{1, 0, 0}));
  EXPECT_EQ(values(run("LessOrEqual", {a, b})[0]), (V{1, 1, 0}));
  EXPECT_EQ(values(run("Greater", {a, b})[0]), (V{0, 0, 0}));
  EXPECT_EQ(values(run("GreaterOrEqual", {a, b})[0]), (V{0, 1, 0}));
  EXPECT_EQ(values(run("Equal", {boolean({2}, {1, 0}), boolean({2}, {1, 1})})[0]), (V{1, 0}));
  EXPECT_EQ(values(run("And", {boolean({2, 1}, {1, 0}), boolean({2}, {1, 0})})[0]), (V{1, 0, 0, 0}));
  EXPECT_EQ(values(run("Or", {boolean({2}, {1, 0}), boolean({2}, {0, 0})})[0]), (V{1, 0}));
  EXPECT_EQ(values(run("Xor", {boolean({2}, {1, 0}), boolean({2}, {1, 1})})[0]), (V{0, 1}));
  EXPECT_EQ(values(run("Not", {boolean({2}, {1, 0})})[0]), (V{0, 1}));
  EXPECT_EQ(values(run("IsNaN", {f32({2}, {kNaN, kInf})})[0]), (V{1, 0}));
  EXPECT_EQ(values(run("IsInf", {f32({3}, {kNaN, kInf, -kInf})}, {{"detect_positive", int64_t{0}}})[0]),
            (V{0, 0, 1}));
}

TEST(Where, BroadcastsAndMovesAnyType) {
  EXPECT_EQ(values(run("Where", {boolean({2, 1}, {1, 0}), i64({2}, {1, 2}), i64({}, {9})})[0]),
            (V{1, 2, 9, 9}));
  EXPECT_EQ(values(run("Where", {boolean({2}, {0, 1}), boolean({2}, {1, 1}), boolean({2}, {0, 0})})[0]),
            (V{0, 1}));
}

TEST(Clip, BoundsAndIntegers) {
  EXPECT_EQ(values(run("Clip", {f32({3}, {-5, 0.5F, 5}), f32({}, {-1}), f32({}, {1})})[0]), (V{-1, 0.5, 1}));
  EXPECT_EQ(values(run("Clip", {f32({3}, {-9, 0, 5}), Tensor(), f32({}, {1})})[0]), (V{-9, 0, 1}));  // F01
  EXPECT_EQ(values(run("Clip", {i32({3}, {-5, 1, 5}), i32({}, {0}), i32({}, {1})})[0]), (V{0, 1, 1}));
  EXPECT_EQ(values(run("Clip", {f32({1}, {3}), f32({}, {5}), f32({}, {1})})[0]),
            (V{1}));  // crossed bounds: the upper one
}

Tensor cast(const Tensor& x, DType to, ir::AttrMap attrs = {}) {
  attrs["to"] = static_cast<int64_t>(to);
  return run("Cast", {x}, attrs)[0];
}

TEST(Cast, FloatToIntegerSaturates) {
  const Tensor x = f32({6}, {-1.9F, 2.9F, 1e20F, -1e20F, kNaN, kInf});
  EXPECT_EQ(cast(x, DType::kI32).to_i64(), (std::vector<int64_t>{-1, 2, INT32_MAX, INT32_MIN, 0, INT32_MAX}));
  EXPECT_EQ(cast(x, DType::kU8).to_i64(), (std::vector<int64_t>{0, 2, 255, 0, 0, 255}));
  EXPECT_EQ(cast(x, DType::kBool).to_i64(), (std::vector<int64_t>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(cast(i64({2}, {300, -1}), DType::kU8).to_i64(), (std::vector<int64_t>{44, 255}));
}

TEST(Cast, Float8) {  // B15
  const Tensor x = f32({8}, {448, 460, 470, 500, kInf, kNaN, 0x1p-9F, 0.0009F});
  expect_near(cast(x, DType::kF8E4M3FN), {448, 448, 448, 448, 448, NAN, 0.001953125, 0});
  expect_near(cast(x, DType::kF8E4M3FN, {{"saturate", int64_t{0}}}),
              {448, 448, NAN, NAN, NAN, NAN, 0.001953125, 0});
}

TEST(Cast, NarrowFloatsRoundOnce) {  // B13
  EXPECT_EQ(values(cast(cast(f32({3}, {0.33333334F, 1.00390625F, 1.01171875F}), DType::kBF16), DType::kF32)),
            (V{0.333984375, 1.0, 1.015625}));
  EXPECT_EQ(values(cast(f32({2}, {65519, 65520}), DType::kF16)), (V{65504, INFINITY}));
}

TEST(Cast, LikeAndBits) {
  EXPECT_EQ(run("CastLike", {f32({2}, {1.5F, -1}), i32({1}, {0})})[0].to_i64(),
            (std::vector<int64_t>{1, -1}));
  EXPECT_EQ(run("BitCast", {f32({2}, {1, -2})}, {{"to", static_cast<int64_t>(DType::kI32)}})[0].to_i64(),
            (std::vector<int64_t>{0x3f800000, static_cast<int32_t>(0xc0000000)}));
  EXPECT_EQ(error_of("BitCast", {f32({1}, {1})}, {{"to", static_cast<int64_t>(DType::kI64)}}), kModel);
}

}  // namespace
}  // namespace hone
