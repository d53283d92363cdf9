// Compiles an ONNX model into an engine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "hone/engine.h"

namespace hone {

/// Range of one input. Empty shapes: the model's own, symbols as in DESIGN 5 (min 1, opt 1, max 2^31 - 1).
struct ProfileSpec {
  std::map<std::string, Shape> min, opt, max;
};

struct BuildOptions {
  std::string target = "cpu";         ///< "cpu" (this machine's best ISA), "cpu-avx2", "cpu-portable", "ref"
  std::vector<ProfileSpec> profiles;  ///< none: one profile at the shapes below
  std::map<std::string, Shape>
      shapes;                        ///< opt shapes by input; a static dimension of the model is overridden
  int64_t batch = 0;                 ///< first dimension of every input, 0: as the model says or 1
  bool strict_f32 = false;           ///< IEEE f32 products and sums only
  std::vector<std::string> disable;  ///< passes or rules by name or glob
  bool verify = false;  ///< run the graph before and after each rewrite on seeded inputs; stop at the first
                        ///< that changes too much
  bool tune = false;    ///< time tactics; else heuristic order, or the timing cache where it has entries
  std::string timing_cache_file;  ///< read when it exists, written after tuning
  bool error_on_timing_cache_miss = false;
  int64_t max_memory = 0;     ///< bytes of arena allowed, 0: no limit
  int64_t max_workspace = 0;  ///< bytes of workspace a step may use (--memPoolSize=workspace:), 0: no limit
  bool override_initializers = false;  ///< initializers that are also inputs stay inputs (IR < 4 models)
  std::function<void(const std::string& phase, int64_t done, int64_t total)> progress;
};

/// One entry of a report of problems; `remedy` says what to do and is never empty for errors.
struct Issue {
  std::string severity;  ///< error, warning, note
  std::string stage;     ///< import, infer, plan
  std::string node, op;
  int64_t opset = 0;
  std::string tensor, message, remedy;
  std::string code;  ///< from check(): error_code_name of the error that a build would end in; empty for
                     ///< warnings and notes
};

struct PassInfo {
  std::string name, what, numerics;
  int changes = 0;
  double ms = 0;
};

struct BuildReport {
  std::vector<Issue> issues;  ///< warnings and notes; errors throw
  std::vector<PassInfo> passes;
  int64_t nodes_imported = 0, nodes_optimised = 0;
  double import_ms = 0, optimize_ms = 0, tune_ms = 0, plan_ms = 0;
  int64_t tactics_timed = 0, cache_hits = 0, cache_misses = 0;
};

/// The whole path: import, infer, optimise, plan, tune. The result is a function of model, options and timing
/// cache alone. Errors: kInvalidModel, kUnsupported (every unsupported node at once), kNoTactic,
/// kInvalidArgument, kOutOfMemory.
Engine build(const std::string& model_path, const BuildOptions& options, BuildReport* report = nullptr);

/// Plans an engine's stored graph again with its own profiles, target and flags, timing tactics as `options`
/// say (tune, timing cache, memory limits, progress; the rest is the engine's). The result differs in tactics
/// alone. Errors: as build().
Engine retune(const Engine& engine, const BuildOptions& options, BuildReport* report = nullptr);

/// Everything that is wrong with a model, and what would fall back, in one pass. Never throws for what the
/// model contains.
std::vector<Issue> check(const std::string& model_path, const BuildOptions& options = {});

/// The optimised graph as ONNX, lowest opset that its operators accept (`opset` 0) or the one given.
void simplify(const std::string& model_path, const std::string& out_path, const BuildOptions& options,
              int opset = 0, BuildReport* report = nullptr);

/// All passes and rules in pipeline order.
std::vector<PassInfo> list_passes();
/// All operators: domain, name, newest version, and the backends that have a tactic of their own.
struct OpInfo {
  std::string domain, name;
  int since = 0;
  bool reference = false;
  std::vector<std::string> backends;
};
std::vector<OpInfo> list_ops();
/// Inputs and outputs of a model file without building it.
void model_interface(const std::string& model_path, std::vector<TensorInfo>* inputs,
                     std::vector<TensorInfo>* outputs);

}  // namespace hone
