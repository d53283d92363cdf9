// A03 (sibling of ONNX Runtime #22177): a Pad with zeros is not the padding of a MaxPool, which is -inf.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A03PadWithZerosStaysInFrontOfMaxPool) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[1,1,2,2]) {\n  const %p: i64[8] = {0, 0, 1, 1, 0, 0, 1, 1}\n  const %z: f32[] = "
      "{0}\n  %a = Pad(%x, %p, %z)\n"
      "  %y = MaxPool(%a) {kernel_shape = [2, 2], strides = [2, 2]}\n  return %y\n}\n",
      {f32({1, 1, 2, 2}, {-4, -8, -12, -16})}, {{0, 0, 0, 0}});
  EXPECT_TRUE(has_op(*g, "Pad"));
}

TEST(Issues, A03PadWithMinusInfinityJoins) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[1,1,2,2]) {\n  const %p: i64[8] = {0, 0, 1, 1, 0, 0, 1, 1}\n  const %z: f32[] = "
      "{-inf}\n  %a = Pad(%x, %p, %z)\n"
      "  %y = MaxPool(%a) {kernel_shape = [2, 2], strides = [2, 2]}\n  return %y\n}\n",
      {f32({1, 1, 2, 2}, {-4, -8, -12, -16})}, {{-4, -8, -12, -16}});
  EXPECT_FALSE(has_op(*g, "Pad"));
}

}  // namespace
}  // namespace hone::issues
