// A23: the GELU formula with 1.41 instead of the square root of 2 is another function.
#include "issues/rewrite_case.h"

namespace hone::issues {
namespace {

std::string gelu(const std::string& root) {
  return "graph \"\" (%x: f32[3]) {\n  const %r: f32[] = {" + root +
         "}\n  const %h: f32[] = {0.5}\n  const %o: f32[] = {1}\n  %a = Div(%x, %r)\n  %e = Erf(%a)\n  %p = "
         "Add(%e, %o)\n  %m = Mul(%x, %p)\n"
         "  %y = Mul(%m, %h)\n  return %y\n}\n";
}

TEST(Issues, A23WrongConstant) {
  const auto g = expect_case(gelu("1.41"), {f32({3}, {-1, 1, 2})}, {{-0.157933, 0.842067, 1.955141}});
  EXPECT_FALSE(has_op(*g, "Gelu"));
}
TEST(Issues, A23RightConstant) {
  const auto g = expect_case(gelu("1.4142135"), {f32({3}, {-1, 1, 2})}, {{-0.158655, 0.841345, 1.954500}});
  EXPECT_TRUE(has_op(*g, "Gelu"));
}

}  // namespace
}  // namespace hone::issues
