// Interpreter and element type conversion.
#include "ops/interpreter.h"

#include <gmock/gmock.h>

#include "support/op_expect.h"

namespace hone::ops {
namespace {

using ::testing::HasSubstr;
using namespace testing;

TEST(Convert, RoundsOnceAndSaturates) {
  expect_values(convert(f32({4}, {1.00390625F, 1.01171875F, 65520.0F, NAN}), DType::kBF16),
                {1.0, 1.015625, 65536, NAN});
  expect_values(convert(f32({4}, {65519.0F, 65520.0F, 1e-8F, -0.5F}), DType::kF16),
                {65504, INFINITY, 0, -0.5});
  // Through f32 this would round twice: 1 + 2^-11 + 2^-40 lies above the tie of f16, but f32 drops the last
  // bit.
  expect_values(convert(f64({1}, {1 + 0x1p-11 + 0x1p-40}), DType::kF16), {1 + 0x1p-10});
  expect_values(convert(f32({3}, {500, -INFINITY, 0.0009F}), DType::kF8E4M3FN), {448, -448, 0});
  expect_values(convert(f32({5}, {300, -3.7F, NAN, 2.9F, -1}), DType::kU8), {255, 0, 0, 2, 0});
  expect_values(convert(f32({4}, {9, -9, 3.9F, -1}), DType::kI4), {7, -8, 3, -1});
  expect_values(convert(i64({3}, {-1, 256, 5}), DType::kU8), {255, 0, 5});
  expect_values(convert(f32({3}, {0, -0.0F, 0.1F}), DType::kBool), {0, 0, 1});
  expect_values(convert(i64({2}, {3, 7}), DType::kF64), {3, 7});
}

TEST(Convert, SameTypeSharesBytes) {
  const Tensor t = f32({2}, {1, 2});
  EXPECT_EQ(convert(t, DType::kF32).raw(), t.raw());
}

TEST(Interpreter, NarrowFloatsComputeWideAndRoundAtTheNode) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF16, Dims{2}});
  const auto square = g.add_node("Mul", {x, x})->outputs[0];
  const auto back = g.add_node("Sqrt", {square})->outputs[0];
  g.add_output(back);
  infer_graph(g);
  const Tensor in = convert(f32({2}, {300, 3}), DType::kF16);
  const Tensor y = interpret(g, {in})[0];
  EXPECT_EQ(y.dtype(), DType::kF16);
  expect_values(y, {INFINITY, 3});
  InterpretOptions oracle;
  oracle.oracle = true;
  const Tensor o = interpret(g, {in}, oracle)[0];
  EXPECT_EQ(o.dtype(), DType::kF64);
  expect_values(o, {300, 3});
}

TEST(Interpreter, OracleTakesAndGivesDoubles) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, Dims{1}});
  const auto c = g.add_constant("c", f32({1}, {3}));
  g.add_output(g.add_node("Div", {x, c})->outputs[0]);
  infer_graph(g);
  InterpretOptions oracle;
  oracle.oracle = true;
  EXPECT_EQ(interpret(g, {f32({1}, {1})}, oracle)[0].at(0), 1.0 / 3.0);
  EXPECT_EQ(interpret(g, {f64({1}, {1})}, oracle)[0].at(0), 1.0 / 3.0);
  EXPECT_EQ(interpret(g, {f32({1}, {1})})[0].at(0), static_cast<double>(1.0F / 3.0F));
}

TEST(Interpreter, OutputsMayBeInputsAndConstants) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, Dims{1}});
  g.add_output(x);
  g.add_output(g.add_constant("c", f32({1}, {3})));
  expect_values(interpret(g, {f32({1}, {7})})[0], {7});
  expect_values(interpret(g, {f32({1}, {7})})[1], {3});
}

TEST(Interpreter, ObserveSeesEveryNode) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, Dims{1}});
  g.add_output(g.add_node("Neg", {g.add_node("Abs", {x}, {}, "", nullptr, "first")->outputs[0]}, {}, "",
                          nullptr, "second")
                   ->outputs[0]);
  infer_graph(g);
  std::vector<std::string> seen;
  InterpretOptions options;
  options.observe = [&](const ir::Node& n, const std::vector<Tensor>& out) {
    seen.push_back(n.name + "=" + std::to_string(static_cast<int>(out[0].at(0))));
  };
  interpret(g, {f32({1}, {-2})}, options);
  EXPECT_EQ(seen, (std::vector<std::string>{"first=2", "second=-2"}));
}

TEST(Interpreter, ErrorsNameTheNode) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, Dims{Dim::symbol("N")}});
  const auto y = g.add_input("y", {DType::kF32, Dims{Dim::symbol("M")}});
  g.add_output(g.add_node("MatMul", {x, y}, {}, "", nullptr, "product")->outputs[0]);
  infer_graph(g);
  try {
    interpret(g, {f32({2}, {1, 2}), f32({3}, {1, 2, 3})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidData);
    EXPECT_EQ(e.context().node, "product");
    EXPECT_EQ(e.context().op, "ai.onnx::MatMul");
  }
}

TEST(Interpreter, RefusesInputsThatDoNotMatch) {
  ir::Graph g;
  g.add_output(g.add_node("Relu", {g.add_input("x", {DType::kF32, Dims{2, Dim::symbol("N")}})})->outputs[0]);
  infer_graph(g);
  const auto code = [&](const std::vector<Tensor>& in) {
    try {
      interpret(g, in);
    } catch (const Error& e) {
      return e.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code({}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({f64({2, 1}, {1, 2})}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({f32({3, 1}, {1, 2, 3})}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({f32({2}, {1, 2})}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({Tensor()}), ErrorCode::kInvalidArgument);
}

TEST(Interpreter, UnknownOperatorsAreUnsupported) {
  ir::Graph g;
  const auto y =
      g.add_node("Frobnicate", {g.add_input("x", {DType::kF32, Dims{1}})}, {}, "com.example", nullptr, "f")
          ->outputs[0];
  g.value(y).type = {DType::kF32, Dims{1}};
  g.add_output(y);
  try {
    interpret(g, {f32({1}, {1})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(e.what(), HasSubstr("com.example::Frobnicate"));
  }
}

TEST(Interpreter, FusedLayersRunThroughTheirBody) {
  auto body = std::make_shared<ir::Graph>();
  const auto a = body->add_input("a", {DType::kF32, Dims{2}});
  body->add_output(body->add_node("Relu", {body->add_node("Neg", {a})->outputs[0]})->outputs[0]);
  ir::Graph g;
  ir::Node n;
  n.domain = ir::kHoneDomain;
  n.op = "Fused";
  n.inputs = {g.add_input("x", {DType::kF32, Dims{2}})};
  n.outputs = {g.add_value("y", {})};
  n.body = body;
  g.add_output(g.add_node(std::move(n))->outputs[0]);
  infer_graph(g);
  EXPECT_EQ(g.value(g.outputs()[0]).type.text(), "f32[2]");
  expect_values(interpret(g, {f32({2}, {-3, 4})})[0], {3, 0});
}

TEST(Interpreter, SubgraphsSeeTheirCaptures) {
  const auto branch = [](const char* op) {
    auto g = std::make_shared<ir::Graph>();
    const auto a = g->add_value("a", {DType::kF32, Dims{1}}), b = g->add_value("b", {DType::kF32, Dims{1}});
    g->captures = {a, b};
    g->add_output(g->add_node(op, {a, b})->outputs[0]);
    infer_graph(*g);
    return g;
  };
  ir::Graph g;
  ir::Node n;
  n.op = "If";
  n.inputs = {g.add_input("c", {DType::kBool, Dims{}}), g.add_input("p", {DType::kF32, Dims{1}}),
              g.add_input("q", {DType::kF32, Dims{1}})};
  n.num_captures = 2;
  n.outputs = {g.add_value("y", {DType::kF32, Dims{1}})};
  n.attrs["then_branch"] = branch("Add");
  n.attrs["else_branch"] = branch("Sub");
  g.add_output(g.add_node(std::move(n))->outputs[0]);
  expect_values(interpret(g, {boolean({}, {1}), f32({1}, {5}), f32({1}, {3})})[0], {8});
  expect_values(interpret(g, {boolean({}, {0}), f32({1}, {5}), f32({1}, {3})})[0], {2});
}

TEST(RunOp, PlacesOutputsWhereTheCallerWants) {
  const OpDef* relu = find_op("", "Relu");
  const Tensor x = convert(f32({2}, {-1, 2}), DType::kF16);
  std::vector<uint16_t> memory(2, 0xffff);
  const auto place = [&](size_t, DType t, const Shape& s) { return Tensor::view(t, s, memory.data()); };
  const auto out = run_op(*relu, {}, {&x}, {DType::kF16}, false, nullptr, place);
  EXPECT_EQ(out[0].raw(), memory.data());
  EXPECT_EQ(memory[1], 0x4000);
  // Identity shares its input's bytes; with a place they are copied there.
  const Tensor y = f32({1}, {7});
  float slot = 0;
  const auto one = [&](size_t, DType t, const Shape& s) { return Tensor::view(t, s, &slot); };
  run_op(*find_op("", "Identity"), {}, {&y}, {DType::kF32}, false, nullptr, one);
  EXPECT_EQ(slot, 7);
}

}  // namespace
}  // namespace hone::ops
