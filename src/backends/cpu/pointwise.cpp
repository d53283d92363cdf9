// Tactic of pure pointwise programs (hone::Pointwise): every f32 elementwise chain, and single elementwise
// nodes.
#include <algorithm>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"

namespace hone::backends::cpu {
namespace {

class PointwisePrepared final : public Prepared {
 public:
  PointwisePrepared(PwRunner runner, int64_t total) : runner_(std::move(runner)), total_(total) {}
  void run(const RunArgs& args) const override {
    auto* dst = static_cast<float*>(args.dsts[0]);
    parallel_ranges(args, total_, runner_.grain(),
                    [&](int64_t begin, int64_t end) { runner_.run(dst, args.srcs, begin, end); });
  }

 private:
  PwRunner runner_;
  int64_t total_;
};

/// The non-constant source whose layout the result takes: the largest of the result's rank.
size_t leading_source(const Problem& p) {
  size_t best = p.srcs.size();
  int64_t best_numel = -1;
  for (size_t i = 0; i < p.srcs.size(); ++i) {
    const Operand& o = p.srcs[i];
    if (!o.present() || o.constant || p.dsts.empty() || o.dims.size() != p.dsts[0].dims.size()) continue;
    const int64_t n = numel(o.dims);
    if (n > best_numel) {
      best = i;
      best_numel = n;
    }
  }
  return best;
}

class Pointwise final : public CpuTactic {
 public:
  explicit Pointwise(Isa isa) : CpuTactic("pointwise_f32_chunks", isa, Numerics::kReassociates) {}

  void choose_layouts(Problem& p) const override {
    const size_t lead = leading_source(p);
    const bool last =
        lead < p.srcs.size() && p.srcs[lead].dims.size() >= 3 && p.srcs[lead].layout == Layout::kChannelsLast;
    const size_t rank = p.dsts[0].dims.size();
    for (Operand& o : p.srcs) {
      if (!o.present() || o.constant) {
        o.layout = Layout::kPlain;
      } else if (o.dims.size() == rank && o.dims == p.dsts[0].dims) {
        o.layout = last ? Layout::kChannelsLast : Layout::kPlain;
      }  // else it stays: broadcast sources are read through strides
    }
    p.dsts[0].layout = last ? Layout::kChannelsLast : Layout::kPlain;
  }

  Support supports(const Problem& p) const override {
    if (p.domain != ir::kHoneDomain || p.op != "Pointwise")
      return Support::no("operator: not a pointwise program");
    if (p.post.size() != 1 || p.post[0].kind != ops::PostOp::Kind::kProgram)
      return Support::no("post-op: one program is expected");
    if (const Support s = require_f32(p); !s) return s;
    const ops::PostOp& post = p.post[0];
    if (post.srcs.size() != static_cast<size_t>(post.program.num_srcs))
      return Support::no("program: its sources are not those of the layer");
    for (const int s : post.srcs)
      if (!pw_strides(p.srcs[static_cast<size_t>(s)], p.dsts[0].dims))
        return Support::no("shape: source " + std::to_string(s) + " does not broadcast to the result");
    const std::string bad = PwRunner::unsupported(post.program);
    return bad.empty() ? Support::yes() : Support::no(bad);
  }

  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    std::vector<PwSource> sources;
    for (const int s : p.post[0].srcs)
      sources.push_back({s, *pw_strides(p.srcs[static_cast<size_t>(s)], p.dsts[0].dims)});
    return std::make_unique<PointwisePrepared>(
        PwRunner(p.post[0].program, p.dsts[0].dims, p.dsts[0].layout, std::move(sources), isa()),
        numel(p.dsts[0].dims));
  }

  /// Every chunk is read before it is written, so a source of the result's own shape may share its memory.
  bool in_place(const Problem& p, size_t src) const override {
    return p.srcs[src].dims == p.dsts[0].dims && p.srcs[src].layout == p.dsts[0].layout;
  }
};

}  // namespace

std::unique_ptr<Tactic> make_pointwise(Isa isa) { return std::make_unique<Pointwise>(isa); }

}  // namespace hone::backends::cpu
