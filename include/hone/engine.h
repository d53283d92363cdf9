// An engine: a compiled model, in memory or as one file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hone/tensor.h"

namespace hone {

namespace engine {
struct Engine;
}

/// Name, element type and dimensions of an input or output; a dimension is an integer or an expression ("N",
/// "2*S+1").
struct TensorInfo {
  std::string name;
  DType dtype = DType::kUndefined;
  std::vector<std::string> dims;
  bool ranked =
      true;  ///< false when the model does not say how many dimensions there are; dims is empty then
};

/// An operand of a step, at the shapes for which the information was asked.
struct LayerTensor {
  std::string name;
  DType dtype = DType::kUndefined;
  Shape shape;
  std::string layout;  ///< physical layout, "plain" is ONNX order
  bool constant = false;
};

/// One step of the plan. Figures are at the shapes for which the information was asked.
struct LayerInfo {
  std::string name;     ///< name of the node in the optimised graph
  std::string kind;     ///< tactic, reorder, host, alias
  std::string op;       ///< operator of the anchor
  std::string tactic;   ///< name of the tactic; empty for aliases
  std::string problem;  ///< problem string: repeats this layer in tests, benchmarks and the timing cache
  std::string requested, actual;     ///< precision asked for and run
  std::string reason;                ///< why they differ, or why this is a fallback; empty otherwise
  std::vector<std::string> sources;  ///< nodes of the model that it stands for
  std::vector<std::string> passes;   ///< rewrites that made it
  double tuned_time_ns = 0;          ///< measured while building, 0 when untimed
  double tuned_error = -1;           ///< relative L2 against the oracle while tuning, -1 when not measured
  int64_t bytes_read = 0, bytes_written = 0, weight_bytes = 0, workspace_bytes = 0;
  double flops = 0;
  std::vector<LayerTensor> inputs, outputs;
};

/// One rewrite of the optimizer and the activation bytes that it saves from travelling through memory.
struct LedgerInfo {
  std::string pass, node;
  std::vector<std::string> sources;
  int64_t bytes_not_moved = 0;  ///< at the shapes asked for
  std::string formula;          ///< the same as an expression over symbols
};

/// Minimum, optimum and maximum shape of one input in one optimization profile.
struct ProfileInfo {
  std::string input;
  Shape min, opt, max;
};

struct MemoryInfo {
  int64_t arena_bytes = 0;      ///< planned activation memory, workspaces included
  int64_t peak_live_bytes = 0;  ///< largest sum of live bytes over the steps: no plan can do with less
  int64_t weights_bytes = 0;
  std::string peak;  ///< tensors live at the peak, one a line
};

struct EngineInfo {
  std::string target;  ///< "cpu-avx512"
  bool timed = false;  ///< tactics were measured rather than chosen by rule
  std::string model_hash, options_json;
  std::string body_hash;  ///< identity of the file, empty for an engine that was never written
  int64_t file_bytes = 0;
  std::vector<TensorInfo> inputs, outputs;
  std::vector<std::vector<ProfileInfo>> profiles;
  std::vector<LayerInfo> layers;
  std::vector<LedgerInfo> ledger;
  int64_t ledger_bytes = 0;  ///< sum over the ledger
  int64_t unfused_bytes =
      0;  ///< activation traffic of the imported graph: each tensor written once and read by each reader
  MemoryInfo memory;
  std::vector<std::string> records;  ///< JSON documents appended to the file (times, verdicts)
};

/// A handle; copies share the engine.
/// Threads: const use from any number of threads.
class Engine {
 public:
  Engine() = default;
  explicit Engine(std::shared_ptr<const engine::Engine> impl) : impl_(std::move(impl)) {}

  /// Maps the file; nothing in it is trusted. `verify` recomputes the checksum of every byte.
  /// Errors: kCorruptEngine; kUnsupported with built-for and found when another machine or version is needed.
  static Engine load(const std::string& path, bool verify = false);
  /// True when the file starts like an engine.
  static bool is_engine(const std::string& path);
  /// Writes by rename: the file is whole or absent.
  void save(const std::string& path) const;
  /// Appends a JSON record that names the body hash.
  static void append_record(const std::string& path, const std::string& json);

  /// `shapes` (one per input; empty: opt shapes of the first profile) give the figures their dimensions.
  EngineInfo info(const std::vector<Shape>& shapes = {}) const;
  /// Header and manifest of a file as JSON, without mapping weights and whatever machine it was built for.
  static std::string manifest(const std::string& path);
  /// The optimised graph in IR text, constants by number.
  const std::string& graph_text() const;
  std::vector<TensorInfo> inputs() const;
  std::vector<TensorInfo> outputs() const;
  /// Names that taps accept: every tensor at a fused boundary.
  std::vector<std::string> tap_names() const;

  explicit operator bool() const { return impl_ != nullptr; }
  const std::shared_ptr<const engine::Engine>& impl() const { return impl_; }

 private:
  std::shared_ptr<const engine::Engine> impl_;
};

}  // namespace hone
