#include "onnx/writer.h"

#include <gmock/gmock.h>

#include <filesystem>

#include <unistd.h>

#include "hone/error.h"
#include "hone/version.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "onnx/testing.h"
#include "ops/infer.h"
#include "ops/interpreter.h"

namespace hone::onnx {
namespace {

using namespace test;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::string plain(const ir::Graph& g) {
  ir::PrintOptions o;
  o.types = false;
  o.provenance = false;
  return ir::print(g, o);
}

/// Writes, reads again, and returns what came back.
ir::Model again(const ir::Graph& g, const WriteOptions& options = {}, WriteReport* report = nullptr) {
  ir::Model m = import_text(serialize_model(g, options, report));
  EXPECT_EQ(ir::verify(*m.graph), std::vector<std::string>{});
  return m;
}

TEST(Writer, AGraphComesBackAsItWas) {
  const std::string text = R"(graph "net" (%x: f32[N,3,8,8], %c: bool[]) {
  const %w: f32[4,3,1,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
  const %k: i64[2] = {0, -1}
  %a = Conv(%x, %w) {dilations = [1, 1], group = 1, kernel_shape = [1, 1], pads = [0, 0, 0, 0], strides = [1, 1]}
  %b = LeakyRelu(%a) {alpha = 0.25}
  %r = Reshape(%b, %k)
  %y = If(%c; %r) {else_branch = graph "no" () captures (%e: f32[N,256]) {
      const %one: f32[1] = {1}
      %m = Add(%e, %one)
      return %m
    }, then_branch = graph "yes" () captures (%e: f32[N,256]) {
      %n = Neg(%e)
      return %n
    }}
  return %y, %a
}
)";
  const auto g = ir::parse(text);
  // What was captured under another name comes back under the outer one.
  std::string want = text;
  for (size_t at; (at = want.find("%e")) != std::string::npos && want[at + 2] != 'l';)
    want.replace(at, 2, "%r");
  EXPECT_EQ(plain(*again(*g).graph), want);
}

TEST(Writer, TheLowestOpsetThatMeansTheSame) {
  const auto opset = [](const std::string& nodes) {
    return choose_opset(*ir::parse("graph (%x: f32[2,3]) {" + nodes + " return %y }"));
  };
  EXPECT_EQ(opset("%y = Relu(%x)"), 11);
  EXPECT_EQ(opset("%y = Gelu(%x)"), 20);
  EXPECT_EQ(opset("%y = HardSwish(%x)"), 14);
  EXPECT_EQ(opset("const %a: i64[1] = {1} %y = Unsqueeze(%x, %a)"), 13);
  EXPECT_EQ(opset("const %a: i64[1] = {1} %y = ReduceMean(%x, %a)"), 18);
  EXPECT_EQ(opset("const %a: i64[1] = {1} %y = ReduceSum(%x, %a)"), 13);
  EXPECT_EQ(opset("%y = Cast(%x) {to = 10}"), 11);
  EXPECT_EQ(opset("%y: f8e4m3fn[2,3] = Cast(%x) {to = 17}"), 19) << "the type decides";
  EXPECT_EQ(opset("%y = Cast(%x) {to = 10, saturate = 1}"), 11)
      << "a newer attribute at its default is left out";
  EXPECT_GE(opset("%y: f8e4m3fn[2,3] = Cast(%x) {to = 17, saturate = 0}"), 19);
  EXPECT_EQ(opset("%y = Softmax(%x)"), 13) << "before, it flattened";
  EXPECT_EQ(opset("const %a: i64[4] = {1, 1, 1, 1} %y = Pad(%x, %a) {mode = \"wrap\"}"), 19)
      << "so do values of attributes";
  EXPECT_EQ(ir_version_for(7), 3);
  EXPECT_EQ(ir_version_for(17), 8);
  EXPECT_EQ(ir_version_for(21), 10);
  EXPECT_EQ(ir_version_for(kIrOpset), kOnnxIrVersion);
}

TEST(Writer, AForcedOpsetIsObeyedOrRefusedNamingTheNodes) {
  const auto g = ir::parse(
      "graph (%x: f32[2,3]) { %a = Gelu(%x) \"g\" %b = HardSwish(%a) \"h\" %y = Softmax(%b) \"s\" return %y "
      "}");
  WriteReport report;
  WriteOptions options;
  options.opset = 26;
  again(*g, options, &report);
  EXPECT_EQ(report.opset, 26);
  EXPECT_EQ(report.ir_version, 13);
  options.opset = 12;
  try {
    serialize_model(*g, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(e.what(), HasSubstr("node 'g' op ai.onnx::Gelu: the operator is newer than opset 12"));
    EXPECT_THAT(e.what(), HasSubstr("node 's' op ai.onnx::Softmax: it means something else at opset 12"));
  }
  const auto flat = ir::parse("graph (%x: f32[2,3]) { %y = Flatten(%x) {axis = -1} return %y }");
  options.opset = 9;
  EXPECT_THROW(serialize_model(*flat, options), Error) << "negative axes came with opset 11";
  options.opset = 99;
  EXPECT_THROW(serialize_model(*g, options), Error);
}

constexpr const char* kFused = R"(graph "net" (%x: f32[2,3], %z: f32[2,3]) {
  const %w: f32[3,3] = {1, 0, 0, 0, 2, 0, 0, 0, 3}
  %a = hone::Fused(%x, %w, %z) "f1" anchor 0 body graph "" (%p: f32[2,3], %q: f32[3,3], %r: f32[2,3]) {
    const %half: f32[] = {0.5}
    %s = MatMul(%p, %q)
    %t = Add(%s, %r)
    %u = Mul(%t, %half)
    %v = Relu(%u)
    return %v
  }
  %b, %c = hone::Fused(%a) "f2" body graph "" (%p: f32[2,3]) {
    %s = Neg(%p)
    return %s, %p
  }
  %y = Add(%b, %c)
  return %y, %a
})";

TEST(Writer, FusedLayersAreFunctionsOrInPlace) {
  const auto g = ir::parse(kFused);
  const std::vector<Tensor> in{Tensor::of<float>(DType::kF32, {2, 3}, {1, -2, 3, -4, 5, -6}),
                               Tensor::of<float>(DType::kF32, {2, 3}, {1, 1, 1, 1, 1, 1})};
  ops::infer_graph(*g);
  const auto want = ops::interpret(*g, in);
  for (const bool functions : {true, false}) {
    WriteOptions options;
    options.functions = functions;
    WriteReport report;
    ImportReport read;
    const std::string bytes = serialize_model(*g, options, &report);
    const ir::Model m = import_text(bytes, &read);
    EXPECT_EQ(read.functions_inlined, functions ? 2 : 0);
    EXPECT_EQ(report.ir_version, functions ? 8 : std::max(4, ir_version_for(report.opset)));
    const auto got = ops::interpret(*m.graph, in);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(std::memcmp(got[i].raw(), want[i].raw(), static_cast<size_t>(want[i].nbytes())), 0);
  }
  const auto bare = ir::parse("graph (%x: f32[2]) { %y = hone::Magic(%x) \"m\" return %y }");
  EXPECT_THROW(serialize_model(*bare), Error);
}

TEST(Writer, OutputsThatNoNodeMakes) {
  const auto g = ir::parse(R"(graph (%x: f32[2], %c: bool[]) {
    const %w: f32[2] = {5, 6}
    %a = Relu(%x)
    %y = If(%c; %a) {e = graph "e" () captures (%i: f32[2]) { const %k: f32[2] = {7, 8} return %k }} "if"
    return %a, %w, %x, %a })");
  g->nodes().back()->attrs["else_branch"] = g->nodes().back()->attrs["e"];
  g->nodes().back()->attrs["then_branch"] =
      std::shared_ptr<ir::Graph>(ir::parse("graph \"t\" () captures (%i: f32[2]) { return %i }"));
  g->nodes().back()->attrs.erase("e");
  const ir::Model m = again(*g);
  const auto out = ops::interpret(
      *m.graph, {Tensor::of<float>(DType::kF32, {2}, {-1, 2}), Tensor::of<uint8_t>(DType::kBool, {}, {1})});
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[0].at(1), 2);
  EXPECT_EQ(out[1].at(0), 5);
  EXPECT_EQ(out[2].at(0), -1);
  EXPECT_EQ(out[3].at(1), 2);
}

TEST(Writer, NamesOfDifferentSubgraphsDoNotCollide) {
  const auto g = ir::parse(R"(graph (%x: f32[2], %c: bool[]) {
    const %k: f32[2] = {1, 2}
    %a = Add(%x, %k)
    %y = If(%c; %a) {else_branch = graph "e" () captures (%i: f32[2]) { const %k: f32[2] = {7, 8} %a = Add(%i, %k) return %a },
                     then_branch = graph "t" () captures (%k: f32[2]) { %x = Neg(%k) return %x }}
    return %y })");
  const ir::Model m = again(*g);
  const Tensor x = Tensor::of<float>(DType::kF32, {2}, {10, 20});
  EXPECT_EQ(ops::interpret(*m.graph, {x, Tensor::of<uint8_t>(DType::kBool, {}, {0})})[0].at(0), 18);
  EXPECT_EQ(ops::interpret(*m.graph, {x, Tensor::of<uint8_t>(DType::kBool, {}, {1})})[0].at(1), -22);
}

TEST(Writer, ExternalDataLiesBesideTheFileAlignedAndComesBackInPlace) {
  const fs::path dir = fs::path(testing::TempDir()) / ("hone_onnx_writer_" + std::to_string(getpid()));
  fs::create_directories(dir);
  ir::Graph g;
  const ir::ValueId x = g.add_input("x", {DType::kF32, ir::Dims{1000}});
  Tensor big(DType::kF32, {1000});
  for (int i = 0; i < 1000; ++i) big.data<float>()[i] = static_cast<float>(i);
  const ir::ValueId w = g.add_constant("w", big), v = g.add_constant("v", big),
                    s = g.add_constant("s", Tensor::f32_scalar(2));
  ir::Node* n = g.add_node("Sum", {x, w, v, s}, {}, "", nullptr, "sum");
  g.value(n->outputs[0]).type = {DType::kF32, ir::Dims{1000}};
  g.add_output(n->outputs[0]);
  WriteOptions options;
  options.external = true;
  const std::string path = (dir / "m.onnx").string();
  const WriteReport report = write_model(g, path, options);
  EXPECT_EQ(report.files, (std::vector<std::string>{path + ".data", path}));
  EXPECT_EQ(report.external_bytes, 4032 + 4000) << "4000 bytes, padded to 64, and 4000";
  EXPECT_LT(report.file_bytes, 1000);
  const ir::Model m = import_model(path);
  EXPECT_EQ(std::memcmp(m.graph->value(m.graph->find("v")).data->raw(), big.raw(), 4000), 0);
  EXPECT_EQ(m.graph->value(m.graph->find("s")).data->at(0), 2);
  options.external = false;
  options.external_from_bytes = 5000;
  EXPECT_GT(write_model(g, path, options).external_bytes, 0) << "large models need not ask";
  fs::remove(path + ".data");
  options.external_from_bytes = 1 << 30;
  EXPECT_EQ(write_model(g, path, options).external_bytes, 0);
  EXPECT_NO_THROW(import_model(path));
  fs::remove_all(dir);
}

TEST(Writer, EveryElementTypeAndAttributeComesBack) {
  for (int d = 1; d <= 26; ++d) {
    const auto t = static_cast<DType>(d);
    if (t == DType::kString) continue;
    Tensor data = Tensor::zeros(t, {3});
    if (t != DType::kBool) std::memset(data.raw(), 0x41, static_cast<size_t>(data.nbytes()));
    ir::Graph g;
    g.add_output(g.add_constant("w", data));
    const std::string bytes = serialize_model(g);
    const ir::Model m = import_text(bytes);
    const Tensor& back = *m.graph->value(m.graph->find("w")).data;
    ASSERT_EQ(back.dtype(), t);
    EXPECT_EQ(std::memcmp(back.raw(), data.raw(), static_cast<size_t>(data.nbytes())), 0) << dtype_name(t);
  }
  const auto g = ir::parse(R"(graph (%x: i64[2], %f: f32[1,1,4]) {
    %c = ConstantOfShape(%x) {value = f32[1] {2.5}}
    %y = AveragePool(%f) {auto_pad = "SAME_UPPER", kernel_shape = [2], strides = [2]}
    return %c, %y })");
  EXPECT_EQ(plain(*again(*g).graph), plain(*g).replace(plain(*g).find("\"\""), 2, "\"graph\""));
}

}  // namespace
}  // namespace hone::onnx
