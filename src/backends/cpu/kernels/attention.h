// Fused attention of one key/value head in f32: scores of a few query rows at a time stay in cache, softmax,
// product with the values.
//
// Math: y[i] = sum_j p[i][j] v[j], p[i] = softmax over j of (softcap(scale * q[i].k[j]) + mask[i][j]);
// softcap(x) = c * tanh(x / c). A row whose scores are all -inf gives zeros. Dot products are one chain of
// multiply-adds over the head size, sums of values one over the keys; the sum of exponentials runs in f32
// blocks added in f64, and divides the finished row.
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"
#include "backends/cpu/kernels/pack.h"
#include "backends/cpu/kernels/tile.h"

namespace hone::cpu {

/// Rows of one head: row i at data + i * stride, `size` floats.
struct HeadRows {
  const float* data = nullptr;
  int64_t stride = 0;
};

struct AttentionShape {
  int64_t queries = 0, keys = 0;
  int64_t size = 0, value_size = 0;  ///< of a query or key, of a value
  float scale = 1;
  float softcap = 0;  ///< 0: none
  bool causal = false;
};

/// Additive mask of one head: row i at data + i * row_stride, an element every `step` (0 or 1) floats; null
/// data: none. Keys from `columns` on are masked.
struct AttentionMask {
  const float* data = nullptr;
  int64_t row_stride = 0;
  int64_t step = 1;
  int64_t columns = 0;
};

/// One score row in place: scale, softcap, mask, exp(x - max); returns 1 / sum, or 0 for a row of -inf (then
/// all become 0).
HONE_DECLARE_ISA(float, attention_softmax,
                 (float* s, int64_t n, float scale, float softcap, const float* mask, int64_t step))
/// dst[i] *= factor.
HONE_DECLARE_ISA(void, attention_scale, (float* dst, int64_t n, float factor))
/// s[j] = q . k[j].
HONE_DECLARE_ISA(void, attention_dots,
                 (const float* q, int64_t size, const float* k, int64_t stride, int64_t keys, float* s))
/// dst = sum over j of p[j] * v[j].
HONE_DECLARE_ISA(void, attention_sum,
                 (const float* p, int64_t keys, const float* v, int64_t stride, int64_t size, float* dst))

/// Attention of any number of query rows against one key/value head.
class AttentionHead {
 public:
  AttentionHead(Isa isa, const AttentionShape& shape);

  /// Query rows that one call of rows() takes at most.
  int64_t block() const { return block_; }
  /// Scratch of one worker, floats.
  int64_t scratch_floats() const { return packed_ + block_ * ld_; }
  /// Whether keys and values are rearranged first: not worth it for a handful of queries.
  bool packs() const { return packs_; }
  /// Rearranges keys and values into `scratch`. REQUIRES packs().
  void pack(HeadRows k, HeadRows v, float* scratch) const;
  /// Rows [first, first + count) of q into dst. `scratch` holds what pack() made, if packs().
  void rows(HeadRows q, HeadRows k, HeadRows v, const AttentionMask& mask, int64_t first, int64_t count,
            float* dst, int64_t dst_stride, float* scratch) const;

 private:
  AttentionShape s_;
  const TileKernels* tiles_;
  PackPanelFn pack_panel_;
  decltype(&portable::attention_softmax) softmax_;
  decltype(&portable::attention_scale) scale_;
  decltype(&portable::attention_dots) dots_;
  decltype(&portable::attention_sum) sum_;
  bool packs_;
  int64_t block_, ld_, key_floats_ = 0, packed_ = 0;
};

}  // namespace hone::cpu
