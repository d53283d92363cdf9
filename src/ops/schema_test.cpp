#include "ops/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <set>

#include "hone/version.h"

namespace hone::ops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Schema, CoversEveryOperatorOfTheIrOpset) {
  std::set<std::string_view> names;
  for (const SchemaVersion& v : all_schemas()) {
    names.insert(v.name);
    EXPECT_LE(v.since, kIrOpset) << v.name;
  }
  EXPECT_EQ(names.size(), 203u);
  EXPECT_EQ(all_schemas().size(), 629u);
}

TEST(Schema, FindsTheVersionInForce) {
  EXPECT_EQ(find_schema("", "Softmax", 12)->since, 11);
  EXPECT_EQ(find_schema("ai.onnx", "Softmax", 13)->since, 13);
  EXPECT_EQ(find_schema("", "LayerNormalization", 16), nullptr);
  EXPECT_EQ(find_schema("", "NoSuchOp", 20), nullptr);
  EXPECT_EQ(find_schema("com.nobody", "Conv", 20), nullptr);
  EXPECT_EQ(newest_schema("", "Conv")->since, 22);
  EXPECT_TRUE(find_schema("", "Upsample", 10)->deprecated);
  EXPECT_EQ(schema_versions("", "Reshape").size(), 9u);
}

TEST(Schema, StatesFormalParametersAndDefaults) {
  const SchemaVersion& conv = *find_schema("", "Conv", 11);
  ASSERT_EQ(conv.inputs.size(), 3u);
  EXPECT_EQ(conv.inputs[2].option, ParamOption::kOptional);
  EXPECT_EQ(conv.inputs[0].type_var, "T");
  EXPECT_TRUE(conv.inputs[0].types.has(DType::kF16));
  EXPECT_FALSE(conv.inputs[0].types.has(DType::kBF16));
  EXPECT_EQ(std::get<int64_t>(*conv.attr("group")->default_value), 1);
  EXPECT_EQ(std::get<std::string>(*conv.attr("auto_pad")->default_value), "NOTSET");
  EXPECT_FALSE(conv.attr("pads")->default_value);

  const SchemaVersion& loop = *find_schema("", "Loop", 16);
  EXPECT_EQ(loop.max_inputs(), INT_MAX);
  EXPECT_FALSE(loop.input(7)->homogeneous);
  EXPECT_TRUE(loop.attr("body")->required);
  EXPECT_EQ(loop.attr("body")->kind, AttrKind::kGraph);

  const SchemaVersion& concat = *find_schema("", "Concat", 13);
  EXPECT_TRUE(concat.input(3)->homogeneous);
  EXPECT_EQ(concat.output(1), nullptr);
  EXPECT_FLOAT_EQ(std::get<float>(*find_schema("", "BatchNormalization", 15)->attr("epsilon")->default_value),
                  1e-5F);
  EXPECT_FALSE(find_schema("", "LSTM", 14)->attr("activations")->default_value);
}

struct NodeCase {
  ir::Graph g;
  ir::Node node;
  ir::ValueId value(DType t) { return g.add_value("", {t, ir::Dims{2, 3}}); }
  std::vector<std::string> check(int opset = kIrOpset) {
    return check_node(g, node, *find_schema("", node.op, opset));
  }
};

TEST(CheckNode, AcceptsASoundNode) {
  NodeCase c;
  c.node.op = "Gemm";
  c.node.inputs = {c.value(DType::kF32), c.value(DType::kF32), ir::kNoValue};
  c.node.outputs = {c.value(DType::kF32)};
  c.node.attrs["transB"] = int64_t{1};
  EXPECT_THAT(c.check(), IsEmpty());
}

TEST(CheckNode, NamesUnknownWrongAndMissingAttributes) {
  NodeCase c;
  c.node.op = "Concat";
  c.node.inputs = {c.value(DType::kF32)};
  c.node.outputs = {c.value(DType::kF32)};
  EXPECT_THAT(c.check(), ElementsAre("missing attribute 'axis'"));
  c.node.attrs["axis"] = std::string("1");
  EXPECT_THAT(c.check(), ElementsAre("attribute 'axis' is string, must be int"));
  c.node.attrs = {{"axis", int64_t{1}}, {"axes", int64_t{1}}};
  EXPECT_THAT(c.check(), ElementsAre("unknown attribute 'axes'"));
}

TEST(CheckNode, CountsInputsAndOutputs) {
  NodeCase c;
  c.node.op = "Add";
  c.node.inputs = {c.value(DType::kF32)};
  c.node.outputs = {c.value(DType::kF32)};
  EXPECT_THAT(c.check(), ElementsAre("has 1 input, needs at least 2"));
  c.node.inputs.assign(3, c.value(DType::kF32));
  EXPECT_THAT(c.check(), ElementsAre("has 3 inputs, takes at most 2"));
  c.node.inputs = {c.value(DType::kF32), ir::kNoValue};
  EXPECT_THAT(c.check(), ElementsAre("input 1 (B) is missing"));
  c.node.inputs = {c.value(DType::kF32), c.value(DType::kF32)};
  c.node.outputs = {};
  EXPECT_THAT(c.check(), ElementsAre("has 0 outputs, needs at least 1"));
}

TEST(CheckNode, JudgesElementTypes) {
  NodeCase c;
  c.node.op = "Add";
  c.node.inputs = {c.value(DType::kF32), c.value(DType::kI32)};
  c.node.outputs = {c.value(DType::kF32)};
  EXPECT_THAT(c.check(), ElementsAre(HasSubstr("input 1 (B) is i32 but input 0 (A) is f32; both must be T")));
  c.node.inputs[1] = c.value(DType::kBool);
  EXPECT_THAT(c.check(), ElementsAre(HasSubstr("input 1 (B) is bool, allowed: ")));
  c.node.inputs[1] = c.value(DType::kUndefined);
  EXPECT_THAT(c.check(), IsEmpty());
  c.node.op = "Relu";
  c.node.inputs = {c.value(DType::kI32)};
  c.node.outputs = {c.value(DType::kI32)};
  EXPECT_THAT(c.check(), IsEmpty());
  EXPECT_THAT(c.check(13), testing::SizeIs(2)) << "integers came with Relu-14";
}

}  // namespace
}  // namespace hone::ops
