// Softmax, LogSoftmax and LpNormalization along any axis of either layout.
#include <algorithm>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/softmax.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"

namespace hone::backends::cpu {
namespace {

using hone::cpu::AxisNorm;

constexpr int64_t kDefaultAxis = -1;

AxisNorm kind_of(const Problem& p) {
  if (p.op == "Softmax") return AxisNorm::kSoftmax;
  if (p.op == "LogSoftmax") return AxisNorm::kLogSoftmax;
  return ir::attr_int(p.attrs, "p", 2) == 1 ? AxisNorm::kL1 : AxisNorm::kL2;
}

class SoftmaxPrepared final : public Prepared {
 public:
  SoftmaxPrepared(const Problem& p, Isa isa)
      : kind_(kind_of(p)),
        axis_(memory_axis(p.srcs[0], ir::attr_int(p.attrs, "axis", kDefaultAxis))),
        row_(HONE_PICK_ISA(isa, axis_norm_row)),
        columns_(HONE_PICK_ISA(isa, axis_norm_columns)),
        post_(make_post(p, -1, isa)) {}

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const float*>(args.srcs[0]);
    auto* dst = static_cast<float*>(args.dsts[0]);
    const auto [outer, n, inner] = axis_;
    if (n == 0) return;
    if (inner == 1) {
      parallel_ranges(args, outer, row_grain(n * 8), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          row_(kind_, src + r * n, dst + r * n, n);
          post_.run(dst, args.srcs, r * n, (r + 1) * n);
        }
      });
      return;
    }
    const int64_t blocks = (inner + hone::cpu::kAxisColumns - 1) / hone::cpu::kAxisColumns;
    parallel_ranges(args, outer * blocks, row_grain(n * 8 * std::min(inner, hone::cpu::kAxisColumns)),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t col = i % blocks * hone::cpu::kAxisColumns;
                        const int64_t at = i / blocks * n * inner + col;
                        columns_(kind_, src + at, dst + at, n, inner,
                                 std::min(hone::cpu::kAxisColumns, inner - col));
                      }
                    });
    if (post_.active())
      parallel_ranges(args, outer * n * inner, post_.grain(),
                      [&](int64_t b, int64_t e) { post_.run(dst, args.srcs, b, e); });
  }

 private:
  AxisNorm kind_;
  MemoryAxis axis_;
  decltype(&hone::cpu::portable::axis_norm_row) row_;
  decltype(&hone::cpu::portable::axis_norm_columns) columns_;
  PwRunner post_;
};

class Softmax final : public CpuTactic {
 public:
  explicit Softmax(Isa isa) : CpuTactic("softmax_f32_rows", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { follow_layout(p); }
  Support supports(const Problem& p) const override {
    if (const Support s = require_f32(p); !s) return s;
    if (const Support s = same_shape_unary(p); !s) return s;
    if (!axis_in_range(ir::attr_int(p.attrs, "axis", kDefaultAxis), p.srcs[0].dims))
      return Support::no("axis: out of range");
    const int64_t power = ir::attr_int(p.attrs, "p", 2);
    if (p.op == "LpNormalization" && power != 1 && power != 2) return Support::no("p: neither 1 nor 2");
    return post_supports(p, -1);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<SoftmaxPrepared>(p, isa());
  }
  bool in_place(const Problem&, size_t src) const override { return src == 0; }
};

}  // namespace

std::unique_ptr<Tactic> make_softmax(Isa isa) { return std::make_unique<Softmax>(isa); }

}  // namespace hone::backends::cpu
