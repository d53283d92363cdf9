// Inference with symbols: shapes computed by shape arithmetic come out as formulas.
#include "ir/text.h"
#include "support/op_run.h"

namespace hone {
namespace {

/// Infers a graph given as text and returns the type of its first output.
std::string inferred(const std::string& body, const std::string& inputs = "%x: f32[N,S,64]") {
  const auto g = ir::parse("graph \"g\" (" + inputs + ") {\n" + body + "  return %y\n}\n");
  ops::infer_graph(*g);
  return g->value(g->outputs()[0]).type.text();
}

TEST(Symbolic, ReshapeTargets) {
  EXPECT_EQ(inferred("const %t: i64[4] = {0, -1, 8, 8}\n%y = Reshape(%x, %t)\n"), "f32[N,S,8,8]");
  EXPECT_EQ(inferred("const %t: i64[2] = {-1, 64}\n%y = Reshape(%x, %t)\n"), "f32[N*S,64]");
  EXPECT_EQ(inferred("const %t: i64[3] = {0, 0, -1}\n%y = Reshape(%x, %t)\n", "%x: f32[N,S,8,8]"),
            "f32[N,S,64]");
}

TEST(Symbolic, ReshapeFromShape) {
  // [shape(x)[0], shape(x)[1], 4, -1], as exporters write it.
  const std::string dims =
      "const %i0: i64[] = {0}\nconst %i1: i64[] = {1}\nconst %ax: i64[1] = {0}\nconst %four: i64[1] = "
      "{4}\nconst %rest: i64[1] = {-1}\n"
      "%s = Shape(%x)\n%n0 = Gather(%s, %i0)\n%n1 = Gather(%s, %i1)\n%u0 = Unsqueeze(%n0, %ax)\n%u1 = "
      "Unsqueeze(%n1, %ax)\n";
  EXPECT_EQ(inferred(dims + "%t = Concat(%u0, %u1, %four, %rest) {axis = 0}\n%y = Reshape(%x, %t)\n"),
            "f32[N,S,4,16]");
  // Products and sums of dimensions.
  EXPECT_EQ(inferred(dims + "%m = Mul(%u0, %u1)\n%t = Concat(%m, %rest) {axis = 0}\n%y = Reshape(%x, %t)\n"),
            "f32[N*S,64]");
  EXPECT_EQ(inferred(dims + "%p = Add(%u1, %four)\n%y = ConstantOfShape(%p)\n"), "f32[S+4]");
  EXPECT_EQ(inferred(dims + "%d = Div(%u1, %four)\n%y = ConstantOfShape(%d)\n"), "f32[floordiv(S,4)]");
}

TEST(Symbolic, Slices) {
  const auto slice = [](const char* s, const char* e) {
    return inferred(std::string("const %s: i64[1] = {") + s + "}\nconst %e: i64[1] = {" + e +
                    "}\nconst %a: i64[1] = {1}\n%y = Slice(%x, %s, %e, %a)\n");
  };
  EXPECT_EQ(slice("0", "9223372036854775807"), "f32[N,S,64]");
  EXPECT_EQ(slice("0", "-1"), "f32[N,max(0,S-1),64]");
  EXPECT_EQ(slice("1", "9223372036854775807"), "f32[N,max(0,S-1),64]");
  EXPECT_EQ(slice("-3", "9223372036854775807"), "f32[N,min(3,S),64]");
  EXPECT_EQ(slice("0", "5"), "f32[N,min(5,S),64]");
  // A buffer cut to the length of the input, as position embeddings are.
  EXPECT_EQ(inferred("const %i1: i64[1] = {1}\nconst %z: i64[1] = {0}\nconst %one: i64[1] = {1}\n%s = "
                     "Shape(%x)\n%n = Gather(%s, %i1)\n"
                     "%y = Slice(%p, %z, %n, %one)\n",
                     "%x: f32[N,S,64], %p: i64[1,512]"),
            "i64[1,min(512,S)]");
}

TEST(Symbolic, ExpandRangeConcat) {
  EXPECT_EQ(inferred("const %i1: i64[] = {1}\nconst %zero: i64[] = {0}\nconst %one: i64[] = {1}\n%s = "
                     "Shape(%x)\n%n = Gather(%s, %i1)\n%y = Range(%zero, %n, %one)\n"),
            "i64[S]");
  EXPECT_EQ(inferred("%s = Shape(%x)\n%y = Expand(%c, %s)\n", "%x: f32[N,S,64], %c: f32[1,1]"),
            "f32[N,S,64]");
  EXPECT_EQ(inferred("%y = Concat(%x, %p) {axis = 1}\n", "%x: f32[N,S,64], %p: f32[N,T,64]"),
            "f32[N,S+T,64]");
  // Expand's target from a Where over -1 markers.
  EXPECT_EQ(inferred("const %w: i64[3] = {-1, -1, 64}\nconst %m: i64[1] = {-1}\n%s = Shape(%x)\n%q = "
                     "Equal(%w, %m)\n%t = Where(%q, %s, %w)\n%y = Expand(%c, %t)\n",
                     "%x: f32[N,S,64], %c: f32[1,1]"),
            "f32[N,S,64]");
}

TEST(Symbolic, SplitTransposeFlattenPad) {
  EXPECT_EQ(inferred("%y, %z = Split(%x) {axis = 2, num_outputs = 2}\n"), "f32[N,S,32]");
  EXPECT_EQ(inferred("%y = Transpose(%x) {perm = [2, 0, 1]}\n"), "f32[64,N,S]");
  EXPECT_EQ(inferred("%y = Flatten(%x) {axis = 2}\n"), "f32[N*S,64]");
  EXPECT_EQ(inferred("const %p: i64[6] = {0, 1, 0, 0, 2, 0}\n%y = Pad(%x, %p)\n"), "f32[N,S+3,64]");
  EXPECT_EQ(inferred("const %s: f32[4] = {1, 1, 2, 0.5}\n%y = Resize(%x, _, %s)\n", "%x: f32[N,3,H,W]"),
            "f32[N,3,2*H,floordiv(W,2)]");
}

TEST(Symbolic, PadsAsExportersReverseThem) {
  // torch's pads [left, right] of the last axis: zeros appended, paired, reversed, transposed.
  EXPECT_EQ(inferred("const %p: i64[2] = {1, 2}\nconst %four: i64[1] = {4}\nconst %two: i64[2] = {-1, "
                     "2}\nconst %flat: i64[1] = {-1}\nconst %z: i64[1] = {0}\n"
                     "const %m: i64[1] = {-1}\nconst %end: i64[1] = {-9223372036854775807}\n"
                     "%c = ConstantOfShape(%four) {value = i64[1] {0}}\n%all = Concat(%p, %c) {axis = 0}\n%r "
                     "= Reshape(%all, %two)\n%s = Slice(%r, %m, %end, %z, %m)\n"
                     "%t = Transpose(%s) {perm = [1, 0]}\n%f = Reshape(%t, %flat)\n%pads = Cast(%f) {to = "
                     "7}\n%y = Pad(%x, %pads)\n"),
            "f32[N,S,67]");
}

TEST(Symbolic, UnknownsBecomeFreshSymbols) {
  EXPECT_EQ(inferred("%y = Reshape(%x, %t)\n", "%x: f32[N,S,64], %t: i64[2]").substr(0, 4), "f32[");
  EXPECT_EQ(inferred("%y = NonZero(%x)\n").substr(0, 6), "i64[3,");
}

}  // namespace
}  // namespace hone
