// Layout changes: plain <-> channels-last is a batch of matrix transpositions, [C][spatial] <-> [spatial][C].
#include <algorithm>
#include <cstring>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/pack.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu {
namespace {

class ReorderPrepared final : public Prepared {
 public:
  ReorderPrepared(const Problem& p, Isa isa) : transpose_(hone::cpu::transpose_fn(isa)), width_(dtype_bits(p.srcs[0].dtype) / 8) {
    const Shape& d = p.srcs[0].dims;
    batch_ = d[0];
    int64_t spatial = 1;
    for (size_t i = 2; i < d.size(); ++i) spatial *= d[i];
    const bool to_last = p.dsts[0].layout == Layout::kChannelsLast;
    rows_ = to_last ? d[1] : spatial;
    columns_ = to_last ? spatial : d[1];
    // Bands of the longer side, so that a band reads and writes a fair share of cache lines.
    by_columns_ = columns_ >= rows_;
    const int64_t length = by_columns_ ? columns_ : rows_, other = std::max<int64_t>(1, by_columns_ ? rows_ : columns_);
    band_ = std::clamp<int64_t>(kBandElements / other / 16 * 16, 16, std::max<int64_t>(16, length));
    bands_ = std::max<int64_t>(1, (length + band_ - 1) / band_);
  }

  void run(const RunArgs& args) const override {
    args.pool->parallel_for(
        batch_ * bands_, [&](int64_t chunk, int) { band(args, chunk / bands_, chunk % bands_); }, args.max_threads);
  }

 private:
  static constexpr int64_t kBandElements = 32 * 1024;

  void band(const RunArgs& args, int64_t n, int64_t b) const {
    const auto* src = static_cast<const char*>(args.srcs[0]) + n * rows_ * columns_ * width_;
    auto* dst = static_cast<char*>(args.dsts[0]) + n * rows_ * columns_ * width_;
    const int64_t length = by_columns_ ? columns_ : rows_;
    const int64_t begin = b * band_, end = std::min(length, begin + band_);
    if (width_ == 4) {
      const auto* s = reinterpret_cast<const float*>(src);
      auto* d = reinterpret_cast<float*>(dst);
      if (by_columns_)
        transpose_(s + begin, columns_, rows_, end - begin, d + begin * rows_, rows_);
      else
        transpose_(s + begin * columns_, columns_, end - begin, columns_, d + begin, rows_);
      return;
    }
    const int64_t r0 = by_columns_ ? 0 : begin, r1 = by_columns_ ? rows_ : end;
    const int64_t c0 = by_columns_ ? begin : 0, c1 = by_columns_ ? end : columns_;
    for (int64_t i = r0; i < r1; ++i)
      for (int64_t j = c0; j < c1; ++j) std::memcpy(dst + (j * rows_ + i) * width_, src + (i * columns_ + j) * width_, static_cast<size_t>(width_));
  }

  hone::cpu::TransposeFn transpose_;
  int64_t width_, batch_ = 0, rows_ = 0, columns_ = 0, band_ = 1, bands_ = 1;
  bool by_columns_ = true;
};

class Reorder final : public CpuTactic {
 public:
  explicit Reorder(Isa isa) : CpuTactic("reorder_nhwc", isa, Numerics::kExact) {}
  void choose_layouts(Problem&) const override {}
  Support supports(const Problem& p) const override {
    if (p.op != "Reorder" || p.srcs.size() != 1 || p.dsts.size() != 1) return Support::no("operator: not a reorder");
    if (p.srcs[0].layout == p.dsts[0].layout) return Support::no("layout: source and destination agree");
    if (p.srcs[0].dims != p.dsts[0].dims || p.srcs[0].dtype != p.dsts[0].dtype) return Support::no("operands: a reorder keeps shape and dtype");
    if (p.srcs[0].dims.size() < 3) return Support::no("rank: layouts differ from rank 3 on");
    if (dtype_bits(p.srcs[0].dtype) < 8) return Support::no("dtype: sub-byte elements");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override { return std::make_unique<ReorderPrepared>(p, isa()); }
};

}  // namespace

std::unique_ptr<Tactic> make_reorder(Isa isa) { return std::make_unique<Reorder>(isa); }

}  // namespace hone::backends::cpu
