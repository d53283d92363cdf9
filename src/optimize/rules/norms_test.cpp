#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::vector<std::string> norms() {
  std::vector<std::string> names;
  for (const Pass& p : all_passes()) {
    const std::string_view n = p.name;
    if (n.find("norm") != std::string_view::npos && !n.starts_with("batch")) names.emplace_back(n);
  }
  return names;
}

// x - mean, its square's mean, + eps, root, quotient; `tail` goes on from %n.
std::string layer(const std::string& type, const std::string& axes, const std::string& tail,
                  const std::string& constants = "", const std::string& var_axes = "") {
  const auto vec = [](const std::string& v) {
    return "i64[" + std::to_string(1 + std::count(v.begin(), v.end(), ',')) + "] = {" + v + "}";
  };
  return "graph \"\" (%x: " + type + ") {\n  const %ax: " + vec(axes) +
         "\n  const %av: " + vec(var_axes.empty() ? axes : var_axes) +
         "\n  const %two: " + type.substr(0, type.find('[')) +
         "[] = {2}\n  const %eps: " + type.substr(0, type.find('[')) + "[] = {1e-5}\n" + constants +
         "  %m = ReduceMean(%x, %ax)\n  %d = Sub(%x, %m)\n  %p = Pow(%d, %two)\n  %v = ReduceMean(%p, %av)\n "
         " %e = Add(%v, %eps)\n"
         "  %r = Sqrt(%e)\n  %n = Div(%d, %r)\n" +
         tail;
}

const char* kScaleBias = "  const %s: f32[4] = {1, 2, 3, 4}\n  const %b: f32[4] = {1, 0, 0, 2}\n";
const char* kTail = "  %t = Mul(%n, %s)\n  %y = Add(%t, %b)\n  return %y\n}\n";

TEST(Norms, LayerNormalizationWithScaleAndBias) {
  const auto g =
      expect_ops(layer("f32[N,3,4]", "-1", kTail, kScaleBias), norms(), "LayerNormalization", {}, 1e-6);
  const ir::Node& n = *g->nodes().front();
  EXPECT_EQ(n.get_int("axis", 0), -1);
  EXPECT_EQ(n.get_float("epsilon", 0), 1e-5F);
  EXPECT_EQ(n.inputs.size(), 3U);
  expect_ops(layer("f32[2,3,4]", "1,2", "  %y = Neg(%n)\n  return %y\n}\n"), norms(),
             "LayerNormalization Neg", {}, 1e-6);
  // mean and variance by the reciprocal, and by a product instead of Pow
  std::string text = layer("f32[N,3,4]", "-1", kTail, kScaleBias);
  text.replace(text.find("Pow(%d, %two)"), 13, "Mul(%d, %d)");
  text.replace(text.find("%n = Div(%d, %r)"), 16, "%q = Reciprocal(%r)\n  %n = Mul(%d, %q)");
  expect_ops(text, norms(), "LayerNormalization", {}, 1e-6);
}

TEST(Norms, ScaleThatDoesNotFitStaysOutside) {  // case A05
  expect_ops(layer("f32[2,4]", "-1", "  %t = Mul(%n, %s)\n  %y = Add(%t, %b)\n  return %y\n}\n",
                   "  const %s: f32[1] = {2}\n  const %b: f32[1] = {1}\n"),
             norms(), "LayerNormalization Mul Add", {}, 1e-6);
  expect_ops(layer("f32[1,1]", "-1", "  %y = Mul(%n, %s)\n  return %y\n}\n", "  const %s: f32[2] = {3, 5}\n"),
             norms(), "LayerNormalization Mul", {}, 1e-6);
}

TEST(Norms, OtherDimensionsStay) {  // case A07
  expect_unchanged(layer("f32[2,3,2]", "1", "  %t = Mul(%n, %s)\n  %y = Add(%t, %b)\n  return %y\n}\n",
                         "  const %s: f32[2] = {1, 2}\n  const %b: f32[] = {0.5}\n"),
                   norms());
  expect_unchanged(layer("f32[2,3,4]", "-1", "  return %n\n}\n", "", "1"), norms());
}

TEST(Norms, DoublePrecisionStays) { expect_unchanged(layer("f64[2,4]", "-1", "  return %n\n}\n"), norms()); }

TEST(Norms, WhatIsReadInsideStays) {
  expect_unchanged(layer("f32[2,4]", "-1", "  %y = Neg(%v)\n  return %n, %y\n}\n"), norms());
  // The difference is read elsewhere: what follows it is an RMS normalisation of it.
  expect_ops(layer("f32[2,4]", "-1", "  %y = Neg(%d)\n  return %n, %y\n}\n"), norms(),
             "ReduceMean Sub RMSNormalization Neg", {}, 1e-6);
}

TEST(Norms, RmsNormalization) {
  const auto text = [](const std::string& scale, const std::string& root) {
    return "graph \"\" (%x: f32[2,4]) {\n  const %ax: i64[1] = {-1}\n  const %two: f32[] = {2}\n  const "
           "%eps: f32[] = {1e-6}\n" +
           scale +
           "  %p = Pow(%x, %two)\n  %v = ReduceMean(%p, %ax)\n  %e = Add(%v, %eps)\n  %r = Sqrt(%e)\n" +
           root + "  return %y\n}\n";
  };
  expect_ops(text("  const %s: f32[4] = {1, 2, 3, 4}\n",
                  "  %q = Reciprocal(%r)\n  %n = Mul(%x, %q)\n  %y = Mul(%s, %n)\n"),
             norms(), "RMSNormalization", {}, 1e-6);
  expect_ops(text("", "  %n = Div(%x, %r)\n  %y = Neg(%n)\n"), norms(), "RMSNormalization Neg", {}, 1e-6);
}

TEST(Norms, TensorFlowForm) {
  expect_ops(
      "graph \"\" (%x: f32[2,3,4]) {\n  const %ax: i64[1] = {2}\n  const %eps: f32[] = {1e-3}\n  const %g: "
      "f32[4] = {1, 2, 3, 4}\n"
      "  const %b: f32[4] = {1, 0, 0, 2}\n  %m = ReduceMean(%x, %ax)\n  %d = Sub(%x, %m)\n  %p = Mul(%d, "
      "%d)\n  %v = ReduceMean(%p, %ax)\n"
      "  %e = Add(%v, %eps)\n  %s = Sqrt(%e)\n  %q = Reciprocal(%s)\n  %r = Mul(%q, %g)\n  %xr = Mul(%x, "
      "%r)\n  %mr = Mul(%m, %r)\n"
      "  %bm = Sub(%b, %mr)\n  %y = Add(%xr, %bm)\n  return %y\n}\n",
      norms(), "LayerNormalization", {}, 1e-6);
}

TEST(Norms, InstanceNormalizationTakesScaleAndBias) {
  const auto text = [](const std::string& shape) {
    return "graph \"\" (%x: f32[2,3,5]) {\n  const %s: f32[3] = {1, 2, 3}\n  const %b: f32[3] = {0, 1, 0}\n  "
           "const %k: f32" +
           shape +
           " = {2, 3, 4}\n  %n = InstanceNormalization(%x, %s, %b)\n  %t = Mul(%n, %k)\n  %y = Add(%t, %k)\n "
           " return %y\n}\n";
  };
  expect_ops(text("[3,1]"), norms(), "InstanceNormalization", {}, 1e-6);
  expect_unchanged(
      "graph \"\" (%x: f32[2,3,3]) {\n  const %s: f32[3] = {1, 2, 3}\n  const %b: f32[3] = {0, 1, 0}\n  "
      "const %k: f32[3] = {2, 3, 4}\n"
      "  %n = InstanceNormalization(%x, %s, %b)\n  %y = Mul(%n, %k)\n  return %y\n}\n",
      norms());
}

TEST(Norms, GroupNormalization) {
  expect_ops(
      "graph \"\" (%x: f32[2,4,3,5]) {\n  const %in: i64[3] = {0, 2, -1}\n  const %out: i64[4] = {2, 4, 3, "
      "5}\n  const %one: f32[2] = {1, 1}\n"
      "  const %zero: f32[2] = {0, 0}\n  const %s: f32[4,1,1] = {1, 2, 3, 4}\n  const %b: f32[1,4,1,1] = {4, "
      "3, 2, 1}\n  %r = Reshape(%x, %in)\n"
      "  %n = InstanceNormalization(%r, %one, %zero)\n  %q = Reshape(%n, %out)\n  %t = Mul(%q, %s)\n  %y = "
      "Add(%t, %b)\n  return %y\n}\n",
      norms(), "GroupNormalization", {}, 1e-6);
}

}  // namespace
}  // namespace hone::optimize::testing
