// A05 (ONNX Runtime #25855, #31980): a layer normalisation written out whose scale does not match the last
// dimension.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

std::string layer_norm(const std::string& type, const std::string& constants, const std::string& tail) {
  return "graph \"\" (%x: " + type +
         ") {\n  const %ax: i64[1] = {-1}\n  const %two: f32[] = {2}\n  const %eps: f32[] = {1e-5}\n" +
         constants +
         "  %m = ReduceMean(%x, %ax)\n  %d = Sub(%x, %m)\n  %p = Pow(%d, %two)\n  %v = ReduceMean(%p, %ax)\n "
         " %e = Add(%v, %eps)\n  %r = Sqrt(%e)\n"
         "  %n = Div(%d, %r)\n  %s = Mul(%n, %scale)\n" +
         tail;
}

TEST(Issues, A05ScaleThatEnlargesTheResult) {
  expect_case(layer_norm("f32[1,1]", "  const %scale: f32[2] = {3, 5}\n", "  return %s\n}\n"),
              {f32({1, 1}, {7})}, {{0, 0}});
}

TEST(Issues, A05ScaleOfOneElement) {
  expect_case(layer_norm("f32[2,4]", "  const %scale: f32[1] = {2}\n  const %b: f32[1] = {1}\n",
                         "  %y = Add(%s, %b)\n  return %y\n}\n"),
              {f32({2, 4}, {1, 2, 3, 4, 10, 20, 30, 40})},
              {{-1.683271, 0.105576, 1.894424, 3.683271, -1.683282, 0.105573, 1.894427, 3.683282}});
}

}  // namespace
}  // namespace hone::issues
