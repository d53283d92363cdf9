// Conv in f32, channels-last: implicit matrix product with post-ops in its epilogue.
#include "backends/cpu/conv_problem.h"

#include <algorithm>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/fused_post.h"
#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/deconv.h"
#include "backends/cpu/kernels/depthwise.h"
#include "backends/cpu/packing.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu {

using hone::cpu::ConvShape;

namespace {

/// Sizes, strides and dilations of both kinds; pads at the beginning from `total`, the padding of an axis
/// under auto_pad.
template <class Total>
Support geometry(const Problem& p, ConvShape* shape, Total total) {
  if (p.srcs.size() < 2 || !p.srcs[0].present() || !p.srcs[1].present())
    return Support::no("operands: a convolution has data and weights");
  const Shape& x = p.srcs[0].dims;
  const Shape& w = p.srcs[1].dims;
  const Shape& y = p.dsts[0].dims;
  const size_t rank = x.size();
  if (rank < 3 || rank > 5 || w.size() != rank || y.size() != rank)
    return Support::no("rank: 1 to 3 spatial dimensions");
  const size_t spatial = rank - 2, first = 3 - spatial;
  const auto strides = ir::attr_ints(p.attrs, "strides"), dilations = ir::attr_ints(p.attrs, "dilations"),
             pads = ir::attr_ints(p.attrs, "pads");
  const std::string auto_pad = ir::attr_string(p.attrs, "auto_pad", "NOTSET");
  ConvShape& s = *shape;
  s.batch = x[0];
  s.groups = ir::attr_int(p.attrs, "group", 1);
  s.ic = x[1];
  s.oc = y[1];
  for (size_t d = 0; d < spatial; ++d) {
    const size_t at = first + d;
    s.in[at] = x[2 + d];
    s.out[at] = y[2 + d];
    s.kernel[at] = w[2 + d];
    s.stride[at] = strides.empty() ? 1 : strides[d];
    s.dilation[at] = dilations.empty() ? 1 : dilations[d];
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      const int64_t sum = std::max<int64_t>(total(s, d, at), 0);
      s.pad[at] = auto_pad == "SAME_UPPER" ? sum / 2 : sum - sum / 2;
    } else {
      s.pad[at] = auto_pad == "VALID" || pads.empty() ? 0 : pads[d];
    }
    if (s.pad[at] < 0) return Support::no("pads: negative padding is left to the reference");
  }
  return Support::yes();
}

}  // namespace

Support conv_geometry(const Problem& p, ConvShape* shape) {
  return geometry(p, shape, [](const ConvShape& s, size_t, size_t at) {
    return (s.out[at] - 1) * s.stride[at] + (s.kernel[at] - 1) * s.dilation[at] + 1 - s.in[at];
  });
}

Support transposed_geometry(const Problem& p, ConvShape* shape) {
  if (!ir::attr_ints(p.attrs, "output_shape").empty() &&
      ir::attr_string(p.attrs, "auto_pad", "NOTSET") == "NOTSET")
    return Support::no("output_shape: padding that follows from it is left to the reference");
  const auto extra = ir::attr_ints(p.attrs, "output_padding");
  return geometry(p, shape, [&](const ConvShape& s, size_t d, size_t at) {
    return s.stride[at] * (s.in[at] - 1) + (extra.empty() ? 0 : extra[d]) +
           (s.kernel[at] - 1) * s.dilation[at] + 1 - s.out[at];
  });
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
  if (p.dsts[0].layout != Layout::kChannelsLast)
    return Support::no("layout: convolutions write channels-last");
  return post_supports(p, 1);
}

bool has_bias(const Problem& p) { return p.num_anchor_srcs > 2 && p.srcs[2].present(); }

namespace {

using hone::cpu::Conv;
using hone::cpu::ConvArgs;
using hone::cpu::EpilogueOp;
using hone::cpu::EpilogueOperand;

/// Conv, Depthwise or Deconv (`Kernel`) of fixed sizes with bias and post-ops.
template <class Kernel>
class ConvPrepared final : public Prepared {
 public:
  ConvPrepared(const Problem& p, const ConvShape& shape, Isa isa)
      : kernel_(isa, shape),
        post_(p, 1, isa),
        has_bias_(has_bias(p)),
        workers_(ThreadPool::process().n_threads()) {}
  Kernel& kernel() { return kernel_; }

  int64_t workspace_bytes() const override {
    if constexpr (requires { kernel_.workspace_bytes(1); })
      return kernel_.workspace_bytes(workers_);
    else
      return 0;
  }

  void run(const RunArgs& args) const override {
    FusedPost::Run post;
    if (has_bias_)
      post.push(EpilogueOp::add(EpilogueOperand::per_column(static_cast<const float*>(args.srcs[2]))));
    post_.start(args, &post);
    ConvArgs c;
    c.src = static_cast<const float*>(args.srcs[0]);
    c.weights = static_cast<const float*>(args.srcs[1]);
    c.dst = static_cast<float*>(args.dsts[0]);
    c.epilogue = post.epilogue();
    c.workspace = args.workspace;
    kernel_.run(c, *args.pool, std::min(args.max_threads, workers_));
  }

 private:
  Kernel kernel_;
  FusedPost post_;
  bool has_bias_;
  int workers_;
};

/// Implicit matrix product: any convolution. Groups are products of their own. With `k_block` the sum over
/// taps and channels is cut into pieces whose weights stay in the first-level cache while partial sums rest
/// in the result: the same bits, another order of memory accesses.
class ConvIgemm final : public CpuTactic {
 public:
  explicit ConvIgemm(Isa isa, int64_t k_block = 0)
      : CpuTactic(k_block > 0 ? "conv_f32_igemm_k" + std::to_string(k_block) : "conv_f32_igemm", isa,
                  Numerics::kReassociates),
        k_block_(k_block) {}
  void choose_layouts(Problem& p) const override {
    const bool plain = p.srcs[0].layout == Layout::kPlain;
    conv_layouts(p);
    ConvShape shape;
    if (plain && conv_geometry(p, &shape) && Conv::takes_planar(shape)) p.srcs[0].layout = Layout::kPlain;
  }
  Support supports(const Problem& p) const override {
    if (const Support s = conv_supports(p); !s) return s;
    ConvShape shape;
    if (const Support s = conv_geometry(p, &shape); !s) return s;
    if (p.srcs[0].layout == Layout::kPlain && !Conv::takes_planar(shape))
      return Support::no("layout: only inputs of few channels are read as they are");
    if (k_block_ > 0 && shape.taps() * shape.ic / std::max<int64_t>(1, shape.groups) < 2 * k_block_)
      return Support::no("k: too short to be cut");
    return Support::yes();
  }
  std::string packing(const Problem& p, size_t src) const override {
    if (src != 1) return "";
    return "conv" + std::to_string(ir::attr_int(p.attrs, "group", 1)) + "__" + std::string(isa_name(isa()));
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    ConvShape shape;
    (void)conv_geometry(p, &shape);
    shape.src_planar = p.srcs[0].layout == Layout::kPlain;
    auto prepared = std::make_unique<ConvPrepared<Conv>>(p, shape, isa());
    if (k_block_ > 0) prepared->kernel().walk.k_block = k_block_;
    return prepared;
  }

 private:
  int64_t k_block_;
};

/// One filter per channel, or groups of a few channels: vectors run over channels.
class ConvDepthwise final : public CpuTactic {
 public:
  explicit ConvDepthwise(Isa isa) : CpuTactic("conv_f32_depthwise", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { conv_layouts(p); }
  Support supports(const Problem& p) const override {
    if (const Support s = conv_supports(p); !s) return s;
    ConvShape shape;
    if (const Support s = conv_geometry(p, &shape); !s) return s;
    if (shape.groups == 1 || !hone::cpu::Depthwise::takes(isa(), shape))
      return Support::no("group: of 1, 2, 4 or 8 channels with as many outputs");
    if (p.srcs[0].layout != Layout::kChannelsLast) return Support::no("layout: reads channels-last");
    return Support::yes();
  }
  std::string packing(const Problem&, size_t src) const override {
    return src == 1 ? "depthwise__portable" : "";
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    ConvShape shape;
    (void)conv_geometry(p, &shape);
    return std::make_unique<ConvPrepared<hone::cpu::Depthwise>>(p, shape, isa());
  }
};

/// Transposed convolution by gathering: one implicit product per residue of the strides.
class ConvTranspose final : public CpuTactic {
 public:
  explicit ConvTranspose(Isa isa) : CpuTactic("convtranspose_f32_gather", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { conv_layouts(p); }
  Support supports(const Problem& p) const override {
    if (const Support s = conv_supports(p); !s) return s;
    ConvShape shape;
    if (const Support s = transposed_geometry(p, &shape); !s) return s;
    if (p.srcs[0].layout != Layout::kChannelsLast) return Support::no("layout: reads channels-last");
    return Support::yes();
  }
  /// The order of the taps depends on stride and padding: both are part of the packing's name.
  std::string packing(const Problem& p, size_t src) const override {
    if (src != 1) return "";
    ConvShape s;
    (void)transposed_geometry(p, &s);
    return deconv_packing(s) + "__" + std::string(isa_name(isa()));
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    ConvShape shape;
    (void)transposed_geometry(p, &shape);
    return std::make_unique<ConvPrepared<hone::cpu::Deconv>>(p, shape, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_conv_igemm(Isa isa) { return std::make_unique<ConvIgemm>(isa); }
std::unique_ptr<Tactic> make_conv_igemm_k512(Isa isa) { return std::make_unique<ConvIgemm>(isa, 512); }
std::unique_ptr<Tactic> make_conv_depthwise(Isa isa) { return std::make_unique<ConvDepthwise>(isa); }
std::unique_ptr<Tactic> make_conv_transpose(Isa isa) { return std::make_unique<ConvTranspose>(isa); }

}  // namespace hone::backends::cpu
