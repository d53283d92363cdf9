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
  // clang-format off
  HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = start;
  const int64_t first = (x * s.stride - s.pad) * s.src_stride + c;
  for (int64_t l = 0; l < s.n_lines; ++l) {
    const float* in = s.lines[l] + first;
    const float* w = s.weights[l] + c;
    if constexpr (kKw > 0) {
      Vec wv[kKw];
      HONE_UNROLL for (int k = 0; k < kKw; ++k) wv[k] = load_part<kWhole>(w + k * s.channels, n);
      HONE_UNROLL for (int j = 0; j < (kPixels - 1) * kStride + kKw; ++j) {
        const Vec v = load_part<kWhole>(in + j * s.src_stride, n);
        HONE_UNROLL for (int k = 0; k < kKw; ++k) {
          const int i = (j - k) / kStride;
          if (j >= k && (j - k) % kStride == 0 && i < kPixels) acc[i] = fma(v, wv[k], acc[i]);
        }
      }
    } else {
      const int64_t tap = s.dilation * s.src_stride, pixel = s.stride * s.src_stride;
      for (int64_t k = 0; k < s.kw; ++k) {
        const Vec wv = load_part<kWhole>(w + k * s.channels, n);
        HONE_UNROLL for (int i = 0; i < kPixels; ++i)
          acc[i] = fma(load_part<kWhole>(in + k * tap + i * pixel, n), wv, acc[i]);
      }
    }
  }
  if (s.clamp) {
    const Vec lo = set(s.lo), hi = set(s.hi);
    HONE_UNROLL for (int i = 0; i < kPixels; ++i) acc[i] = min(hi, max(lo, acc[i]));
  }
  HONE_UNROLL for (int i = 0; i < kPixels; ++i)
    store_part<kWhole>(s.dst + (x + i) * s.dst_stride + c, acc[i], n);
  // clang-format on
}

/// One output pixel some of whose taps may fall outside the line.
HONE_NOINLINE void depthwise_edge(const DepthwiseSpan& s, int64_t x) {
  const int64_t at = x * s.stride - s.pad;
  for (int64_t c = s.c0; c < s.c1; c += kWidth) {
    const int n = static_cast<int>(s.c1 - c < kWidth ? s.c1 - c : kWidth);
    Vec acc = s.bias != nullptr ? load_n(s.bias + c, n) : zero();
    for (int64_t l = 0; l < s.n_lines; ++l)
      for (int64_t k = 0; k < s.kw; ++k) {
        const int64_t ix = at + k * s.dilation;
        if (ix < 0 || ix >= s.width) continue;
        acc = fma(load_n(s.lines[l] + ix * s.src_stride + c, n), load_n(s.weights[l] + k * s.channels + c, n),
                  acc);
      }
    if (s.clamp) acc = min(set(s.hi), max(set(s.lo), acc));
    store_n(s.dst + x * s.dst_stride + c, acc, n);
  }
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

HONE_NOINLINE void depthwise_span(const DepthwiseSpan& s) {
  // Outputs in [left, right) have all their taps inside the line.
  const auto clamp = [&](int64_t v) { return v < s.x0 ? s.x0 : v > s.x1 ? s.x1 : v; };
  const int64_t reach = s.width + s.pad - (s.kw - 1) * s.dilation;  // x * stride < reach
  const int64_t left = clamp((s.pad + s.stride - 1) / s.stride);
  int64_t right = clamp(reach <= 0 ? 0 : (reach + s.stride - 1) / s.stride);
  if (right < left) right = left;
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
