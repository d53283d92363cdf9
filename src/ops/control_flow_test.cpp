// If, Loop and Scan with subgraphs that capture outer values.
#include "ir/text.h"
#include "ir/verify.h"
#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;

/// while sum(x) < 10: x += 1, with x captured limits (E41).
std::unique_ptr<ir::Graph> count_up() {
  auto body = std::make_shared<ir::Graph>();
  body->add_input("i", {DType::kI64, ir::Dims{}});
  body->add_input("c", {DType::kBool, ir::Dims{}});
  const auto x = body->add_input("v", {DType::kF32, ir::Dims{2}});
  const auto limit = body->add_value("limit", {DType::kF32, ir::Dims{}});
  body->captures = {limit};
  const auto one = body->add_constant("one", Tensor::f32_scalar(1));
  const auto index0 = body->add_constant("index0", Tensor::i64_scalar(0)),
             index1 = body->add_constant("index1", Tensor::i64_scalar(1));
  const auto next = body->add_node("Add", {x, one})->outputs[0];
  const auto a = body->add_node("Gather", {next, index0})->outputs[0],
             b = body->add_node("Gather", {next, index1})->outputs[0];
  const auto sum = body->add_node("Add", {a, b})->outputs[0];
  body->add_output(body->add_node("Less", {sum, limit})->outputs[0]);
  body->add_output(next);
  body->add_output(sum);

  auto g = std::make_unique<ir::Graph>();
  body->share_symbols(*g);
  const auto start = g->add_input("start", {DType::kF32, ir::Dims{2}}),
             cond = g->add_input("cond", {DType::kBool, ir::Dims{}});
  const auto ten = g->add_constant("ten", Tensor::f32_scalar(10));
  ir::Node loop;
  loop.name = "loop";
  loop.op = "Loop";
  loop.inputs = {ir::kNoValue, cond, start, ten};
  loop.num_captures = 1;
  loop.attrs["body"] = body;
  loop.outputs = {g->add_value("final", {}), g->add_value("sums", {})};
  const ir::Node* n = g->add_node(std::move(loop));
  for (const auto id : n->outputs) g->add_output(id);
  ops::infer_graph(*g);
  ir::verify_or_throw(*g, "test");
  return g;
}

TEST(Loop, RunsWhileTheConditionHolds) {
  const auto g = count_up();
  EXPECT_EQ(g->value(g->outputs()[0]).type.text(), "f32[2]");
  auto out = ops::interpret(*g, {f32({2}, {2.25F, 3.25F}), boolean({}, {1})});
  EXPECT_EQ(values(out[0]), (V{5.25, 6.25}));
  EXPECT_EQ(values(out[1]), (V{7.5, 9.5, 11.5}));  // three trips
  out = ops::interpret(*g, {f32({2}, {20, 30}), boolean({}, {0})});
  EXPECT_EQ(values(out[0]), (V{20, 30}));
  EXPECT_EQ(out[1].shape(), (Shape{0}));  // none
}

TEST(Loop, GrowingValueGetsAFreshDimension) {
  auto body = std::make_shared<ir::Graph>();
  body->add_input("i", {});
  const auto c = body->add_input("c", {});
  const auto x = body->add_input("v", {});
  const auto more = body->add_constant("more", f32({1}, {7}));
  const auto joined = body->add_node("Concat", {x, more}, {{"axis", int64_t{0}}})->outputs[0];
  body->add_output(c);
  body->add_output(joined);
  ir::Graph g;
  body->share_symbols(g);
  const auto start = g.add_input("start", {DType::kF32, ir::Dims{1}});
  const auto trips = g.add_constant("trips", Tensor::i64_scalar(3));
  ir::Node* n = g.add_node("Loop", {trips, ir::kNoValue, start}, {{"body", body}});
  g.add_output(n->outputs[0]);
  ops::infer_graph(g);
  const ir::TypeInfo& t = g.value(n->outputs[0]).type;
  ASSERT_TRUE(t.shape && t.shape->size() == 1);
  EXPECT_FALSE((*t.shape)[0].is_const());
  EXPECT_EQ(values(ops::interpret(g, {f32({1}, {1})})[0]), (V{1, 7, 7, 7}));
}

TEST(Loop, WithoutAnyEndIsRefused) {
  auto body = std::make_shared<ir::Graph>();
  body->add_input("i", {});
  body->add_output(body->add_input("c", {}));
  body->add_output(body->add_input("v", {DType::kF32, ir::Dims{}}));
  ir::Graph g;
  body->share_symbols(g);
  const auto start = g.add_input("start", {DType::kF32, ir::Dims{}});
  ir::Node* n = g.add_node("Loop", {ir::kNoValue, ir::kNoValue, start}, {{"body", body}});
  g.add_output(n->outputs[0]);
  ops::infer_graph(g);
  EXPECT_THROW(ops::interpret(g, {f32({}, {1})}), Error);
}

/// Running sum (E43).
Tensor running_sum(ir::AttrMap attrs, Tensor* last = nullptr) {
  auto body = std::make_shared<ir::Graph>();
  const auto s = body->add_input("s", {}), x = body->add_input("x", {});
  const auto sum = body->add_node("Add", {s, x})->outputs[0];
  const auto copy = body->add_node("Identity", {sum})->outputs[0];
  body->add_output(sum);
  body->add_output(copy);
  ir::Graph g;
  body->share_symbols(g);
  attrs["body"] = body;
  attrs["num_scan_inputs"] = int64_t{1};
  const auto zero = g.add_input("zero", {DType::kF32, ir::Dims{2}}),
             seq = g.add_input("seq", {DType::kF32, ir::Dims{3, 2}});
  ir::Node* n = g.add_node("Scan", {zero, seq}, attrs, "", nullptr, "scan", 2);
  for (const auto id : n->outputs) g.add_output(id);
  ops::infer_graph(g);
  const auto out = ops::interpret(g, {f32({2}, {0, 0}), f32({3, 2}, {1, 2, 3, 4, 5, 6})});
  expect_inferred(g, 0, out[0]);
  expect_inferred(g, 1, out[1]);
  if (last != nullptr) *last = out[0];
  return out[1];
}

TEST(Scan, RunningSum) {
  Tensor last;
  EXPECT_EQ(values(running_sum({}, &last)), (V{1, 2, 4, 6, 9, 12}));
  EXPECT_EQ(values(last), (V{9, 12}));
  EXPECT_EQ(values(running_sum({{"scan_input_directions", std::vector<int64_t>{1}}})),
            (V{5, 6, 8, 10, 9, 12}));
  EXPECT_EQ(values(running_sum({{"scan_output_directions", std::vector<int64_t>{1}}})),
            (V{9, 12, 4, 6, 1, 2}));
  const Tensor columns = running_sum({{"scan_output_axes", std::vector<int64_t>{1}}});
  EXPECT_EQ(columns.shape(), (Shape{2, 3}));
  EXPECT_EQ(values(columns), (V{1, 4, 9, 2, 6, 12}));
}

TEST(If, TakesOneBranchAndJoinsTypes) {
  const auto branch = [](const char* op, ir::Dims shape) {
    auto b = std::make_shared<ir::Graph>();
    const auto x = b->add_value("x", {});
    b->captures = {x};
    (void)shape;
    b->add_output(b->add_node(op, {x})->outputs[0]);
    return b;
  };
  ir::Graph g;
  const auto then_branch = branch("Neg", {}), else_branch = branch("Abs", {});
  then_branch->share_symbols(g);
  else_branch->share_symbols(g);
  const auto c = g.add_input("c", {DType::kBool, ir::Dims{}}),
             x = g.add_input("x", {DType::kF32, ir::Dims{2}});
  ir::Node node;
  node.op = "If";
  node.name = "if";
  node.inputs = {c, x};
  node.num_captures = 1;
  node.attrs = {{"then_branch", then_branch}, {"else_branch", else_branch}};
  node.outputs = {g.add_value("y", {})};
  g.add_output(g.add_node(std::move(node))->outputs[0]);
  ops::infer_graph(g);
  EXPECT_EQ(g.value(g.outputs()[0]).type.text(), "f32[2]");
  EXPECT_EQ(values(ops::interpret(g, {boolean({}, {1}), f32({2}, {1, -2})})[0]), (V{-1, 2}));
  EXPECT_EQ(values(ops::interpret(g, {boolean({}, {0}), f32({2}, {1, -2})})[0]), (V{1, 2}));
}

}  // namespace
}  // namespace hone
