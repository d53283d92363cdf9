#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::string of(const std::string& constants, const std::string& body, const std::string& type = "f32[2,3]") {
  return "graph \"\" (%x: " + type + ") {\n" + constants + body + "  return %y\n}\n";
}

std::string gelu(const std::string& root, const std::string& half = "0.5", const std::string& one = "1") {
  return of(
      "  const %r: f32[] = {" + root + "}\n  const %h: f32[] = {" + half + "}\n  const %o: f32[] = {" + one +
          "}\n",
      "  %a = Div(%x, %r)\n  %e = Erf(%a)\n  %p = Add(%e, %o)\n  %m = Mul(%x, %p)\n  %y = Mul(%m, %h)\n");
}

TEST(Activations, GeluByErf) {
  expect_ops(gelu("1.41421354"), {"gelu_erf"}, "Gelu", {}, 1e-6);
  expect_ops(gelu("1.4142135"), {"gelu_erf"}, "Gelu", {}, 1e-6);
  expect_unchanged(gelu("1.41"), {"gelu_erf"});  // case A23
  expect_unchanged(gelu("1.41421354", "0.25"), {"gelu_erf"});
  expect_unchanged(gelu("1.41421354", "0.5", "1.0001"), {"gelu_erf"});
}

TEST(Activations, GeluOtherAssociations) {
  const std::string c =
      "  const %r: f32[] = {0.70710677}\n  const %h: f32[] = {0.5}\n  const %o: f32[] = {1}\n";
  expect_ops(
      of(c,
         "  %a = Mul(%x, %r)\n  %e = Erf(%a)\n  %p = Add(%o, %e)\n  %m = Mul(%h, %p)\n  %y = Mul(%x, %m)\n"),
      {"gelu_erf"}, "Gelu", {}, 1e-6);
  expect_ops(
      of(c,
         "  %a = Mul(%x, %r)\n  %e = Erf(%a)\n  %p = Add(%o, %e)\n  %m = Mul(%x, %h)\n  %y = Mul(%m, %p)\n"),
      {"gelu_erf"}, "Gelu", {}, 1e-6);
  // The Erf is of another tensor.
  expect_unchanged(of(c,
                      "  %z = Neg(%x)\n  %a = Mul(%z, %r)\n  %e = Erf(%a)\n  %p = Add(%o, %e)\n  %m = "
                      "Mul(%x, %h)\n  %y = Mul(%m, %p)\n"),
                   {"gelu_erf"});
}

TEST(Activations, GeluByTanh) {
  const std::string c =
      "  const %h: f32[] = {0.5}\n  const %o: f32[] = {1}\n  const %three: f32[] = {3}\n  const %c: f32[] = "
      "{0.044714998453855515}\n"
      "  const %s: f32[] = {0.7978845834732056}\n";
  const std::string body =
      "  %p = Pow(%x, %three)\n  %q = Mul(%p, %c)\n  %i = Add(%x, %q)\n  %j = Mul(%i, %s)\n  %t = Tanh(%j)\n "
      " %u = Add(%t, %o)\n"
      "  %m = Mul(%x, %h)\n  %y = Mul(%m, %u)\n";
  const auto g = expect_ops(of(c, body), {"gelu_tanh"}, "Gelu", {}, 1e-6);
  EXPECT_EQ(g->nodes().front()->get_string("approximate", "none"), "tanh");
  const std::string fast =
      "  %q = Mul(%x, %c)\n  %p = Mul(%q, %x)\n  %i = Add(%p, %o)\n  %k = Mul(%x, %s)\n  %j = Mul(%k, %i)\n  "
      "%t = Tanh(%j)\n  %u = Add(%o, %t)\n"
      "  %m = Mul(%x, %h)\n  %y = Mul(%m, %u)\n";
  expect_ops(of(c, fast), {"gelu_tanh"}, "Gelu", {}, 1e-6);
  std::string wrong = c;
  wrong.replace(wrong.find("0.0447"), 6, "0.0457");
  expect_unchanged(of(wrong, body), {"gelu_tanh"});
}

TEST(Activations, SwishMishHardSwish) {
  expect_ops(of("", "  %s = Sigmoid(%x)\n  %y = Mul(%x, %s)\n"), {"swish"}, "Swish");
  expect_unchanged(of("", "  %s = Sigmoid(%x)\n  %z = Neg(%x)\n  %y = Mul(%z, %s)\n"), {"swish"});
  const auto g = expect_ops(
      of("  const %a: f32[] = {1.702}\n", "  %m = Mul(%x, %a)\n  %s = Sigmoid(%m)\n  %y = Mul(%x, %s)\n"),
      {"swish_alpha"}, "Swish");
  EXPECT_EQ(g->nodes().front()->get_float("alpha", 1), 1.702F);
  expect_unchanged(
      of("  const %a: f32[3] = {1, 2, 3}\n", "  %m = Mul(%x, %a)\n  %s = Sigmoid(%m)\n  %y = Mul(%x, %s)\n"),
      {"swish_alpha"});
  expect_ops(of("", "  %s = Softplus(%x)\n  %t = Tanh(%s)\n  %y = Mul(%t, %x)\n"), {"mish"}, "Mish");
  const std::string six =
      "  const %three: f32[] = {3}\n  const %zero: f32[] = {0}\n  const %six: f32[] = {6}\n";
  expect_ops(
      of(six,
         "  %a = Add(%x, %three)\n  %c = Clip(%a, %zero, %six)\n  %m = Mul(%x, %c)\n  %y = Div(%m, %six)\n"),
      {"hard_swish_clip"}, "HardSwish", {}, 1e-6);
  expect_ops(
      of(six,
         "  %a = Add(%x, %three)\n  %c = Clip(%a, %zero, %six)\n  %m = Div(%c, %six)\n  %y = Mul(%m, %x)\n"),
      {"hard_swish_clip"}, "HardSwish", {}, 1e-6);
  expect_ops(of(six, "  %a = Add(%x, %three)\n  %c = Clip(%a, %zero, %six)\n  %y = Div(%c, %six)\n"),
             {"hard_sigmoid_clip"}, "HardSigmoid", {}, 1e-6);
  expect_ops(of("", "  %h = HardSigmoid(%x) {alpha = 0.16666667, beta = 0.5}\n  %y = Mul(%h, %x)\n"),
             {"hard_swish"}, "HardSwish", {}, 1e-6);
  expect_unchanged(of("", "  %h = HardSigmoid(%x) {alpha = 0.2, beta = 0.5}\n  %y = Mul(%h, %x)\n"),
                   {"hard_swish"});
  std::string five = six;
  five.replace(five.find("{6}"), 3, "{5}");
  expect_unchanged(
      of(five,
         "  %a = Add(%x, %three)\n  %c = Clip(%a, %zero, %six)\n  %m = Mul(%x, %c)\n  %y = Div(%m, %six)\n"),
      {"hard_swish_clip"});
}

TEST(Activations, SharedInsidesStay) {
  expect_unchanged("graph \"\" (%x: f32[2]) {\n  %s = Sigmoid(%x)\n  %y = Mul(%x, %s)\n  return %y, %s\n}\n",
                   {"swish"});
}

TEST(Activations, BoundsMergeInOrder) {  // case A35
  const std::string c =
      "  const %m5: f32[] = {-5}\n  const %m1: f32[] = {-1}\n  const %zero: f32[] = {0}\n  const %three: "
      "f32[] = {3}\n"
      "  const %four: f32[] = {4}\n  const %six: f32[] = {6}\n";
  expect_ops(of(c, "  %r = Relu(%x)\n  %y = Clip(%r, %m5, %m1)\n"), {"clip_merge"}, "Clip");
  expect_ops(of(c, "  %r = Clip(%x, %m5, %m1)\n  %y = Relu(%r)\n"), {"clip_merge"}, "Clip");
  expect_ops(of(c, "  %r = Clip(%x, %zero, %three)\n  %y = Clip(%r, %four, %six)\n"), {"clip_merge"}, "Clip");
  expect_ops(of(c, "  %r = Relu(%x)\n  %y = Clip(%r, %zero, %six)\n"), {"clip_merge"}, "Clip");
  expect_ops(of(c, "  %r = Relu(%x)\n  %y = Relu(%r)\n"), {"clip_merge"}, "Relu");
  expect_ops(of(c, "  %y = Clip(%x, %zero)\n"), {"clip_relu"}, "Relu");
  expect_unchanged(of(c, "  %y = Clip(%x, %zero, %six)\n"), {"clip_relu"});  // case A01
  expect_ops(of(c, "  %r = Max(%x, %zero)\n  %y = Min(%r, %six)\n"), {"min_clip", "max_clip", "clip_merge"},
             "Clip");
  expect_unchanged(
      "graph \"\" (%x: f32[2], %lo: f32[]) {\n  %r = Relu(%x)\n  %y = Clip(%r, %lo)\n  return %y\n}\n",
      {"clip_merge"});
}

}  // namespace
}  // namespace hone::optimize::testing
