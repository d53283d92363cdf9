// PwRunner: a pointwise program bound to one destination and its broadcast sources. It is the Pointwise
// tactic, and the post-ops of every other f32 tactic: those write a piece of their result and let the runner
// pass over it while it is still in the first-level cache.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/kernels/pointwise.h"
#include "backends/tactic.h"

namespace hone::backends::cpu {

/// One source of a program: which run-time pointer it reads and how it lies against the destination's logical
/// dimensions.
struct PwSource {
  int arg = -1;  ///< index into RunArgs::srcs; -1 is the destination itself (the running value)
  std::vector<int64_t> strides;  ///< elements, one a destination dimension, 0 where broadcast
};

/// Strides of an operand against a destination shape, right-aligned as NumPy has it; `axis` >= 0 puts a
/// rank-1 operand there instead. Errors: nullopt when it does not broadcast.
std::optional<std::vector<int64_t>> pw_strides(const Operand& operand, const Shape& dst, int axis = -1);

class PwRunner {
 public:
  PwRunner() = default;
  /// Errors: kInternal when program and sources do not fit.
  PwRunner(const ops::PwProgram& program, const Shape& dst, Layout layout, std::vector<PwSource> sources,
           Isa isa);

  /// False for a default-made runner, whose run() does nothing.
  bool active() const { return active_; }
  /// Computes elements [begin, end) of dst, counted in its memory order. srcs are the problem's run-time
  /// pointers. Threads: disjoint ranges may run at once. Results do not depend on how a range is cut.
  void run(float* dst, const void* const* srcs, int64_t begin, int64_t end) const;
  /// The same for a piece of the destination that lies elsewhere: buf[0] stands for element `begin`.
  void run_at(float* buf, const void* const* srcs, int64_t begin, int64_t end) const;
  /// Elements that make one good unit of parallel work.
  int64_t grain() const { return grain_; }

  static constexpr int kMaxSlots = 32;  ///< live intermediate values
  static constexpr int64_t kChunk = 512;

  /// Why a program cannot run, or empty.
  static std::string unsupported(const ops::PwProgram& program);

 private:
  enum class Kind : uint8_t {
    kDense,
    kOne,
    kFill,
    kPeriodic
  };  ///< of a source within a chunk; the last two go through a slot
  struct Step {
    hone::cpu::PwFn fn;
    int dst, a, b, c;
    bool one;  ///< every operand is one value, so the result is; it is computed once a chunk
    float alpha, beta;
  };

  void classify(const Shape& dst, Layout layout);
  void compile(const ops::PwProgram& program);
  void execute(const float** regs, float* out, int64_t n) const;
  void run_rows(float* buf, const void* const* srcs, int64_t begin, int64_t end) const;
  void run_spans(float* buf, const void* const* srcs, int64_t begin, int64_t end) const;
  void gather(const float* src, size_t k, int64_t begin, int64_t n, float* out) const;

  bool active_ = false;
  Isa isa_ = Isa::kPortable;
  std::vector<PwSource> sources_;
  std::vector<int64_t> extents_;               ///< collapsed, in memory order
  std::vector<std::vector<int64_t>> strides_;  ///< [source][collapsed dimension]
  std::vector<Kind> kinds_;
  std::vector<int> source_slot_;  ///< scratch slot of a materialised source
  std::vector<float> consts_;
  std::vector<Step> steps_;
  std::vector<int> reg_slot_;   ///< scratch slot of each register that has one, else -1
  std::vector<int> reg_const_;  ///< index into consts_ of each register that has one, else -1
  int num_regs_ = 0;
  int slots_ = 0;
  int64_t inner_ = 1;
  bool rows_ = true;  ///< a chunk never crosses a row of the innermost collapsed dimension
  int64_t chunk_ = kChunk;
  int64_t grain_ = kChunk;
};

/// Post-ops of a problem as one program over its first destination. `channel_axis` places rank-1 bias and
/// scale: 1 for conv-like anchors, -1 for the last dimension. supports: the reason when a kind or an operand
/// is not for this runner.
Support post_supports(const Problem& problem, int channel_axis);
/// REQUIRES post_supports. An inactive runner when there are no post-ops.
PwRunner make_post(const Problem& problem, int channel_axis, Isa isa);

}  // namespace hone::backends::cpu
