// The copies that put operands into the order in which the tile kernel reads them.
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace hone::cpu {

/// Packs one panel: packed[i * nr + j] = B(i, j) for i < k, j < n, zero for n <= j < nr. B(i, j) is b[i * ldb
/// + j], or b[j * ldb + i] when transposed.
using PackPanelFn = void (*)(const float* b, int64_t ldb, bool transposed, int64_t k, int n, float* packed);
PackPanelFn pack_panel_fn(Isa isa);

/// Transposes a [k][rows] piece (row stride lda) into dense rows: packed[r * k + i] = a[i * lda + r].
using PackRowsFn = void (*)(const float* a, int64_t lda, int64_t k, int64_t rows, float* packed);
PackRowsFn pack_rows_fn(Isa isa);

/// dst[j * ld_dst + i] = src[i * ld_src + j] for i < rows, j < columns: a plain transposition in cache-sized
/// squares.
using TransposeFn = void (*)(const float* src, int64_t ld_src, int64_t rows, int64_t columns, float* dst,
                             int64_t ld_dst);
TransposeFn transpose_fn(Isa isa);

}  // namespace hone::cpu
