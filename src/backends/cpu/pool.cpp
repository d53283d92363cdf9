// MaxPool and AveragePool over one to three spatial dimensions in either layout; channels-last runs over
// vectors of channels.
#include "backends/cpu/kernels/pool.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"
#include "hone/error.h"
#include "ops/window.h"

namespace hone::backends::cpu {
namespace {

/// Thrown text of a window that does not fit, turned into a reason by supports().
[[noreturn]] void bad_window(const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); }

hone::cpu::PoolShape pool_shape(const Problem& p) {
  const Shape &x = p.srcs[0].dims, &y = p.dsts[0].dims;
  const int rank = static_cast<int>(x.size()) - 2;
  const ops::Window w = ops::read_window(p.attrs, rank, {}, bad_window);
  hone::cpu::PoolShape s;
  s.channels = x[1];
  s.max = p.op == "MaxPool";
  s.include_pad = ir::attr_int(p.attrs, "count_include_pad", 0) != 0;
  for (int d = 0; d < rank; ++d) {
    const auto i = static_cast<size_t>(d);
    const size_t to = static_cast<size_t>(3 - rank + d);
    s.in[to] = x[i + 2];
    s.out[to] = y[i + 2];
    s.kernel[to] = w.kernel[i];
    s.stride[to] = w.strides[i];
    s.dilation[to] = w.dilations[i];
    s.pad_begin[to] = ops::window_pad_begin(w, d, x[i + 2], y[i + 2]);
    s.pad_end[to] = ops::window_pad_end(w, d, x[i + 2], y[i + 2]);
  }
  return s;
}

class PoolPrepared final : public Prepared {
 public:
  PoolPrepared(const Problem& p, Isa isa)
      : shape_(pool_shape(p)),
        batch_(p.srcs[0].dims[0]),
        last_(p.srcs[0].layout == Layout::kChannelsLast),
        row_(last_ ? HONE_PICK_ISA(isa, pool_row_last) : HONE_PICK_ISA(isa, pool_row_plain)),
        post_(make_post(p, -1, isa)) {}

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const float*>(args.srcs[0]);
    auto* dst = static_cast<float*>(args.dsts[0]);
    const hone::cpu::PoolShape& s = shape_;
    const int64_t images = last_ ? batch_ : batch_ * s.channels, width = last_ ? s.channels : 1;
    const int64_t in_image = s.in[0] * s.in[1] * s.in[2] * width, rows = s.out[0] * s.out[1],
                  row = s.out[2] * width;
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    parallel_ranges(args, images * rows, row_grain(row * taps, 65536), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row_(s, src + r / rows * in_image, dst + r * row, r % rows);
      post_.run(dst, args.srcs, begin * row, end * row);
    });
  }

 private:
  hone::cpu::PoolShape shape_;
  int64_t batch_;
  bool last_;
  decltype(&hone::cpu::portable::pool_row_last) row_;
  PwRunner post_;
};

class Pool final : public CpuTactic {
 public:
  explicit Pool(Isa isa) : CpuTactic("pool_f32_rows", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { follow_layout(p); }
  Support supports(const Problem& p) const override {
    for (size_t i = 1; i < p.dsts.size(); ++i)
      if (p.dsts[i].present()) return Support::no("outputs: indices are asked for");
    if (const Support s = require_f32(p); !s) return s;
    const size_t rank = p.srcs.empty() ? 0 : p.srcs[0].dims.size();
    if (rank < 3 || rank > 5) return Support::no("shape: one to three spatial dimensions");
    if (p.dsts[0].layout != p.srcs[0].layout) return Support::no("layout: source and result differ");
    try {
      pool_shape(p);
    } catch (const Error& e) {
      return Support::no(std::string("window: ") + e.what());
    }
    return post_supports(p, -1);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<PoolPrepared>(p, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_pool(Isa isa) { return std::make_unique<Pool>(isa); }

}  // namespace hone::backends::cpu
