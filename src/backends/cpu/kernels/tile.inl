// Body of tile.cpp, compiled per ISA.
namespace hone::cpu::HONE_ISA_NS {

template <int kRows, int kVecs>
HONE_NOINLINE void tile(const Tile& t) {
  Vec acc[kRows][kVecs];
  const int n = t.n;
  const int64_t column = t.column;
  const bool full = n == kVecs * kWidth;
  const auto lanes = [&](int j) { return n - j * kWidth < kWidth ? n - j * kWidth : kWidth; };
  // clang-format off
  if (t.accumulate) {
    HONE_UNROLL for (int r = 0; r < kRows; ++r)
      HONE_UNROLL for (int j = 0; j < kVecs; ++j) {
        const float* p = t.dst[r] + column + j * kWidth;
        acc[r][j] = full ? load(p) : load_n(p, lanes(j));
      }
  } else {
    Vec start[kVecs];
    HONE_UNROLL for (int j = 0; j < kVecs; ++j)
      start[j] = t.bias == nullptr ? zero() : full ? load(t.bias + j * kWidth) : load_n(t.bias + j * kWidth, lanes(j));
    HONE_UNROLL for (int r = 0; r < kRows; ++r)
      HONE_UNROLL for (int j = 0; j < kVecs; ++j) acc[r][j] = start[j];
  }

  const float* b = t.b;
  const float* const* rows = t.rows;
  const char* pf = reinterpret_cast<const char*>(t.prefetch);
  const int64_t pf_step = t.prefetch_step * static_cast<int64_t>(sizeof(float));
  const int64_t run = t.run;
  for (int64_t tap = 0; tap < t.n_taps; ++tap, rows += kRows) {
    const float* a[kRows];
    HONE_UNROLL for (int r = 0; r < kRows; ++r) a[r] = rows[r] + t.k_offset;
    int64_t k = 0;
    // Panels are two vectors wide even where only the first is wanted (kVecs == 1).
    const auto step = [&](int u) __attribute__((always_inline)) {
      Vec bv[kVecs];
      HONE_UNROLL for (int j = 0; j < kVecs; ++j) bv[j] = load(b + (u * 2 + j) * kWidth);
      HONE_UNROLL for (int r = 0; r < kRows; ++r) {
        const Vec av = set(a[r][k + u]);
        HONE_UNROLL for (int j = 0; j < kVecs; ++j) acc[r][j] = fma(av, bv[j], acc[r][j]);
      }
    };
    for (; k + 4 <= run; k += 4) {
      __builtin_prefetch(pf, 0, 2);
      __builtin_prefetch(pf + pf_step / 2, 0, 2);
      pf += pf_step;
      step(0);
      step(1);
      step(2);
      step(3);
      b += 4 * 2 * kWidth;
    }
    for (; k < run; ++k) {
      step(0);
      b += 2 * kWidth;
    }
  }

  if (t.add != nullptr) {
    HONE_UNROLL for (int r = 0; r < kRows; ++r)
      HONE_UNROLL for (int j = 0; j < kVecs; ++j) {
        const float* p = t.add[r] + j * kWidth;
        acc[r][j] = acc[r][j] + (full ? load(p) : load_n(p, lanes(j)));
      }
  }
  if (t.clamp) {
    // The bound is the first operand: a NaN goes through.
    const Vec lo = set(t.lo);
    const Vec hi = set(t.hi);
    HONE_UNROLL for (int r = 0; r < kRows; ++r)
      HONE_UNROLL for (int j = 0; j < kVecs; ++j) acc[r][j] = min(hi, max(lo, acc[r][j]));
  }
  if (full) {
    HONE_UNROLL for (int r = 0; r < kRows; ++r)
      HONE_UNROLL for (int j = 0; j < kVecs; ++j) store(t.dst[r] + column + j * kWidth, acc[r][j]);
  } else {
    HONE_UNROLL for (int r = 0; r < kRows; ++r)
      HONE_UNROLL for (int j = 0; j < kVecs; ++j) store_n(t.dst[r] + column + j * kWidth, acc[r][j], lanes(j));
  }
  // clang-format on
}

/// kRows rows from r0 on, kN columns. Sixteen lanes on every ISA: kParts vectors.
template <int kRows, int kN>
HONE_INLINE void dot_rows(const Tile& t, int rows, int r0, const float* b, int64_t ldb) {
  constexpr int kParts = 16 / kWidth;
  Vec acc[kRows][kN][kParts];
  // clang-format off
  HONE_UNROLL for (int r = 0; r < kRows; ++r)
    HONE_UNROLL for (int c = 0; c < kN; ++c)
      HONE_UNROLL for (int p = 0; p < kParts; ++p) acc[r][c][p] = zero();
  const int64_t run = t.run;
  for (int64_t tap = 0; tap < t.n_taps; ++tap, b += run) {
    const float* a[kRows];
    HONE_UNROLL for (int r = 0; r < kRows; ++r) a[r] = t.rows[tap * rows + r0 + r] + t.k_offset;
    int64_t k = 0;
    for (; k + 16 <= run; k += 16)
      HONE_UNROLL for (int p = 0; p < kParts; ++p)
        HONE_UNROLL for (int c = 0; c < kN; ++c) {
          const Vec w = load(b + c * ldb + k + p * kWidth);
          HONE_UNROLL for (int r = 0; r < kRows; ++r) acc[r][c][p] = fma(load(a[r] + k + p * kWidth), w, acc[r][c][p]);
        }
    if (k < run)
      HONE_UNROLL for (int p = 0; p < kParts; ++p) {
        const int64_t left = run - k - p * kWidth;
        if (left <= 0) break;
        const int n = left < kWidth ? static_cast<int>(left) : kWidth;
        HONE_UNROLL for (int c = 0; c < kN; ++c) {
          const Vec w = load_n(b + c * ldb + k + p * kWidth, n);
          HONE_UNROLL for (int r = 0; r < kRows; ++r)
            acc[r][c][p] = fma(load_n(a[r] + k + p * kWidth, n), w, acc[r][c][p]);
        }
      }
  }
  HONE_UNROLL for (int r = 0; r < kRows; ++r)
    HONE_UNROLL for (int c = 0; c < kN; ++c) {
      // Lane l + lane l + 8, then as reduce_add: one tree for every width.
      HONE_UNROLL for (int p = 0; p < kParts / 2; ++p) acc[r][c][p] = acc[r][c][p] + acc[r][c][p + kParts / 2];
      if constexpr (kParts == 4) acc[r][c][0] = acc[r][c][0] + acc[r][c][1];
      float x = reduce_add(acc[r][c][0]);
      if (t.bias != nullptr) x = t.bias[c] + x;
      if (t.add != nullptr) x += t.add[r0 + r][c];
      if (t.clamp) {
        x = t.lo > x ? t.lo : x;  // a NaN goes through
        x = t.hi < x ? t.hi : x;
      }
      t.dst[r0 + r][t.column + c] = x;
    }
  // clang-format on
}

template <int kN>
HONE_NOINLINE void dot_tile(const Tile& t, int rows, const float* b, int64_t ldb) {
  constexpr int kParts = 16 / kWidth;
  constexpr int kRegisters = HONE_ISA_LEVEL == 2 ? 24 : 12;
  constexpr int kFit = kRegisters / (kN * kParts);
  constexpr int kRows = kFit >= 6 ? 6 : kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
  int r = 0;
  for (; r + kRows <= rows; r += kRows) dot_rows<kRows, kN>(t, rows, r, b, ldb);
  for (; r < rows; ++r) dot_rows<1, kN>(t, rows, r, b, ldb);
}

#if HONE_ISA_LEVEL == 2
const TileKernels kTileKernels = {
    Isa::kAvx512,
    12,
    kWidth,
    2 * kWidth,
    {{nullptr, tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>, tile<5, 1>, tile<6, 1>, tile<7, 1>, tile<8, 1>,
      tile<9, 1>, tile<10, 1>, tile<11, 1>, tile<12, 1>},
     {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>, tile<6, 2>, tile<7, 2>, tile<8, 2>,
      tile<9, 2>, tile<10, 2>, tile<11, 2>, tile<12, 2>}},
    {dot_tile<1>, dot_tile<2>, dot_tile<3>, dot_tile<4>}};
#elif HONE_ISA_LEVEL == 1
const TileKernels kTileKernels = {
    Isa::kAvx2,
    6,
    kWidth,
    2 * kWidth,
    {{nullptr, tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>, tile<5, 1>, tile<6, 1>},
     {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>, tile<6, 2>}},
    {dot_tile<1>, dot_tile<2>, dot_tile<3>, dot_tile<4>}};
#else
const TileKernels kTileKernels = {Isa::kPortable,
                                  4,
                                  kWidth,
                                  2 * kWidth,
                                  {{nullptr, tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>},
                                   {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>}},
                                  {dot_tile<1>, dot_tile<2>, dot_tile<3>, dot_tile<4>}};
#endif

}  // namespace hone::cpu::HONE_ISA_NS
