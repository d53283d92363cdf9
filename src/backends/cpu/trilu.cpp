// Trilu: keeps what lies on and above (upper) or below the k-th diagonal of each matrix, the rest becomes
// zero. Elements of whole bytes.
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/parallel.h"

namespace hone::backends::cpu {
namespace {

class TriluPrepared final : public Prepared {
 public:
  explicit TriluPrepared(const Problem& p)
      : upper_(ir::attr_int(p.attrs, "upper", 1) != 0),
        has_k_(p.srcs.size() > 1 && p.srcs[1].present()),
        width_(dtype_bits(p.dsts[0].dtype) / 8) {
    const Shape& d = p.dsts[0].dims;
    rows_ = d[d.size() - 2];
    columns_ = d.back();
    total_rows_ = columns_ == 0 ? 0 : numel(d) / columns_;
  }

  void run(const RunArgs& args) const override {
    const int64_t k = has_k_ ? *static_cast<const int64_t*>(args.srcs[1]) : 0;
    const int64_t bytes = columns_ * width_;
    const auto* src = static_cast<const char*>(args.srcs[0]);
    auto* dst = static_cast<char*>(args.dsts[0]);
    // Columns [0, cut) lie below the diagonal k, respectively k + 1. Any k is legal.
    const int64_t diagonal = std::clamp(k, -rows_ - 1, columns_ + 1) + (upper_ ? 0 : 1);
    parallel_ranges(args, total_rows_, row_grain(bytes, 65536), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t cut = std::clamp<int64_t>(r % rows_ + diagonal, 0, columns_) * width_;
        const char* from = src + r * bytes;
        char* to = dst + r * bytes;
        const int64_t keep = upper_ ? cut : 0, count = upper_ ? bytes - cut : cut;
        if (from != to) std::memcpy(to + keep, from + keep, static_cast<size_t>(count));
        std::memset(to + (upper_ ? 0 : cut), 0, static_cast<size_t>(bytes - count));
      }
    });
  }

 private:
  bool upper_, has_k_;
  int64_t width_, rows_, columns_, total_rows_;
};

class Trilu final : public CpuTactic {
 public:
  explicit Trilu(Isa isa) : CpuTactic("trilu_any_rows", isa, Numerics::kExact) {}
  Support supports(const Problem& p) const override {
    if (p.srcs.empty() || !p.srcs[0].present() || p.dsts.empty() || p.srcs[0].dims != p.dsts[0].dims ||
        p.srcs[0].dtype != p.dsts[0].dtype)
      return Support::no("shape: source and result differ");
    if (p.srcs[0].dims.size() < 2) return Support::no("rank: below 2");
    const int bits = dtype_bits(p.dsts[0].dtype);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
      return Support::no("dtype: elements of 1, 2, 4 or 8 bytes");
    if (p.srcs.size() > 1 && p.srcs[1].present() &&
        (p.srcs[1].dtype != DType::kI64 || numel(p.srcs[1].dims) != 1))
      return Support::no("k: not one i64");
    for (const auto* list : {&p.srcs, &p.dsts})
      for (const Operand& o : *list)
        if (!ops::same_order(o.layout, Layout::kPlain, o.dims)) return Support::no("layout: plain only");
    if (!p.post.empty()) return Support::no("post-op: bytes are moved, not computed with");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<TriluPrepared>(p);
  }
  bool in_place(const Problem&, size_t src) const override { return src == 0; }
};

}  // namespace

/// Code without instruction-set levels of its own: one row, for every machine.
std::unique_ptr<Tactic> make_trilu(Isa isa) {
  return isa == Isa::kPortable ? std::make_unique<Trilu>(isa) : nullptr;
}

}  // namespace hone::backends::cpu
