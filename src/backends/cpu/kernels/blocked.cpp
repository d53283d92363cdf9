#include "backends/cpu/kernels/blocked.h"

namespace hone::cpu {
namespace {

// A piece of K: taps [tap, tap + taps), of each tap the floats [k0, k0 + run).
struct KPiece {
  int64_t tap, taps, k0, run;
  int64_t depth() const { return taps * run; }
};

// Calls f(piece, first, last) in rising order of K.
template <typename F>
void for_each_piece(int64_t n_taps, int64_t run, int64_t k_block, F&& f) {
  const int64_t total = n_taps * run;
  if (total <= k_block) {
    f(KPiece{0, n_taps, 0, run}, true, true);
    return;
  }
  if (run >= k_block) {
    const EvenSplit cuts{run, ceil_div(run, k_block)};
    for (int64_t tap = 0; tap < n_taps; ++tap)
      for (int64_t i = 0; i < cuts.parts; ++i)
        f(KPiece{tap, 1, cuts.begin(i), cuts.begin(i + 1) - cuts.begin(i)}, tap == 0 && i == 0,
          tap == n_taps - 1 && i == cuts.parts - 1);
    return;
  }
  const EvenSplit cuts{n_taps, ceil_div(total, k_block)};
  for (int64_t i = 0; i < cuts.parts; ++i)
    f(KPiece{cuts.begin(i), cuts.begin(i + 1) - cuts.begin(i), 0, run}, i == 0, i == cuts.parts - 1);
}

// One panel over all tiles of a block, for one piece of K.
struct PanelPass {
  const TileKernels& kernels;
  const RowBlock& block;
  const EvenSplit& tiles;
  const PanelRun& run;
  const Epilogue& epilogue;

  void operator()(int64_t p, const KPiece& piece, bool first, bool last, bool prefetch) const {
    const int64_t depth = block.n_taps * block.run;
    const int64_t column = (run.first + p) * kernels.nr;
    const float* b = run.panels + (p * depth + piece.tap * block.run + piece.k0) * kernels.nr;

    Tile tile;
    tile.n_taps = piece.taps;
    tile.run = piece.run;
    tile.k_offset = piece.k0 + run.k_offset;
    tile.b = b;
    tile.column = run.column_base + column;
    tile.n = static_cast<int>(std::min<int64_t>(kernels.nr, run.n - column));
    // Everything but the first piece adds to what dst holds; the last one finishes the values.
    tile.accumulate = !first;
    if (first && epilogue.bias != nullptr) tile.bias = epilogue.bias + tile.column;
    const bool add = last && epilogue.has_add;
    tile.clamp = last && epilogue.clamp;
    tile.lo = epilogue.lo;
    tile.hi = epilogue.hi;
    // The same piece of the next panel is spread over this panel's tiles; past the run's end it is most
    // likely this worker's next chunk. The tile kernel fetches two lines every four k.
    const bool more = prefetch && column + kernels.nr < run.n;
    tile.prefetch = more ? b + depth * kernels.nr : b;
    tile.prefetch_step = more ? ceil_div(4 * kernels.nr, tiles.parts) : 0;
    const int64_t tile_prefetch = piece.taps * (piece.run / 4) * tile.prefetch_step;

    const TileFn* fns = kernels.fns(tile.n);
    const bool rest = last && epilogue.n_rest > 0;
    const float* addends[kMaxTileRows];
    for (int64_t t = 0; t < tiles.parts; ++t) {
      const int64_t r0 = tiles.begin(t);
      const int rows = static_cast<int>(tiles.begin(t + 1) - r0);
      tile.rows = block.sources + r0 * block.n_taps + piece.tap * rows;
      tile.dst = block.dst + r0;
      if (add) {
        for (int r = 0; r < rows; ++r) addends[r] = epilogue.add.at(block.ids[r0 + r], tile.column);
        tile.add = addends;
      }
      fns[rows](tile);
      tile.prefetch += tile_prefetch;
      if (rest)
        epilogue_tile_fn(kernels.isa)(epilogue.rest, epilogue.n_rest, tile.dst, block.ids + r0, rows,
                                      tile.column, tile.n);
    }
  }
};

// Few columns: vectors run along k. The packed panel is turned into rows of B, on the stack, once per block.
constexpr int64_t kDotFloats = 4096;

bool takes_dots(const RowBlock& block, const PanelRun& run) {
  return run.n <= kMaxDotColumns && block.run >= 16 && block.n_taps * block.run * run.n <= kDotFloats;
}

void run_dots(const TileKernels& kernels, const RowBlock& block, const EvenSplit& tiles, const PanelRun& run,
              const Epilogue& epilogue) {
  const int64_t depth = block.n_taps * block.run;
  alignas(64) float b[kDotFloats];
  for (int64_t c = 0; c < run.n; ++c)
    for (int64_t k = 0; k < depth; ++k) b[c * depth + k] = run.panels[k * kernels.nr + c];
  Tile tile;
  tile.n_taps = block.n_taps;
  tile.run = block.run;
  tile.k_offset = run.k_offset;
  tile.column = run.column_base;
  tile.n = static_cast<int>(run.n);
  if (epilogue.bias != nullptr) tile.bias = epilogue.bias + tile.column;
  tile.clamp = epilogue.clamp;
  tile.lo = epilogue.lo;
  tile.hi = epilogue.hi;
  const float* addends[kMaxTileRows];
  for (int64_t t = 0; t < tiles.parts; ++t) {
    const int64_t r0 = tiles.begin(t);
    const int rows = static_cast<int>(tiles.begin(t + 1) - r0);
    tile.rows = block.sources + r0 * block.n_taps;
    tile.dst = block.dst + r0;
    if (epilogue.has_add) {
      for (int r = 0; r < rows; ++r) addends[r] = epilogue.add.at(block.ids[r0 + r], tile.column);
      tile.add = addends;
    }
    kernels.dot[run.n - 1](tile, rows, b, depth);
    if (epilogue.n_rest > 0)
      epilogue_tile_fn(kernels.isa)(epilogue.rest, epilogue.n_rest, tile.dst, block.ids + r0, rows,
                                    tile.column, tile.n);
  }
}

}  // namespace

void run_block(const TileKernels& kernels, const RowBlock& block, const PanelRun& panels,
               const Epilogue& epilogue, const BlockWalk& walk) {
  if (block.rows == 0) return;
  const EvenSplit tiles = block.tiles(kernels.mr);
  if (takes_dots(block, panels)) {
    if (panels.count > 0) run_dots(kernels, block, tiles, panels, epilogue);
    return;
  }
  const PanelPass pass{kernels, block, tiles, panels, epilogue};
  for_each_piece(block.n_taps, block.run, walk.k_block, [&](const KPiece& piece, bool first, bool last) {
    for (int64_t p = 0; p < panels.count; ++p) pass(p, piece, first, last, walk.prefetch);
  });
}

WorkSplit split_work(int64_t batch, int64_t row_units, int64_t panels, double flops, int64_t a_floats,
                     int64_t b_floats) {
  // A chunk of a million operations takes 5 to 10 us: ten times what handing it out costs.
  constexpr double kChunkFlops = 1'000'000;
  constexpr int64_t kMostChunks = 32;
  row_units = std::max<int64_t>(1, row_units);
  panels = std::max<int64_t>(1, panels);
  int64_t wanted = static_cast<int64_t>(std::min<double>(kMostChunks, flops / kChunkFlops));
  // Multiples of four divide evenly among two and four threads.
  if (wanted > 1) wanted = ceil_div(wanted, 4) * 4;
  wanted = ceil_div(std::max<int64_t>(1, wanted), std::max<int64_t>(1, batch));
  wanted = std::min(wanted, row_units * panels);

  // Each of r row parts reads all of B, each of p panel parts all of A: among the ways to get nearly enough
  // chunks, the one that reads least. Weights beyond a quarter of a megabyte come from memory, which is
  // slower than the L2 and L3 that hold A.
  const double b_cost = static_cast<double>(b_floats) * (b_floats > (64 << 10) ? 4 : 1);
  const double a_cost = static_cast<double>(a_floats);
  int64_t best_rows = 1, best_panels = 1;
  double best = -1;
  for (int64_t r = 1; r <= std::min(row_units, wanted); ++r) {
    const int64_t p = std::min(panels, ceil_div(wanted, r));
    if (2 * r * p < wanted) continue;
    const double cost = static_cast<double>(r) * b_cost + static_cast<double>(p) * a_cost;
    if (best >= 0 && cost >= best) continue;
    best = cost;
    best_rows = r;
    best_panels = p;
  }
  return {EvenSplit(row_units, best_rows), EvenSplit(panels, best_panels)};
}

}  // namespace hone::cpu
