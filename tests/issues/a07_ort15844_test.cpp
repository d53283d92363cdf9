// A07 (ONNX Runtime #15844): the same formula over a middle dimension is no layer normalisation.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A07NormalisationOverAMiddleDimension) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[2,3,2]) {\n  const %ax: i64[1] = {1}\n  const %two: f32[] = {2}\n  const %eps: "
      "f32[] = {1e-5}\n"
      "  const %scale: f32[2] = {1, 2}\n  const %b: f32[] = {0.5}\n  %m = ReduceMean(%x, %ax)\n  %d = "
      "Sub(%x, %m)\n  %p = Pow(%d, %two)\n"
      "  %v = ReduceMean(%p, %ax)\n  %e = Add(%v, %eps)\n  %r = Sqrt(%e)\n  %n = Div(%d, %r)\n  %s = Mul(%n, "
      "%scale)\n  %y = Add(%s, %b)\n"
      "  return %y\n}\n",
      {arange({2, 3, 2})},
      {{-0.724743, -1.949485, 0.5, 0.5, 1.724743, 2.949485, -0.724743, -1.949485, 0.5, 0.5, 1.724743,
        2.949485}});
  EXPECT_FALSE(has_op(*g, "LayerNormalization"));
}

}  // namespace
}  // namespace hone::issues
