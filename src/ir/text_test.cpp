#include "ir/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "hone/error.h"
#include "ir/verify.h"

namespace hone::ir {
namespace {

std::string reprint(const std::string& text) {
  const auto g = parse(text);
  EXPECT_EQ(verify(*g), std::vector<std::string>{});
  return print(*g);
}

TEST(IrText, RoundTripsEveryConstruct) {
  const std::string text = R"(graph "every thing" (%x: f32[N,3,floordiv(H+1,2)], %"odd name", %c: bool[]) {
  const %w: f32[2,2] = {1, -0.5, 1e-10, inf}
  const %i: i64[3] = {-9223372036854775808, 0, 9223372036854775807}
  const %h: f16[3] = {1.5, nan, 0x7e01}
  const %u4: u4[3] = {1, 15, 0}
  const %none: f32[0,4] = {}
  %y: f32[N,64], _, %z = Conv(%x, _, %w) {group = 1, name = "a\"b\n", pads = [1, 1], scale = 1.0, t = f32[2] {0.1, nan}} "layer/Conv:0" sources ["a", "b"] passes ["fold"]
  %q = com.microsoft::"strange op"(%"odd name", %i, %h, %u4, %none) {e = [], f = floats [], fs = [1.0, -0.0, nan], g = graphs [], s = strings [], ss = ["", "x"]}
  %r: f32[?] = If(%c; %y, %z) {else_branch = graph "e" () captures (%a: f32[?], %b) {
      return %b
    }, then_branch = graph "t" () captures (%a, %b) {
      %k = Add(%a, %b)
      return %k
    }} "if"
  %f = hone::Fused(%r, %y) "f" anchor 1 body graph "" (%0: f32[?], %1: f32[?]) {
      %2 = Relu(%0)
      %3 = Add(%2, %1)
      return %3
    }
  return %f, %q
}
)";
  EXPECT_EQ(reprint(text), text);
  EXPECT_EQ(reprint(reprint(text)), text);
}

TEST(IrText, NamesThatLookLikeSyntaxAreQuoted) {
  Graph g;
  const ValueId a = g.add_input("tail:", {DType::kF32, Dims{1}});
  const ValueId b = g.add_input("_", {DType::kF32, Dims{1}});
  const ValueId c = g.add_input("a//b:0", {DType::kF32, Dims{1}});
  Node n;
  n.op = "Sum";
  n.inputs = {a, b, c};
  n.outputs = {g.add_value("bytes\xff\x01", {})};
  g.add_node(std::move(n));
  g.add_output(g.nodes().back()->outputs[0]);
  const std::string text = print(g);
  EXPECT_NE(text.find("%\"tail:\": f32[1]"), std::string::npos) << text;
  EXPECT_EQ(reprint(text), text);
}

TEST(IrText, EveryElementTypeKeepsItsBits) {
  for (int d = 1; d <= 26; ++d) {
    const auto t = static_cast<DType>(d);
    if (t == DType::kString || t == DType::kBool) continue;
    Tensor data(t, {64});
    for (int64_t i = 0; i < data.nbytes(); ++i) data.data<uint8_t>()[i] = static_cast<uint8_t>(i * 37 + d);
    Graph g;
    const ValueId id = g.add_constant("w", data);
    g.add_output(id);
    PrintOptions all;
    all.inline_bytes = 1 << 20;
    const auto back = parse(print(g, all));
    const Tensor& read = *back->value(back->find("w")).data;
    ASSERT_EQ(read.dtype(), t);
    EXPECT_EQ(std::memcmp(read.raw(), data.raw(), static_cast<size_t>(data.nbytes())), 0) << dtype_name(t);
  }
}

TEST(IrText, LargeConstantsGoThroughTheCaller) {
  Graph g;
  g.add_output(g.add_constant("w", Tensor::zeros(DType::kF32, {1000})));
  EXPECT_NE(print(g).find("const %w: f32[1000] = @?"), std::string::npos);
  PrintOptions options;
  options.external = [](const Value& v) {
    EXPECT_EQ(v.name, "w");
    return 7;
  };
  const std::string text = print(g, options);
  EXPECT_NE(text.find("= @7"), std::string::npos);
  ParseOptions source;
  source.external = [](int number, DType t, const Shape& shape) {
    EXPECT_EQ(number, 7);
    return Tensor::zeros(t, shape);
  };
  EXPECT_EQ(print(*parse(text, source), options), text);
  source.external = [](int, DType, const Shape&) { return Tensor::zeros(DType::kF32, {3}); };
  EXPECT_THROW(parse(text, source), Error);
  EXPECT_THROW(parse(text), Error);
}

struct Bad {
  const char* text;
  const char* message;
};

TEST(IrText, MalformedTextIsRefusedWithLineAndColumn) {
  const Bad cases[] = {
      {"", "'graph' is expected"},
      {"graph () { return %x }", "line 1, column 21: value %x is not defined here"},
      {"graph (%x, %x) { return }", "value %x is defined twice"},
      {"graph (%x) {\n  %y = Relu(%z)\n  return %y }", "line 2, column 15: value %z is not defined here"},
      {"graph (%x: f33[2]) { return }", "'f33' is no element type"},
      {"graph (%x: f32[2) { return }", "dimension"},
      {"graph () { const %w: f32[9999999999] = {1} return }", "more elements are declared than follow"},
      {"graph () { const %w: f32[4294967296,4294967296] = {1} return }", "overflows"},
      {"graph () { const %w: f32[-1] = {} return }", "negative dimension"},
      {"graph () { const %w: f32[2] = {1} return }", "',' is expected"},
      {"graph () { const %w: i8[1] = {128} return }", "not an element of type i8"},
      {"graph () { const %w: f16[1] = {0.1} return }", "not an element of type f16"},
      {"graph () { const %w: f32[1] = @0 return }", "no source of constants"},
      {"graph (%x) { %y = Relu(%x) {a = 1, a = 2} return }", "given twice"},
      {"graph (%x) { %y = F(%x) anchor 3 body graph () { return } return }", "no such anchor"},
      {"graph () { return } x", "text follows"},
      {"graph (%x) { %y = Relu(%x) \"unterminated", "a quoted string is expected"},
  };
  for (const Bad& bad : cases) {
    try {
      parse(bad.text);
      ADD_FAILURE() << bad.text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidModel);
      EXPECT_NE(std::string(e.what()).find(bad.message), std::string::npos) << bad.text << "\n" << e.what();
    }
  }
}

TEST(IrText, DeepNestingIsRefusedNotOverflowed) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "graph () { %x = If() {b = ";
  EXPECT_THROW(parse(text), Error);
  EXPECT_THROW(parse("graph (%x: f32[" + std::string(100000, '(') + "]) { return }"), Error);
}

TEST(IrText, EveryPrefixAndEveryFlippedBitGivesAnErrorOrAGraph) {
  const std::string text = R"(graph "g" (%x: f32[N,2]) {
  const %w: i64[2] = {3, -4}
  %y: f32[floordiv(N,2)] = d::Conv(%x, %w) {p = [1, 1], s = "v", f = 1.5} "n" sources ["a"]
  return %y
}
)";
  for (size_t n = 0; n + 1 < text.size(); ++n) {
    try {
      parse(text.substr(0, n));
    } catch (const Error&) {
    }
  }
  for (size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    try {
      const auto g = parse(flipped);
      EXPECT_EQ(verify(*g), std::vector<std::string>{});
      EXPECT_EQ(print(*parse(print(*g))), print(*g));
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace hone::ir
