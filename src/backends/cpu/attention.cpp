// Attention in f32: 4-D [B,H,S,D] or 3-D [B,S,H*D] operands read where they lie, grouped key/value heads,
// bool or float masks, causality, softcap. One unit of work is a key/value head of one batch entry, or a part
// of its queries where heads are few.
#include <algorithm>
#include <cmath>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/pw_runner.h"
#include "ops/broadcast.h"

namespace hone::backends::cpu {
namespace {

constexpr int64_t kUnits = 16;  ///< work is cut into at least about this many pieces

struct Heads {
  int64_t batches = 0, heads = 0, rows = 0, size = 0;
  int64_t batch = 0, head = 0, row = 0;  ///< strides
};

/// Errors: a reason.
std::string read_heads(const Operand& o, int64_t heads, Heads& h) {
  const Shape& d = o.dims;
  if (d.size() == 4) {
    h = {d[0], d[1], d[2], d[3], d[1] * d[2] * d[3], d[2] * d[3], d[3]};
  } else if (d.size() == 3) {
    if (heads < 1 || d[2] % heads != 0) return "q_num_heads, kv_num_heads: do not divide the last dimension";
    h = {d[0], heads, d[1], d[2] / heads, d[1] * d[2], d[2] / heads, d[2]};
  } else {
    return "shape: rank 3 or 4";
  }
  return "";
}

struct Setup {
  Heads q, k, v;
  hone::cpu::AttentionShape shape;
  Shape mask_shape;  ///< [B,Hq,Sq,columns]
};

std::string read_setup(const Problem& p, Setup& s) {
  const int64_t hq = ir::attr_int(p.attrs, "q_num_heads", 0), hkv = ir::attr_int(p.attrs, "kv_num_heads", 0);
  if (p.num_anchor_srcs < 3) return "sources: Q, K and V are needed";
  for (const std::string& why :
       {read_heads(p.srcs[0], hq, s.q), read_heads(p.srcs[1], hkv, s.k), read_heads(p.srcs[2], hkv, s.v)})
    if (!why.empty()) return why;
  if (s.k.batches != s.q.batches || s.v.batches != s.q.batches || s.k.heads != s.v.heads ||
      s.k.rows != s.v.rows || s.k.size != s.q.size)
    return "shape: Q, K and V do not fit";
  if (s.k.heads < 1 || s.q.heads % s.k.heads != 0)
    return "shape: query heads are not a multiple of key heads";
  if (s.q.size == 0 || s.k.rows == 0 || s.v.size == 0) return "shape: empty";
  for (size_t i = 4; i < p.num_anchor_srcs; ++i)
    if (p.srcs[i].present()) return "sources: a past, or a count of valid keys";
  for (size_t i = 1; i < p.dsts.size(); ++i)
    if (p.dsts[i].present()) return "outputs: present keys and values or scores are asked for";
  for (const char* window : {"left_window_size", "right_window_size"})
    if (ir::attr_int(p.attrs, window, -1) >= 0) return std::string(window) + ": set";
  if (ir::attr_int(p.attrs, "softmax_precision", 1) != 1) return "softmax_precision: not f32";
  s.shape.queries = s.q.rows;
  s.shape.keys = s.k.rows;
  s.shape.size = s.q.size;
  s.shape.value_size = s.v.size;
  const float usual = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.q.size)));
  s.shape.scale = ir::attr_float(p.attrs, "scale", usual);
  s.shape.softcap = std::max(0.0F, ir::attr_float(p.attrs, "softcap", 0.0F));
  s.shape.causal = ir::attr_int(p.attrs, "is_causal", 0) != 0;
  s.mask_shape = {s.q.batches, s.q.heads, s.q.rows, s.k.rows};
  if (p.num_anchor_srcs > 3 && p.srcs[3].present()) {
    const Operand& m = p.srcs[3];
    if (m.dtype != DType::kBool && m.dtype != DType::kF32) return "dtype: the mask is neither bool nor f32";
    if (m.dims.empty() || m.dims.size() > 4) return "shape: the mask's rank";
    if (m.dims.back() < s.k.rows) s.mask_shape[3] = m.dims.back();
    const auto merged = ops::broadcast_shapes(m.dims, s.mask_shape);
    if (!merged || *merged != s.mask_shape) return "shape: the mask does not broadcast to the scores";
  }
  return "";
}

class AttentionPrepared final : public Prepared {
 public:
  AttentionPrepared(const Problem& p, Isa isa)
      : head_(isa, setup(p).shape),
        post_(make_post(p, -1, isa)),
        workers_(ThreadPool::process().n_threads()) {
    const Setup s = setup(p);
    q_ = s.q;
    k_ = s.k;
    v_ = s.v;
    y_ = q_;
    y_.size = v_.size;
    if (p.srcs[0].dims.size() == 4)
      y_ = {q_.batches, q_.heads, q_.rows, v_.size, q_.heads * q_.rows * v_.size, q_.rows * v_.size, v_.size};
    else
      y_ = {q_.batches, q_.heads,          q_.rows, v_.size, q_.rows * q_.heads * v_.size,
            v_.size,    q_.heads * v_.size};
    if (p.num_anchor_srcs > 3 && p.srcs[3].present()) {
      has_mask_ = true;
      mask_strides_ = ops::broadcast_strides(p.srcs[3].dims, s.mask_shape);
      mask_columns_ = s.mask_shape[3];
      if (p.srcs[3].dtype == DType::kBool) bool_mask_ = numel(p.srcs[3].dims);
    }
    per_head_ = (q_.rows + head_.block() - 1) / head_.block();
    const int64_t blocks = per_head_ * (q_.heads / k_.heads),
                  pairs = std::max<int64_t>(1, q_.batches * k_.heads);
    parts_ = std::max<int64_t>(1, std::min(blocks, (kUnits + pairs - 1) / pairs));
    if (pairs > 1 && pairs * 2 > kUnits) parts_ = 1;
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(sizeof(float)) * (mask_floats() + workers_ * scratch_floats());
  }

  void run(const RunArgs& args) const override {
    auto* work = static_cast<float*>(args.workspace);
    const float* mask = nullptr;
    if (has_mask_) {
      mask = static_cast<const float*>(args.srcs[3]);
      if (bool_mask_ > 0) {
        const auto* open = static_cast<const uint8_t*>(args.srcs[3]);
        parallel_ranges(args, bool_mask_, 65536, [&](int64_t b, int64_t e) {
          for (int64_t i = b; i < e; ++i) work[i] = open[i] != 0 ? 0.0F : -INFINITY;
        });
        mask = work;
      }
    }
    const int64_t units = q_.batches * k_.heads * parts_;
    const auto unit = [&](int64_t u, int worker) {
      attend(args, u / parts_, u % parts_, mask, work + mask_floats() + worker * scratch_floats());
    };
    if (units == 1 || args.max_threads <= 1)
      for (int64_t u = 0; u < units; ++u) unit(u, 0);
    else
      args.pool->parallel_for(units, unit, std::min(args.max_threads, workers_));
    if (post_.active()) {
      auto* dst = static_cast<float*>(args.dsts[0]);
      parallel_ranges(args, y_.batches * y_.batch, post_.grain(),
                      [&](int64_t b, int64_t e) { post_.run(dst, args.srcs, b, e); });
    }
  }

 private:
  static Setup setup(const Problem& p) {
    Setup s;
    read_setup(p, s);
    return s;
  }
  /// Whole cache lines, so that workers do not share one.
  int64_t scratch_floats() const { return (head_.scratch_floats() + 31) / 16 * 16; }
  int64_t mask_floats() const { return (bool_mask_ + 15) / 16 * 16; }

  /// Part `part` of the query blocks that read key/value head `pair % heads` of batch entry `pair / heads`.
  void attend(const RunArgs& args, int64_t pair, int64_t part, const float* mask, float* scratch) const {
    const int64_t b = pair / k_.heads, kv = pair % k_.heads, group = q_.heads / k_.heads;
    const hone::cpu::HeadRows k{static_cast<const float*>(args.srcs[1]) + b * k_.batch + kv * k_.head,
                                k_.row};
    const hone::cpu::HeadRows v{static_cast<const float*>(args.srcs[2]) + b * v_.batch + kv * v_.head,
                                v_.row};
    const int64_t blocks = per_head_ * group;
    const int64_t begin = blocks * part / parts_, end = blocks * (part + 1) / parts_;
    if (begin < end && head_.packs()) head_.pack(k, v, scratch);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t h = kv * group + i / per_head_, first = i % per_head_ * head_.block();
      const int64_t count = std::min(head_.block(), q_.rows - first);
      const hone::cpu::HeadRows q{static_cast<const float*>(args.srcs[0]) + b * q_.batch + h * q_.head,
                                  q_.row};
      hone::cpu::AttentionMask m;
      if (mask != nullptr)
        m = {mask + b * mask_strides_[0] + h * mask_strides_[1], mask_strides_[2], mask_strides_[3],
             mask_columns_};
      float* dst = static_cast<float*>(args.dsts[0]) + b * y_.batch + h * y_.head + first * y_.row;
      head_.rows(q, k, v, m, first, count, dst, y_.row, scratch);
    }
  }

  hone::cpu::AttentionHead head_;
  PwRunner post_;
  int workers_;
  Heads q_, k_, v_, y_;
  bool has_mask_ = false;
  int64_t bool_mask_ = 0, mask_columns_ = 0;
  std::vector<int64_t> mask_strides_;
  int64_t per_head_ = 1, parts_ = 1;
};

class Attention final : public CpuTactic {
 public:
  explicit Attention(Isa isa) : CpuTactic("attention_f32_fused", isa, Numerics::kReassociates) {}
  Support supports(const Problem& p) const override {
    for (const auto* list : {&p.srcs, &p.dsts})
      for (size_t i = 0; i < list->size(); ++i) {
        const Operand& o = (*list)[i];
        if (!ops::same_order(o.layout, Layout::kPlain, o.dims)) return Support::no("layout: plain only");
        const bool mask = list == &p.srcs && i == 3 && i < p.num_anchor_srcs;
        if (o.present() && o.dtype != DType::kF32 && !(mask && o.dtype == DType::kBool))
          return Support::no("dtype: not f32");
      }
    Setup s;
    const std::string why = read_setup(p, s);
    return why.empty() ? post_supports(p, -1) : Support::no(why);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<AttentionPrepared>(p, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_attention(Isa isa) { return std::make_unique<Attention>(isa); }

}  // namespace hone::backends::cpu
