// GroupNormalization, InstanceNormalization, BatchNormalization (inference) and LRN in either layout.
#include <algorithm>
#include <cmath>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/norm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"

namespace hone::backends::cpu {
namespace {

/// [n, c, plane], and where the channels lie.
struct ChannelShape {
  int64_t batch = 1, channels = 1, plane = 1;
  bool last = false;  ///< channels are contiguous: channels-last, or no plane at all
};

ChannelShape channel_shape(const Operand& o) {
  ChannelShape s;
  s.batch = o.dims[0];
  if (o.dims.size() > 1) s.channels = o.dims[1];
  for (size_t d = 2; d < o.dims.size(); ++d) s.plane *= o.dims[d];
  s.last = s.plane == 1 || (o.layout == Layout::kChannelsLast && o.dims.size() >= 3);
  return s;
}

/// What every tactic here asks: f32, equal shapes and layouts, scale-like sources of one value a channel.
Support channel_supports(const Problem& p, size_t per_channel) {
  if (const Support s = require_f32(p); !s) return s;
  if (const Support s = same_shape_unary(p); !s) return s;
  for (size_t i = 1; i < p.dsts.size(); ++i)
    if (p.dsts[i].present()) return Support::no("outputs: statistics are asked for");
  if (p.srcs[0].dims.size() < 2) return Support::no("shape: no channel dimension");
  if (p.num_anchor_srcs < per_channel + 1) return Support::no("sources: too few");
  for (size_t i = 1; i <= per_channel; ++i)
    if (!p.srcs[i].present() || numel(p.srcs[i].dims) != p.srcs[0].dims[1])
      return Support::no("shape: source " + std::to_string(i) + " is not one value a channel");
  return post_supports(p, -1);
}

/// Post-ops over the whole result, for tactics that do not write it in contiguous pieces.
void run_post(const PwRunner& post, const RunArgs& args, int64_t total) {
  if (!post.active()) return;
  auto* dst = static_cast<float*>(args.dsts[0]);
  parallel_ranges(args, total, post.grain(), [&](int64_t b, int64_t e) { post.run(dst, args.srcs, b, e); });
}

// --- GroupNormalization; InstanceNormalization is one group a channel ---

int64_t group_count(const Problem& p) {
  return p.op == "InstanceNormalization" ? p.srcs[0].dims[1] : ir::attr_int(p.attrs, "num_groups", 1);
}

class GroupNormPrepared final : public Prepared {
 public:
  GroupNormPrepared(const Problem& p, Isa isa)
      : shape_(channel_shape(p.srcs[0])),
        groups_(group_count(p)),
        epsilon_(static_cast<double>(ir::attr_float(p.attrs, "epsilon", 1e-5F))),
        plain_(HONE_PICK_ISA(isa, group_norm_plain)),
        last_(HONE_PICK_ISA(isa, group_norm_last)),
        post_(make_post(p, -1, isa)) {}

  int64_t workspace_bytes() const override {
    return shape_.last ? shape_.batch * shape_.channels * 3 * static_cast<int64_t>(sizeof(float)) : 0;
  }

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const float*>(args.srcs[0]);
    const auto* scale = static_cast<const float*>(args.srcs[1]);
    const auto* bias = static_cast<const float*>(args.srcs[2]);
    auto* dst = static_cast<float*>(args.dsts[0]);
    const auto [batch, channels, plane, last] = shape_;
    if (batch * channels * plane == 0) return;
    const int64_t per_group = channels / groups_;
    if (!last) {
      parallel_ranges(args, batch * groups_, row_grain(per_group * plane * 3),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t at = i * per_group * plane, c = i % groups_ * per_group;
                          plain_(src + at, dst + at, per_group, plane, scale + c, bias + c, epsilon_);
                          post_.run(dst, args.srcs, at, at + per_group * plane);
                        }
                      });
      return;
    }
    auto* scratch = static_cast<float*>(args.workspace);
    // Whole groups, together about as many channels as fill a few cache lines.
    const int64_t block = groups_per_block(per_group);
    const int64_t blocks = (groups_ + block - 1) / block;
    parallel_ranges(args, batch * blocks, row_grain(block * per_group * plane * 3),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t n = i / blocks, g = i % blocks * block, c = g * per_group;
                        const int64_t at = n * plane * channels + c;
                        last_(src + at, dst + at, plane, channels, per_group, std::min(block, groups_ - g),
                              scale + c, bias + c, epsilon_, scratch + (n * channels + c) * 3);
                      }
                    });
    run_post(post_, args, batch * channels * plane);
  }

 private:
  /// At least 64 channels, and a multiple of 16 of them where a few groups more give one.
  int64_t groups_per_block(int64_t per_group) const {
    const int64_t least = std::max<int64_t>(1, 64 / per_group);
    for (int64_t b = least; b < least + 16 && b < groups_; ++b)
      if (b * per_group % 16 == 0) return b;
    return std::min(groups_, least);
  }

  ChannelShape shape_;
  int64_t groups_;
  double epsilon_;
  decltype(&hone::cpu::portable::group_norm_plain) plain_;
  decltype(&hone::cpu::portable::group_norm_last) last_;
  PwRunner post_;
};

class GroupNorm final : public CpuTactic {
 public:
  explicit GroupNorm(Isa isa) : CpuTactic("groupnorm_f32_twopass", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { follow_layout(p); }
  Support supports(const Problem& p) const override {
    if (const Support s = channel_supports(p, 2); !s) return s;
    const int64_t groups = group_count(p);
    if (groups < 1 || p.srcs[0].dims[1] % groups != 0)
      return Support::no("num_groups: does not divide the channels");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<GroupNormPrepared>(p, isa());
  }
  bool in_place(const Problem&, size_t src) const override { return src == 0; }
};

// --- BatchNormalization ---

class BatchNormPrepared final : public Prepared {
 public:
  BatchNormPrepared(const Problem& p, Isa isa)
      : shape_(channel_shape(p.srcs[0])),
        epsilon_(static_cast<double>(ir::attr_float(p.attrs, "epsilon", 1e-5F))),
        kernel_(HONE_PICK_ISA(isa, centre_scale)),
        post_(make_post(p, -1, isa)) {}

  int64_t workspace_bytes() const override { return shape_.channels * static_cast<int64_t>(sizeof(float)); }

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const float*>(args.srcs[0]);
    const auto* scale = static_cast<const float*>(args.srcs[1]);
    const auto* bias = static_cast<const float*>(args.srcs[2]);
    const auto* mean = static_cast<const float*>(args.srcs[3]);
    const auto* var = static_cast<const float*>(args.srcs[4]);
    auto* dst = static_cast<float*>(args.dsts[0]);
    auto* a = static_cast<float*>(args.workspace);
    const auto [batch, channels, plane, last] = shape_;
    for (int64_t c = 0; c < channels; ++c)
      a[c] = static_cast<float>(static_cast<double>(scale[c]) /
                                std::sqrt(static_cast<double>(var[c]) + epsilon_));
    const int64_t rows = last ? batch * plane : batch * channels, n = last ? channels : plane;
    parallel_ranges(args, rows, row_grain(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t c = last ? 0 : r % channels;
        kernel_(last, src + r * n, dst + r * n, n, mean + c, a + c, bias + c);
      }
      post_.run(dst, args.srcs, begin * n, end * n);
    });
  }

 private:
  ChannelShape shape_;
  double epsilon_;
  decltype(&hone::cpu::portable::centre_scale) kernel_;
  PwRunner post_;
};

class BatchNorm final : public CpuTactic {
 public:
  explicit BatchNorm(Isa isa) : CpuTactic("batchnorm_f32_affine", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { follow_layout(p); }
  Support supports(const Problem& p) const override {
    if (ir::attr_int(p.attrs, "training_mode", 0) != 0) return Support::no("training_mode: set");
    return channel_supports(p, 4);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<BatchNormPrepared>(p, isa());
  }
  bool in_place(const Problem&, size_t src) const override { return src == 0; }
};

// --- LRN ---

class LrnPrepared final : public Prepared {
 public:
  LrnPrepared(const Problem& p, Isa isa)
      : shape_(channel_shape(p.srcs[0])),
        size_(ir::attr_int(p.attrs, "size", 1)),
        alpha_(ir::attr_float(p.attrs, "alpha", 1e-4F)),
        beta_(ir::attr_float(p.attrs, "beta", 0.75F)),
        bias_(ir::attr_float(p.attrs, "bias", 1.0F)),
        columns_(HONE_PICK_ISA(isa, lrn_columns)),
        pixel_(HONE_PICK_ISA(isa, lrn_pixel)),
        post_(make_post(p, -1, isa)) {}

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const float*>(args.srcs[0]);
    auto* dst = static_cast<float*>(args.dsts[0]);
    const auto [batch, channels, plane, last] = shape_;
    if (last) {
      parallel_ranges(args, batch * plane, row_grain(channels * 8), [&](int64_t begin, int64_t end) {
        std::vector<float> padded(static_cast<size_t>(channels + size_ + 32));
        for (int64_t r = begin; r < end; ++r)
          pixel_(src + r * channels, dst + r * channels, channels, size_, alpha_, beta_, bias_,
                 padded.data());
      });
    } else {
      constexpr int64_t kColumns = 256;
      const int64_t blocks = (plane + kColumns - 1) / kColumns;
      parallel_ranges(args, batch * blocks, row_grain(channels * kColumns * 8),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) {
                          const int64_t col = i % blocks * kColumns, at = i / blocks * channels * plane + col;
                          columns_(src + at, dst + at, channels, plane, std::min(kColumns, plane - col),
                                   size_, alpha_, beta_, bias_);
                        }
                      });
    }
    run_post(post_, args, batch * channels * plane);
  }

 private:
  ChannelShape shape_;
  int64_t size_;
  float alpha_, beta_, bias_;
  decltype(&hone::cpu::portable::lrn_columns) columns_;
  decltype(&hone::cpu::portable::lrn_pixel) pixel_;
  PwRunner post_;
};

class Lrn final : public CpuTactic {
 public:
  explicit Lrn(Isa isa) : CpuTactic("lrn_f32_window", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override { follow_layout(p); }
  Support supports(const Problem& p) const override {
    if (ir::attr_int(p.attrs, "size", 0) < 1) return Support::no("size: below 1");
    return channel_supports(p, 0);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<LrnPrepared>(p, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_group_norm(Isa isa) { return std::make_unique<GroupNorm>(isa); }
std::unique_ptr<Tactic> make_batch_norm(Isa isa) { return std::make_unique<BatchNorm>(isa); }
std::unique_ptr<Tactic> make_lrn(Isa isa) { return std::make_unique<Lrn>(isa); }

}  // namespace hone::backends::cpu
