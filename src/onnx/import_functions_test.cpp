#include <gmock/gmock.h>

#include "hone/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "onnx/import.h"
#include "onnx/testing.h"
#include "ops/interpreter.h"

namespace hone::onnx {
namespace {

using namespace test;
using testing::HasSubstr;

std::string message_of(const ModelText& m) {
  try {
    (void)import_text(m.model());
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidModel);
    return e.what();
  }
  return "no error";
}

double first(const ir::Model& m, float x = 2) {
  EXPECT_EQ(ir::verify(*m.graph), std::vector<std::string>{});
  const Tensor in = Tensor::of<float>(DType::kF32, {2, 3}, std::vector<float>(6, x));
  return ops::interpret(*m.graph, {in})[0].at(0);
}

TEST(Functions, AreInlinedAtEveryCall) {  // F11
  ModelText m = ModelText::simple(
      {node("F", {"x", "k"}, {"a"}, {}, "one", "f"), node("F", {"a", "k"}, {"y"}, {}, "two", "f")});
  m.initializers = {floats("k", {1}, {1})};
  m.functions = {function("f", "F", {"a", "k"}, {"r"},
                          {node("Mul", {"a", "a"}, {"t"}, {}, "mul"), node("Add", {"t", "k"}, {"r"})})};
  ImportReport report;
  const ir::Model model = import_text(m.model(), &report);
  EXPECT_EQ(first(model), 26);
  EXPECT_EQ(report.functions_inlined, 2);
  std::string names;
  for (const auto& n : model.graph->nodes()) names += n->name + " ";
  EXPECT_EQ(names, "one/mul one/Add two/mul two/Add ");
  EXPECT_THAT(ir::print(*model.graph), HasSubstr("%one/t"));
}

TEST(Functions, NestAndUseTheirOwnOpset) {
  ModelText m = ModelText::simple({node("Outer", {"x"}, {"y"}, {}, "", "f")});
  // Opset 11: Softmax flattens from axis 1.
  m.functions = {function("f", "Outer", {"p"}, {"q"},
                          {node("Neg", {"p"}, {"n"}), node("Inner", {"n"}, {"q"}, {}, "", "f")}),
                 function("f", "Inner", {"p"}, {"q"}, {node("Softmax", {"p"}, {"q"})}, 11)};
  m.inputs = {value("x", 1, {"1", "2", "2"})};
  const ir::Model model = import_text(m.model());
  EXPECT_EQ(ops::interpret(*model.graph, {Tensor::zeros(DType::kF32, {1, 2, 2})})[0].at(0), 0.25);
}

TEST(Functions, AttributesAreReferredToWithDefaults) {
  ModelText m = ModelText::simple({node("F", {"x"}, {"y"}, {attr_f("slope", 0.5f)}, "", "f")});
  const Strings body{node("LeakyRelu", {"p"}, {"t"}, {attr_ref("alpha", "slope", 1)}),
                     node("Constant", {}, {"c"}, {attr_ref("value_float", "plus", 1)}),
                     node("Add", {"t", "c"}, {"q"})};
  m.functions = {function("f", "F", {"p"}, {"q"}, body, 17, {"slope"}, {attr_f("plus", 100)})};
  EXPECT_EQ(first(import_text(m.model()), -2), 99);
  m.nodes = {node("F", {"x"}, {"y"}, {attr_f("slope", 0.5f), attr_f("plus", 1)}, "", "f")};
  EXPECT_EQ(first(import_text(m.model()), -2), 0);
  m.nodes = {
      node("F", {"x"}, {"y"}, {}, "", "f")};  // neither given nor with a default: LeakyRelu's own, 0.01
  EXPECT_NEAR(first(import_text(m.model()), -2), 99.98, 1e-5);
  m.nodes = {node("F", {"x"}, {"y"}, {attr_f("unknown", 1)}, "", "f")};
  EXPECT_THAT(message_of(m), HasSubstr("unknown attribute 'unknown' of a function"));
  m.nodes = {node("LeakyRelu", {"x"}, {"y"}, {attr_ref("alpha", "slope", 1)})};
  EXPECT_THAT(message_of(m), HasSubstr("outside of one"));
}

TEST(Functions, OddInterfaces) {
  // An absent optional input; an output that is an input; an output used twice; a result that the caller does
  // not take.
  ModelText m = ModelText::simple(
      {node("F", {"x", ""}, {"a", "b", "", "d"}, {}, "", "f"), node("Sum", {"a", "b", "d"}, {"y"})});
  m.functions = {function("f", "F", {"p", "q"}, {"p", "r", "s", "r"},
                          {node("Clip", {"p", "q"}, {"r"}), node("Neg", {"p"}, {"s"})})};
  EXPECT_EQ(first(import_text(m.model())), 6);
  m.nodes = {node("F", {"x", "x", "x"}, {"y"}, {}, "", "f")};
  EXPECT_THAT(message_of(m), HasSubstr("the call has 3 inputs and 1 outputs, the function 2 and 4"));
  m.nodes = {node("F", {"x"}, {"y"}, {}, "", "f")};
  m.functions = {function("f", "F", {"p"}, {"q"}, {node("Neg", {"p"}, {"s"})})};
  EXPECT_THAT(message_of(m), HasSubstr("output 'q' of the function is not defined"));
  m.functions = {function("f", "F", {"p"}, {"q"}, {node("Add", {"p", "x"}, {"q"})})};
  EXPECT_THAT(message_of(m), HasSubstr("input 'x' is not defined")) << "a body sees its own names only";
  m.functions = {function("f", "F", {"p"}, {"q"}, {node("Neg", {"p"}, {"q"})}),
                 function("f", "F", {"p"}, {"q"}, {node("Abs", {"p"}, {"q"})})};
  EXPECT_THAT(message_of(m), HasSubstr("the function is defined twice"));
}

TEST(Functions, SubgraphsInBodiesCaptureTheBodysValues) {
  GraphText yes;
  yes.nodes = {node("Add", {"t", "p"}, {"r"})};
  yes.outputs = {bytes_field(1, "r")};
  ModelText m = ModelText::simple({node("F", {"x", "c"}, {"y"}, {}, "call", "f")});
  m.inputs.push_back(value("c", 9, {}));
  m.functions = {function("f", "F", {"p", "cond"}, {"q"},
                          {node("Neg", {"p"}, {"t"}),
                           node("If", {"cond"}, {"q"},
                                {attr_g("then_branch", yes.bytes()), attr_g("else_branch", yes.bytes())})})};
  const ir::Model model = import_text(m.model());
  EXPECT_EQ(ir::verify(*model.graph), std::vector<std::string>{});
  EXPECT_THAT(ir::print(*model.graph), HasSubstr("If(%c; %call/t, %x)"));
}

TEST(Functions, RecursionIsRefusedAndTheCyclePrinted) {  // S05
  ModelText m = ModelText::simple({node("A", {"x"}, {"y"}, {}, "", "f")});
  m.functions = {function("f", "A", {"p"}, {"q"}, {node("A", {"p"}, {"q"}, {}, "", "f")})};
  EXPECT_THAT(message_of(m), HasSubstr("functions call each other in a cycle: f::A -> f::A"));
  m.functions = {function("f", "A", {"p"}, {"q"}, {node("B", {"p"}, {"q"}, {}, "", "f")}),
                 function("f", "B", {"p"}, {"q"}, {node("A", {"p"}, {"q"}, {}, "", "f")})};
  EXPECT_THAT(message_of(m), HasSubstr("f::A -> f::B -> f::A"));
  GraphText branch;
  branch.nodes = {node("A", {"p"}, {"r"}, {}, "", "f")};
  branch.outputs = {bytes_field(1, "r")};
  m.functions = {
      function("f", "A", {"p"}, {"q"},
               {node("If", {"p"}, {"q"},
                     {attr_g("then_branch", branch.bytes()), attr_g("else_branch", branch.bytes())})})};
  EXPECT_THAT(message_of(m), HasSubstr("f::A -> f::A")) << "hidden in a branch";
}

TEST(Functions, BlowingUpIsABudgetError) {
  // Each function calls the next twice: 2^40 nodes.
  ModelText m = ModelText::simple({node("F0", {"x"}, {"y"}, {}, "", "f")});
  for (int i = 0; i < 40; ++i) {
    const std::string next = "F" + std::to_string(i + 1);
    m.functions.push_back(
        function("f", "F" + std::to_string(i), {"p"}, {"q"},
                 {node(next, {"p"}, {"t"}, {}, "", "f"), node(next, {"t"}, {"q"}, {}, "", "f")}));
  }
  m.functions.push_back(function("f", "F40", {"p"}, {"q"}, {node("Neg", {"p"}, {"q"})}));
  ImportOptions options;
  options.max_nodes = 10000;
  try {
    (void)import_text(m.model(), nullptr, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("more than 10000 nodes once functions are inlined"));
  }
  // A long chain.
  m = ModelText::simple({node("G0", {"x"}, {"y"}, {}, "", "f")});
  for (int i = 0; i < 20000; ++i) {
    m.functions.push_back(function("f", "G" + std::to_string(i), {"p"}, {"q"},
                                   {node("G" + std::to_string(i + 1), {"p"}, {"q"}, {}, "", "f")}));
  }
  m.functions.push_back(function("f", "G20000", {"p"}, {"q"}, {node("Neg", {"p"}, {"q"})}));
  EXPECT_THAT(message_of(m), HasSubstr("function calls nest deeper than 64"));
}

}  // namespace
}  // namespace hone::onnx
