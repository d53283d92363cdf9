// A problem's post-ops as the epilogue of a matrix-shaped kernel: rows x columns, where a row is everything
// but the innermost dimension in the destination's memory order. Operations that the kernels know run in the
// register tile or in L1; when one of them does not fit, the whole list becomes a pointwise program that is
// called on each finished piece of a row.
#pragma once

#include <array>
#include <vector>

#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/pw_runner.h"
#include "backends/tactic.h"

namespace hone::backends::cpu {

class FusedPost {
 public:
  static constexpr int kMaxOps = 12;

  FusedPost() = default;
  /// REQUIRES post_supports(problem, channel_axis). `channel_axis` as there. `lead` operations run before the
  /// post-ops (Gemm's alpha and C).
  FusedPost(const Problem& problem, int channel_axis, Isa isa);

  /// Pointers of one run. Lives on the caller's stack while the kernel runs.
  struct Run {
    std::array<hone::cpu::EpilogueOp, kMaxOps> ops;
    int n_ops = 0;
    const PwRunner* program = nullptr;
    const void* const* srcs = nullptr;
    int64_t columns = 0;
    hone::cpu::Epilogue epilogue() const { return {ops.data(), n_ops}; }
    void push(const hone::cpu::EpilogueOp& op) { ops[static_cast<size_t>(n_ops++)] = op; }
  };
  /// Appends this list's operations to `run`.
  void start(const RunArgs& args, Run* run) const;

  /// An operand with the given strides per destination dimension in memory order as rows x columns; nullopt
  /// when it does not fit the form.
  static std::optional<hone::cpu::EpilogueOperand> as_rows(const Shape& memory_extents,
                                                           const std::vector<int64_t>& strides);

 private:
  struct Op {
    hone::cpu::EpilogueOp op;
    int src = -1;  ///< pointer to patch in
  };
  std::vector<Op> ops_;
  PwRunner program_;
  int64_t columns_ = 0;
};

}  // namespace hone::backends::cpu
