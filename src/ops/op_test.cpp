// Registry, inference contexts, adapters' helpers.
#include "ops/op.h"

#include <gmock/gmock.h>

#include <set>

#include "ops/schema.h"
#include "support/op_expect.h"

namespace hone::ops {
namespace {

using ::testing::HasSubstr;

TEST(Registry, FindsOperators) {
  ASSERT_NE(find_op("", "Conv"), nullptr);
  EXPECT_EQ(find_op("ai.onnx", "Conv"), find_op("", "Conv"));
  EXPECT_EQ(find_op("", "NoSuchOp"), nullptr);
  EXPECT_EQ(find_op("com.microsoft", "Conv"), nullptr);
}

TEST(Registry, EveryOperatorIsComplete) {
  std::set<std::pair<std::string, std::string>> names;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(names.emplace(op->domain, op->name).second) << op->name << " twice";
    const SchemaVersion* schema = newest_schema(op->domain, op->name);
    if (std::string(op->domain).empty()) {
      ASSERT_NE(schema, nullptr) << op->name;
      if (schema->deprecated) {  // the adapter turns it into another operator
        EXPECT_NE(op->adapt, nullptr) << op->name;
        continue;
      }
    }
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->kernel, nullptr) << op->name;
  }
}

struct Contexts : ::testing::Test {
  ir::Graph g;
  Dim n = Dim::symbol("N"), m = Dim::symbol("M");
  ir::Node* node(Dims shape) {
    return g.add_node("Relu", {g.add_input("x", {DType::kF32, std::move(shape)})});
  }
};

TEST_F(Contexts, DeclaredShapesAreMergedWithInferredOnes) {
  ir::Node* r = node({2, n, m});
  ir::Value& y = g.value(r->outputs[0]);
  y.type = {DType::kUndefined, Dims{Dim::symbol("batch"), 7, Dim::symbol("M2")}};
  InferContext ctx(g, *r);
  ctx.set_output(0, DType::kF32, Dims{2, n, ctx.fresh_symbol()});
  EXPECT_EQ(*y.type.shape, (Dims{2, 7, Dim::symbol("M2")}))
      << "numbers win, a fresh symbol does not replace a name";
  EXPECT_EQ(y.type.dtype, DType::kF32);
  try {
    ctx.set_output(0, DType::kF32, Dims{3, 7, 1});
    FAIL() << "2 against 3";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidModel);
    EXPECT_THAT(e.what(), HasSubstr("declared"));
  }
  EXPECT_THROW(ctx.set_output(0, DType::kI32, std::nullopt), Error);
  EXPECT_THROW(ctx.set_output(0, DType::kF32, Dims{2, 7}), Error);
}

TEST_F(Contexts, Broadcast) {
  InferContext ctx(g, *node({1}));
  EXPECT_EQ(ctx.broadcast({2, 1, n}, {5, n}), (Dims{2, 5, n}));
  EXPECT_EQ(ctx.broadcast({n}, {4}), Dims{4});
  EXPECT_EQ(ctx.broadcast({n}, {m}), Dims{Dim::max(n, m)});
  EXPECT_EQ(ctx.broadcast({0}, {1}), Dims{0});
  EXPECT_EQ(ctx.broadcast({}, {3}), Dims{3});
  EXPECT_THROW(ctx.broadcast({2}, {3}), Error);
}

TEST_F(Contexts, Axes) {
  InferContext ctx(g, *node({1}));
  EXPECT_EQ(ctx.axis(-1, 3), 2);
  EXPECT_EQ(ctx.axes({0, -1}, 3), (std::vector<int>{0, 2}));
  EXPECT_THROW(ctx.axis(3, 3), Error);
  EXPECT_THROW(ctx.axis(INT64_MIN, 3), Error);
  EXPECT_THROW(ctx.axes({1, -2}, 3), Error);
}

TEST_F(Contexts, ContentsComeFromConstantsAndFromInference) {
  const auto c = g.add_constant("c", Tensor::i64_vector({3, 4}));
  ir::Node* r = g.add_node("Add", {c, g.add_input("y", {DType::kI64, Dims{2}})});
  g.value(r->inputs[1]).contents = Dims{n, 2};
  InferContext ctx(g, *r);
  EXPECT_EQ(ctx.const_ints(0), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(ctx.contents(1), (Dims{n, 2}));
  EXPECT_EQ(ctx.const_ints(1), std::nullopt);
  EXPECT_EQ(ctx.contents(7), std::nullopt);
}

TEST(Infer, SameTypesAgainWhenRepeated) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, Dims{Dim::symbol("N"), 8}});
  const auto k = g.add_input("k", {DType::kI64, Dims{1}});
  const ir::Node* n = g.add_node("TopK", {x, k}, {}, "", nullptr, "t", 2);
  infer_graph(g);
  const ir::TypeInfo first = g.value(n->outputs[0]).type;
  infer_graph(g);
  EXPECT_EQ(g.value(n->outputs[0]).type, first) << "a data-dependent dimension keeps its symbol";
}

TEST(Infer, RefreshForgetsWhatWasDerived) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, Dims{4}});
  const auto y = g.add_node("Relu", {x})->outputs[0];
  infer_graph(g);
  g.value(x).type.shape = Dims{5};
  infer_graph(g, true);
  EXPECT_EQ(*g.value(y).type.shape, Dims{5});
}

}  // namespace
}  // namespace hone::ops
