// Body of kernels/pool.cpp, compiled per ISA.
namespace hone::cpu::HONE_ISA_NS {
namespace {

/// Taps of a window inside the input along one dimension: [first, last); `origin` is the coordinate of tap 0.
/// `counted`: taps on the padded input.
struct Taps {
  int64_t origin, first, last, counted;
};
HONE_INLINE Taps taps_of(const PoolShape& s, int d, int64_t o) {
  Taps t;
  t.origin = o * s.stride[d] - s.pad_begin[d];
  const int64_t step = s.dilation[d], k = s.kernel[d];
  t.first = t.origin < 0 ? (-t.origin + step - 1) / step : 0;
  const auto below = [&](int64_t end) {  // taps with a coordinate below `end`
    const int64_t room = end - t.origin;
    const int64_t n = room <= 0 ? 0 : (room - 1) / step + 1;
    return n < k ? n : k;
  };
  t.last = below(s.in[d]);
  t.counted = below(s.in[d] + s.pad_end[d]);
  if (t.first > t.last) t.first = t.last;
  return t;
}

/// kVecs vectors of channels of one output pixel; n channels in the last (n == kWidth: all full).
template <bool kMax, int kVecs>
HONE_INLINE void pool_block(const PoolShape& s, const float* image, float* dst, const Taps& d, const Taps& h,
                            const Taps& w, float count, int n) {
  const auto get = [n](const float* p, int v) HONE_LAMBDA_INLINE {
    return kVecs == 1 && n < kWidth ? load_n(p, n) : load(p + v * kWidth);
  };
  Vec total[kVecs];
  Mask bad[kVecs];
  HONE_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    total[v] = kMax ? set(-INFINITY) : zero();
    bad[v] = is_nan(zero());
  }
  for (int64_t kd = d.first; kd < d.last; ++kd)
    for (int64_t kh = h.first; kh < h.last; ++kh) {
      const int64_t line =
          ((d.origin + kd * s.dilation[0]) * s.in[1] + h.origin + kh * s.dilation[1]) * s.in[2];
      const float* p = image + (line + w.origin + w.first * s.dilation[2]) * s.channels;
      const int64_t step = s.dilation[2] * s.channels;
      Vec part[kVecs];
      if constexpr (!kMax) {
        HONE_UNROLL
        for (int v = 0; v < kVecs; ++v) part[v] = zero();
      }
      for (int64_t kw = w.first; kw < w.last; ++kw, p += step) {
        HONE_UNROLL
        for (int v = 0; v < kVecs; ++v) {
          const Vec x = get(p, v);
          if constexpr (kMax) {
            total[v] = max(total[v], x);
            bad[v] = bad[v] | is_nan(x);
          } else {
            part[v] = part[v] + x;
          }
        }
      }
      if constexpr (!kMax) {
        HONE_UNROLL
        for (int v = 0; v < kVecs; ++v) total[v] = total[v] + part[v];
      }
    }
  const Vec divisor = set(count);
  HONE_UNROLL
  for (int v = 0; v < kVecs; ++v) {
    const Vec y = kMax ? select(bad[v], set(NAN), total[v]) : total[v] / divisor;
    if (kVecs == 1 && n < kWidth)
      store_n(dst, y, n);
    else
      store(dst + v * kWidth, y);
  }
}

HONE_INLINE float divisor_of(const PoolShape& s, const Taps& d, const Taps& h, const Taps& w) {
  const int64_t inside = (d.last - d.first) * (h.last - h.first) * (w.last - w.first);
  const int64_t count = s.include_pad ? d.counted * h.counted * w.counted : inside;
  return count == 0 ? 1.0F : static_cast<float>(count);  // 0 / 1 where there is nothing to average
}

template <bool kMax>
void pool_last(const PoolShape& s, const float* image, float* dst, int64_t row) {
  const Taps d = taps_of(s, 0, row / s.out[1]), h = taps_of(s, 1, row % s.out[1]);
  for (int64_t ow = 0; ow < s.out[2]; ++ow, dst += s.channels) {
    const Taps w = taps_of(s, 2, ow);
    const float count = divisor_of(s, d, h, w);
    int64_t c = 0;
    for (; c + 4 * kWidth <= s.channels; c += 4 * kWidth)
      pool_block<kMax, 4>(s, image + c, dst + c, d, h, w, count, kWidth);
    for (; c + kWidth <= s.channels; c += kWidth)
      pool_block<kMax, 1>(s, image + c, dst + c, d, h, w, count, kWidth);
    if (c < s.channels)
      pool_block<kMax, 1>(s, image + c, dst + c, d, h, w, count, static_cast<int>(s.channels - c));
  }
}

/// dst[i] = f(dst[i], p[i * stride]) for n outputs.
template <bool kMax>
HONE_INLINE void pool_tap(float* dst, const float* p, int64_t n, int64_t stride) {
  int64_t i = 0;
  if (stride == 1)
    for (; i + kWidth <= n; i += kWidth) {
      const Vec x = load(p + i), y = load(dst + i);
      store(dst + i, kMax ? select(is_nan(y), y, max(y, x)) : x + y);
    }
  for (; i < n; ++i) {
    const float x = p[i * stride], y = dst[i];
    dst[i] = kMax ? (y != y || y > x ? y : x) : x + y;
  }
}

template <bool kMax>
void pool_plain(const PoolShape& s, const float* plane, float* dst, int64_t row) {
  const Taps d = taps_of(s, 0, row / s.out[1]), h = taps_of(s, 1, row % s.out[1]);
  for (int64_t i = 0; i < s.out[2]; ++i) dst[i] = kMax ? -INFINITY : 0.0F;
  for (int64_t kd = d.first; kd < d.last; ++kd)
    for (int64_t kh = h.first; kh < h.last; ++kh) {
      const float* line =
          plane + ((d.origin + kd * s.dilation[0]) * s.in[1] + h.origin + kh * s.dilation[1]) * s.in[2];
      for (int64_t kw = 0; kw < s.kernel[2]; ++kw) {
        // Outputs whose tap kw is inside: 0 <= ow * stride + shift < in.
        const int64_t shift = kw * s.dilation[2] - s.pad_begin[2], stride = s.stride[2];
        const int64_t from = shift < 0 ? (-shift + stride - 1) / stride : 0;
        int64_t to = s.in[2] - shift <= 0 ? 0 : (s.in[2] - shift - 1) / stride + 1;
        if (to > s.out[2]) to = s.out[2];
        if (from < to) pool_tap<kMax>(dst + from, line + from * stride + shift, to - from, stride);
      }
    }
  if constexpr (!kMax)
    for (int64_t ow = 0; ow < s.out[2]; ++ow) dst[ow] /= divisor_of(s, d, h, taps_of(s, 2, ow));
}

}  // namespace

void pool_row_last(const PoolShape& s, const float* image, float* dst, int64_t row) {
  if (s.max)
    pool_last<true>(s, image, dst, row);
  else
    pool_last<false>(s, image, dst, row);
}

void pool_row_plain(const PoolShape& s, const float* plane, float* dst, int64_t row) {
  if (s.max)
    pool_plain<true>(s, plane, dst, row);
  else
    pool_plain<false>(s, plane, dst, row);
}

}  // namespace hone::cpu::HONE_ISA_NS
