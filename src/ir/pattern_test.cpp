#include "ir/pattern.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"

namespace hone::ir {
namespace {

struct Found {
  bool yes;
  std::string why;
  Match match;
};

Found match_last(const Graph& g, const Pattern& p) {
  Found f;
  f.yes = match(g, *g.nodes().back(), p, &f.match, &f.why);
  return f;
}

TEST(Pattern, CommutingInputsMatchInEitherOrderOthersDoNot) {
  const Pattern x = any("x");
  const auto g = parse("graph \"\" (%a: f32[2]) {\n  %s = Sigmoid(%a)\n  %y = Mul(%s, %a)\n  return %y\n}\n");
  EXPECT_TRUE(match_last(*g, op("Mul", {x, op("Sigmoid", {x})})).yes);
  const auto d = parse("graph \"\" (%a: f32[2]) {\n  %s = Sigmoid(%a)\n  %y = Div(%s, %a)\n  return %y\n}\n");
  EXPECT_FALSE(match_last(*d, op("Div", {x, op("Sigmoid", {x})})).yes);
  EXPECT_TRUE(match_last(*d, op("Div", {op("Sigmoid", {x}), x})).yes);
}

TEST(Pattern, ANameStandsForOneValue) {
  const Pattern x = any("x");
  const auto g = parse(
      "graph \"\" (%a: f32[2], %b: f32[2]) {\n  %s = Sigmoid(%a)\n  %y = Mul(%s, %b)\n  return %y\n}\n");
  EXPECT_FALSE(match_last(*g, op("Mul", {x, op("Sigmoid", {x})})).yes);
  const Found f = match_last(*g, op("Mul", {any("b"), op("Sigmoid", {x}).as("s")}));
  ASSERT_TRUE(f.yes);
  EXPECT_EQ(g->value(f.match.at("x")).name, "a");
  EXPECT_EQ(g->value(f.match.at("b")).name, "b");
  EXPECT_EQ(g->value(f.match.at("s")).name, "s");
  EXPECT_EQ(f.match.covered.size(), 2U);
}

TEST(Pattern, BacktracksThroughOrdersUntilTheWholeFits) {
  // Add(Mul(a, b), Mul(b, a)): the first order of the first Mul binds p = a; the second Mul then needs p
  // first.
  const Pattern p = any("p"), q = any("q");
  const auto g = parse(
      "graph \"\" (%a: f32[2], %b: f32[2]) {\n  %m = Mul(%a, %b)\n  %d = Div(%b, %a)\n  %y = Add(%m, %d)\n  "
      "return %y\n}\n");
  EXPECT_TRUE(match_last(*g, op("Add", {op("Mul", {p, q}), op("Div", {p, q})})).yes);
}

TEST(Pattern, WhatIsReadElsewhereStaysOutUnlessShared) {
  const Pattern x = any("x");
  const char* text =
      "graph \"\" (%a: f32[2]) {\n  %s = Sigmoid(%a)\n  %y = Mul(%s, %a)\n  return %y, %s\n}\n";
  const auto g = parse(text);
  const Found f = match_last(*g, op("Mul", {x, op("Sigmoid", {x})}));
  EXPECT_FALSE(f.yes);
  EXPECT_EQ(f.why, "'s' is also used elsewhere");
  const Found shared = match_last(*g, op("Mul", {x, op("Sigmoid", {x}).shared()}));
  EXPECT_TRUE(shared.yes);
  EXPECT_EQ(shared.match.covered.size(), 1U);
  EXPECT_EQ(shared.match.shared.size(), 1U);
}

TEST(Pattern, NumbersMatchToAboutOneUnitInTheLastPlace) {
  const auto is = [](float v, double wanted) { return is_number(Tensor::f32_scalar(v), wanted); };
  EXPECT_TRUE(is(1.41421354F, std::sqrt(2.0)));
  EXPECT_TRUE(is(std::nextafter(1.41421354F, 2.0F), std::sqrt(2.0)));
  EXPECT_FALSE(is(1.4142F, std::sqrt(2.0)));
  EXPECT_FALSE(is(1.41F, std::sqrt(2.0)));
  EXPECT_TRUE(is(0.044714998453855515F, 0.044715));
  EXPECT_FALSE(is(1e-30F, 0));
  EXPECT_TRUE(is(-INFINITY, -INFINITY));
  EXPECT_FALSE(is(NAN, 0));
  EXPECT_FALSE(is_number(Tensor::of<float>(DType::kF32, {2}, {1, 1}), 1));
  // f16: 1.4141 is what sqrt 2 rounds to, 1.4102 is 1.41.
  EXPECT_TRUE(is_number(Tensor::of<uint16_t>(DType::kF16, {}, {0x3da8}), std::sqrt(2.0)));
  EXPECT_FALSE(is_number(Tensor::of<uint16_t>(DType::kF16, {}, {0x3da4}), std::sqrt(2.0)));
  EXPECT_FALSE(is_number(Tensor::i64_scalar(1), 1.0000001));
}

TEST(Pattern, ProductsMatchInEveryAssociationAndAsQuotients) {
  const Pattern x = any("x");
  const Pattern p = product({x, num(0.5), op("Tanh", {x})});
  for (const char* body : {"%u = Mul(%a, %h)\n  %y = Mul(%t, %u)", "%u = Mul(%t, %a)\n  %y = Mul(%u, %h)",
                           "%u = Mul(%h, %t)\n  %y = Mul(%u, %a)", "%u = Mul(%a, %t)\n  %y = Div(%u, %two)",
                           "%u = Div(%t, %two)\n  %y = Mul(%u, %a)"}) {
    const auto g = parse(std::string("graph \"\" (%a: f32[2]) {\n  const %h: f32[] = {0.5}\n  const %two: "
                                     "f32[] = {2}\n  %t = Tanh(%a)\n  ") +
                         body + "\n  return %y\n}\n");
    EXPECT_TRUE(match_last(*g, p).yes) << body;
  }
  const auto g = parse(
      "graph \"\" (%a: f32[2]) {\n  const %h: f32[] = {0.25}\n  %t = Tanh(%a)\n  %u = Mul(%a, %h)\n  %y = "
      "Mul(%t, %u)\n  return %y\n}\n");
  EXPECT_FALSE(match_last(*g, p).yes);
}

TEST(Pattern, FurtherInputsOnlyWhereAllowed) {
  const auto g = parse(
      "graph \"\" (%a: f32[1,1,4], %w: f32[1,1,1], %b: f32[1]) {\n  %y = Conv(%a, %w, %b)\n  return %y\n}\n");
  EXPECT_FALSE(match_last(*g, op("Conv", {any(), any()})).yes);
  EXPECT_TRUE(match_last(*g, op("Conv", {any(), any()}).more_inputs()).yes);
}

TEST(Pattern, AttributesAndAlternatives) {
  const auto g = parse("graph \"\" (%a: f32[2,3]) {\n  %y = Softmax(%a) {axis = 1}\n  return %y\n}\n");
  EXPECT_TRUE(match_last(*g, op("Softmax", {any()}).attr("axis", 1, -1)).yes);
  EXPECT_FALSE(match_last(*g, op("Softmax", {any()}).attr("axis", 0, -1)).yes);
  EXPECT_TRUE(match_last(*g, any_of({op("Relu", {any()}), op("Softmax", {any()})})).yes);
  EXPECT_EQ(root_ops(any_of({op("Relu", {any()}), product({any("x"), num(2)})})),
            (std::vector<std::string>{"Relu", "Mul", "Div"}));
}

}  // namespace
}  // namespace hone::ir
