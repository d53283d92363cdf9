// LayerNormalization and RMSNormalization over the trailing dimensions of a plain tensor.
#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/norm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"

namespace hone::backends::cpu {
namespace {

int64_t first_axis(const Problem& p) {
  const int64_t axis = ir::attr_int(p.attrs, "axis", -1);
  return axis < 0 ? axis + static_cast<int64_t>(p.srcs[0].dims.size()) : axis;
}

Shape without_leading_ones(Shape s) {
  while (!s.empty() && s.front() == 1) s.erase(s.begin());
  return s;
}

class LayerNormPrepared final : public Prepared {
 public:
  LayerNormPrepared(const Problem& p, Isa isa)
      : centred_(p.op == "LayerNormalization"), kernel_(HONE_PICK_ISA(isa, norm_row)) {
    const Shape& dims = p.srcs[0].dims;
    const auto axis = static_cast<size_t>(first_axis(p));
    for (size_t d = 0; d < dims.size(); ++d) (d < axis ? rows_ : n_) *= dims[d];
    epsilon_ = static_cast<double>(ir::attr_float(p.attrs, "epsilon", 1e-5F));
    has_bias_ = p.num_anchor_srcs > 2 && p.srcs[2].present();
    outputs_ = p.dsts.size();
    post_ = make_post(p, -1, isa);
  }

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const float*>(args.srcs[0]);
    auto* dst = static_cast<float*>(args.dsts[0]);
    hone::cpu::NormRow norm{centred_, epsilon_, static_cast<const float*>(args.srcs[1]),
                            has_bias_ ? static_cast<const float*>(args.srcs[2]) : nullptr};
    auto* mean = outputs_ > 1 ? static_cast<float*>(args.dsts[1]) : nullptr;
    auto* inverse = outputs_ > 2 ? static_cast<float*>(args.dsts[2]) : nullptr;
    parallel_ranges(args, rows_, row_grain(n_ * 4), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        float stats[2];
        kernel_(norm, src + r * n_, dst + r * n_, n_, stats);
        if (mean != nullptr) mean[r] = stats[0];
        if (inverse != nullptr) inverse[r] = stats[1];
        post_.run(dst, args.srcs, r * n_, (r + 1) * n_);
      }
    });
  }

 private:
  bool centred_;
  decltype(&hone::cpu::portable::norm_row) kernel_;
  int64_t rows_ = 1, n_ = 1;
  double epsilon_ = 0;
  bool has_bias_ = false;
  size_t outputs_ = 1;
  PwRunner post_;
};

class LayerNorm final : public CpuTactic {
 public:
  explicit LayerNorm(Isa isa) : CpuTactic("layernorm_f32_rows", isa, Numerics::kReassociates) {}
  Support supports(const Problem& p) const override {
    if (const Support s = require_f32(p); !s) return s;
    if (const Support s = same_shape_unary(p); !s) return s;
    for (const auto* list : {&p.srcs, &p.dsts})
      for (const Operand& o : *list)
        if (!ops::same_order(o.layout, Layout::kPlain, o.dims))
          return Support::no("layout: rows of a plain tensor are normalised");
    const Shape& dims = p.srcs[0].dims;
    if (!axis_in_range(ir::attr_int(p.attrs, "axis", -1), dims)) return Support::no("axis: out of range");
    const Shape row = without_leading_ones(Shape(dims.begin() + first_axis(p), dims.end()));
    for (size_t i = 1; i < p.num_anchor_srcs; ++i) {
      if (!p.srcs[i].present()) {
        if (i == 1) return Support::no("scale: absent");
        continue;
      }
      if (without_leading_ones(p.srcs[i].dims) != row)
        return Support::no("shape: scale or bias is not one row");
    }
    return post_supports(p, -1);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<LayerNormPrepared>(p, isa());
  }
  bool in_place(const Problem&, size_t src) const override { return src == 0; }
};

}  // namespace

std::unique_ptr<Tactic> make_layer_norm(Isa isa) { return std::make_unique<LayerNorm>(isa); }

}  // namespace hone::backends::cpu
