#include "ir/verify.h"

#include <gmock/gmock.h>

#include "hone/error.h"
#include "ir/text.h"

namespace hone::ir {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::unique_ptr<Graph> sample() {
  return parse(R"(graph (%x: f32[2], %c: bool[]) {
    const %w: f32[2] = {1, 2}
    %a = Add(%x, %w) "a"
    %b = If(%c; %a) {t = graph "t" () captures (%i) { %o = Relu(%i) return %o }} "b"
    %d = hone::Fused(%b) "d" anchor 0 body graph "" (%p) { %q = Relu(%p) return %q }
    return %d })");
}

Node* node(Graph& g, const char* name) {
  for (const auto& n : g.nodes()) {
    if (n->name == name) return n.get();
  }
  return nullptr;
}

TEST(Verify, ASoundGraphHasNoFindings) { EXPECT_TRUE(verify(*sample()).empty()); }

TEST(Verify, UseBeforeDefinition) {
  auto g = sample();
  g->move_before(node(*g, "a"), nullptr);
  EXPECT_THAT(verify(*g), Contains(HasSubstr("node 'b' ai.onnx::If uses 'a' before it is defined")));
}

TEST(Verify, EdgesChangedBehindTheGraphsBack) {
  auto g = sample();
  node(*g, "a")->inputs[1] = g->find("x");
  EXPECT_THAT(verify(*g), Contains(HasSubstr("value 'w' lists a use that is none")));
  g = sample();
  node(*g, "a")->inputs.push_back(g->find("x"));
  EXPECT_THAT(verify(*g), Contains(HasSubstr("disagree on the number of uses")));
  g = sample();
  g->value(g->find("a")).producer = nullptr;
  EXPECT_THAT(verify(*g), Contains(HasSubstr("disagree on who produces it")));
}

TEST(Verify, NamesAndConstants) {
  auto g = sample();
  g->value(g->find("a")).name = "x";
  EXPECT_THAT(verify(*g), Contains(HasSubstr("two values have the name 'x'")));
  g = sample();
  g->value(g->find("w")).type.shape = Dims{3};
  EXPECT_THAT(verify(*g), Contains(HasSubstr("constant 'w' is f32[2] but typed f32[3]")));
}

TEST(Verify, InterfacesOfSubgraphsAndBodies) {
  auto g = sample();
  node(*g, "b")->num_captures = 0;
  EXPECT_THAT(verify(*g), Contains(HasSubstr("captures 0 values, its t expects 1")));
  g = sample();
  g->append_input(node(*g, "d"), g->find("x"));
  EXPECT_THAT(verify(*g), Contains(HasSubstr("has 2 inputs and 1 outputs, its body 1 and 1")));
  g = sample();
  node(*g, "d")->anchor = 5;
  EXPECT_THAT(verify(*g), Contains(HasSubstr("no such anchor")));
  g = sample();
  node(*g, "b")->get_graph("t")->nodes().front()->inputs[0] = 99;
  EXPECT_THAT(verify(*g), Contains(HasSubstr("in t of node 'b' ai.onnx::If: ")));
}

TEST(Verify, OutputsExist) {
  auto g = sample();
  g->remove_node(node(*g, "d"));
  EXPECT_THAT(verify(*g), Contains(HasSubstr("graph output 'd' is not defined")));
  try {
    verify_or_throw(*g, "optimize");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInternal);
    EXPECT_THAT(e.what(), HasSubstr("optimize: internal: the graph is not sound: graph output 'd'"));
  }
}

}  // namespace
}  // namespace hone::ir
