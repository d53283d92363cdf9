// Attention (23, 24, 25): Y = softmax(softcap(scale * Q K^T) + bias) V per head. Later versions only add
// inputs and attributes.
//
// Shapes: Q [B,Hq,Sq,D], K [B,Hkv,Skv,D], V [B,Hkv,Skv,Dv], or 3-D with the heads inside the last dimension:
// [B,S,H*D]. Query head h reads key/value head h / (Hq / Hkv). past_* come before K and V; S = past + Skv.
// Bias: the sum of attn_mask (bool: 0 or -inf; shorter than S: -inf behind it), causal (-inf where j > i +
// offset), window, and padding (-inf from nonpad_kv_seqlen on). offset = past length, or nonpad_kv_seqlen[b]
// - Sq, or 0. A row whose bias is -inf everywhere gives zeros.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/float16.h"
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/interpreter.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// --- inference ---

void infer(InferContext& ctx) {
  const ir::Node& node = ctx.node();
  const auto shape_of = [&](size_t i) { return ctx.has_shape(i) ? &ctx.shape(i) : nullptr; };
  const Dims *q = shape_of(0), *k = shape_of(1), *v = shape_of(2), *past = shape_of(4);
  const bool known = q != nullptr && k != nullptr && v != nullptr;
  if (ctx.has_input(4) != ctx.has_input(5)) ctx.fail("past_key and past_value must be given together");
  if (ctx.has_input(6) && ctx.has_input(4)) ctx.fail("nonpad_kv_seqlen and past_key exclude one another");
  if (!known) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    ctx.set_output(1, ctx.dtype(1), std::nullopt);
    ctx.set_output(2, ctx.dtype(2), std::nullopt);
    ctx.set_output(3, ctx.dtype(0), std::nullopt);
    return;
  }
  if ((q->size() != 3 && q->size() != 4) || k->size() != q->size() || v->size() != q->size())
    ctx.fail("Q, K and V must all have rank 3 or all have rank 4");
  Dims head_q, head_k, head_v;  // B, H, S, D
  if (q->size() == 4) {
    head_q = *q;
    head_k = *k;
    head_v = *v;
  } else {
    const int64_t hq = node.get_int("q_num_heads", 0), hkv = node.get_int("kv_num_heads", 0);
    if (hq < 1 || hkv < 1)
      ctx.fail("attributes 'q_num_heads' and 'kv_num_heads' must be positive for 3-D inputs");
    const auto split = [&](const Dims& d, int64_t heads, const char* name) {
      if (d[2].is_const() && d[2].value() % heads != 0)
        ctx.fail(std::string(name) + "'s last dimension " + d[2].text() + " is not a multiple of " +
                 std::to_string(heads) + " heads");
      return Dims{d[0], Dim(heads), d[1], Dim::floordiv(d[2], Dim(heads))};
    };
    head_q = split(*q, hq, "Q");
    head_k = split(*k, hkv, "K");
    head_v = split(*v, hkv, "V");
  }
  if (head_q[1].is_const() && head_k[1].is_const() &&
      (head_k[1].value() == 0 || head_q[1].value() % head_k[1].value() != 0)) {
    ctx.fail("attribute 'q_num_heads': " + head_q[1].text() + " query heads are not a multiple of " +
             head_k[1].text() + " key heads");
  }
  if (head_q[3].is_const() && head_k[3].is_const() && !(head_q[3] == head_k[3]))
    ctx.fail("Q and K have head sizes " + head_q[3].text() + " and " + head_k[3].text());
  Dim total = head_k[2];
  if (ctx.has_input(4))
    total = past != nullptr && past->size() == 4 ? (*past)[2] + total : ctx.fresh_symbol();
  if (q->size() == 4)
    ctx.set_output(0, ctx.dtype(0), Dims{head_q[0], head_q[1], head_q[2], head_v[3]});
  else
    ctx.set_output(0, ctx.dtype(0), Dims{head_q[0], head_q[2], head_q[1] * head_v[3]});
  ctx.set_output(1, ctx.dtype(1), Dims{head_k[0], head_k[1], total, head_k[3]});
  ctx.set_output(2, ctx.dtype(2), Dims{head_v[0], head_v[1], total, head_v[3]});
  ctx.set_output(3, ctx.dtype(0), Dims{head_q[0], head_q[1], head_q[2], total});
}

// --- kernel ---

/// One of Q, K, V as heads: row s of (batch, head) starts at data + b * batch + h * head + s * row.
struct Heads {
  int64_t batches = 0, heads = 0, rows = 0, size = 0;
  int64_t batch = 0, head = 0, row = 0;

  Heads(const KernelContext& ctx, const Tensor& t, int64_t num_heads, const char* name) {
    batches = t.dim(0);
    if (t.rank() == 4) {
      heads = t.dim(1);
      rows = t.dim(2);
      size = t.dim(3);
      row = size;
      head = rows * size;
    } else {
      if (num_heads < 1 || t.dim(2) % num_heads != 0)
        ctx.fail(std::string(name) + " " + t.type_text() + " does not split into " +
                 std::to_string(num_heads) + " heads");
      heads = num_heads;
      rows = t.dim(1);
      size = t.dim(2) / num_heads;
      row = t.dim(2);
      head = size;
    }
    batch = rows * heads * size;
  }
};

/// Keys or values with the past before them.
template <class T>
struct Cache {
  const T* now;
  const T* past;
  Heads heads;
  int64_t past_rows;
  const T* at(int64_t b, int64_t h, int64_t s) const {
    if (s < past_rows) return past + ((b * heads.heads + h) * past_rows + s) * heads.size;
    return now + b * heads.batch + h * heads.head + (s - past_rows) * heads.row;
  }
  int64_t rows() const { return past_rows + heads.rows; }
};

struct Mask {
  bool any = false;
  std::vector<double> values;  ///< additive
  std::vector<int64_t> strides = {0, 0, 0, 0};
  int64_t columns = 0;  ///< -inf from here on

  Mask() = default;
  Mask(const KernelContext& ctx, const Tensor& t, const Shape& full) : any(true) {
    const bool boolean = t.dtype() == DType::kBool;
    values.resize(static_cast<size_t>(t.numel()));
    for (size_t i = 0; i < values.size(); ++i) {
      const double v = t.at(static_cast<int64_t>(i));
      values[i] = boolean ? (v != 0 ? 0.0 : -kInf) : v;
    }
    columns = t.rank() > 0 ? t.shape().back() : full[3];
    Shape as = full;
    if (columns < full[3]) as[3] = columns;
    columns = as[3];
    const auto merged = broadcast_shapes(t.shape(), as);
    if (!merged || *merged != as)
      ctx.fail("attn_mask " + t.type_text() + " does not broadcast to " + type_text(t.dtype(), full));
    strides = broadcast_strides(t.shape(), as);
  }
  double at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    if (!any) return 0;
    if (j >= columns) return -kInf;
    return values[static_cast<size_t>(b * strides[0] + h * strides[1] + i * strides[2] + j * strides[3])];
  }
};

/// Positions that causality, window and padding leave open to query i of a batch entry: [low, high).
struct Reach {
  bool causal = false;
  int64_t left = -1, right = -1;
  std::vector<int64_t> offset, valid;  ///< by batch entry

  void range(int64_t b, int64_t i, int64_t total, int64_t* low, int64_t* high) const {
    const auto at = static_cast<size_t>(b);
    const int64_t p = i + offset[at];
    *low = left >= 0 ? std::max<int64_t>(0, p - left) : 0;
    *high = std::min(total, valid[at]);
    if (causal) *high = std::min(*high, p + 1);
    if (right >= 0) *high = std::min(*high, p + right + 1);
  }
};

double round_as(double v, DType t) {
  if (t == DType::kF16) return static_cast<double>(f16_to_f32(f64_to_f16(v)));
  if (t == DType::kBF16) return static_cast<double>(bf16_to_f32(f64_to_bf16(v)));
  return v;
}

/// scores -> probabilities of one row, in place; zeros when the bias masks all of it.
void softmax_row(double* s, const double* bias, int64_t n, DType precision) {
  bool masked = true;
  double max = -kInf;
  for (int64_t j = 0; j < n; ++j) {
    masked = masked && bias[j] == -kInf;
    s[j] = round_as(s[j] + bias[j], precision);
    if (s[j] > max || s[j] != s[j]) max = s[j];
    if (max != max) break;
  }
  if (masked || max == -kInf) {
    std::fill(s, s + n, 0.0);
    return;
  }
  double sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += s[j] = std::exp(s[j] - max);
  for (int64_t j = 0; j < n; ++j) s[j] = round_as(s[j] / sum, precision);
}

constexpr int64_t kMaxScores = 8 << 20;

template <class T>
class Attention {
 public:
  Attention(KernelContext& ctx, const Tensor& q, Cache<T> k, Cache<T> v, Heads heads, Tensor* y, Tensor* qk)
      : ctx_(ctx), q_(q.data<T>()), k_(k), v_(v), h_(heads), y_(y), qk_(qk), total_(k.rows()) {
    const float d = static_cast<float>(h_.size);
    scale_ = ctx.attrs.contains("scale") ? static_cast<double>(ctx.get_float("scale", 1))
                                         : 1.0 / std::sqrt(static_cast<double>(d));
    softcap_ = ctx.get_float("softcap", 0.0F);
    mode_ = ctx.get_int("qk_matmul_output_mode", 0);
    if (mode_ < 0 || mode_ > 3)
      ctx.fail("attribute 'qk_matmul_output_mode' is " + std::to_string(mode_) + ", must be 0 to 3");
    if (ctx.attrs.contains("softmax_precision") && !ctx.oracle)
      precision_ = static_cast<DType>(ctx.get_int("softmax_precision", 1));
    const Shape full = {h_.batches, h_.heads, h_.rows, total_};
    if (ctx.has_input(3)) mask_ = Mask(ctx, ctx.in(3), full);
    reach_.causal = ctx.get_int("is_causal", 0) != 0;
    reach_.left = ctx.get_int("left_window_size", -1);
    reach_.right = ctx.get_int("right_window_size", -1);
    if (reach_.left < -1 || reach_.right < -1)
      ctx.fail("attributes 'left_window_size' and 'right_window_size' must be at least -1");
    reach_.offset.assign(static_cast<size_t>(h_.batches), k.past_rows);
    reach_.valid.assign(static_cast<size_t>(h_.batches), total_);
    if (ctx.has_input(6)) {
      const std::vector<int64_t> lens = ctx.in(6).to_i64();
      if (static_cast<int64_t>(lens.size()) != h_.batches)
        ctx.fail("nonpad_kv_seqlen " + ctx.in(6).type_text() + " is not one value for each batch entry");
      for (size_t b = 0; b < lens.size(); ++b) {
        if (lens[b] < 0 || lens[b] > total_)
          ctx.fail("nonpad_kv_seqlen holds " + std::to_string(lens[b]) + " of " + std::to_string(total_));
        reach_.offset[b] = lens[b] - h_.rows;
        reach_.valid[b] = lens[b];
      }
    }
  }

  void run() {
    const int64_t planes = h_.batches * h_.heads, per_plane = checked_mul(h_.rows, total_);
    const int64_t chunk = std::max<int64_t>(1, kMaxScores / std::max<int64_t>(1, per_plane));
    std::vector<double> scores;
    for (int64_t first = 0; first < planes; first += chunk) {
      const int64_t count = std::min(chunk, planes - first);
      scores.assign(static_cast<size_t>(count * per_plane), 0.0);
      multiply_qk(first, count, &scores);
      ref_parallel(count * h_.rows, static_cast<double>(20 * total_),
                   [&](int64_t r) { row(first, r, scores.data() + r * total_); });
      multiply_pv(first, count, scores);
    }
  }

 private:
  void multiply_qk(int64_t first, int64_t count, std::vector<double>* scores) {
    RefGemm g;
    g.batch = count;
    g.m = h_.rows;
    g.n = total_;
    g.k = h_.size;
    g.pack_a = [&](int64_t i, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width) {
      const int64_t plane = first + i;
      pack_strided(q_ + plane / h_.heads * h_.batch + plane % h_.heads * h_.head + i0 * h_.row + p0, 1,
                   h_.row, rows, kc, dst, width);
    };
    g.pack_b = [&](int64_t i, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst, int64_t width) {
      for (int64_t c = 0; c < width; ++c) {
        const T* key = c < cols ? k_.at((first + i) / h_.heads, kv_head(first + i), j0 + c) + p0 : nullptr;
        for (int64_t p = 0; p < kc; ++p)
          dst[p * width + c] = key != nullptr ? static_cast<double>(key[p]) : 0.0;
      }
    };
    g.store = [&, scores](int64_t i, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc,
                          int64_t ld) {
      for (int64_t r = 0; r < rows; ++r) {
        double* s = scores->data() + (i * h_.rows + i0 + r) * total_ + j0;
        for (int64_t c = 0; c < cols; ++c) s[c] = acc[r * ld + c] * scale_;
      }
    };
    ref_gemm(g);
  }

  /// Softcap, bias and softmax of one row of scores; `r` counts rows from the first plane of the chunk.
  void row(int64_t first, int64_t r, double* s) {
    const int64_t plane = first + r / h_.rows, b = plane / h_.heads, h = plane % h_.heads, i = r % h_.rows;
    T* out = qk_ != nullptr ? qk_->data<T>() + (plane * h_.rows + i) * total_ : nullptr;
    const auto emit = [&](int64_t mode) {
      if (out != nullptr && mode_ == mode) {
        for (int64_t j = 0; j < total_; ++j) out[j] = static_cast<T>(s[j]);
      }
    };
    emit(0);
    if (softcap_ > 0) {
      for (int64_t j = 0; j < total_; ++j) s[j] = softcap_ * std::tanh(s[j] / softcap_);
    }
    emit(1);
    int64_t low = 0, high = total_;
    reach_.range(b, i, total_, &low, &high);
    std::vector<double> bias(static_cast<size_t>(total_));
    for (int64_t j = 0; j < total_; ++j)
      bias[static_cast<size_t>(j)] = j < low || j >= high ? -kInf : mask_.at(b, h, i, j);
    if (out != nullptr && mode_ == 2) {
      for (int64_t j = 0; j < total_; ++j) out[j] = static_cast<T>(s[j] + bias[static_cast<size_t>(j)]);
    }
    softmax_row(s, bias.data(), total_, precision_);
    emit(3);
  }

  void multiply_pv(int64_t first, int64_t count, const std::vector<double>& probabilities) {
    RefGemm g;
    g.batch = count;
    g.m = h_.rows;
    g.n = v_.heads.size;
    g.k = total_;
    g.pack_a = [&](int64_t i, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width) {
      pack_strided(probabilities.data() + (i * h_.rows + i0) * total_ + p0, 1, total_, rows, kc, dst, width);
    };
    g.pack_b = [&](int64_t i, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst, int64_t width) {
      for (int64_t p = 0; p < kc; ++p) {
        pack_strided(v_.at((first + i) / h_.heads, kv_head(first + i), p0 + p) + j0, 0, 1, cols, 1,
                     dst + p * width, width);
      }
    };
    const bool flat = y_->rank() == 3;
    T* y = y_->data<T>();
    const int64_t n = g.n;
    g.store = [&, flat, y, n](int64_t i, int64_t i0, int64_t rows, int64_t j0, int64_t cols,
                              const double* acc, int64_t ld) {
      const int64_t plane = first + i, b = plane / h_.heads, h = plane % h_.heads;
      for (int64_t r = 0; r < rows; ++r) {
        T* to = flat ? y + ((b * h_.rows + i0 + r) * h_.heads + h) * n + j0
                     : y + (plane * h_.rows + i0 + r) * n + j0;
        for (int64_t c = 0; c < cols; ++c) to[c] = static_cast<T>(acc[r * ld + c]);
      }
    };
    ref_gemm(g);
  }

  int64_t kv_head(int64_t plane) const { return plane % h_.heads / (h_.heads / k_.heads.heads); }

  KernelContext& ctx_;
  const T* q_;
  Cache<T> k_, v_;
  Heads h_;
  Tensor *y_, *qk_;
  int64_t total_;
  double scale_ = 1, softcap_ = 0;
  int64_t mode_ = 0;
  DType precision_ = DType::kF64;
  Mask mask_;
  Reach reach_;
};

/// present = past, then the new rows, as [B,H,S,D].
template <class T>
void write_present(const Cache<T>& c, Tensor* out) {
  T* to = out->data<T>();
  for (int64_t b = 0; b < c.heads.batches; ++b) {
    for (int64_t h = 0; h < c.heads.heads; ++h) {
      for (int64_t s = 0; s < c.rows(); ++s, to += c.heads.size)
        std::memcpy(to, c.at(b, h, s), static_cast<size_t>(c.heads.size) * sizeof(T));
    }
  }
}

void kernel(KernelContext& ctx) {
  const Tensor& q = ctx.in(0);
  if ((q.rank() != 3 && q.rank() != 4) || ctx.in(1).rank() != q.rank() || ctx.in(2).rank() != q.rank())
    ctx.fail("Q, K and V must all have rank 3 or all have rank 4");
  // V may be of another float type than Q and K.
  const Tensor v = convert(ctx.in(2), q.dtype()), k = convert(ctx.in(1), q.dtype());
  const int64_t hq = ctx.get_int("q_num_heads", 0), hkv = ctx.get_int("kv_num_heads", 0);
  const Heads heads_q(ctx, q, hq, "Q"), heads_k(ctx, k, hkv, "K"), heads_v(ctx, v, hkv, "V");
  if (heads_k.heads == 0 || heads_q.heads % heads_k.heads != 0 || heads_v.heads != heads_k.heads)
    ctx.fail("query heads are not a multiple of key and value heads");
  if (heads_q.size != heads_k.size || heads_k.rows != heads_v.rows || heads_q.batches != heads_k.batches ||
      heads_q.batches != heads_v.batches) {
    ctx.fail("Q " + q.type_text() + ", K " + k.type_text() + " and V " + v.type_text() + " do not fit");
  }
  if (ctx.has_input(4) != ctx.has_input(5)) ctx.fail("past_key and past_value must be given together");
  Tensor past_k, past_v;
  int64_t past = 0;
  if (ctx.has_input(4)) {
    past_k = convert(ctx.in(4), q.dtype());
    past_v = convert(ctx.in(5), q.dtype());
    past = past_k.rank() == 4 ? past_k.dim(2) : -1;
    if (past < 0 || past_k.shape() != Shape{heads_k.batches, heads_k.heads, past, heads_k.size} ||
        past_v.shape() != Shape{heads_v.batches, heads_v.heads, past, heads_v.size}) {
      ctx.fail("past_key " + ctx.in(4).type_text() + " or past_value " + ctx.in(5).type_text() +
               " does not fit K and V");
    }
    if (ctx.has_input(6)) ctx.fail("nonpad_kv_seqlen and past_key exclude one another");
  }
  const int64_t total = past + heads_k.rows;
  Shape y_shape = {heads_q.batches, heads_q.heads, heads_q.rows, heads_v.size};
  if (q.rank() == 3) y_shape = {heads_q.batches, heads_q.rows, heads_q.heads * heads_v.size};
  Tensor* qk = ctx.wants(3) ? &ctx.out(3, {heads_q.batches, heads_q.heads, heads_q.rows, total}) : nullptr;
  Tensor& y = ctx.out(0, y_shape);
  float_or_throw(ctx, q.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Cache<T> keys{k.data<T>(), past_k.defined() ? past_k.data<T>() : nullptr, heads_k, past};
    const Cache<T> values{v.data<T>(), past_v.defined() ? past_v.data<T>() : nullptr, heads_v, past};
    Attention<T>(ctx, q, keys, values, heads_q, &y, qk).run();
    const auto present = [&](size_t i, const Cache<T>& c) {
      if (!ctx.wants(i)) return;
      const Shape shape = {c.heads.batches, c.heads.heads, total, c.heads.size};
      if (ctx.out_dtypes[i] == q.dtype()) {
        write_present(c, &ctx.out(i, shape));
      } else {
        Tensor t(q.dtype(), shape);
        write_present(c, &t);
        ctx.set_out(i, convert(t, ctx.out_dtypes[i]));
      }
    };
    present(1, keys);
    present(2, values);
  });
}

Cost cost(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost c;
  if (inputs.size() < 3 || outputs.empty() || inputs[0].size() < 3 || inputs[1].size() < 3) return c;
  const bool flat = inputs[0].size() == 3;
  const double rows = static_cast<double>(inputs[0][flat ? 1 : 2]);
  double keys = static_cast<double>(inputs[1][flat ? 1 : 2]);
  if (inputs.size() > 4 && inputs[4].size() == 4) keys += static_cast<double>(inputs[4][2]);
  const double heads = static_cast<double>(flat ? ir::attr_int(attrs, "q_num_heads", 1) : inputs[0][1]);
  c.flops = 2.0 * keys * (static_cast<double>(numel(inputs[0])) + static_cast<double>(numel(outputs[0])));
  c.transcendentals = static_cast<double>(inputs[0][0]) * heads * rows * keys;
  return c;
}

}  // namespace

const OpDef& op_Attention() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "Attention";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
