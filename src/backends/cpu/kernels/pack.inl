// Body of pack.cpp, compiled per ISA.
namespace hone::cpu::HONE_ISA_NS {

#if HONE_ISA_LEVEL >= 1
inline constexpr int kSquare = 8;

/// dst[j][i] = src[i][j] for an 8 x 8 square.
HONE_INLINE void transpose_square(const float* src, int64_t ld_src, float* dst, int64_t ld_dst) {
  const auto row = [&](int i) __attribute__((always_inline)) { return _mm256_loadu_ps(src + i * ld_src); };
  const __m256 a0 = _mm256_unpacklo_ps(row(0), row(1)), a1 = _mm256_unpackhi_ps(row(0), row(1));
  const __m256 a2 = _mm256_unpacklo_ps(row(2), row(3)), a3 = _mm256_unpackhi_ps(row(2), row(3));
  const __m256 a4 = _mm256_unpacklo_ps(row(4), row(5)), a5 = _mm256_unpackhi_ps(row(4), row(5));
  const __m256 a6 = _mm256_unpacklo_ps(row(6), row(7)), a7 = _mm256_unpackhi_ps(row(6), row(7));
  const __m256 b0 = _mm256_shuffle_ps(a0, a2, 0x44), b1 = _mm256_shuffle_ps(a0, a2, 0xEE);
  const __m256 b2 = _mm256_shuffle_ps(a1, a3, 0x44), b3 = _mm256_shuffle_ps(a1, a3, 0xEE);
  const __m256 b4 = _mm256_shuffle_ps(a4, a6, 0x44), b5 = _mm256_shuffle_ps(a4, a6, 0xEE);
  const __m256 b6 = _mm256_shuffle_ps(a5, a7, 0x44), b7 = _mm256_shuffle_ps(a5, a7, 0xEE);
  const auto put = [&](int j, __m256 v) __attribute__((always_inline)) {
    _mm256_storeu_ps(dst + j * ld_dst, v);
  };
  put(0, _mm256_permute2f128_ps(b0, b4, 0x20));
  put(1, _mm256_permute2f128_ps(b1, b5, 0x20));
  put(2, _mm256_permute2f128_ps(b2, b6, 0x20));
  put(3, _mm256_permute2f128_ps(b3, b7, 0x20));
  put(4, _mm256_permute2f128_ps(b0, b4, 0x31));
  put(5, _mm256_permute2f128_ps(b1, b5, 0x31));
  put(6, _mm256_permute2f128_ps(b2, b6, 0x31));
  put(7, _mm256_permute2f128_ps(b3, b7, 0x31));
}
#else
inline constexpr int kSquare = 4;

HONE_INLINE void transpose_square(const float* src, int64_t ld_src, float* dst, int64_t ld_dst) {
  float t[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) t[j][i] = src[i * ld_src + j];
  for (int j = 0; j < 4; ++j) store(dst + j * ld_dst, load(t[j]));
}
#endif

#if HONE_ISA_LEVEL == 2
/// Lane l of output vector v of interleave3 is element e = 16 v + l: row e % 3, column e / 3. First the two
/// rows that give two thirds of the lanes are picked, then the third row through a mask.
struct Interleave3 {
  alignas(64) int32_t two[3][16];
  alignas(64) int32_t three[3][16];
  __mmask16 from_third[3];
};
constexpr Interleave3 make_interleave3() {
  Interleave3 t{};
  for (int e = 0; e < 48; ++e) {
    t.two[e / 16][e % 16] = e % 3 == 1 ? 16 + e / 3 : e / 3;
    t.three[e / 16][e % 16] = e / 3;
    if (e % 3 == 2) t.from_third[e / 16] = static_cast<__mmask16>(t.from_third[e / 16] | (1 << e % 16));
  }
  return t;
}
constexpr Interleave3 kInterleave3 = make_interleave3();

/// Three rows into triples (planes to pixels of an image): dst[3 j + i] = src[i][j], 16 columns at a time.
HONE_INLINE int64_t interleave3(const float* src, int64_t ld_src, int64_t columns, float* dst) {
  int64_t j = 0;
  for (; j + 16 <= columns; j += 16) {
    const __m512 a = _mm512_loadu_ps(src + j), b = _mm512_loadu_ps(src + ld_src + j),
                 c = _mm512_loadu_ps(src + 2 * ld_src + j);
    for (int v = 0; v < 3; ++v) {
      const __m512 ab = _mm512_permutex2var_ps(a, _mm512_load_si512(kInterleave3.two[v]), b);
      _mm512_storeu_ps(dst + 3 * j + 16 * v,
                       _mm512_mask_permutexvar_ps(ab, kInterleave3.from_third[v],
                                                  _mm512_load_si512(kInterleave3.three[v]), c));
    }
  }
  return j;
}
#endif

HONE_NOINLINE void transpose(const float* src, int64_t ld_src, int64_t rows, int64_t columns, float* dst,
                             int64_t ld_dst) {
#if HONE_ISA_LEVEL == 2
  if (rows == 3 && ld_dst == 3) {
    const int64_t done = interleave3(src, ld_src, columns, dst);
    src += done;
    dst += 3 * done;
    columns -= done;
  }
#endif
  // Strips of 64 source columns: their lines stay in L1 while a strip of destination rows is written.
  constexpr int64_t kStrip = 64;
  for (int64_t j0 = 0; j0 < columns; j0 += kStrip) {
    const int64_t j1 = j0 + kStrip < columns ? j0 + kStrip : columns;
    int64_t i = 0;
    for (; i + kSquare <= rows; i += kSquare) {
      int64_t j = j0;
      for (; j + kSquare <= j1; j += kSquare)
        transpose_square(src + i * ld_src + j, ld_src, dst + j * ld_dst + i, ld_dst);
      for (; j < j1; ++j)
        for (int64_t u = 0; u < kSquare; ++u) dst[j * ld_dst + i + u] = src[(i + u) * ld_src + j];
    }
    for (; i < rows; ++i)
      for (int64_t j = j0; j < j1; ++j) dst[j * ld_dst + i] = src[i * ld_src + j];
  }
}

HONE_NOINLINE void pack_panel(const float* b, int64_t ldb, bool transposed, int64_t k, int n, float* packed) {
  constexpr int nr = 2 * kWidth;
  if (transposed) {
    transpose(b, ldb, n, k, packed, nr);
    if (n < nr)
      for (int64_t i = 0; i < k; ++i)
        for (int j = n; j < nr; ++j) packed[i * nr + j] = 0;
    return;
  }
  if (n == nr) {
    for (int64_t i = 0; i < k; ++i) {
      store(packed + i * nr, load(b + i * ldb));
      store(packed + i * nr + kWidth, load(b + i * ldb + kWidth));
    }
    return;
  }
  const int low = n < kWidth ? n : kWidth;
  for (int64_t i = 0; i < k; ++i) {
    store(packed + i * nr, load_n(b + i * ldb, low));
    store(packed + i * nr + kWidth, load_n(b + i * ldb + low, n - low));
  }
}

HONE_NOINLINE void pack_rows(const float* a, int64_t lda, int64_t k, int64_t rows, float* packed) {
  transpose(a, lda, k, rows, packed, k);
}

}  // namespace hone::cpu::HONE_ISA_NS
