#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::vector<std::string> all_noops() {
  std::vector<std::string> names;
  for (const Pass& p : all_passes())
    if (std::string_view(p.name).starts_with("noop_")) names.emplace_back(p.name);
  return names;
}

std::string one(const std::string& type, const std::string& node, const std::string& constants = "") {
  return "graph \"\" (%x: " + type + ") {\n" + constants + "  %t = Relu(%x)\n  %y = " + node +
         "\n  %z = Neg(%y)\n  return %z\n}\n";
}

void goes(const std::string& type, const std::string& node, const std::string& constants = "") {
  expect_ops(one(type, node, constants), all_noops(), "Relu Neg");
}
void stays(const std::string& type, const std::string& node, const std::string& constants = "") {
  expect_unchanged(one(type, node, constants), all_noops());
}

TEST(NoOps, NeutralNodesGo) {
  goes("f32[2,3]", "Identity(%t)");
  goes("f32[2,3]", "Dropout(%t)");
  goes("f32[2,3]", "Transpose(%t) {perm = [0, 1]}");
  goes("f32[N,3]", "Reshape(%t, %s)", "  const %s: i64[2] = {0, 3}\n");
  goes("f32[2,3]", "Cast(%t) {to = 1}");
  goes("f32[2,3]", "Pad(%t, %p)", "  const %p: i64[4] = {0, 0, 0, 0}\n");
  goes("f32[2,3]", "Slice(%t, %a, %b)",
       "  const %a: i64[2] = {0, 0}\n  const %b: i64[2] = {9223372036854775807, 3}\n");
  goes("f32[2,3]", "Expand(%t, %s)", "  const %s: i64[2] = {2, 1}\n");
  goes("f32[2,3]", "Concat(%t) {axis = 0}");
  goes("f32[2,3]", "Tile(%t, %r)", "  const %r: i64[2] = {1, 1}\n");
  goes("f32[2,3]", "Max(%t)");
  goes("f32[2,3]", "Clip(%t)");
  goes("f32[2,3]", "Mul(%t, %k)", "  const %k: f32[] = {1}\n");
  goes("f32[2,3]", "Mul(%k, %t)", "  const %k: f32[3] = {1, 1, 1}\n");
  goes("f32[2,3]", "Div(%t, %k)", "  const %k: f32[] = {1}\n");
  goes("f32[2,3]", "Sub(%t, %k)", "  const %k: f32[] = {0}\n");
  goes("f32[2,3]", "Add(%t, %k)", "  const %k: f32[] = {-0.0}\n");
}

TEST(NoOps, NodesThatChangeSomethingStay) {
  stays("f32[2,2]", "Transpose(%t)");
  stays("f32[2,3]", "Reshape(%t, %s)", "  const %s: i64[2] = {3, 2}\n");
  stays("f32[2,3]", "Slice(%t, %a, %b, %c, %d)",
        "  const %a: i64[1] = {-1}\n  const %b: i64[1] = {-9223372036854775808}\n  const %c: i64[1] = {0}\n  "
        "const %d: i64[1] = {-1}\n");
  stays("f32[2,3]", "Slice(%t, %a, %b)", "  const %a: i64[2] = {0, 0}\n  const %b: i64[2] = {2, 2}\n");
  stays("f32[2,3]", "Mul(%t, %k)", "  const %k: f32[1,1,1] = {1}\n");  // grows the rank
  stays("f32[2,3]", "Div(%k, %t)", "  const %k: f32[] = {1}\n");
  stays("f32[2,3]", "Sub(%k, %t)", "  const %k: f32[] = {0}\n");
  stays("f32[2,3]", "Add(%t, %k)", "  const %k: f32[] = {0}\n");  // -0 + 0 is +0
  stays("f32[2,3]", "Mul(%t, %k)", "  const %k: f32[] = {0}\n");  // NaN must stay NaN
  stays("f32[2,3]", "Sub(%t, %t)");
  stays("f32[2,3]", "Mul(%t, %k)", "  const %k: f32[3] = {1, 1, 2}\n");
  stays("f32[N,3]", "Expand(%t, %s)", "  const %s: i64[2] = {2, 3}\n");
}

TEST(NoOps, CastsThatNarrowStayWideningPairsGo) {
  const auto pair = [](const std::string& from, int inner, int outer) {
    return "graph \"\" (%x: " + from + "[3]) {\n  %a = Cast(%x) {to = " + std::to_string(inner) +
           "}\n  %b = Cast(%a) {to = " + std::to_string(outer) + "}\n  %c = Abs(%b)\n  return %c\n}\n";
  };
  for (const auto& [from, inner, outer] :
       {std::tuple("f32", 10, 1), std::tuple("i64", 6, 7), std::tuple("f32", 7, 1), std::tuple("i32", 1, 6),
        std::tuple("f64", 1, 11), std::tuple("f16", 16, 10), std::tuple("u8", 3, 2),
        std::tuple("i64", 11, 7)})
    expect_unchanged(pair(from, inner, outer), {"noop_cast_pair", "noop_cast"});
  for (const auto& [from, inner, outer] :
       {std::tuple("f32", 11, 1), std::tuple("i32", 7, 6), std::tuple("i32", 11, 6), std::tuple("f16", 1, 10),
        std::tuple("u8", 5, 2)}) {
    auto g = graph_of(pair(from, inner, outer));
    run_passes(*g, {"noop_cast_pair", "dead_code"});
    EXPECT_EQ(ops_of(*g), "Abs") << from << inner;
  }
}

TEST(NoOps, AGraphOutputKeepsItsName) {
  const auto g =
      graph_of("graph \"\" (%x: f32[2]) {\n  %a = Relu(%x)\n  %y = Identity(%a)\n  return %y\n}\n");
  run_passes(*g, {"noop_identity"});
  EXPECT_EQ(ops_of(*g), "Relu");
  EXPECT_EQ(g->value(g->outputs()[0]).name, "y");
  // Two names for one value: the second needs its Identity; a graph input as output too.
  const auto two =
      graph_of("graph \"\" (%x: f32[2]) {\n  %a = Relu(%x)\n  %y = Dropout(%a)\n  return %a, %y\n}\n");
  run_passes(*two, {"noop_dropout"});
  EXPECT_EQ(ops_of(*two), "Relu Identity");
  EXPECT_EQ(two->value(two->outputs()[1]).name, "y");
  const auto through = graph_of("graph \"\" (%x: f32[2]) {\n  %y = Dropout(%x)\n  return %y\n}\n");
  run_passes(*through, {"noop_dropout"});
  EXPECT_EQ(ops_of(*through), "Identity");
  EXPECT_EQ(through->value(through->outputs()[0]).name, "y");
}

TEST(NoOps, TrainingDropoutStays) {
  expect_unchanged(
      "graph \"\" (%x: f32[2]) {\n  const %r: f32[] = {0.5}\n  const %m: bool[] = {1}\n  %y = Dropout(%x, "
      "%r, %m)\n  %z = Neg(%y)\n  return %z\n}\n",
      {"noop_dropout"});
}

}  // namespace
}  // namespace hone::optimize::testing
