#include "ops/ref_gemm.h"

#include <algorithm>
#include <vector>

#include "base/cpu.h"
#include "base/thread_pool.h"

namespace hone::ops {
namespace {

constexpr int kPanelRows = 4;
constexpr int kPanelCols = 16;
constexpr int64_t kBlockM = 64;
constexpr int64_t kBlockN = 128;
constexpr int64_t kBlockK = 192;

}  // namespace
}  // namespace hone::ops

#define HONE_ISA_INL "ops/ref_gemm.inl"
#include "base/isa_foreach.h"

namespace hone::ops {
namespace {

using Micro = void (*)(int64_t, const double*, const double*, double*, int64_t);

Micro choose_micro() {
#if HONE_ISA_X86
  if (current_isa() >= Isa::kAvx512) return avx512::micro;
  if (current_isa() >= Isa::kAvx2) return avx2::micro;
#endif
  return portable::micro;
}

int64_t ceil_to(int64_t v, int64_t step) { return (v + step - 1) / step * step; }

/// Blocks of one thread, allocated at its first tile.
struct Scratch {
  std::vector<double> a, b, c;
};

void run_tile(const RefGemm& g, Micro micro, int64_t batch, int64_t i0, int64_t rows, int64_t j0,
              int64_t cols, Scratch* s) {
  const int64_t prows = ceil_to(rows, kPanelRows), pcols = ceil_to(cols, kPanelCols);
  s->c.assign(static_cast<size_t>(prows * pcols), 0.0);
  const int64_t kc_max = std::min(kBlockK, g.k);
  s->a.resize(static_cast<size_t>(prows * kc_max));
  s->b.resize(static_cast<size_t>(kPanelCols * kc_max));
  for (int64_t p0 = 0; p0 < g.k; p0 += kBlockK) {
    const int64_t kc = std::min(kBlockK, g.k - p0);
    for (int64_t r = 0; r < rows; r += kPanelRows) {
      g.pack_a(batch, i0 + r, std::min<int64_t>(kPanelRows, rows - r), p0, kc, s->a.data() + r * kc,
               kPanelRows);
    }
    for (int64_t c = 0; c < cols; c += kPanelCols) {
      g.pack_b(batch, j0 + c, std::min<int64_t>(kPanelCols, cols - c), p0, kc, s->b.data(), kPanelCols);
      for (int64_t r = 0; r < rows; r += kPanelRows)
        micro(kc, s->a.data() + r * kc, s->b.data(), s->c.data() + r * pcols + c, pcols);
    }
  }
  g.store(batch, i0, rows, j0, cols, s->c.data(), pcols);
}

}  // namespace

void ref_gemm(const RefGemm& g) {
  if (g.batch <= 0 || g.m <= 0 || g.n <= 0) return;
  const Micro micro = choose_micro();
  const int64_t tiles_m = (g.m + kBlockM - 1) / kBlockM, tiles_n = (g.n + kBlockN - 1) / kBlockN;
  const int64_t tiles = g.batch * tiles_m * tiles_n;
  const auto tile = [&](int64_t t, Scratch* s) {
    const int64_t batch = t / (tiles_m * tiles_n), i0 = t / tiles_n % tiles_m * kBlockM,
                  j0 = t % tiles_n * kBlockN;
    run_tile(g, micro, batch, i0, std::min(kBlockM, g.m - i0), j0, std::min(kBlockN, g.n - j0), s);
  };
  const double flops = 2.0 * static_cast<double>(g.batch) * static_cast<double>(g.m) *
                       static_cast<double>(g.n) * static_cast<double>(g.k);
  if (tiles == 1 || flops < 2e5) {
    Scratch s;
    for (int64_t t = 0; t < tiles; ++t) tile(t, &s);
    return;
  }
  // Small tiles travel in groups. The grouping depends on sizes alone, and the bits not even on it.
  const auto per_chunk = std::max<int64_t>(1, static_cast<int64_t>(2e5 * static_cast<double>(tiles) / flops));
  const int64_t chunks = (tiles + per_chunk - 1) / per_chunk;
  ThreadPool& pool = ThreadPool::process();
  std::vector<Scratch> scratch(static_cast<size_t>(pool.n_threads()));
  pool.parallel_for(
      chunks,
      [&](int64_t chunk, int worker) {
        for (int64_t t = chunk * per_chunk; t < std::min(tiles, (chunk + 1) * per_chunk); ++t)
          tile(t, scratch.data() + worker);
      },
      static_cast<int>(scratch.size()));
}

void ref_parallel(int64_t n, double work, const std::function<void(int64_t)>& fn) {
  const double total = work * static_cast<double>(n);
  if (n <= 1 || total < 5e4) {
    for (int64_t i = 0; i < n; ++i) fn(i);
    return;
  }
  const auto per_chunk = std::max<int64_t>(1, static_cast<int64_t>(5e4 / std::max(work, 1.0)));
  const int64_t chunks = (n + per_chunk - 1) / per_chunk;
  ThreadPool::process().parallel_for(chunks, [&](int64_t chunk, int) {
    for (int64_t i = chunk * per_chunk; i < std::min(n, (chunk + 1) * per_chunk); ++i) fn(i);
  });
}

}  // namespace hone::ops
