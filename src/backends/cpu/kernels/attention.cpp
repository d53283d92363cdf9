#include "backends/cpu/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/lambda_inline.h"
#include "backends/cpu/simd.h"
#include "backends/cpu/vmath.h"

#define HONE_ISA_INL "backends/cpu/kernels/attention.inl"
#include "base/isa_foreach.h"

namespace hone::cpu {
namespace {

/// Scores of a block of queries stay within this: half of a second-level cache of 256 KiB, and most of the
/// first level for short sequences.
constexpr int64_t kScoreBytes = 96 * 1024;
/// Fewer queries than this read keys and values where they lie.
constexpr int64_t kPackFrom = 8;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

}  // namespace

AttentionHead::AttentionHead(Isa isa, const AttentionShape& shape)
    : s_(shape),
      tiles_(&tile_kernels(isa)),
      pack_panel_(pack_panel_fn(isa)),
      softmax_(HONE_PICK_ISA(isa, attention_softmax)),
      scale_(HONE_PICK_ISA(isa, attention_scale)),
      dots_(HONE_PICK_ISA(isa, attention_dots)),
      sum_(HONE_PICK_ISA(isa, attention_sum)),
      packs_(shape.queries >= kPackFrom) {
  // Rows a multiple of 4 KiB apart would share their cache sets.
  ld_ = round_up(std::max<int64_t>(s_.keys, 1), 16);
  if (ld_ % 256 == 0) ld_ += 16;
  const int64_t mr = tiles_->mr, nr = tiles_->nr;
  block_ = packs_ ? std::clamp<int64_t>(kScoreBytes / 4 / ld_ / mr * mr, mr, 8 * mr) : 1;
  if (packs_) {
    key_floats_ = round_up(s_.keys, nr) * s_.size;
    packed_ = round_up(key_floats_ + round_up(s_.value_size, nr) * s_.keys, 16);
  }
}

void AttentionHead::pack(HeadRows k, HeadRows v, float* scratch) const {
  const int64_t nr = tiles_->nr;
  for (int64_t j = 0; j < s_.keys; j += nr)
    pack_panel_(k.data + j * k.stride, k.stride, true, s_.size, static_cast<int>(std::min(nr, s_.keys - j)),
                scratch + j * s_.size);
  float* values = scratch + key_floats_;
  for (int64_t c = 0; c < s_.value_size; c += nr)
    pack_panel_(v.data + c, v.stride, false, s_.keys, static_cast<int>(std::min(nr, s_.value_size - c)),
                values + c * s_.keys);
}

void AttentionHead::rows(HeadRows q, HeadRows k, HeadRows v, const AttentionMask& mask, int64_t first,
                         int64_t count, float* dst, int64_t dst_stride, float* scratch) const {
  float* scores = scratch + packed_;
  // Keys that the last row of the block may see; the mask's own end counts too.
  int64_t keys = s_.causal ? std::min(s_.keys, first + count) : s_.keys;
  if (mask.data != nullptr) keys = std::min(keys, mask.columns);
  const auto finish_row = [&](int64_t r) {
    const int64_t reach = s_.causal ? std::min(keys, first + r + 1) : keys;
    float* s = scores + r * ld_;
    const float* m = mask.data == nullptr ? nullptr : mask.data + (first + r) * mask.row_stride;
    const float inverse = softmax_(s, reach, s_.scale, s_.softcap, m, mask.step);
    std::fill(s + reach, s + keys, 0.0F);
    return inverse;
  };
  if (!packs_) {
    for (int64_t r = 0; r < count; ++r) {
      const int64_t reach = s_.causal ? std::min(keys, first + r + 1) : keys;
      dots_(q.data + (first + r) * q.stride, s_.size, k.data, k.stride, reach, scores + r * ld_);
      const float inverse = finish_row(r);
      sum_(scores + r * ld_, reach, v.data, v.stride, s_.value_size, dst + r * dst_stride);
      scale_(dst + r * dst_stride, s_.value_size, inverse);
    }
    return;
  }
  const int64_t nr = tiles_->nr;
  // Tiles of nearly equal height: no thin one at the end.
  const int64_t n_tiles = std::max<int64_t>(1, (count + tiles_->mr - 1) / tiles_->mr);
  const auto each_tile = [&](auto&& fn) {
    for (int64_t t = 0, row = 0; t < n_tiles; ++t) {
      const int64_t height = count / n_tiles + (t < count % n_tiles ? 1 : 0);
      fn(row, static_cast<int>(height));
      row += height;
    }
  };
  const float* from[kMaxTileRows];
  float* to[kMaxTileRows];
  Tile tile;
  tile.rows = from;
  tile.dst = to;
  tile.run = s_.size;
  for (int64_t j = 0; j < keys; j += nr) {
    tile.b = scratch + j * s_.size;
    tile.n = static_cast<int>(std::min(nr, keys - j));
    each_tile([&](int64_t row, int height) {
      for (int r = 0; r < height; ++r) {
        from[r] = q.data + (first + row + r) * q.stride;
        to[r] = scores + (row + r) * ld_ + j;
      }
      tiles_->pick(height, tile.n)(tile);
    });
  }
  float inverse[8 * kMaxTileRows];
  for (int64_t r = 0; r < count; ++r) inverse[r] = finish_row(r);
  tile.run = keys;
  for (int64_t c = 0; c < s_.value_size; c += nr) {
    tile.b = scratch + key_floats_ + c * s_.keys;
    tile.n = static_cast<int>(std::min(nr, s_.value_size - c));
    each_tile([&](int64_t row, int height) {
      for (int r = 0; r < height; ++r) {
        from[r] = scores + (row + r) * ld_;
        to[r] = dst + (row + r) * dst_stride + c;
      }
      tiles_->pick(height, tile.n)(tile);
    });
  }
  for (int64_t r = 0; r < count; ++r) scale_(dst + r * dst_stride, s_.value_size, inverse[r]);
}

}  // namespace hone::cpu
