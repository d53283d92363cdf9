// Runs engines and, on the reference, models.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hone/engine.h"
#include "hone/tensor.h"

namespace hone {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct SessionOptions {
  int threads = 0;  ///< cap, 0: every core of the process's affinity mask. Results do not depend on it.
  int64_t max_memory = 0;  ///< bytes of arena allowed, 0: no limit
};

/// One execution context. Threads: one call at a time; any number of sessions of one engine run concurrently
/// and give the same bits.
class Session {
 public:
  explicit Session(Engine engine, SessionOptions options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Inputs by name in any order; outputs in the engine's order.
  /// Errors: kInvalidArgument (missing, unknown, wrong dtype or shape, each input named), kInvalidData,
  /// kOutOfMemory; the session stays usable.
  std::vector<NamedTensor> run(const std::vector<NamedTensor>& inputs);
  /// The same by position, into buffers of the right dtypes and shapes (undefined tensors are allocated).
  void run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

  /// Calls `fn` for every named tensor during later runs, in plain layout. An unknown name throws
  /// kInvalidArgument with the nearest names.
  void tap(const std::vector<std::string>& names, std::function<void(const std::string&, const Tensor&)> fn);
  /// Time of each step of the last run, in the order of EngineInfo::layers, once enabled.
  void profile(bool on);
  const std::vector<double>& step_ns() const;

  /// What the binding for the last shapes needed, and its events (outside the tuned range, ...).
  MemoryInfo memory() const;
  std::vector<std::string> events() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The imported graph, unoptimised, on reference kernels. `oracle`: f64 without rounding, float outputs come
/// back as f64. On an engine file: its stored graph.
std::vector<NamedTensor> run_reference(const std::string& model_or_engine,
                                       const std::vector<NamedTensor>& inputs, bool oracle = false);
/// The same with the graph kept between runs.
class Reference {
 public:
  explicit Reference(const std::string& model_or_engine);
  ~Reference();
  std::vector<NamedTensor> run(const std::vector<NamedTensor>& inputs, bool oracle = false);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Seeded random inputs for a model or engine: floats normal(0,1), integers in [0, 10), bools fair; symbolic
/// dimensions 1 unless `shapes` names them.
std::vector<NamedTensor> random_inputs(const std::vector<TensorInfo>& inputs,
                                       const std::vector<std::pair<std::string, Shape>>& shapes,
                                       uint64_t seed);

}  // namespace hone
