// Body of depthwise.cpp, compiled per ISA.
namespace hone::cpu::HONE_ISA_NS {

/// Loads and stores of a whole vector (n == kWidth) or of its first n lanes.
template <bool kWhole>
HONE_INLINE Vec load_part(const float* p, int n) {
  return kWhole ? load(p) : load_n(p, n);
}
template <bool kWhole>
HONE_INLINE void store_part(float* p, Vec v, int n) {
  if (kWhole)
    store(p, v);
  else
    store_n(p, v, n);
}

/// kPixels neighbouring outputs from x on, all of whose taps lie inside the line; n lanes from channel c on.
/// With kKw and kStride known (0: not) each input column is loaded once for all outputs that read it.
template <int kPixels, int kKw, int kStride, bool kWhole>
HONE_INLINE void depthwise_block(const DepthwiseSpan& s, int64_t x, int64_t c, int n) {
  Vec acc[kPixels];
  const Vec start = s.bias != nullptr ? load_part<kWhole>(s.bias + c, n) : zero();
  const int64_t channels = s.channels, src_stride = s.src_stride, dst_stride = s.dst_stride,
                n_lines = s.n_lines;
  const float* const* lines = s.lines;
  const float* const* weights = s.weights;
  // clang-format off
  HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = start;
  const int64_t first = (x * s.stride - s.pad) * src_stride + c;
  for (int64_t l = 0; l < n_lines; ++l) {
    const float* in = lines[l] + first;
    const float* w = weights[l] + c;
    if constexpr (kKw > 0) {
      Vec wv[kKw];
      HONE_UNROLL for (int k = 0; k < kKw; ++k) wv[k] = keep(load_part<kWhole>(w + k * channels, n));
      HONE_UNROLL for (int j = 0; j < (kPixels - 1) * kStride + kKw; ++j, in += src_stride) {
        const Vec v = keep(load_part<kWhole>(in, n));
        HONE_UNROLL for (int k = 0; k < kKw; ++k) {
          const int i = (j - k) / kStride;
          if (j >= k && (j - k) % kStride == 0 && i < kPixels) acc[i] = fma(v, wv[k], acc[i]);
        }
      }
    } else {
      const int64_t tap = s.dilation * src_stride, pixel = s.stride * src_stride;
      const int64_t kw = s.kw;
      for (int64_t k = 0; k < kw; ++k, in += tap, w += channels) {
        const Vec wv = load_part<kWhole>(w, n);
        HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = fma(load_part<kWhole>(in + i * pixel, n), wv, acc[i]);
      }
    }
  }
  if (s.clamp) {
    const Vec lo = set(s.lo), hi = set(s.hi);
    HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = min(hi, max(lo, acc[i]));
  }
  float* out = s.dst + x * dst_stride + c;
  HONE_UNROLL for (int i = 0; i < kPixels; ++i, out += dst_stride) store_part<kWhole>(out, acc[i], n);
  // clang-format on
}

/// kVecs vectors of channels of one output pixel whose taps [k0, k1) fall inside the line.
template <int kVecs, bool kWhole>
HONE_INLINE void depthwise_edge_block(const DepthwiseSpan& s, int64_t x, int64_t k0, int64_t k1, int64_t c,
                                      int n) {
  Vec acc[kVecs];
  const int64_t channels = s.channels, tap = s.dilation * s.src_stride, n_lines = s.n_lines;
  const int64_t first = (x * s.stride - s.pad + k0 * s.dilation) * s.src_stride + c;
  // clang-format off
  HONE_UNROLL for (int i = 0; i < kVecs; ++i)
    acc[i] = s.bias != nullptr ? load_part<kWhole>(s.bias + c + i * kWidth, n) : zero();
  for (int64_t l = 0; l < n_lines; ++l) {
    const float* in = s.lines[l] + first;
    const float* w = s.weights[l] + k0 * channels + c;
    for (int64_t k = k0; k < k1; ++k, in += tap, w += channels)
      HONE_UNROLL for (int i = 0; i < kVecs; ++i)
        acc[i] = fma(load_part<kWhole>(in + i * kWidth, n), load_part<kWhole>(w + i * kWidth, n), acc[i]);
  }
  if (s.clamp)
    HONE_UNROLL for (int i = 0; i < kVecs; ++i) acc[i] = min(set(s.hi), max(set(s.lo), acc[i]));
  float* out = s.dst + x * s.dst_stride + c;
  HONE_UNROLL for (int i = 0; i < kVecs; ++i) store_part<kWhole>(out + i * kWidth, acc[i], n);
  // clang-format on
}

/// Taps [k0, k1) of output x that fall inside the line.
HONE_INLINE void taps_inside(const DepthwiseSpan& s, int64_t x, int64_t& k0, int64_t& k1) {
  const int64_t at = x * s.stride - s.pad;
  k0 = 0;
  while (k0 < s.kw && at + k0 * s.dilation < 0) ++k0;
  k1 = s.kw;
  while (k1 > k0 && at + (k1 - 1) * s.dilation >= s.width) --k1;
}

/// One output pixel some of whose taps may fall outside the line.
HONE_NOINLINE void depthwise_edge(const DepthwiseSpan& s, int64_t x) {
  int64_t k0, k1;
  taps_inside(s, x, k0, k1);
  int64_t c = s.c0;
  for (; c + 4 * kWidth <= s.c1; c += 4 * kWidth) depthwise_edge_block<4, true>(s, x, k0, k1, c, kWidth);
  for (; c + kWidth <= s.c1; c += kWidth) depthwise_edge_block<1, true>(s, x, k0, k1, c, kWidth);
  if (c < s.c1) depthwise_edge_block<1, false>(s, x, k0, k1, c, static_cast<int>(s.c1 - c));
}

template <int kPixels, int kKw, int kStride>
HONE_NOINLINE void depthwise_pixels(const DepthwiseSpan& s, int64_t x) {
  int64_t c = s.c0;
  for (; c + kWidth <= s.c1; c += kWidth) depthwise_block<kPixels, kKw, kStride, true>(s, x, c, kWidth);
  if (c < s.c1) depthwise_block<kPixels, kKw, kStride, false>(s, x, c, static_cast<int>(s.c1 - c));
}

template <int kKw, int kStride>
HONE_INLINE void depthwise_inside(const DepthwiseSpan& s, int64_t x, int64_t end) {
  for (; x + 8 <= end; x += 8) depthwise_pixels<8, kKw, kStride>(s, x);
  if (x + 4 <= end) {
    depthwise_pixels<4, kKw, kStride>(s, x);
    x += 4;
  }
  if (x + 2 <= end) {
    depthwise_pixels<2, kKw, kStride>(s, x);
    x += 2;
  }
  if (x < end) depthwise_pixels<1, kKw, kStride>(s, x);
}

/// Index of the lane that holds channel i of the lane's group.
template <int kGroup>
HONE_INLINE IVec group_lanes(int i) {
  alignas(64) int32_t lanes[kWidth];
  for (int l = 0; l < kWidth; ++l) lanes[l] = l / kGroup * kGroup + i;
  return load_i(lanes);
}

/// kPixels outputs from x on in groups of kGroup channels, taps [k0, k1) of each line (inside it for all of
/// them).
template <int kPixels, int kGroup, bool kWhole>
HONE_INLINE void group_block(const DepthwiseSpan& s, const IVec* lanes, int64_t x, int64_t k0, int64_t k1,
                             int64_t c, int n) {
  Vec acc[kPixels];
  const Vec start = s.bias != nullptr ? load_part<kWhole>(s.bias + c, n) : zero();
  const int64_t channels = s.channels, tap = s.dilation * s.src_stride, pixel = s.stride * s.src_stride;
  const int64_t dst_stride = s.dst_stride, n_lines = s.n_lines;
  const int64_t first = (x * s.stride - s.pad + k0 * s.dilation) * s.src_stride + c;
  // clang-format off
  HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = start;
  for (int64_t l = 0; l < n_lines; ++l) {
    const float* in = s.lines[l] + first;
    const float* w = s.weights[l] + k0 * kGroup * channels + c;
    for (int64_t k = k0; k < k1; ++k, in += tap) {
      Vec v[kPixels];
      HONE_UNROLL for (int i = 0; i < kPixels; ++i) v[i] = load_part<kWhole>(in + i * pixel, n);
      HONE_UNROLL for (int g = 0; g < kGroup; ++g, w += channels) {
        const Vec wv = load_part<kWhole>(w, n);
        HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = fma(permute(v[i], lanes[g]), wv, acc[i]);
      }
    }
  }
  if (s.clamp) {
    const Vec lo = set(s.lo), hi = set(s.hi);
    HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = min(hi, max(lo, acc[i]));
  }
  float* out = s.dst + x * dst_stride + c;
  HONE_UNROLL for (int i = 0; i < kPixels; ++i, out += dst_stride) store_part<kWhole>(out, acc[i], n);
  // clang-format on
}

template <int kPixels, int kGroup>
HONE_NOINLINE void group_pixels(const DepthwiseSpan& s, int64_t x, int64_t k0, int64_t k1) {
  IVec lanes[kGroup];
  for (int i = 0; i < kGroup; ++i) lanes[i] = group_lanes<kGroup>(i);
  int64_t c = s.c0;
  for (; c + kWidth <= s.c1; c += kWidth) group_block<kPixels, kGroup, true>(s, lanes, x, k0, k1, c, kWidth);
  if (c < s.c1) group_block<kPixels, kGroup, false>(s, lanes, x, k0, k1, c, static_cast<int>(s.c1 - c));
}

template <int kGroup>
HONE_INLINE void group_span(const DepthwiseSpan& s, int64_t left, int64_t right) {
  const auto edge = [&](int64_t x) {
    int64_t k0, k1;
    taps_inside(s, x, k0, k1);
    group_pixels<1, kGroup>(s, x, k0, k1);
  };
  constexpr int kPixels = kGroup == 8 ? 4 : 6;
  for (int64_t x = s.x0; x < left; ++x) edge(x);
  int64_t x = left;
  for (; x + kPixels <= right; x += kPixels) group_pixels<kPixels, kGroup>(s, x, 0, s.kw);
  for (; x + 2 <= right; x += 2) group_pixels<2, kGroup>(s, x, 0, s.kw);
  if (x < right) group_pixels<1, kGroup>(s, x, 0, s.kw);
  for (x = right; x < s.x1; ++x) edge(x);
}

HONE_NOINLINE void depthwise_span(const DepthwiseSpan& s) {
  // Outputs in [left, right) have all their taps inside the line.
  const auto clamp = [&](int64_t v) { return v < s.x0 ? s.x0 : v > s.x1 ? s.x1 : v; };
  const int64_t reach = s.width + s.pad - (s.kw - 1) * s.dilation;  // x * stride < reach
  const int64_t left = clamp((s.pad + s.stride - 1) / s.stride);
  int64_t right = clamp(reach <= 0 ? 0 : (reach + s.stride - 1) / s.stride);
  if (right < left) right = left;
  if (s.group == 2) return group_span<2>(s, left, right);
  if (s.group == 4) return group_span<4>(s, left, right);
#if HONE_ISA_LEVEL > 0
  if (s.group == 8) return group_span<8>(s, left, right);
#endif
  for (int64_t x = s.x0; x < left; ++x) depthwise_edge(s, x);
  if (s.dilation == 1 && s.kw == 3 && s.stride == 1)
    depthwise_inside<3, 1>(s, left, right);
  else if (s.dilation == 1 && s.kw == 3 && s.stride == 2)
    depthwise_inside<3, 2>(s, left, right);
  else if (s.dilation == 1 && s.kw == 5 && s.stride == 1)
    depthwise_inside<5, 1>(s, left, right);
  else if (s.dilation == 1 && s.kw == 5 && s.stride == 2)
    depthwise_inside<5, 2>(s, left, right);
  else
    depthwise_inside<0, 0>(s, left, right);
  for (int64_t x = right; x < s.x1; ++x) depthwise_edge(s, x);
}

}  // namespace hone::cpu::HONE_ISA_NS
