#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::string pieces(const std::string& nodes, const std::string& returned = "%a, %b, %c") {
  return "graph \"\" (%x: f32[3,N,4]) {\n  const %i0: i64[] = {0}\n  const %i1: i64[] = {1}\n  const %i2: "
         "i64[] = {-1}\n  const %z: i64[1] = {0}\n"
         "  const %one: i64[1] = {1}\n  const %two: i64[1] = {2}\n  const %three: i64[1] = {3}\n  const "
         "%far: i64[1] = {9223372036854775807}\n" +
         nodes + "  return " + returned + "\n}\n";
}

const std::vector<std::string> kPass = {"slices_to_split"};

TEST(Splits, GathersThatCoverADimension) {
  expect_ops(pieces("  %p = Gather(%x, %i1)\n  %q = Gather(%x, %i0)\n  %r = Gather(%x, %i2)\n  %a = "
                    "Neg(%p)\n  %b = Abs(%q)\n  %c = Exp(%r)\n"),
             kPass, "Split Squeeze Squeeze Squeeze Neg Abs Exp");
}

TEST(Splits, SlicesThatCoverADimension) {
  expect_ops(pieces("  %p = Slice(%x, %z, %two, %z)\n  %q = Slice(%x, %two, %far, %z, %one)\n  %a = "
                    "Neg(%p)\n  %b = Abs(%q)\n",
                    "%a, %b"),
             kPass, "Split Neg Abs");
}

TEST(Splits, GapsOverlapsOutputsAndSymbolsStay) {
  expect_unchanged(
      pieces("  %p = Gather(%x, %i0)\n  %q = Gather(%x, %i1)\n  %a = Neg(%p)\n  %b = Abs(%q)\n", "%a, %b"),
      kPass);
  expect_unchanged(pieces("  %p = Slice(%x, %z, %two, %z)\n  %q = Slice(%x, %one, %far, %z)\n  %a = "
                          "Neg(%p)\n  %b = Abs(%q)\n",
                          "%a, %b"),
                   kPass);
  expect_unchanged(
      pieces("  %a = Slice(%x, %z, %two, %z)\n  %q = Slice(%x, %two, %far, %z)\n  %b = Abs(%q)\n", "%a, %b"),
      kPass);
  expect_unchanged(pieces("  %p = Slice(%x, %z, %two, %one)\n  %q = Slice(%x, %two, %far, %one)\n  %a = "
                          "Neg(%p)\n  %b = Abs(%q)\n",
                          "%a, %b"),
                   kPass);
}

TEST(Splits, TransposesSinkBelow) {
  const auto text = [](const std::string& more) {
    return "graph \"\" (%x: f32[N,5,3,4]) {\n  const %s: i64[3] = {1, 1, 1}\n  %t = Transpose(%x) {perm = "
           "[2, 0, 3, 1]}\n  %a, %b, %c = Split(%t, %s) {axis = 0}\n"
           "  %p = Neg(%a)\n  %q = Abs(%b)\n  %r = Exp(%c)\n  return %p, %q, %r" +
           more + "\n}\n";
  };
  const auto g =
      expect_ops(text(""), {"transpose_sink_split"}, "Split Transpose Transpose Transpose Neg Abs Exp");
  EXPECT_EQ(g->nodes().front()->get_int("axis", 0), 2);
  expect_unchanged(text(", %t"), {"transpose_sink_split"});
}

}  // namespace
}  // namespace hone::optimize::testing
