// For the tests of passes: graphs as IR text, passes by name, values through the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/infer.h"
#include "ops/interpreter.h"
#include "optimize/rewrite.h"

namespace hone::optimize::testing {

inline std::unique_ptr<ir::Graph> graph_of(const std::string& text) {
  auto graph = ir::parse(text);
  ops::infer_graph(*graph);
  EXPECT_EQ(ir::verify(*graph), std::vector<std::string>());
  return graph;
}

/// Runs passes by name, each once, in the order given; returns the number of rewrites. Checks structure and
/// that the ledger adds up.
inline int run_passes(ir::Graph& graph, const std::vector<std::string>& names,
                      std::vector<LedgerRow>* rows = nullptr) {
  std::vector<LedgerRow> ledger;
  PassContext ctx{graph};
  ctx.ledger = &ledger;
  const ir::Dim before = graph_traffic(graph);
  for (const std::string& name : names) {
    bool found = false;
    for (const Pass& pass : all_passes()) {
      if (name != pass.name) continue;
      pass.run(ctx);
      found = true;
    }
    EXPECT_TRUE(found) << "no pass " << name;
  }
  EXPECT_EQ(ir::verify(graph), std::vector<std::string>()) << ir::print(graph);
  ir::Dim sum = 0;
  for (const LedgerRow& row : ledger) sum = sum + row.bytes_not_moved;
  EXPECT_EQ(sum.text(), (before - graph_traffic(graph)).text()) << ir::print(graph);
  if (rows != nullptr) *rows = std::move(ledger);
  return ctx.changes;
}

/// The operators of a graph in order: "Conv Relu"; fused layers as "Fused(Conv Relu)".
inline std::string ops_of(const ir::Graph& graph) {
  std::string s;
  for (const auto& n : graph.nodes()) {
    if (!s.empty()) s += " ";
    s += n->op;
    if (n->body != nullptr) s += "(" + ops_of(*n->body) + ")";
  }
  return s;
}

/// Values for the graph's inputs: seeded, symbols bound to `symbols` (others to 2). Integers in [0, 3), bools
/// 0 or 1.
inline std::vector<Tensor> random_inputs(const ir::Graph& graph, unsigned seed = 1,
                                         const ir::SymbolValues& symbols = {}) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0F, 1.5F);
  std::vector<Tensor> inputs;
  for (const ir::ValueId id : graph.inputs()) {
    const ir::TypeInfo& t = graph.value(id).type;
    Shape shape;
    ir::SymbolValues bound = symbols;
    for (const ir::Dim& d : *t.shape) {
      std::vector<std::string> names;
      d.symbols(&names);
      for (const std::string& n : names) bound.emplace(n, 2);
      shape.push_back(*d.eval(bound));
    }
    Tensor wide(DType::kF32, shape);
    for (int64_t i = 0; i < wide.numel(); ++i) wide.data<float>()[i] = normal(rng);
    if (t.dtype == DType::kI64) {
      Tensor ints(DType::kI64, shape);
      for (int64_t i = 0; i < ints.numel(); ++i) ints.data<int64_t>()[i] = static_cast<int64_t>(rng() % 3U);
      inputs.push_back(ints);
    } else if (t.dtype == DType::kBool) {
      Tensor bools(DType::kBool, shape);
      for (int64_t i = 0; i < bools.numel(); ++i) bools.data<uint8_t>()[i] = static_cast<uint8_t>(rng() % 2U);
      inputs.push_back(bools);
    } else {
      inputs.push_back(t.dtype == DType::kF32 ? wide : ops::convert(wide, t.dtype));
    }
  }
  return inputs;
}

/// Largest distance of two lists of tensors, relative to the largest magnitude; infinite when shapes, dtypes
/// or classes of value differ.
inline double distance(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].dtype() != b[k].dtype() || a[k].shape() != b[k].shape()) return INFINITY;
    double diff = 0, top = 1e-30;
    for (int64_t i = 0; i < a[k].numel(); ++i) {
      const double x = a[k].at(i), y = b[k].at(i);
      if (std::isnan(x) != std::isnan(y) ||
          (std::isinf(x) || std::isinf(y) ? x != y && !std::isnan(x) : false))
        return INFINITY;
      if (std::isnan(x) || std::isinf(x)) continue;
      diff = std::fmax(diff, std::fabs(x - y));
      top = std::fmax(top, std::fabs(x));
    }
    worst = std::fmax(worst, diff / top);
  }
  return worst;
}

/// The rewrite keeps what the graph computes: f64 interpretation before and after on seeded inputs.
inline void expect_same_values(const ir::Graph& before, const ir::Graph& after,
                               const ir::SymbolValues& symbols = {}, double limit = 1e-9) {
  ops::InterpretOptions oracle;
  oracle.oracle = true;
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const std::vector<Tensor> inputs = random_inputs(before, seed, symbols);
    const auto x = ops::interpret(before, inputs, oracle), y = ops::interpret(after, inputs, oracle);
    EXPECT_LE(distance(x, y), limit) << "before:\n" << ir::print(before) << "after:\n" << ir::print(after);
  }
}

/// Runs passes on a copy, expects the operators that should stand then, and the same values.
inline std::unique_ptr<ir::Graph> expect_ops(const std::string& text, const std::vector<std::string>& passes,
                                             const std::string& ops, const ir::SymbolValues& symbols = {},
                                             double limit = 1e-9) {
  const auto before = graph_of(text);
  auto after = before->clone();
  run_passes(*after, passes);
  EXPECT_EQ(ops_of(*after), ops) << ir::print(*after);
  expect_same_values(*before, *after, symbols, limit);
  return after;
}

/// The passes change nothing.
inline void expect_unchanged(const std::string& text, const std::vector<std::string>& passes) {
  const auto graph = graph_of(text);
  const std::string before = ir::print(*graph);
  EXPECT_EQ(run_passes(*graph, passes), 0) << ir::print(*graph);
  EXPECT_EQ(ir::print(*graph), before);
}

}  // namespace hone::optimize::testing
