// A19 (onnx/optimizer #253): the second Squeeze counts the dimensions that the first has left.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

TEST(Issues, A19SqueezeAfterSqueeze) {
  const auto g = expect_case(
      "graph \"\" (%x: f32[1,2,1,1]) {\n  const %a: i64[1] = {0}\n  const %b: i64[1] = {1}\n  %s = "
      "Squeeze(%x, %a)\n  %y = Squeeze(%s, %b)\n"
      "  return %y\n}\n",
      {f32({1, 2, 1, 1}, {3, 4})}, {{3, 4}});
  EXPECT_EQ(ops::interpret(*g, {f32({1, 2, 1, 1}, {3, 4})})[0].shape(), (Shape{2, 1}));
}

}  // namespace
}  // namespace hone::issues
