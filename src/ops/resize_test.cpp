// Resize against hand-computed values.
#include "ops/resize_taps.h"
#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;

Tensor resize(const Tensor& x, const std::vector<float>& scales, ir::AttrMap attrs) {
  return run("Resize", {x, Tensor(), f32({static_cast<int64_t>(scales.size())}, scales)}, attrs)[0];
}

void expect_near(const Tensor& t, const V& want) {
  ASSERT_EQ(t.numel(), static_cast<int64_t>(want.size()));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(t.at(static_cast<int64_t>(i)), want[i], 1e-5) << i;
}

TEST(Resize, NearestRounding) {  // E11
  const Tensor x = f32({4}, {1, 2, 3, 4});
  const auto nearest = [&](const char* mode) {
    return values(resize(x, {1.5F}, {{"nearest_mode", std::string(mode)}}));
  };
  EXPECT_EQ(nearest("round_prefer_floor"), (V{1, 1, 2, 3, 3, 4}));
  EXPECT_EQ(nearest("round_prefer_ceil"), (V{1, 2, 2, 3, 4, 4}));
  EXPECT_EQ(nearest("floor"), (V{1, 1, 2, 2, 3, 4}));
  EXPECT_EQ(nearest("ceil"), (V{1, 2, 3, 3, 4, 4}));
}

TEST(Resize, Cubic) {  // E13
  const Tensor x = f32({4}, {1, 2, 4, 8});
  expect_near(resize(x, {2}, {{"mode", std::string("cubic")}}),
              {0.894531, 1.15625, 1.5625, 2.417969, 3.160156, 5.117188, 7.164063, 8.421875});
  expect_near(resize(x, {2}, {{"mode", std::string("cubic")}, {"cubic_coeff_a", -0.5F}}),
              {0.929688, 1.15625, 1.65625, 2.382813, 3.335938, 4.953125, 7.234375, 8.28125});
}

TEST(Resize, Linear) {
  const Tensor x = f32({1, 1, 2, 2}, {1, 2, 3, 4});
  expect_near(resize(x, {1, 1, 2, 2}, {{"mode", std::string("linear")}}),
              {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
  expect_near(resize(x, {1, 1, 2, 2},
                     {{"mode", std::string("linear")},
                      {"coordinate_transformation_mode", std::string("align_corners")}}),
              {1, 4.0 / 3, 5.0 / 3, 2, 5.0 / 3, 2, 7.0 / 3, 8.0 / 3, 7.0 / 3, 8.0 / 3, 3, 10.0 / 3, 3,
               10.0 / 3, 11.0 / 3, 4});
  expect_near(resize(f32({4}, {1, 2, 3, 4}), {0.5F}, {{"mode", std::string("linear")}}), {1.5, 3.5});
  // Antialias: a triangle of twice the width around 0.5 and 2.5.
  expect_near(
      resize(f32({4}, {0, 0, 8, 8}), {0.5F}, {{"mode", std::string("linear")}, {"antialias", int64_t{1}}}),
      {1, 7});
}

TEST(Resize, SizesAndPolicies) {
  const auto sized = [](const Tensor& x, std::vector<int64_t> sizes, ir::AttrMap attrs) {
    return run("Resize", {x, Tensor(), Tensor(), i64({static_cast<int64_t>(sizes.size())}, sizes)}, attrs)[0];
  };
  EXPECT_EQ(values(sized(f32({2}, {1, 2}), {4}, {})), (V{1, 1, 2, 2}));
  const Tensor x = f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const ir::AttrMap axes{{"axes", std::vector<int64_t>{2, 3}}};
  ir::AttrMap not_larger = axes, not_smaller = axes;
  not_larger["keep_aspect_ratio_policy"] = std::string("not_larger");
  not_smaller["keep_aspect_ratio_policy"] = std::string("not_smaller");
  EXPECT_EQ(sized(x, {7, 8}, axes).shape(), (Shape{1, 1, 7, 8}));
  EXPECT_EQ(sized(x, {7, 8}, not_larger).shape(), (Shape{1, 1, 4, 8}));
  EXPECT_EQ(sized(x, {7, 8}, not_smaller).shape(), (Shape{1, 1, 7, 14}));
}

TEST(Resize, CropExtrapolates) {
  const Tensor y = run("Resize", {f32({4}, {1, 2, 3, 4}), f32({2}, {0.5F, 1.5F}), Tensor(), i64({1}, {3})},
                       {{"mode", std::string("linear")},
                        {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                        {"extrapolation_value", 10.0F}})[0];
  expect_near(y, {2.5, 4, 10});
}

TEST(Resize, Errors) {
  EXPECT_EQ(error_of("Resize", {f32({2}, {1, 2}), Tensor(), f32({1}, {0})}), kData);
  EXPECT_EQ(error_of("Resize", {f32({2}, {1, 2}), Tensor(), f32({1}, {1e30F})}), kData);
  EXPECT_EQ(error_of("Resize", {f32({2}, {1, 2}), Tensor(), f32({1}, {1e11F})}), kMemory);
  EXPECT_EQ(error_of("Resize", {f32({2}, {1, 2})}), kModel);
  EXPECT_EQ(error_of("Resize", {f32({0}, {}), Tensor(), Tensor(), i64({1}, {2})}), kData);
}

}  // namespace
}  // namespace hone
