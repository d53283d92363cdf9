#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

TEST(Fold, NodesOfConstantsBecomeConstants) {
  const auto g = expect_ops(
      "graph \"\" (%x: f32[3]) {\n  const %a: f32[3] = {1, 2, 3}\n  %b = Neg(%a)\n  %c = Mul(%b, %a)\n  %y = "
      "Add(%x, %c)\n  return %y\n}\n",
      {"fold_constants"}, "Add");
  EXPECT_EQ(g->value(g->find("c")).data->at(2), -9);
}

TEST(Fold, BudgetsHold) {
  const std::string text =
      "graph \"\" (%x: f32[1]) {\n  const %s: i64[2] = {4096, 4096}\n  const %one: f32[1,1] = {1}\n  %e = "
      "Expand(%one, %s)\n  %y = Add(%e, %x)\n  return %y\n}\n";
  expect_unchanged(text, {"fold_constants"});
  const auto g = graph_of(text);
  PassContext ctx{*g};
  ctx.fold_growth_bytes = 128 << 20;
  for (const Pass& p : all_passes())
    if (std::string_view(p.name) == "fold_constants") p.run(ctx);
  EXPECT_EQ(ctx.changes, 1);
  EXPECT_EQ(ops_of(*g), "Add");
}

TEST(Fold, WhatFailsOrIsRandomStays) {
  expect_unchanged(
      "graph \"\" (%x: f32[2]) {\n  const %a: f32[2] = {1, 2}\n  const %i: i64[1] = {7}\n  %g = Gather(%a, "
      "%i)\n  %y = Add(%g, %x)\n  return %y\n}\n",
      {"fold_constants"});
}

TEST(Fold, KnownContentsBecomeConstants) {
  const auto g = expect_ops(
      "graph \"\" (%x: f32[N,3,224,7]) {\n  const %i: i64[] = {2}\n  %s = Shape(%x)\n  %d = Gather(%s, %i)\n "
      " %f = Cast(%d) {to = 1}\n  %y = Mul(%x, %f)\n"
      "  return %y\n}\n",
      {"fold_contents", "fold_constants", "dead_code"}, "Mul", {{"N", 1}});
  EXPECT_EQ(g->value(g->find("f")).data->at(0), 224);
}

TEST(Fold, UnknownDimensionsStay) {
  expect_unchanged(
      "graph \"\" (%x: f32[N,3]) {\n  const %i: i64[] = {0}\n  %s = Shape(%x)\n  %y = Gather(%s, %i)\n  "
      "return %y\n}\n",
      {"fold_contents", "fold_constants", "dead_code"});
}

TEST(Fold, CapturedConstantsAreKnownInside) {
  const auto g = graph_of(
      "graph \"\" (%x: f32[2], %c: bool[]) {\n  const %k: f32[2] = {1, 2}\n"
      "  %y = If(%c; %x, %k) {else_branch = graph \"e\" () captures (%a: f32[2], %b: f32[2]) {\n      %n = "
      "Neg(%b)\n      %z = Add(%n, %a)\n      return %z\n    }, "
      "then_branch = graph \"t\" () captures (%a: f32[2], %b: f32[2]) {\n      %z = Add(%a, %b)\n      "
      "return %z\n    }}\n  return %y\n}\n");
  const auto before = g->clone();
  run_pipeline(*g, {}, nullptr);
  expect_same_values(*before, *g);
  EXPECT_EQ(ops_of(*g->nodes().front()->get_graph("else_branch")), "Add");
}

TEST(Cse, EqualNodesAndConstantsAreOne) {
  expect_ops(
      "graph \"\" (%x: f32[2]) {\n  const %a: f32[2] = {1, 2}\n  const %b: f32[2] = {1, 2}\n  %p = Add(%x, "
      "%a)\n  %q = Add(%b, %x)\n  %y = Mul(%p, %q)\n"
      "  return %y\n}\n",
      {"merge_constants", "common_subexpressions"}, "Add Mul");
}

TEST(Cse, DifferentAttributesTypesOrOrderStay) {
  const std::vector<std::string> passes = {"merge_constants", "common_subexpressions"};
  expect_unchanged(
      "graph \"\" (%x: f32[2,2]) {\n  %p = Softmax(%x) {axis = 0}\n  %q = Softmax(%x) {axis = 1}\n  %y = "
      "Mul(%p, %q)\n  return %y\n}\n",
      passes);
  expect_unchanged(
      "graph \"\" (%x: f32[2], %w: f32[2]) {\n  %p = Sub(%x, %w)\n  %q = Sub(%w, %x)\n  %y = Mul(%p, %q)\n  "
      "return %y\n}\n",
      passes);
  expect_unchanged(
      "graph \"\" (%x: f32[2]) {\n  const %a: f32[2] = {0, 1}\n  const %b: f32[2] = {-0.0, 1}\n  %p = "
      "Add(%x, %a)\n  %q = Add(%x, %b)\n"
      "  %y = Mul(%p, %q)\n  return %y\n}\n",
      passes);
  expect_unchanged("graph \"\" (%x: f32[2]) {\n  %p = Neg(%x)\n  %q = Neg(%x)\n  return %p, %q\n}\n", passes);
}

TEST(DeadCode, ChainsDie) {
  expect_ops("graph \"\" (%x: f32[2]) {\n  %a = Neg(%x)\n  %b = Abs(%a)\n  %y = Relu(%x)\n  return %y\n}\n",
             {"dead_code"}, "Relu");
}

}  // namespace
}  // namespace hone::optimize::testing
