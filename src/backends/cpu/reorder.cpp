// Layout changes: plain <-> channels-last is a batch of matrix transpositions, [C][spatial] <-> [spatial][C].
#include "backends/cpu/kernels/reorder.h"
#include "backends/cpu/cpu_tactic.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu {
namespace {

class ReorderPrepared final : public Prepared {
 public:
  ReorderPrepared(const Problem& p, Isa isa) : copy_(make_copy(p, isa)) {}
  void run(const RunArgs& args) const override {
    copy_.run(args.srcs[0], args.dsts[0], *args.pool, args.max_threads);
  }

 private:
  static hone::cpu::StridedCopy make_copy(const Problem& p, Isa isa) {
    const Shape& d = p.srcs[0].dims;
    int64_t spatial = 1;
    for (size_t i = 2; i < d.size(); ++i) spatial *= d[i];
    const int bytes = dtype_bits(p.srcs[0].dtype) / 8;
    return p.dsts[0].layout == Layout::kChannelsLast
               ? hone::cpu::make_to_channels_last(isa, bytes, d[0], d[1], spatial)
               : hone::cpu::make_from_channels_last(isa, bytes, d[0], d[1], spatial);
  }
  hone::cpu::StridedCopy copy_;
};

class Reorder final : public CpuTactic {
 public:
  explicit Reorder(Isa isa) : CpuTactic("reorder_nhwc", isa, Numerics::kExact) {}
  void choose_layouts(Problem&) const override {}
  Support supports(const Problem& p) const override {
    if (p.op != "Reorder" || p.srcs.size() != 1 || p.dsts.size() != 1)
      return Support::no("operator: not a reorder");
    if (p.srcs[0].layout == p.dsts[0].layout) return Support::no("layout: source and destination agree");
    if (p.srcs[0].dims != p.dsts[0].dims || p.srcs[0].dtype != p.dsts[0].dtype)
      return Support::no("operands: a reorder keeps shape and dtype");
    if (p.srcs[0].dims.size() < 3) return Support::no("rank: layouts differ from rank 3 on");
    if (dtype_bits(p.srcs[0].dtype) < 8 || dtype_bits(p.srcs[0].dtype) > 64)
      return Support::no("dtype: elements of 1 to 8 bytes");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<ReorderPrepared>(p, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_reorder(Isa isa) { return std::make_unique<Reorder>(isa); }

}  // namespace hone::backends::cpu
