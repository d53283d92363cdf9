// The optimizer on real graphs: optimised and unoptimised agree in f64, whichever rewrite is switched off.
//
// The graphs are those of tests/graphs, restored by scripts/graphs.py into build/graphs (or the directory
// that HONE_GRAPHS names).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "onnx/import.h"
#include "optimize/testing.h"
#include "support/paths.h"

namespace hone {
namespace {

std::filesystem::path graph_file(const std::string& name) {
  std::vector<std::filesystem::path> places = {test::build_dir() / "graphs",
                                               test::source_dir() / "build" / "graphs"};
  if (const char* given = std::getenv("HONE_GRAPHS"); given != nullptr) places.insert(places.begin(), given);
  for (const auto& place : places)
    if (std::filesystem::exists(place / (name + ".onnx"))) return place / (name + ".onnx");
  return {};
}

struct Case {
  const char* name;
  ir::SymbolValues symbols;
  bool each;  // also with each pass that fires switched off
};

// Constants are folded in their own type, f32: what f64 sees of that is a rounding of the weights.
constexpr double kLimit = 1e-6;

class SlowOptimizedGraphs : public ::testing::TestWithParam<Case> {};

TEST_P(SlowOptimizedGraphs, ComputeTheSame) {
  const Case& c = GetParam();
  const std::filesystem::path file = graph_file(c.name);
  if (file.empty()) GTEST_SKIP() << c.name << " is not restored; scripts/graphs.py build/graphs does that";
  const ir::Model model = onnx::import_model(file.string());
  const auto inputs = optimize::testing::random_inputs(*model.graph, 7, c.symbols);
  ops::InterpretOptions oracle;
  oracle.oracle = true;
  const auto right = ops::interpret(*model.graph, inputs, oracle);
  std::vector<std::string> fired;
  const auto check = [&](const std::vector<std::string>& off, bool note) {
    auto graph = model.graph->clone();
    std::vector<optimize::LedgerRow> ledger;
    optimize::PipelineOptions options;
    options.verify_structure = true;
    options.disable = off;
    options.log = [&](const optimize::Pass& pass, int, double) {
      if (note && std::find(fired.begin(), fired.end(), pass.name) == fired.end())
        fired.emplace_back(pass.name);
    };
    optimize::run_pipeline(*graph, options, &ledger);
    EXPECT_LE(optimize::testing::distance(right, ops::interpret(*graph, inputs, oracle)), kLimit)
        << "without " << (off.empty() ? "-" : off[0]);
    ir::Dim sum = 0;
    for (const auto& row : ledger) sum = sum + row.bytes_not_moved;
    EXPECT_EQ(sum.text(), (optimize::graph_traffic(*model.graph) - optimize::graph_traffic(*graph)).text());
    return graph->num_nodes();
  };
  EXPECT_LT(check({}, true), model.graph->num_nodes());
  if (!c.each) return;
  for (const std::string& name : fired) check({name}, false);
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, SlowOptimizedGraphs,
    ::testing::Values(Case{"squeezenet1_1.dynamo", {}, true}, Case{"mobilenet_v2.script", {}, true},
                      Case{"resnet18.dynamo", {}, false}, Case{"shufflenet_v2_x1_0.dynamo", {}, true},
                      Case{"electra_small.dynamo", {}, true}, Case{"llama_small.dynamo", {}, true},
                      Case{"lstm_gru_tagger.dynamo", {}, true}, Case{"wav2vec2.dynamo", {}, false},
                      Case{"detr_like_segformer.dynamo", {}, true}, Case{"efficientvit_b0.dynamo", {}, true},
                      Case{"bert_base.script", {{"batch", 2}, {"seq", 7}}, false}),
    [](const auto& graph) {
      std::string name = graph.param.name;
      for (char& ch : name)
        if (ch == '.') ch = '_';
      return name;
    });

}  // namespace
}  // namespace hone
