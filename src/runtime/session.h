// Runs engines. A Session shares one Engine with any number of others; each holds the memory of one execution
// at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/tactic.h"
#include "base/thread_pool.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"

namespace hone::runtime {

/// An engine's plan evaluated for one set of input shapes: sizes, offsets, prepared steps. Immutable, shared
/// by sessions.
struct Bound {
  ir::SymbolValues symbols;
  std::vector<Shape> shapes;  ///< per plan value; empty vector + !known for dynamic ones
  std::vector<char> known;    ///< is shapes[i] final?
  std::vector<int64_t>
      offsets;  ///< arena offset per plan value (root of an alias chain), -1 outside the arena
  std::vector<int64_t> workspace_offsets;  ///< per step
  std::vector<std::unique_ptr<backends::Prepared>>
      prepared;                  ///< per step; null for aliases, host ops and steps with unknown shapes
  std::vector<int64_t> bytes;    ///< per plan value
  std::vector<int> first, last;  ///< steps that define and last use a value (alias roots)
  engine::MemoryPlan memory;
  int bucket = 0;
  std::vector<std::string> events;  ///< outside the tuned range, ...
};

/// Binds; throws kInvalidArgument naming the input when shapes contradict the model or leave every profile,
/// kOutOfMemory when the arena exceeds `max_memory` (bytes, 0: no limit), naming the tensors live at the
/// peak.
std::shared_ptr<const Bound> bind(const engine::Engine& engine, const std::vector<Shape>& input_shapes,
                                  int64_t max_memory = 0);

/// Predicted memory of a bound plan: live tensors at the peak step, for reports and for the out-of-memory
/// error.
std::string describe_peak(const engine::Engine& engine, const Bound& bound);

struct StepObservation {
  int step;
  double time_ns;
};

struct RunOptions {
  int threads = 0;  ///< cap for this run; 0: the pool's size. The result does not depend on it.
  /// Taps: called after the step that produced the value. The tensor (plain layout) lives for the call.
  std::function<void(engine::PlanId, const Tensor&)> tap;
  std::vector<engine::PlanId> tap_values;
  std::vector<double>* step_ns = nullptr;  ///< resized to the number of steps; time of each
};

/// Threads: one run at a time per Session; sessions of one engine run concurrently and give the same bits.
class Session {
 public:
  explicit Session(std::shared_ptr<const engine::Engine> engine, int64_t max_memory = 0);
  ~Session();

  /// Inputs in the order of plan.inputs, plain layout. Outputs in the order of plan.outputs, owned by the
  /// caller. Errors: kInvalidArgument (count, dtype, shape), kInvalidData, kOutOfMemory; the session stays
  /// usable.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const RunOptions& options = {});
  /// The same into the caller's buffers: `outputs` has the right dtypes and shapes (see output_shapes).
  void run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                const RunOptions& options = {});

  const Bound& bound() const { return *bound_; }  ///< REQUIRES a run or prepare() before
  void prepare(const std::vector<Shape>& input_shapes);
  int64_t arena_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::shared_ptr<const Bound> bound_;
};

}  // namespace hone::runtime
