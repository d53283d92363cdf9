#include "onnx/import.h"

#include <gmock/gmock.h>

#include <fstream>

#include <unistd.h>

#include "hone/error.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "onnx/testing.h"
#include "ops/interpreter.h"

namespace hone::onnx {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;

std::string nodes_text(const ir::Graph& g) {
  ir::PrintOptions o;
  o.types = false;
  return ir::print(g, o);
}

void expect_refused(const ModelText& m, const std::string& message, ErrorCode code = ErrorCode::kInvalidModel,
                    const ImportOptions& options = {}) {
  ImportReport report;
  try {
    (void)import_text(m.model(), &report, options);
    ADD_FAILURE() << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_EQ(e.context().stage, "import");
    EXPECT_THAT(e.what(), HasSubstr(message));
    EXPECT_EQ(report.errors() == 1 ? report.issues.back().tensor : "", e.context().tensor);
    for (const Issue& i : report.issues) {
      EXPECT_TRUE(i.severity != "error" || !i.remedy.empty()) << i.message;
    }
  }
}

bool has_issue(const ImportReport& report, const std::string& severity, const std::string& part) {
  for (const Issue& i : report.issues) {
    if (i.severity == severity && (i.message + " " + i.tensor).find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(Import, ASmallModel) {
  ModelText m = ModelText::simple({node("Add", {"x", "w"}, {"a"}, {}, "first"), node("Relu", {"a"}, {"y"})});
  m.initializers = {floats("w", {3}, {1, 2, 3})};
  m.inputs = {value("x", 1, {"N", "3"})};
  ImportReport report;
  const ir::Model model = import_text(m.model(), &report);
  EXPECT_EQ(ir::print(*model.graph), R"(graph "g" (%x: f32[N,3]) {
  const %w: f32[3] = {1, 2, 3}
  %a: f32[N,3] = Add(%x, %w) "first" sources ["first"]
  %y: f32[N,3] = Relu(%a) "Relu" sources ["Relu"]
  return %y
}
)");
  EXPECT_EQ(model.opsets.at(""), 17);
  EXPECT_EQ(report.nodes, 2);
  EXPECT_EQ(report.constants, 1);
  EXPECT_EQ(report.constant_bytes, 12);
  EXPECT_TRUE(report.issues.empty());
}

TEST(Import, NodesOutOfOrderAreSortedAndReported) {  // F05
  ModelText m = ModelText::simple({node("Relu", {"a"}, {"y"}), node("Neg", {"x"}, {"a"})});
  ImportReport report;
  const ir::Model model = import_text(m.model(), &report);
  EXPECT_EQ(model.graph->nodes().front()->op, "Neg");
  EXPECT_TRUE(has_issue(report, "warning", "not in execution order"));
  EXPECT_EQ(
      ops::interpret(*model.graph, {Tensor::of<float>(DType::kF32, {2, 3}, std::vector<float>(6, -3))})[0].at(
          0),
      3);
}

TEST(Import, CyclesAreNamed) {  // F05
  expect_refused(ModelText::simple({node("Add", {"x", "b"}, {"a"}, {}, "n1"),
                                    node("Relu", {"a"}, {"b"}, {}, "n2"), node("Abs", {"b"}, {"y"})}),
                 "nodes form a cycle: 'n1' -> 'n2' -> 'n1'");
}

TEST(Import, DuplicateNamesAreErrors) {  // F03
  ModelText m = ModelText::simple({node("Add", {"x", "k"}, {"y"})});
  m.initializers = {floats("k", {1}, {1}), floats("k", {1}, {2})};
  expect_refused(m, "duplicate initializer");
  expect_refused(
      ModelText::simple({node("Relu", {"x"}, {"y"}, {}, "n1"), node("Abs", {"x"}, {"y"}, {}, "n2")}),
      "node 'n2' op ai.onnx::Abs opset 17: output 'y' is the name of another value already");
  expect_refused(ModelText::simple({node("Relu", {"x"}, {"x"}), node("Abs", {"x"}, {"y"})}),
                 "output 'x' is the name of another value");
  expect_refused(ModelText::simple({node("Split", {"x"}, {"y", "y"})}),
                 "output 'y' is the name of another value");
  m = ModelText::simple({node("Relu", {"x"}, {"y"})});
  m.inputs.push_back(m.inputs[0]);
  expect_refused(m, "two graph inputs have the same name");
}

TEST(Import, InitializersThatAreInputsBecomeConstantsUnlessAsked) {  // A15
  ModelText m = ModelText::simple({node("Add", {"x", "w"}, {"y"})});
  m.ir = 3;
  m.inputs.push_back(value("w", 1, {"3"}));
  m.initializers = {floats("w", {3}, {1, 2, 3})};
  ImportReport report;
  ir::Model model = import_text(m.model(), &report);
  EXPECT_EQ(model.graph->inputs().size(), 1u);
  EXPECT_TRUE(model.graph->value(model.graph->find("w")).is_const());
  EXPECT_TRUE(has_issue(report, "note", "taken as a constant w"));
  ImportOptions options;
  options.override_initializers = true;
  report = {};
  model = import_text(m.model(), &report, options);
  EXPECT_EQ(model.graph->inputs().size(), 2u);
  EXPECT_FALSE(model.graph->value(model.graph->find("w")).is_const());
  EXPECT_TRUE(has_issue(report, "warning", "must be fed"));
  m.inputs[1] = value("w", 1, {"4"});
  expect_refused(m, "the initializer is f32[3], declared as input f32[4]");
}

TEST(Import, EmptyNamesAreAbsentInputs) {  // F01
  ModelText m = ModelText::simple(
      {node("Clip", {"x", "", "hi"}, {"y"}), node("Split", {"x", ""}, {"s", "t"}, {attr("axis", 0)})});
  m.initializers = {floats("hi", {}, {1})};
  m.opsets = {{"", 13}};
  const ir::Model model = import_text(m.model());
  EXPECT_THAT(nodes_text(*model.graph), HasSubstr("%y = Clip(%x, _, %hi)"));
  const auto out =
      ops::interpret(*model.graph, {Tensor::of<float>(DType::kF32, {2, 3}, {-9, 0, 5, -9, 0, 5})});
  EXPECT_EQ(out[0].at(0), -9);
  EXPECT_EQ(out[0].at(2), 1);
}

TEST(Import, EveryFormOfConstant) {
  ModelText m;
  m.opsets = {{"", 13}};
  std::string ints = attr_ints("value_ints", {4, 5});
  std::string fs = bytes_field(1, "value_floats") + int_field(20, 6);
  protozero::pbf_writer(fs).add_float(7, 0.5f);
  const std::string sparse = bytes_field(1, floats("", {1}, {9})) +
                             bytes_field(2, tensor<int64_t>("", 7, {1}, {2})) + int_field(3, 3);
  m.nodes = {node("Constant", {}, {"a"}, {attr_t("value", floats("", {2}, {1, 2}))}),
             node("Constant", {}, {"b"}, {attr_f("value_float", 1.5f)}),
             node("Constant", {}, {"c"}, {fs}),
             node("Constant", {}, {"d"}, {attr("value_int", 7)}),
             node("Constant", {}, {"e"}, {ints}),
             node("Constant", {}, {"f"},
                  {bytes_field(1, "sparse_value") + bytes_field(22, sparse) + int_field(20, 11)})};
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) m.outputs.push_back(bytes_field(1, name));
  const ir::Model model = import_text(m.model());
  EXPECT_EQ(model.graph->num_nodes(), 0u);
  EXPECT_THAT(ir::print(*model.graph),
              AllOf(HasSubstr("%a: f32[2] = {1, 2}"), HasSubstr("%b: f32[] = {1.5}"),
                    HasSubstr("%c: f32[1] = {0.5}"), HasSubstr("%d: i64[] = {7}"),
                    HasSubstr("%e: i64[2] = {4, 5}"), HasSubstr("%f: f32[3] = {0, 0, 9}")));
  m.nodes = {node("Constant", {}, {"a"}, {attr_s("value_string", "s")})};
  m.outputs = {bytes_field(1, "a")};
  expect_refused(m, "element type STRING", ErrorCode::kUnsupported);
  m.nodes = {node("Constant", {}, {"a"}, {attr("value_int", 1), attr("value_int", 2)})};
  expect_refused(m, "exactly one attribute");
  m.nodes = {node("Constant", {}, {"a"}, {attr_s("value_int", "1")})};
  expect_refused(m, "unknown or of the wrong type");
}

TEST(Import, OlderOpsetsAreUpgraded) {  // E01
  ModelText m = ModelText::simple({node("Softmax", {"x"}, {"y"})});
  m.inputs = {value("x", 1, {"1", "2", "2"})};
  const Tensor zeros = Tensor::zeros(DType::kF32, {1, 2, 2});
  m.opsets = {{"", 11}};
  EXPECT_EQ(ops::interpret(*import_text(m.model()).graph, {zeros})[0].at(0), 0.25);
  m.opsets = {{"", 13}};
  EXPECT_EQ(ops::interpret(*import_text(m.model()).graph, {zeros})[0].at(0), 0.5);
}

TEST(Import, EveryProblemOfEveryNodeIsReportedAtOnce) {
  ModelText m = ModelText::simple(
      {node("NoSuchOp", {"x"}, {"a"}, {}, "n1"), node("relu", {"x"}, {"b"}, {}, "n2"),
       node("Relu", {"x"}, {"c"}, {attr("alpha", 1)}, "n3"), node("Add", {"x"}, {"d"}, {}, "n4"),
       node("Gelu", {"x"}, {"e"}, {}, "n5"), node("ImageDecoder", {"x"}, {"f"}, {}, "n6"),
       node("Normalizer", {"x"}, {"g"}, {}, "n7", "ai.onnx.ml"),
       node("Mine", {"x"}, {"h"}, {}, "n8", "my.domain"), node("StringNormalizer", {"x"}, {"i"}, {}, "n9"),
       node("Relu", {"x"}, {"y"})});
  m.opsets = {{"", 17}, {"ai.onnx.ml", 3}, {"my.domain", 1}};
  ImportReport report;
  try {
    (void)import_text(m.model(), &report);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidModel);
    const std::string what = e.what();
    EXPECT_THAT(what, HasSubstr("9 problems:"));
    EXPECT_THAT(what,
                HasSubstr("node 'n1' op ai.onnx::NoSuchOp opset 17: there is no such operator (remedy: "));
    EXPECT_THAT(what, HasSubstr("node 'n2' op ai.onnx::relu opset 17: there is no such operator (remedy: "
                                "perhaps Relu is meant)"));
    EXPECT_THAT(what, HasSubstr("node 'n3' op ai.onnx::Relu opset 17: unknown attribute 'alpha'"));
    EXPECT_THAT(what, HasSubstr("node 'n4' op ai.onnx::Add opset 17: has 1 input, needs at least 2"));
    EXPECT_THAT(what, HasSubstr("node 'n5' op ai.onnx::Gelu opset 17: the operator exists from opset 20 on"));
    EXPECT_THAT(what, HasSubstr("node 'n6' op ai.onnx::ImageDecoder"));
    EXPECT_THAT(what, HasSubstr("node 'n7' op ai.onnx.ml::Normalizer opset 3: classical machine learning"));
    EXPECT_THAT(what, HasSubstr("node 'n8' op my.domain::Mine opset 1: no operator of domain my.domain"));
    EXPECT_THAT(what, HasSubstr("node 'n9' op ai.onnx::StringNormalizer"));
  }
  EXPECT_EQ(report.errors(), 9u);
  for (const Issue& i : report.issues) EXPECT_NE(i.remedy, "") << i.message;
}

TEST(Import, OneProblemFillsTheErrorsContext) {
  try {
    (void)import_text(ModelText::simple({node("Mine", {"x"}, {"y"}, {}, "n", "my.domain")}).model());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported) << "valid, but not implemented";
    EXPECT_EQ(e.context().node, "n");
    EXPECT_EQ(e.context().op, "my.domain::Mine");
    EXPECT_THAT(e.what(), HasSubstr("import: unsupported: node 'n' op my.domain::Mine: no operator"));
  }
}

TEST(Import, WithdrawnOperatorsAreErrors) {
  ModelText m = ModelText::simple({node("Upsample", {"x", "s"}, {"y"})});
  m.initializers = {floats("s", {2}, {2, 2})};
  m.opsets = {{"", 9}};
  EXPECT_NO_THROW(import_text(m.model()));
  m.opsets = {{"", 10}};
  expect_refused(m, "withdrawn since opset 10");
}

TEST(Import, VersionsOfFileAndOpset) {  // F07, S09
  ModelText m = ModelText::simple({node("Relu", {"x"}, {"y"})});
  m.ir = 99;
  ImportReport report;
  EXPECT_NO_THROW(import_text(m.model(), &report));
  EXPECT_TRUE(has_issue(report, "warning", "IR version 99 is newer"));
  m = ModelText::simple({node("Relu", {"x"}, {"y"})});
  m.opsets = {{"", 99}};
  expect_refused(m, "opset 99, the newest known is 28; operators it uses: Relu (known to version 14)",
                 ErrorCode::kUnsupported);
  m.opsets = {{"", 17}, {"ai.onnx", 18}};
  expect_refused(m, "imports domain ai.onnx twice");
  m.opsets = {};
  expect_refused(m, "opset_import is missing");
  m.opsets = {{"", 0}};
  expect_refused(m, "imports opset 0");
  m.opsets = {{"com.microsoft", 1}};
  expect_refused(m, "opset_import does not name the domain ai.onnx");
  m.opsets = {};
  m.ir = 2;
  report = {};
  m.nodes = {node("Relu", {"x"}, {"y"}, {attr_ints("consumed_inputs", {0})})};
  EXPECT_NO_THROW(import_text(m.model(), &report));
  EXPECT_TRUE(has_issue(report, "warning", "opset 1 is taken"));
  try {
    (void)import_text(int_field(1, 8));
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("the file holds no graph"));
  }
}

TEST(Import, MalformedNodesAreErrorsWithNodeAndField) {  // S09
  expect_refused(ModelText::simple({node("Relu", {"x"}, {}, {}, "n"), node("Relu", {"x"}, {"y"})}),
                 "node 'n' op ai.onnx::Relu opset 17: the node has no outputs");
  expect_refused(
      ModelText::simple({node("Constant", {}, {}, {attr("value_int", 1)}), node("Relu", {"x"}, {"y"})}),
      "no outputs");
  expect_refused(ModelText::simple({node("Softmax", {"x"}, {"y"}, {attr_s("axis", "1")})}),
                 "attribute 'axis' is string, must be int");
  expect_refused(ModelText::simple({node("Softmax", {"x"}, {"y"}, {attr("axis", 1), attr("axis", 0)})}),
                 "attribute 'axis' is given twice");
  expect_refused(ModelText::simple({node("Softmax", {"x"}, {"y"},
                                         {bytes_field(1, "axis") + bytes_field(4, "1") + int_field(20, 2)})}),
                 "says it is int but holds something else");
  expect_refused(ModelText::simple({node("Relu", {"nothing"}, {"y"})}), "input 'nothing' is not defined");
  expect_refused(ModelText::simple({node("Relu", {"x"}, {"z"})}), "a graph output is not defined");
  ModelText m = ModelText::simple({node("Relu", {"x"}, {"y"})});
  m.inputs = {value("x", 999, {"2"})};
  expect_refused(m, "unknown element type 999");
  m.inputs = {bytes_field(1, "x")};
  expect_refused(m, "a graph input has no element type");
  m.inputs = {value("x", 8, {"2"})};
  expect_refused(m, "element type STRING", ErrorCode::kUnsupported);
  m.inputs = {bytes_field(1, "x") + bytes_field(2, bytes_field(4, bytes_field(1, type(1, {}))))};
  expect_refused(m, "the input is a sequence", ErrorCode::kUnsupported);
}

TEST(Import, Dimensions) {
  ModelText m =
      ModelText::simple({node("Relu", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}), node("Relu", {"b"}, {"y"})});
  m.inputs = {value("x", 1, {"batch size", "-1", "", "0", "S"})};
  ImportReport report;
  const ir::Model model = import_text(m.model(), &report);
  EXPECT_EQ(model.graph->value(model.graph->find("x")).type.text(), "f32[\"batch size\",u0,u1,0,S]");
  EXPECT_TRUE(has_issue(report, "warning", "dimension -1 is negative"));
  // Elsewhere, expressions over the inputs' names are understood and other text says nothing.
  m = ModelText::simple({node("NonZero", {"x"}, {"y"})});
  m.inputs = {value("x", 1, {"N", "S"})};
  m.outputs = {value("y", 7, {"2", "2 * N + S"})};
  EXPECT_EQ(import_text(m.model()).graph->value(0).type.text(), "f32[N,S]");
  m.outputs = {value("y", 7, {"2", "weird ( text"})};
  EXPECT_NO_THROW(import_text(m.model()));
}

TEST(Import, DeclaredShapesThatContradictAreWarnings) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"2", "4"}, std::vector<std::string>{"6"}}) {
    ModelText m = ModelText::simple({node("Relu", {"x"}, {"y"}, {}, "n")});
    m.outputs = {value("y", 1, wrong)};
    ImportReport report;
    const auto g = import_text(m.model(), &report);
    EXPECT_EQ(g.graph->value(g.graph->outputs()[0]).type.text(), "f32[2,3]");
    EXPECT_TRUE(has_issue(report, "warning", "but is inferred as f32[2,3]"));
  }
}

TEST(Import, DeclaredElementTypesThatContradictAreErrors) {
  ModelText m = ModelText::simple({node("Relu", {"x"}, {"y"}, {}, "n")});
  m.outputs = {value("y", 7, {"2", "3"})};
  expect_refused(m, "node 'n' op ai.onnx::Relu opset 17: output 0 (Y) is i64 but input 0 (X) is f32");
}

// Shapes that inference must not trust: an error names the node, nothing is dereferenced.
TEST(Import, ShapesThatDoNotFitTheirOperatorAreErrors) {  // F17
  ModelText m = ModelText::simple({node("Conv", {"x", "w"}, {"y"}, {}, "n")});
  m.initializers = {floats("w", {}, {1})};
  m.inputs = {value("x", 1, {"1", "1", "4", "4"})};
  expect_refused(m, "node 'n' op ai.onnx::Conv opset 17: ");
  m.nodes = {node("Gemm", {"x", "w"}, {"y"}, {}, "n")};
  m.inputs = {value("x", 1, {"2", "3"})};
  expect_refused(m, "node 'n' op ai.onnx::Gemm opset 17: ");
  m.nodes = {node("Einsum", {"x"}, {"y"}, {attr_s("equation", "...i.j->ij")}, "n")};
  expect_refused(m, "node 'n' op ai.onnx::Einsum opset 17: ");
  m.nodes = {node("Transpose", {"x"}, {"y"}, {attr_ints("perm", {0, 0})}, "n")};
  expect_refused(m, "node 'n' op ai.onnx::Transpose opset 17: ");
  m.nodes = {node("Concat", {"x", "x"}, {"y"}, {attr("axis", 7)}, "n")};
  expect_refused(m, "axis 7 is outside [-2, 1]");
}

TEST(Import, NodeNamesAreMadeUniqueAndKept) {
  const ir::Model m =
      import_text(ModelText::simple({node("Relu", {"x"}, {"a"}, {}, "n"), node("Relu", {"a"}, {"b"}, {}, "n"),
                                     node("Abs", {"b"}, {"c"}), node("Abs", {"c"}, {"y"})})
                      .model());
  std::string names;
  for (const auto& n : m.graph->nodes()) names += n->name + " ";
  EXPECT_EQ(names, "n n_1 Abs Abs_1 ");
}

TEST(Import, SubgraphCapturesAreExplicit) {
  GraphText inner;  // captures a from outside, b through two levels; w is a constant and is not captured
  inner.nodes = {node("Add", {"a", "w"}, {"t"}), node("Add", {"t", "x"}, {"r"})};
  inner.outputs = {bytes_field(1, "r")};
  GraphText then_branch;
  then_branch.nodes = {node("If", {"c"}, {"q"},
                            {attr_g("then_branch", inner.bytes()), attr_g("else_branch",
                                                                          [] {
                                                                            GraphText g;
                                                                            g.nodes = {
                                                                                node("Neg", {"a"}, {"n"})};
                                                                            g.outputs = {bytes_field(1, "n")};
                                                                            return g.bytes();
                                                                          }())},
                            "inner")};
  then_branch.outputs = {bytes_field(1, "q")};
  GraphText else_branch;  // an outer value as it is
  else_branch.outputs = {bytes_field(1, "x")};
  ModelText m = ModelText::simple(
      {node("If", {"c"}, {"y"},
            {attr_g("then_branch", then_branch.bytes()), attr_g("else_branch", else_branch.bytes())},
            "outer"),
       node("Relu", {"x"}, {"a"})});
  m.inputs.push_back(value("c", 9, {}));
  m.initializers = {floats("w", {1}, {10})};
  const ir::Model model = import_text(m.model());
  EXPECT_EQ(ir::verify(*model.graph), std::vector<std::string>{});
  EXPECT_EQ(nodes_text(*model.graph), R"(graph "g" (%x: f32[2,3], %c: bool[]) {
  %a = Relu(%x) "Relu" sources ["Relu"]
  %y = If(%c; %c, %a, %x) {else_branch = graph "g" () captures (%c: bool[], %a: f32[2,3], %x: f32[2,3]) {
      return %x
    }, then_branch = graph "g" () captures (%c: bool[], %a: f32[2,3], %x: f32[2,3]) {
      %q = If(%c; %a, %x) {else_branch = graph "g" () captures (%a: f32[2,3], %x: f32[2,3]) {
          %n = Neg(%a) "Neg" sources ["Neg"]
          return %n
        }, then_branch = graph "g" () captures (%a: f32[2,3], %x: f32[2,3]) {
          const %w: f32[1] = {10}
          %t = Add(%a, %w) "Add" sources ["Add"]
          %r = Add(%t, %x) "Add_1" sources ["Add_1"]
          return %r
        }} "inner" sources ["inner"]
      return %q
    }} "outer" sources ["outer"]
  return %y
}
)");
}

TEST(Import, BrokenSubgraphsAreErrors) {
  GraphText g;
  g.nodes = {node("Relu", {"nowhere"}, {"r"})};
  g.outputs = {bytes_field(1, "r")};
  ModelText m = ModelText::simple(
      {node("If", {"c"}, {"y"}, {attr_g("then_branch", g.bytes()), attr_g("else_branch", g.bytes())}, "n")});
  m.inputs.push_back(value("c", 9, {}));
  expect_refused(m, "input 'nowhere' is not defined");
}

TEST(Import, SparseInitializers) {
  ModelText m = ModelText::simple({node("Add", {"x", "s"}, {"y"})});
  m.sparse = {bytes_field(1, floats("s", {1}, {9})) + bytes_field(2, tensor<int64_t>("", 7, {1}, {2})) +
              int_field(3, 3)};
  EXPECT_THAT(ir::print(*import_text(m.model()).graph), HasSubstr("const %s: f32[3] = {0, 0, 9}"));
}

// Reversed, so that sorting has work; anything quadratic takes minutes here.
TEST(Import, ManyNodesTakeLinearTime) {  // S07
  ModelText m;
  m.inputs = {value("x", 1, {"1"})};
  constexpr int kNodes = 1 << 16;
  m.nodes.reserve(kNodes);
  for (int i = 0; i < kNodes; ++i)
    m.nodes.push_back(node("Relu", {i == 0 ? "x" : "v" + std::to_string(i)}, {"v" + std::to_string(i + 1)}));
  std::reverse(m.nodes.begin(), m.nodes.end());
  m.outputs = {bytes_field(1, "v" + std::to_string(kNodes))};
  const std::string bytes = m.model();
  EXPECT_EQ(import_text(bytes).graph->num_nodes(), static_cast<size_t>(kNodes));
}

TEST(Import, FilesThatCannotBeRead) {
  EXPECT_THROW(import_model(std::string("/nonexistent/model.onnx")), Error);
  EXPECT_THROW(import_model(testing::TempDir()), Error);
  EXPECT_THROW(import_text(""), Error);
}

TEST(Import, ExternalDataIsFoundBesideTheFile) {
  const std::string dir = testing::TempDir() + "hone_import_" + std::to_string(getpid());
  ASSERT_EQ(std::system(("mkdir -p " + dir).c_str()), 0);
  ModelText m = ModelText::simple({node("Add", {"x", "w"}, {"y"})});
  m.initializers = {external_tensor("w", 1, {3}, {{"location", "w.bin"}, {"offset", "4"}})};
  std::ofstream(dir + "/m.onnx", std::ios::binary) << m.model();
  std::ofstream(dir + "/w.bin", std::ios::binary) << raw_bytes<float>({0, 1, 2, 3});
  EXPECT_THAT(ir::print(*import_model(dir + "/m.onnx").graph), HasSubstr("const %w: f32[3] = {1, 2, 3}"));
  m.initializers = {external_tensor("w", 1, {3}, {{"location", "../w.bin"}})};
  expect_refused(m, "it leaves the model's directory");
  ASSERT_EQ(std::system(("rm -r " + dir).c_str()), 0);
}

// S11: whatever the bytes, an error or a graph that holds together.
void hostile(const std::string& bytes) {
  try {
    const ir::Model m = import_text(bytes);
    EXPECT_EQ(ir::verify(*m.graph), std::vector<std::string>{});
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == ErrorCode::kInvalidModel || e.code() == ErrorCode::kUnsupported ||
                e.code() == ErrorCode::kOutOfMemory)
        << e.what();
  }
}

std::string varied_model() {
  GraphText branch;
  branch.nodes = {node("Add", {"a", "x"}, {"r"})};
  branch.outputs = {bytes_field(1, "r")};
  ModelText m =
      ModelText::simple({node("F", {"x", "w"}, {"a"}, {attr("axis", 1)}, "call", "f"),
                         node("Constant", {}, {"k"}, {attr_t("value", tensor<int64_t>("", 7, {2}, {3, 2}))}),
                         node("Reshape", {"a", "k"}, {"b"}),
                         node("If", {"c"}, {"d"},
                              {attr_g("then_branch", branch.bytes()), attr_g("else_branch", branch.bytes())}),
                         node("Softmax", {"d"}, {"y"}, {attr("axis", -1)})});
  m.initializers = {floats("w", {3}, {1, 2, 3})};
  m.inputs.push_back(value("c", 9, {}));
  m.value_infos = {value("b", 1, {"3", "2"})};
  m.functions = {
      function("f", "F", {"p", "q"}, {"o"},
               {node("Add", {"p", "q"}, {"s"}), node("Softmax", {"s"}, {"o"}, {attr_ref("axis", "axis", 2)})},
               17, {"axis"})};
  return m.model();
}

TEST(ImportHostile, TheModelItselfIsSound) { EXPECT_NO_THROW(import_text(varied_model())); }

TEST(ImportHostile, TruncatedAtEveryByte) {
  const std::string bytes = varied_model();
  for (size_t n = 0; n < bytes.size(); ++n) hostile(bytes.substr(0, n));
}

TEST(ImportHostile, EverySingleBitFlipped) {
  const std::string bytes = varied_model();
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    hostile(flipped);
  }
}

}  // namespace
}  // namespace hone::onnx
