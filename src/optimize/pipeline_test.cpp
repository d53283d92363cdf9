#include <set>

#include "base/str.h"
#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

const char* kNet =
    "graph \"net\" (%x: f32[N,2,3,3]) {\n  const %w: f32[2,2,1,1] = {1, 2, 3, 4}\n  const %g: f32[2] = {2, "
    "3}\n  const %h: f32[2] = {1, -1}\n"
    "  %a = Conv(%x, %w) \"c\"\n  %b = BatchNormalization(%a, %g, %h, %h, %g) \"bn\"\n  %c = Relu(%b) "
    "\"r\"\n  %y = Identity(%c) \"id\"\n  return %y\n}\n";

TEST(Pipeline, EveryPassIsListedOnceWithAnExplanation) {
  std::set<std::string> names;
  for (const Pass& p : all_passes()) {
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_GT(std::string(p.what).size(), 4U) << p.name;
    EXPECT_TRUE(p.run != nullptr);
  }
  EXPECT_GT(names.size(), 60U);
}

TEST(Pipeline, RunsKeepsNamesAndWritesALedger) {
  const auto g = graph_of(kNet);
  const auto before = g->clone();
  std::vector<LedgerRow> ledger;
  PipelineOptions options;
  options.verify_structure = true;
  run_pipeline(*g, options, &ledger);
  EXPECT_EQ(ops_of(*g), "Fused(Conv Relu)");
  EXPECT_EQ(g->value(g->outputs()[0]).name, "y");
  expect_same_values(*before, *g, {}, 1e-6);
  ir::Dim sum = 0;
  std::set<std::string> sources;
  for (const LedgerRow& row : ledger) {
    sum = sum + row.bytes_not_moved;
    sources.insert(row.sources.begin(), row.sources.end());
  }
  EXPECT_EQ(sum.text(), (graph_traffic(*before) - graph_traffic(*g)).text());
  EXPECT_TRUE(sources.count("bn") == 1 && sources.count("r") == 1);
}

TEST(Pipeline, PassesAreSwitchedOffByNameAndGlob) {
  PipelineOptions options;
  options.disable = {"batch_norm_*", "fuse_layers"};
  const auto g = graph_of(kNet);
  run_pipeline(*g, options, nullptr);
  EXPECT_EQ(ops_of(*g), "Conv BatchNormalization Relu");
}

TEST(Pipeline, VerificationSeesBeforeAndAfterOfEachPassThatChanged) {
  PipelineOptions options;
  std::vector<std::string> seen;
  options.check = [&](const Pass& pass, const ir::Graph& before, const ir::Graph& after) {
    EXPECT_NE(ir::print(before), ir::print(after)) << pass.name;
    seen.emplace_back(pass.name);
  };
  const auto g = graph_of(kNet);
  run_pipeline(*g, options, nullptr);
  EXPECT_NE(std::find(seen.begin(), seen.end(), "batch_norm_fold"), seen.end());
  EXPECT_NE(std::find(seen.begin(), seen.end(), "fuse_layers"), seen.end());
}

TEST(Pipeline, IsDeterministicAndIdempotent) {
  const auto a = graph_of(kNet), b = graph_of(kNet);
  run_pipeline(*a, {}, nullptr);
  run_pipeline(*b, {}, nullptr);
  EXPECT_EQ(ir::print(*a), ir::print(*b));
  run_pipeline(*a, {}, nullptr);
  EXPECT_EQ(ir::print(*a), ir::print(*b));
}

TEST(Pipeline, NodeNamesAreUniqueAfterwards) {
  const auto g = graph_of(
      "graph \"\" (%x: f32[2,3]) {\n  const %g: f32[3] = {1, 2, 3}\n  %y = BatchNormalization(%x, %g, %g, "
      "%g, %g) \"bn\"\n  return %y\n}\n");
  PipelineOptions options;
  options.disable = {"fuse_*"};
  run_pipeline(*g, options, nullptr);
  std::set<std::string> names;
  for (const auto& n : g->nodes()) EXPECT_TRUE(names.insert(n->name).second);
  EXPECT_EQ(ops_of(*g), "Mul Add");
}

TEST(Pipeline, AnAttentionLayerOfThePyTorchExporter) {
  const auto g = graph_of(
      "graph \"\" (%x: f32[N,S,8], %m: i64[N,S]) {\n  const %wq: f32[8,8] = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, "
      "3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, "
      "6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, "
      "8}\n  const %b: f32[8] = {1, 2, 3, 4, 5, 6, 7, 8}\n"
      "  const %i0: i64[] = {0}\n  const %i1: i64[] = {1}\n  const %ax: i64[1] = {0}\n  const %h: i64[2] = "
      "{2, 4}\n  const %e: i64[1] = {8}\n"
      "  const %a12: i64[2] = {1, 2}\n  const %one: f32[] = {1}\n  const %low: f32[] = {-10000}\n  const %c: "
      "f32[] = {0.125}\n"
      "  %mu = Unsqueeze(%m, %a12)\n  %mf = Cast(%mu) {to = 1}\n  %ms = Sub(%one, %mf)\n  %mask = Mul(%ms, "
      "%low)\n"
      "  %sh = Shape(%x)\n  %n = Gather(%sh, %i0)\n  %s = Gather(%sh, %i1)\n  %nu = Unsqueeze(%n, %ax)\n  "
      "%su = Unsqueeze(%s, %ax)\n"
      "  %t4 = Concat(%nu, %su, %h) {axis = 0}\n  %t3 = Concat(%nu, %su, %e) {axis = 0}\n"
      "  %q0 = MatMul(%x, %wq)\n  %q1 = Add(%q0, %b)\n  %q2 = Reshape(%q1, %t4)\n  %q3 = Transpose(%q2) "
      "{perm = [0, 2, 1, 3]}\n"
      "  %k0 = MatMul(%x, %wq)\n  %k1 = Add(%b, %k0)\n  %k2 = Reshape(%k1, %t4)\n  %k3 = Transpose(%k2) "
      "{perm = [0, 2, 3, 1]}\n"
      "  %v0 = MatMul(%x, %wq)\n  %v2 = Reshape(%v0, %t4)\n  %v3 = Transpose(%v2) {perm = [0, 2, 1, 3]}\n"
      "  %s0 = MatMul(%q3, %k3)\n  %s1 = Mul(%s0, %c)\n  %s2 = Add(%s1, %mask)\n  %p = Softmax(%s2)\n  %o0 = "
      "MatMul(%p, %v3)\n"
      "  %o1 = Transpose(%o0) {perm = [0, 2, 1, 3]}\n  %o2 = Reshape(%o1, %t3)\n  %y = Add(%o2, %x)\n  "
      "return %y\n}\n");
  const auto before = g->clone();
  std::vector<LedgerRow> ledger;
  run_pipeline(*g, {}, &ledger);
  const std::string ops = ops_of(*g);
  EXPECT_NE(ops.find("Attention"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("Softmax"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("Shape Gather"), std::string::npos) << ops;
  EXPECT_EQ(ops.find("Transpose"), std::string::npos) << ops;
  expect_same_values(*before, *g, {{"N", 2}, {"S", 5}});
  ir::Dim sum = 0;
  for (const LedgerRow& row : ledger) sum = sum + row.bytes_not_moved;
  EXPECT_EQ(sum.text(), (graph_traffic(*before) - graph_traffic(*g)).text());
}

}  // namespace
}  // namespace hone::optimize::testing
