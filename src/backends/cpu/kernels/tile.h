// The register tile: the one inner loop behind GEMM, convolution and transposed convolution in f32.
//
// Math: for r < mr, c < n:
//   dst[r][c] = start + sum over taps t, k < run of rows[t * mr + r][k] * B[t * run + k][c],
// then + add[r][c], then clamp. `start` is bias[c], the present dst[r][c] (accumulate) or 0. Every element is
// ONE chain of multiply-adds in rising (t, k), whatever mr, panel width and K blocking: fused on avx2 and
// avx512, product and sum rounded apart on portable. So results do not depend on blocking, on the number of
// threads, or on avx2 against avx512.
//
// At most kMaxDotColumns columns would leave most lanes of a panel idle. There, dot tiles run vectors along
// k: sixteen chains (k mod 16 within a tap), added in a fixed tree, then start + sum; the same bits on avx2
// and avx512 too.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace hone::cpu {

/// One call of a tile kernel.
struct Tile {
  const float* const* rows = nullptr;  ///< [n_taps][mr] pointers to `run` floats of A each
  int64_t n_taps = 1;
  int64_t run = 0;
  int64_t k_offset = 0;               ///< added to every row pointer
  const float* b = nullptr;           ///< packed panel [n_taps * run][nr], zero beyond n
  float* const* dst = nullptr;        ///< mr pointers to column 0
  int64_t column = 0;                 ///< of the panel, in dst
  const float* const* add = nullptr;  ///< mr pointers to the panel's first column, or null
  const float* bias = nullptr;        ///< n floats, or null; ignored with accumulate
  int n = 0;                          ///< columns stored, 1..nr
  bool accumulate = false;
  bool clamp = false;
  float lo = 0;
  float hi = 0;
  /// Memory the next calls will want in L2: prefetch_step floats further every four k.
  const float* prefetch = nullptr;
  int64_t prefetch_step = 0;
};

inline constexpr int kMaxDotColumns = 4;

/// One call of a dot tile: `tile` as above (b, prefetch and accumulate unused), `rows` rows; column c of B
/// lies at b + c * ldb, `n_taps * run` floats in order.
using DotTileFn = void (*)(const Tile& tile, int rows, const float* b, int64_t ldb);

using TileFn = void (*)(const Tile& tile);

inline constexpr int kMaxTileRows = 12;

/// The kernels of one ISA. Panels are nr = 2 vectors wide; the last panel of a matrix may need only one of
/// them.
struct TileKernels {
  Isa isa;
  int mr;                          ///< most rows of a tile
  int width;                       ///< floats per vector
  int nr;                          ///< columns of a panel
  TileFn fn[2][kMaxTileRows + 1];  ///< [vectors - 1][rows]
  DotTileFn dot[kMaxDotColumns];   ///< [columns - 1]

  TileFn pick(int rows, int n) const { return fns(n)[rows]; }
  /// By number of rows, for panels of which n columns are wanted.
  const TileFn* fns(int n) const { return fn[n > width ? 1 : 0]; }
};
const TileKernels& tile_kernels(Isa isa);

}  // namespace hone::cpu
