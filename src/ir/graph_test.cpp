#include "ir/graph.h"

#include <gtest/gtest.h>

#include <random>

#include "hone/error.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace hone::ir {
namespace {

void expect_sound(const Graph& g) { EXPECT_EQ(verify(g), std::vector<std::string>{}) << print(g); }

TEST(Graph, UsesAndProducersFollowEveryEdit) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, Dims{4}});
  Node* a = g.add_node("Relu", {x});
  Node* b = g.add_node("Add", {x, a->outputs[0]});
  Node* c = g.add_node("Add", {b->outputs[0], b->outputs[0]});
  g.add_output(c->outputs[0]);
  expect_sound(g);
  EXPECT_EQ(g.sole_user(a->outputs[0]), b);
  EXPECT_EQ(g.sole_user(b->outputs[0]), nullptr) << "two uses by one node";
  EXPECT_EQ(g.sole_user(c->outputs[0]), nullptr) << "a graph output";
  g.set_input(b, 0, a->outputs[0]);
  expect_sound(g);
  EXPECT_EQ(g.value(x).uses.size(), 1u);
  g.append_input(b, x);
  g.append_input(b, kNoValue);
  expect_sound(g);
  g.pop_input(b);
  g.pop_input(b);
  expect_sound(g);
  g.replace_uses(b->outputs[0], a->outputs[0]);
  expect_sound(g);
  g.remove_node(b);
  expect_sound(g);
  EXPECT_EQ(c->inputs, (std::vector<ValueId>{a->outputs[0], a->outputs[0]}));
}

TEST(Graph, RandomEditsKeepTheBooks) {
  std::mt19937 rng(3);
  Graph g;
  std::vector<ValueId> pool{g.add_input("x", {}), g.add_constant("w", Tensor::f32_scalar(1))};
  std::vector<Node*> nodes;
  for (int i = 0; i < 2000; ++i) {
    const ValueId p = pool[rng() % pool.size()];
    if (nodes.empty() || rng() % 3 != 0) {
      nodes.push_back(g.add_node("Add", {p, pool[rng() % pool.size()]}));
      pool.push_back(nodes.back()->outputs[0]);
    } else {
      // Earlier values only, so that the order stays valid.
      Node* n = nodes[rng() % nodes.size()];
      g.set_input(n, rng() % 2, pool[rng() % 2]);
    }
  }
  expect_sound(g);
  while (!nodes.empty()) {
    Node* n = nodes.back();
    nodes.pop_back();
    g.remove_node(n);
  }
  expect_sound(g);
  EXPECT_TRUE(g.value(pool[0]).uses.empty());
}

TEST(Graph, NamesAreMadeUnique) {
  Graph g;
  EXPECT_EQ(g.value(g.add_value("a", {})).name, "a");
  EXPECT_EQ(g.value(g.add_value("a", {})).name, "a_1");
  EXPECT_EQ(g.value(g.add_value("a_1", {})).name, "a_1_1");
  EXPECT_EQ(g.value(g.add_value("a", {})).name, "a_2");
  const ValueId v = g.add_value("", {});
  g.rename_value(v, "a");
  EXPECT_EQ(g.value(v).name, "a_3");
  EXPECT_EQ(g.find("a_3"), v);
  EXPECT_EQ(g.find("nothing"), kNoValue);
}

TEST(Graph, AnOutputKeepsItsNameWhenItsProducerChanges) {
  const auto g = parse("graph (%x: f32[2]) { %a = Relu(%x) %y = Identity(%a) return %y }");
  g->replace_uses(g->find("y"), g->find("a"));
  EXPECT_EQ(g->value(g->outputs()[0]).name, "y");
  EXPECT_EQ(g->value(g->outputs()[0]).producer->op, "Relu");
  g->remove_node(g->nodes().back().get());
  expect_sound(*g);
}

TEST(Graph, AnOutputIsNotRedirectedToAnInputConstantOrOtherOutput) {
  const auto g = parse(R"(graph (%x: f32[2]) {
    const %w: f32[2] = {1, 2}
    %a = Relu(%x) %y = Identity(%x) %z = Identity(%a) %c = Identity(%w) return %y, %z, %a, %c })");
  const auto before = g->outputs();
  g->replace_uses(g->find("y"), g->find("x"));
  g->replace_uses(g->find("z"), g->find("a"));
  g->replace_uses(g->find("c"), g->find("w"));
  EXPECT_EQ(g->outputs(), before);
  expect_sound(*g);
}

TEST(Graph, ConstantsReplaceProducedValues) {
  const auto g = parse("graph (%x: f32[2]) { %s = Shape(%x) %y = Cast(%s) {to = 1} return %y }");
  g->set_constant(g->find("s"), Tensor::i64_vector({2}));
  EXPECT_EQ(g->nodes().front()->outputs[0], kNoValue);
  g->remove_node(g->nodes().front().get());
  expect_sound(*g);
  EXPECT_EQ(g->value(g->find("s")).type.text(), "i64[1]");
}

TEST(Graph, SortIsStableAndNamesCycles) {
  Graph g;
  const ValueId x = g.add_input("x", {});
  const ValueId a = g.add_value("a", {}), b = g.add_value("b", {}), c = g.add_value("c", {});
  const auto node = [&](const char* name, ValueId in, ValueId out) {
    Node n;
    n.name = name;
    n.op = "Relu";
    n.inputs = {in};
    n.outputs = {out};
    return g.add_node(std::move(n));
  };
  node("second", a, b);
  Node* last = node("free", x, c);
  Node* first = node("first", x, a);
  g.add_output(b);
  g.sort();
  std::string order;
  for (const auto& n : g.nodes()) order += n->name + " ";
  EXPECT_EQ(order, "free first second ");
  expect_sound(g);
  g.set_input(first, 0, b);
  g.set_input(last, 0, b);
  try {
    g.sort();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidModel);
    EXPECT_EQ(e.message(), "nodes form a cycle: 'first' -> 'second' -> 'first'");
  }
}

TEST(Graph, CloneIsDeepAndKeepsIds) {
  const auto g = parse(R"(graph "g" (%x: f32[N], %c: bool[]) {
    const %w: f32[1] = {1}
    %y = If(%c; %x) {t = graph "t" () captures (%i) { %o = Relu(%i) return %o }} "if" passes ["p"]
    %z = hone::Fused(%y, %w) "f" anchor 0 body graph "" (%a, %b) { %o = Add(%a, %b) return %o }
    return %z })");
  const auto copy = g->clone();
  EXPECT_EQ(print(*copy), print(*g));
  EXPECT_EQ(copy->find("z"), g->find("z"));
  expect_sound(*copy);
  Node* inner = copy->nodes().front()->get_graph("t")->nodes().front().get();
  inner->op = "Sigmoid";
  EXPECT_NE(print(*copy), print(*g));
  EXPECT_EQ(g->nodes().front()->get_graph("t")->nodes().front()->op, "Relu");
  EXPECT_EQ(copy->value(copy->find("w")).data, g->value(g->find("w")).data) << "constants share bytes";
}

TEST(Graph, FreshSymbolsDifferFromAllInUse) {
  const auto g = parse(R"(graph (%x: f32[u3,N], %c: bool[]) {
    %y = If(%c; %x) {t = graph "t" () captures (%i: f32[u7]) { return %i }} return %y })");
  const auto sub = g->nodes().front()->get_graph("t");
  EXPECT_EQ(g->fresh_symbol().text(), "u8");
  EXPECT_EQ(sub->fresh_symbol().text(), "u9") << "numbered together with the parent";
  EXPECT_EQ(g->fresh_symbol("k").text(), "k0");
  const auto copy = g->clone();
  EXPECT_EQ(copy->fresh_symbol().text(), "u10");
  EXPECT_EQ(g->fresh_symbol().text(), "u10");
}

TEST(Graph, AttributesHaveTypes) {
  Node n;
  n.name = "n";
  n.op = "Op";
  n.attrs["i"] = int64_t{3};
  n.attrs["f"] = 1.5f;
  n.attrs["s"] = std::string("v");
  n.attrs["is"] = std::vector<int64_t>{1, 2};
  EXPECT_EQ(n.get_int("i", 0), 3);
  EXPECT_EQ(n.get_int("none", 9), 9);
  EXPECT_EQ(n.get_float("f", 0), 1.5f);
  EXPECT_EQ(n.get_string("s", ""), "v");
  EXPECT_EQ(n.get_ints("is"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(n.get_ints("none", {7}), std::vector<int64_t>{7});
  EXPECT_EQ(n.get_tensor("none"), nullptr);
  try {
    n.get_int("s", 0);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "attribute s is not an integer");
    EXPECT_EQ(e.context().node, "n");
  }
}

TEST(Graph, AttributesCompareByBits) {
  AttrMap a, b;
  a["f"] = 0.0f;
  b["f"] = -0.0f;
  EXPECT_FALSE(attrs_equal(a, b));
  b["f"] = 0.0f;
  EXPECT_TRUE(attrs_equal(a, b));
  a["t"] = Tensor::i64_vector({1, 2});
  EXPECT_FALSE(attrs_equal(a, b));
  b["t"] = Tensor::i64_vector({1, 2});
  EXPECT_TRUE(attrs_equal(a, b));
  b["t"] = Tensor::i64_vector({1, 3});
  EXPECT_FALSE(attrs_equal(a, b));
  b["t"] = a["t"];
  a["g"] = std::shared_ptr<Graph>(parse("graph (%x) { %y = Relu(%x) return %y }"));
  b["g"] = std::shared_ptr<Graph>(parse("graph (%x) { %y = Relu(%x) return %y }"));
  EXPECT_TRUE(attrs_equal(a, b));
  b["g"] = std::shared_ptr<Graph>(parse("graph (%x) { %y = Abs(%x) return %y }"));
  EXPECT_FALSE(attrs_equal(a, b));
}

TEST(Graph, WalksOuterFirstAndDeep) {
  auto g = parse("graph (%x) { %a = Relu(%x) return %a }");
  for (int i = 0; i < 2000; ++i) {
    auto outer = std::make_unique<Graph>();
    Node n;
    n.op = "If";
    n.attrs["b"] = std::shared_ptr<Graph>(std::move(g));
    outer->add_node(std::move(n));
    g = std::move(outer);
  }
  int count = 0;
  std::string last;
  for_each_node(*g, [&](Graph&, Node& n) {
    ++count;
    last = n.op;
  });
  EXPECT_EQ(count, 2001);
  EXPECT_EQ(last, "Relu");
}

// Anything quadratic takes minutes here.
TEST(Graph, AQuarterMillionNodesTakeLinearTime) {
  Graph g;
  const ValueId x = g.add_input("x", {DType::kF32, Dims{1}});
  ValueId v = x;
  constexpr int kNodes = 1 << 18;
  for (int i = 0; i < kNodes; ++i) v = g.add_node("Add", {v, x})->outputs[0];
  g.add_output(v);
  // Reversed, then sorted; every node shares x; then everything but x goes.
  for (auto it = std::next(g.nodes().begin()); it != g.nodes().end();) {
    Node* n = (it++)->get();
    g.move_before(n, g.nodes().front().get());
  }
  g.sort();
  EXPECT_TRUE(verify(g).empty());
  const auto copy = g.clone();
  g.replace_uses(x, g.add_input("z", {}));
  while (g.num_nodes() > 1) g.remove_node(g.nodes().front().get());
  EXPECT_EQ(copy->num_nodes(), static_cast<size_t>(kNodes));
}

}  // namespace
}  // namespace hone::ir
