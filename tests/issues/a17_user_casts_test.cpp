// A17 (ONNX Runtime #8787, #4039, #17953): a Cast that narrows changes values; no later Cast makes it
// useless.
#include <limits>

#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

std::string casts(const std::string& from, int there, int back) {
  return "graph \"\" (%x: " + from + ") {\n  %a = Cast(%x) {to = " + std::to_string(there) +
         "}\n  %y = Cast(%a) {to = " + std::to_string(back) + "}\n  return %y\n}\n";
}

TEST(Issues, A17aThroughHalf) {
  expect_case(casts("f32[3]", 10, 1), {f32({3}, {1e-12F, 123456.7F, 0.1F})}, {{0, INFINITY, 0.09997559}},
              1e-8);
}
TEST(Issues, A17bThroughInt32) {
  expect_case(casts("i64[2]", 6, 7), {i64({2}, {(int64_t{1} << 32) + 5, -1})}, {{5, -1}}, 0);
}
TEST(Issues, A17cThroughInt64) {
  expect_case(casts("f32[3]", 7, 1), {f32({3}, {1.7F, -1.7F, 2.5F})}, {{1, -1, 2}}, 0);
}
TEST(Issues, A17dIntegersThroughFloat) {
  expect_case(casts("i32[1]", 1, 6), {i32({1}, {16777217})}, {{16777216}}, 0);
}
TEST(Issues, A17eDoublesThroughFloat) {
  expect_case(casts("f64[1]", 1, 11), {Tensor::of<double>(DType::kF64, {1}, {0.1})},
              {{static_cast<double>(0.1F)}}, 0);
}

}  // namespace
}  // namespace hone::issues
