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

class Runner {
 public:
  Runner(const TileKernels& kernels, const RowBlock& block, const PanelRun& panels, const Epilogue& epilogue)
      : kernels_(kernels),
        block_(block),
        panels_(panels),
        epilogue_(epilogue),
        tiles_(block.tiles(kernels.mr)),
        k_(block.n_taps * block.run) {}

  int64_t n_tiles() const { return tiles_.parts; }

  // Everything but the first piece adds to what dst holds; the last one finishes the values.
  void tile(int64_t t, int64_t p, const KPiece& piece, bool first, bool last, const float* next,
            int64_t next_step) {
    const int64_t r0 = tiles_.begin(t);
    const int rows = static_cast<int>(tiles_.begin(t + 1) - r0);
    const int64_t column = (panels_.first + p) * kernels_.nr;
    const int n = static_cast<int>(std::min<int64_t>(kernels_.nr, panels_.n - column));
    const int64_t out_column = panels_.column_base + column;

    float* dst[kMaxTileRows];
    const float* add[kMaxTileRows];
    for (int r = 0; r < rows; ++r) dst[r] = block_.dst[r0 + r] + out_column;

    Tile tile;
    tile.rows = block_.sources + r0 * block_.n_taps + piece.tap * rows;
    tile.n_taps = piece.taps;
    tile.run = piece.run;
    tile.k_offset = piece.k0 + panels_.k_offset;
    tile.b = panels_.panels + (p * k_ + piece.tap * block_.run + piece.k0) * kernels_.nr;
    tile.dst = dst;
    tile.n = n;
    tile.accumulate = !first;
    if (first && epilogue_.bias != nullptr) tile.bias = epilogue_.bias + out_column;
    if (last) {
      if (epilogue_.has_add) {
        for (int r = 0; r < rows; ++r) add[r] = epilogue_.add.at(block_.ids[r0 + r], out_column);
        tile.add = add;
      }
      tile.clamp = epilogue_.clamp;
      tile.lo = epilogue_.lo;
      tile.hi = epilogue_.hi;
    }
    tile.prefetch = next;
    tile.prefetch_step = next_step;
    kernels_.pick(rows, n)(tile);
    if (last && epilogue_.n_rest > 0)
      epilogue_tile_fn(kernels_.isa)(epilogue_.rest, epilogue_.n_rest, dst, block_.ids + r0, rows, out_column,
                                     n);
  }

  void panel(int64_t p, const KPiece& piece, bool first, bool last, bool prefetch) {
    // The piece of the next panel is spread over this panel's tiles; the tile kernel fetches two lines every
    // four k.
    const float* next = panels_.panels + ((p + 1) * k_ + piece.tap * block_.run + piece.k0) * kernels_.nr;
    // Past the run's end it is most likely this worker's next chunk.
    const bool more = prefetch && (panels_.first + p + 1) * kernels_.nr < panels_.n;
    const int64_t step = more ? ceil_div(4 * kernels_.nr, n_tiles()) : 0;
    for (int64_t t = 0; t < n_tiles(); ++t)
      tile(t, p, piece, first, last, more ? next + t * (piece.depth() / 4) * step : panels_.panels, step);
  }

 private:
  const TileKernels& kernels_;
  const RowBlock& block_;
  const PanelRun& panels_;
  const Epilogue& epilogue_;
  const EvenSplit tiles_;
  const int64_t k_;
};

}  // namespace

void run_block(const TileKernels& kernels, const RowBlock& block, const PanelRun& panels,
               const Epilogue& epilogue, const BlockWalk& walk) {
  if (block.rows == 0) return;
  Runner runner(kernels, block, panels, epilogue);
  for_each_piece(block.n_taps, block.run, walk.k_block, [&](const KPiece& piece, bool first, bool last) {
    if (walk.tile_outer) {
      for (int64_t t = 0; t < runner.n_tiles(); ++t)
        for (int64_t p = 0; p < panels.count; ++p) runner.tile(t, p, piece, first, last, panels.panels, 0);
    } else {
      for (int64_t p = 0; p < panels.count; ++p) runner.panel(p, piece, first, last, walk.prefetch);
    }
  });
}

WorkSplit split_work(int64_t batch, int64_t row_units, int64_t panels, double flops, int64_t a_floats,
                     int64_t b_floats) {
  // A chunk of a million operations takes 5 to 10 us: ten times what handing it out costs.
  constexpr double kChunkFlops = 1'000'000;
  constexpr int64_t kMostChunks = 16;
  int64_t wanted = static_cast<int64_t>(std::min<double>(kMostChunks, flops / kChunkFlops));
  wanted = ceil_div(std::max<int64_t>(1, wanted), std::max<int64_t>(1, batch));
  row_units = std::max<int64_t>(1, row_units);
  panels = std::max<int64_t>(1, panels);

  // The larger operand is cut, so that each core reads its part of it once; the smaller one is shared.
  const bool by_panels = b_floats > a_floats;
  const int64_t first = std::min(by_panels ? panels : row_units, wanted);
  const int64_t second = std::max<int64_t>(1, std::min(by_panels ? row_units : panels, wanted / first));
  return {EvenSplit(row_units, by_panels ? second : first), EvenSplit(panels, by_panels ? first : second)};
}

}  // namespace hone::cpu
