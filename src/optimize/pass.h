// A pass: a named rewrite of the whole graph, or a set of rule rows run to a fixed point.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/numerics.h"

namespace hone::optimize {

using ops::Numerics;

/// One application of a rewrite, for the ledger.
struct LedgerRow {
  std::string pass;                  ///< name of the pass or rule
  std::string node;                  ///< the node that resulted (or was removed)
  std::vector<std::string> sources;  ///< nodes that were merged
  /// Bytes of activations that no longer travel through memory: for each tensor that disappears, one write
  /// and one read per former reader, less the same for tensors that appear. Over a whole ledger this is
  /// exactly graph_traffic() before less graph_traffic() after. Symbolic where shapes are.
  ir::Dim bytes_not_moved;
};

struct PassContext {
  ir::Graph& graph;
  std::vector<LedgerRow>* ledger = nullptr;  ///< may be null
  int64_t fold_budget_bytes = 64 << 20;      ///< folding never makes a constant larger than this ...
  int64_t fold_growth_bytes =
      1 << 20;                     ///< ... nor one larger than this plus fold_growth_factor times its inputs
  int64_t fold_growth_factor = 8;  ///< what 4-bit weights widened to f32 need
  int changes = 0;                 ///< a pass adds the number of rewrites it made
  std::function<bool(const std::string&)> enabled;  ///< is a rule switched on? (null: all are)
  void record(const std::string& pass, const ir::Node& result, ir::Dim bytes_not_moved = 0);
  void record(LedgerRow row);
};

/// A row of the pass list. Header comments of each pass's file say what, when legal, why, with a small
/// example.
struct Pass {
  const char* name;
  const char* what;  ///< one line for --list-passes
  Numerics numerics;
  std::function<void(PassContext&)> run;
};

/// All passes and rules in pipeline order, each once.
std::vector<Pass> all_passes();

struct PipelineOptions {
  std::vector<std::string> disable;  ///< names or globs; HONE_DISABLE adds to it
  bool verify_structure = false;     ///< ir::verify after every pass (always on in debug builds)
  /// --verify: called after each pass that changed something; throws to stop, naming the pass.
  std::function<void(const Pass&, const ir::Graph& before, const ir::Graph& after)> check;
  std::function<void(const Pass&, int changes, double ms)> log;
};

/// The optimizer: one straight list of passes, each logged, timed, skippable by name; `ledger` gets a row per
/// rewrite.
void run_pipeline(ir::Graph& graph, const PipelineOptions& options, std::vector<LedgerRow>* ledger);

}  // namespace hone::optimize
