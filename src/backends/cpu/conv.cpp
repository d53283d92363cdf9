// Conv in f32, channels-last: implicit matrix product with post-ops in its epilogue.
#include "backends/cpu/conv_problem.h"

#include <algorithm>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/fused_post.h"
#include "backends/cpu/kernels/conv.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu {

using hone::cpu::ConvShape;

Support conv_geometry(const Problem& p, ConvShape* shape) {
  if (p.srcs.size() < 2 || !p.srcs[0].present() || !p.srcs[1].present()) return Support::no("operands: a convolution has data and weights");
  const Shape& x = p.srcs[0].dims;
  const Shape& w = p.srcs[1].dims;
  const Shape& y = p.dsts[0].dims;
  const size_t rank = x.size();
  if (rank < 3 || rank > 5 || w.size() != rank || y.size() != rank) return Support::no("rank: 1 to 3 spatial dimensions");
  const size_t spatial = rank - 2, first = 3 - spatial;
  const auto strides = ir::attr_ints(p.attrs, "strides"), dilations = ir::attr_ints(p.attrs, "dilations"), pads = ir::attr_ints(p.attrs, "pads");
  const std::string auto_pad = ir::attr_string(p.attrs, "auto_pad", "NOTSET");
  ConvShape& s = *shape;
  s.batch = x[0];
  s.groups = ir::attr_int(p.attrs, "group", 1);
  s.ic = x[1];
  for (size_t d = 0; d < spatial; ++d) {
    const size_t at = first + d;
    s.in[at] = x[2 + d];
    s.out[at] = y[2 + d];
    s.kernel[at] = w[2 + d];
    s.stride[at] = strides.empty() ? 1 : strides[d];
    s.dilation[at] = dilations.empty() ? 1 : dilations[d];
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const int64_t reach = (s.kernel[at] - 1) * s.dilation[at] + 1;
      const int64_t total = std::max<int64_t>((s.out[at] - 1) * s.stride[at] + reach - s.in[at], 0);
      s.pad[at] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else if (auto_pad == "VALID") {
      s.pad[at] = 0;
    } else {
      s.pad[at] = pads.empty() ? 0 : pads[d];
    }
    if (s.pad[at] < 0) return Support::no("pads: negative padding is left to the reference");
  }
  s.oc = y[1];
  return Support::yes();
}

void conv_layouts(Problem& p) {
  if (p.srcs[0].dims.size() < 3) return;
  p.srcs[0].layout = Layout::kChannelsLast;
  p.dsts[0].layout = Layout::kChannelsLast;
  for (size_t i = 1; i < p.srcs.size(); ++i) {
    Operand& o = p.srcs[i];
    if (o.constant || i < p.num_anchor_srcs)
      o.layout = Layout::kPlain;
    else if (o.dims == p.dsts[0].dims)
      o.layout = Layout::kChannelsLast;  // smaller operands are read through strides as they lie
  }
}

Support conv_supports(const Problem& p) {
  if (const Support s = require_f32(p); !s) return s;
  if (!p.srcs[1].constant) return Support::no("weights: must be constant");
  if (p.num_anchor_srcs > 2 && p.srcs[2].present() && !p.srcs[2].constant && p.srcs[2].dims.size() != 1) return Support::no("bias: must have rank 1");
  if (p.srcs[0].layout != Layout::kChannelsLast || p.dsts[0].layout != Layout::kChannelsLast) return Support::no("layout: convolutions take channels-last");
  return post_supports(p, 1);
}

namespace {

using hone::cpu::Conv;
using hone::cpu::ConvArgs;
using hone::cpu::EpilogueOp;
using hone::cpu::EpilogueOperand;

class ConvPrepared final : public Prepared {
 public:
  ConvPrepared(const Problem& p, const ConvShape& shape, Isa isa)
      : conv_(isa, shape), post_(p, 1, isa), has_bias_(p.num_anchor_srcs > 2 && p.srcs[2].present()), workers_(ThreadPool::process().n_threads()) {}

  int64_t workspace_bytes() const override { return conv_.workspace_bytes(workers_); }

  void run(const RunArgs& args) const override {
    FusedPost::Run post;
    if (has_bias_) post.push(EpilogueOp::add(EpilogueOperand::per_column(static_cast<const float*>(args.srcs[2]))));
    post_.start(args, &post);
    ConvArgs c;
    c.src = static_cast<const float*>(args.srcs[0]);
    c.weights = static_cast<const float*>(args.srcs[1]);
    c.dst = static_cast<float*>(args.dsts[0]);
    c.epilogue = post.epilogue();
    c.workspace = args.workspace;
    conv_.run(c, *args.pool, std::min(args.max_threads, workers_));
  }

 private:
  Conv conv_;
  FusedPost post_;
  bool has_bias_;
  int workers_;
};

class ConvTactic final : public CpuTactic {
 public:
  explicit ConvTactic(Isa isa) : CpuTactic("conv_f32_igemm", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { conv_layouts(p); }
  Support supports(const Problem& p) const override {
    if (const Support s = conv_supports(p); !s) return s;
    ConvShape shape;
    return conv_geometry(p, &shape);
  }
  std::string packing(const Problem& p, size_t src) const override {
    if (src != 1) return "";
    return "conv" + std::to_string(ir::attr_int(p.attrs, "group", 1)) + "__" + std::string(isa_name(isa()));
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    ConvShape shape;
    (void)conv_geometry(p, &shape);
    return std::make_unique<ConvPrepared>(p, shape, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_conv_igemm(Isa isa) { return std::make_unique<ConvTactic>(isa); }

}  // namespace hone::backends::cpu
