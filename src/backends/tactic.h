// A tactic: one way to run a Problem on one backend. Lists of tactics are explicit rows in each backend's
// tactics.inc, fastest first, ending in `ref`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "hone/tensor.h"
#include "ops/numerics.h"
#include "ops/problem.h"

namespace hone {
class ThreadPool;
}

namespace hone::backends {

using ops::Layout;
using ops::Numerics;
using ops::Operand;
using ops::Problem;

/// "No" is a value: why a tactic cannot run a problem. Reasons come from `unsupported` texts that name the
/// field that failed.
struct Support {
  bool ok = true;
  std::string reason;
  static Support yes() { return {}; }
  static Support no(std::string why) { return {false, std::move(why)}; }
  explicit operator bool() const { return ok; }
};

/// Pointers of one execution. srcs and dsts follow the problem's operands (null where absent); constants with
/// a packing arrive packed. Alignment: 64 bytes for constants, arena and workspace; the caller's inputs and
/// outputs are aligned to their element only. `workspace` has Prepared::workspace_bytes() bytes.
struct RunArgs {
  const void* const* srcs = nullptr;
  void* const* dsts = nullptr;
  void* workspace = nullptr;
  ThreadPool* pool = nullptr;  ///< never null
  int max_threads = 1;         ///< results do not depend on it
};

/// A tactic bound to concrete shapes: loop bounds, strides and generated code computed once.
/// Threads: run() is const and may be called concurrently with different RunArgs.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual int64_t workspace_bytes() const { return 0; }
  /// Errors: kInvalidData for contents that break the operator's rules (a bad index).
  virtual void run(const RunArgs& args) const = 0;
};

class Tactic {
 public:
  virtual ~Tactic() = default;
  /// As in docs/naming.md: op, in/accumulate dtypes, algorithm, tile, ISA: `conv_f32_igemm_14x32__avx512`.
  /// Stable: it is a cache key.
  virtual const std::string& name() const = 0;
  virtual Isa isa() const = 0;
  virtual Numerics numerics() const = 0;
  /// Sets the layouts this tactic wants. On entry the non-constant sources have the layouts in which they
  /// exist; the rest is plain. A tactic that can work with what it finds keeps it (the planner pays for every
  /// change with a reorder step). Called before supports().
  virtual void choose_layouts(Problem& problem) const;
  virtual Support supports(const Problem& problem) const = 0;
  /// Packing of a constant source, "" for the plain bytes. A packing's name says all of its parameters; see
  /// packing.h.
  virtual std::string packing(const Problem& problem, size_t src) const;
  /// REQUIRES supports(problem). Deterministic and quick (microseconds): runs at every change of shapes.
  virtual std::unique_ptr<Prepared> prepare(const Problem& problem) const = 0;
  /// May dsts[0] share srcs[i]'s memory (in-place)? Same size and layout is the planner's check.
  virtual bool in_place(const Problem& problem, size_t src) const;
};

}  // namespace hone::backends
