// Reduce* over any dimensions of either layout, GlobalAveragePool and GlobalMaxPool.
#include <algorithm>
#include <optional>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/reduce.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"

namespace hone::backends::cpu {
namespace {

using hone::cpu::Reduction;

constexpr int64_t kMaxOffsets = 1 << 16;  ///< prepare stays quick

struct Name {
  const char* op;
  Reduction kind;
};
constexpr Name kNames[] = {{"ReduceSum", Reduction::kSum},
                           {"ReduceMean", Reduction::kMean},
                           {"ReduceMax", Reduction::kMax},
                           {"ReduceMin", Reduction::kMin},
                           {"ReduceProd", Reduction::kProd},
                           {"ReduceL1", Reduction::kL1},
                           {"ReduceL2", Reduction::kL2},
                           {"ReduceLogSum", Reduction::kLogSum},
                           {"ReduceLogSumExp", Reduction::kLogSumExp},
                           {"ReduceSumSquare", Reduction::kSumSquare},
                           {"GlobalAveragePool", Reduction::kMean},
                           {"GlobalMaxPool", Reduction::kMax}};

std::optional<Reduction> kind_of(const Problem& p) {
  for (const Name& n : kNames)
    if (p.op == n.op) return n.kind;
  return std::nullopt;
}

bool is_global(const Problem& p) { return p.op.starts_with("Global"); }
bool keeps_dims(const Problem& p) { return is_global(p) || ir::attr_int(p.attrs, "keepdims", 1) != 0; }

/// Which logical dimensions go; nullopt when the axes are known only at run time or are out of range.
std::optional<std::vector<bool>> reduced_dims(const Problem& p) {
  const Shape& x = p.srcs[0].dims;
  std::vector<bool> reduced(x.size(), false);
  if (is_global(p)) {
    for (size_t d = 2; d < x.size(); ++d) reduced[d] = true;
    return reduced;
  }
  std::vector<int64_t> axes = ir::attr_ints(p.attrs, "axes");
  if (p.num_anchor_srcs > 1 && p.srcs[1].present()) {
    if (!p.srcs[1].contents) return std::nullopt;
    axes = *p.srcs[1].contents;
  }
  if (axes.empty()) {
    reduced.assign(x.size(), ir::attr_int(p.attrs, "noop_with_empty_axes", 0) == 0);
    return reduced;
  }
  for (const int64_t a : axes) {
    if (!axis_in_range(a, x)) return std::nullopt;
    reduced[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(x.size()) : a)] = true;
  }
  return reduced;
}

/// A dimension, or several merged ones, in the source's memory order.
struct Run {
  bool reduced;
  int64_t extent, src, dst;  ///< strides in elements
};

std::optional<std::vector<Run>> make_runs(const Problem& p) {
  const auto reduced = reduced_dims(p);
  if (!reduced) return std::nullopt;
  const Operand &x = p.srcs[0], &y = p.dsts[0];
  const int rank = static_cast<int>(x.dims.size());
  const std::vector<int64_t> src = ops::layout_strides(x.layout, x.dims),
                             dst = ops::layout_strides(y.layout, y.dims);
  std::vector<int64_t> dst_of(x.dims.size(), 0);
  size_t at = 0;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (!(*reduced)[d]) dst_of[d] = dst.at(keeps_dims(p) ? d : at++);
  }
  std::vector<Run> runs;
  for (const int od : ops::layout_order(x.layout, rank)) {
    const auto d = static_cast<size_t>(od);
    if (x.dims[d] == 1) continue;
    const Run r{(*reduced)[d], x.dims[d], src[d], dst_of[d]};
    if (!runs.empty() && runs.back().reduced == r.reduced && runs.back().src == r.src * r.extent &&
        (r.reduced || runs.back().dst == r.dst * r.extent)) {
      runs.back() = {r.reduced, runs.back().extent * r.extent, r.src, r.dst};
    } else {
      runs.push_back(r);
    }
  }
  return runs;
}

class ReducePrepared final : public Prepared {
 public:
  ReducePrepared(const Problem& p, Isa isa)
      : kind_(*kind_of(p)),
        row_(HONE_PICK_ISA(isa, reduce_row)),
        columns_(HONE_PICK_ISA(isa, reduce_columns)),
        total_(numel(p.dsts[0].dims)),
        post_(make_post(p, -1, isa)) {
    std::vector<Run> reduced;
    const std::vector<Run> runs = *make_runs(p);
    for (const Run& r : runs) (r.reduced ? reduced : kept_).push_back(r);
    // Without a contiguous reduced run the outputs of the innermost kept run are computed side by side.
    by_row_ = kept_.empty() || kept_.back().src != 1;
    if (!by_row_) {
      cols_ = kept_.back().extent;
      kept_.pop_back();
    }
    if (!reduced.empty()) {
      span_.n = reduced.back().extent;
      span_.stride = reduced.back().src;
      reduced.pop_back();
    }
    offsets_ = {0};
    for (const Run& r : reduced) {
      std::vector<int64_t> next;
      for (const int64_t base : offsets_)
        for (int64_t i = 0; i < r.extent; ++i) next.push_back(base + i * r.src);
      offsets_ = std::move(next);
    }
    span_.n_offsets = static_cast<int64_t>(offsets_.size());
    for (const Run& r : kept_) outer_ *= r.extent;
  }

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const float*>(args.srcs[0]);
    auto* dst = static_cast<float*>(args.dsts[0]);
    if (total_ == 0) return;
    hone::cpu::ReduceSpan span = span_;
    span.offsets = offsets_.data();
    if (by_row_) {
      parallel_ranges(args, outer_, row_grain(span.count() + 16, 32768), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const auto [from, to] = place(i);
          dst[to] = row_(kind_, src + from, span);
        }
      });
    } else {
      // Blocks of one cache line's worth of vectors, so that few channels still occupy several threads.
      constexpr int64_t kBlock = hone::cpu::kReduceColumns / 2;
      const int64_t blocks = (cols_ + kBlock - 1) / kBlock;
      parallel_ranges(args, outer_ * blocks, row_grain(std::min(kBlock, cols_) * span.count(), 32768),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const auto [from, to] = place(i / blocks);
                          const int64_t c = i % blocks * kBlock;
                          columns_(kind_, src + from + c, span, std::min(kBlock, cols_ - c), dst + to + c);
                        }
                      });
    }
    if (post_.active())
      parallel_ranges(args, total_, post_.grain(),
                      [&](int64_t b, int64_t e) { post_.run(dst, args.srcs, b, e); });
  }

 private:
  std::pair<int64_t, int64_t> place(int64_t i) const {
    int64_t from = 0, to = 0;
    for (size_t d = kept_.size(); d-- > 0;) {
      const int64_t k = i % kept_[d].extent;
      i /= kept_[d].extent;
      from += k * kept_[d].src;
      to += k * kept_[d].dst;
    }
    return {from, to};
  }

  Reduction kind_;
  decltype(&hone::cpu::portable::reduce_row) row_;
  decltype(&hone::cpu::portable::reduce_columns) columns_;
  int64_t total_;
  PwRunner post_;
  std::vector<Run> kept_;
  std::vector<int64_t> offsets_;
  hone::cpu::ReduceSpan span_;
  int64_t outer_ = 1, cols_ = 1;
  bool by_row_ = true;
};

class Reduce final : public CpuTactic {
 public:
  explicit Reduce(Isa isa) : CpuTactic("reduce_f32_lines", isa, Numerics::kReassociates) {}

  void choose_layouts(Problem& p) const override {
    const bool last = p.srcs[0].layout == Layout::kChannelsLast && p.srcs[0].dims.size() >= 3;
    for (auto* list : {&p.srcs, &p.dsts})
      for (Operand& o : *list) o.layout = Layout::kPlain;
    if (!last) return;
    p.srcs[0].layout = Layout::kChannelsLast;
    if (p.dsts[0].dims.size() == p.srcs[0].dims.size()) {
      p.dsts[0].layout = Layout::kChannelsLast;
      for (size_t i = p.num_anchor_srcs; i < p.srcs.size(); ++i)
        if (!p.srcs[i].constant && p.srcs[i].dims.size() == p.dsts[0].dims.size())
          p.srcs[i].layout = Layout::kChannelsLast;
    } else if (!runs_fit(p)) {
      // Without keepdims the result is plain; channels-last stays when it walks the kept dimensions in the
      // result's order.
      p.srcs[0].layout = Layout::kPlain;
    }
  }

  Support supports(const Problem& p) const override {
    if (!kind_of(p)) return Support::no("operator: not a reduction");
    if (p.srcs.empty() || p.srcs[0].dtype != DType::kF32 || p.dsts[0].dtype != DType::kF32)
      return Support::no("dtype: not f32");
    if (is_global(p) && p.srcs[0].dims.size() < 3) return Support::no("shape: no spatial dimension");
    if (!reduced_dims(p)) return Support::no("axes: not constant, or out of range");
    if (numel(p.srcs[0].dims) == 0) return Support::no("shape: empty");
    if (!runs_fit(p)) return Support::no("layout: the kept dimensions change their order");
    int64_t offsets = 1, seen = 0;
    const std::vector<Run> runs = *make_runs(p);
    for (size_t i = runs.size(); i-- > 0;)
      if (runs[i].reduced && seen++ > 0) offsets *= runs[i].extent;
    if (offsets > kMaxOffsets) return Support::no("axes: too many separate runs");
    return post_supports(p, -1);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<ReducePrepared>(p, isa());
  }

 private:
  /// Outputs that are computed side by side must lie side by side.
  static bool runs_fit(const Problem& p) {
    if (!reduced_dims(p)) return true;  // refused elsewhere
    const std::vector<Run> runs = *make_runs(p);
    return runs.empty() || runs.back().reduced || runs.back().dst == 1;
  }
};

}  // namespace

std::unique_ptr<Tactic> make_reduce(Isa isa) { return std::make_unique<Reduce>(isa); }

}  // namespace hone::backends::cpu
