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

#if HONE_ISA_LEVEL == 2
const TileKernels kTileKernels = {
    Isa::kAvx512,
    12,
    kWidth,
    2 * kWidth,
    {{nullptr, tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>, tile<5, 1>, tile<6, 1>, tile<7, 1>, tile<8, 1>,
      tile<9, 1>, tile<10, 1>, tile<11, 1>, tile<12, 1>},
     {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>, tile<6, 2>, tile<7, 2>, tile<8, 2>,
      tile<9, 2>, tile<10, 2>, tile<11, 2>, tile<12, 2>}}};
#elif HONE_ISA_LEVEL == 1
const TileKernels kTileKernels = {
    Isa::kAvx2,
    6,
    kWidth,
    2 * kWidth,
    {{nullptr, tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>, tile<5, 1>, tile<6, 1>},
     {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>, tile<5, 2>, tile<6, 2>}}};
#else
const TileKernels kTileKernels = {Isa::kPortable,
                                  4,
                                  kWidth,
                                  2 * kWidth,
                                  {{nullptr, tile<1, 1>, tile<2, 1>, tile<3, 1>, tile<4, 1>},
                                   {nullptr, tile<1, 2>, tile<2, 2>, tile<3, 2>, tile<4, 2>}}};
#endif

}  // namespace hone::cpu::HONE_ISA_NS
