// A21 (onnx/optimizer #252 to #285): algebra must not hide NaN: x*0, x-x and x/x are not constants, x+0 is
// not x when x is -0.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

const std::vector<float> kValues = {NAN, INFINITY, 2};

TEST(Issues, A21TimesZero) {
  expect_case("graph \"\" (%x: f32[3]) {\n  const %z: f32[] = {0}\n  %y = Mul(%x, %z)\n  return %y\n}\n",
              {f32({3}, kValues)}, {{NAN, NAN, 0}});
}
TEST(Issues, A21MinusItself) {
  expect_case("graph \"\" (%x: f32[3]) {\n  %y = Sub(%x, %x)\n  return %y\n}\n", {f32({3}, kValues)},
              {{NAN, NAN, 0}});
}
TEST(Issues, A21OverItself) {
  expect_case("graph \"\" (%x: f32[3]) {\n  %y = Div(%x, %x)\n  return %y\n}\n", {f32({3}, {0, INFINITY, 2})},
              {{NAN, NAN, 1}});
}
TEST(Issues, A21PlusZeroOfMinusZero) {
  const auto g =
      expect_case("graph \"\" (%x: f32[1]) {\n  const %z: f32[] = {0}\n  %y = Add(%x, %z)\n  return %y\n}\n",
                  {f32({1}, {-0.0F})}, {{0}});
  EXPECT_FALSE(std::signbit(ops::interpret(*g, {f32({1}, {-0.0F})})[0].data<float>()[0]));
}

}  // namespace
}  // namespace hone::issues
