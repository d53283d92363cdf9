// What commands found out, before it is printed as text or JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hone/bench.h"
#include "hone/builder.h"
#include "hone/engine.h"

namespace hone::cli {

struct CheckResult {
  std::string model, target;
  std::vector<TensorInfo> inputs, outputs;  ///< empty when import failed
  std::vector<Issue> issues;
  int exit = 0;
};

struct BuildResult {
  std::string model, engine, timing_cache;
  int64_t model_bytes = 0, engine_bytes = 0;
  double seconds = 0;
  bool tuned = false;
  BuildReport report;
  EngineInfo info;
};

struct SimplifyResult {
  std::string model, out;
  double seconds = 0;
  BuildReport report;
};

struct OutputSummary {
  std::string name, dtype;
  Shape shape;          ///< of one sample
  bool numeric = true;  ///< strings and complex numbers have no range
  double min = 0, max = 0, mean = 0;
  int64_t elements = 0, nan = 0, infinite = 0;
  bool tap = false;
};

struct RunResult {
  std::string path, backend, outputs;
  int64_t samples = 0;
  double load_ms = 0, run_ms = 0;  ///< run_ms: all samples
  int64_t peak_rss_bytes = 0;      ///< of the process so far
  bool random_inputs = false;
  std::vector<OutputSummary> values;
  std::vector<std::string> events;
};

struct BenchResult {
  std::string path;
  std::vector<std::pair<std::string, Shape>> shapes;
  EngineInfo info;
  BenchReport report;
  bool built = false;  ///< the engine was built in memory from a model
};

struct InspectResult {
  std::string path, manifest;
  std::optional<EngineInfo> info;
  std::string why;        ///< why there is no info
  bool verified = false;  ///< every byte was checked
  bool from_model = false;
  std::optional<BuildReport> report;
  std::vector<std::string> tap_names;
};

struct LayerDiff {
  std::string name;
  const LayerInfo *a = nullptr, *b = nullptr;  ///< null where a side has no such layer
};
struct EngineDiff {
  std::string path_a, path_b;
  EngineInfo a, b;
  std::vector<LayerDiff> layers;  ///< those that differ
  int64_t same_layers = 0;
};

struct ArrayDiff {
  std::string name, type_a, type_b;  ///< empty where a side has no such array
  int64_t elements = 0, nan_a = 0, nan_b = 0, mismatched = 0;
  double max_abs = 0, max_rel = 0, rel_l2 = 0, cosine = 1;
  int64_t worst_index = -1;
  bool compared = false, equal = false, pass = false;
  std::string why;  ///< of a failure
};
struct TensorDiff {
  std::string path_a, path_b, limits;
  std::vector<ArrayDiff> arrays;
  bool pass = true;
};

struct TuneResult {
  std::string model, cache, engine;
  BuildReport report;
  EngineInfo info;
  double seconds = 0;
};

}  // namespace hone::cli
