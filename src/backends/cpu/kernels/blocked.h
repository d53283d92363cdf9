// Rows x panels: how the tile kernel is driven over a block of a matrix product. Internal to the kernels:
// gemm.cpp, conv.cpp and deconv.cpp fill the tables below and share this loop, its blocking rules and its
// work split.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/tile.h"

namespace hone::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Splits `count` things into `parts` runs: the first count % parts of them are one longer. Run i is
/// [begin(i), begin(i + 1)).
struct EvenSplit {
  int64_t count = 0;
  int64_t parts = 1;
  int64_t each = 0;   ///< count / parts
  int64_t extra = 0;  ///< count % parts

  EvenSplit() = default;
  EvenSplit(int64_t n, int64_t runs) : count(n), parts(runs), each(n / runs), extra(n % runs) {}
  int64_t begin(int64_t i) const { return i * each + std::min(i, extra); }
};

/// A block of destination rows with everything the tile kernel needs to know about them. Tiles are runs of
/// rows of nearly equal height, so that none is left with a thin tail: see tiles().
struct RowBlock {
  int64_t rows = 0;
  int64_t n_taps = 1;
  int64_t run = 0;  ///< floats per tap
  const float** sources =
      nullptr;             ///< tile with first row r0 and height h: sources[r0 * n_taps + tap * h + (r - r0)]
  float** dst = nullptr;   ///< [rows], pointing at column 0
  int64_t* ids = nullptr;  ///< [rows], row numbers as the epilogue sees them

  EvenSplit tiles(int mr) const { return {rows, std::max<int64_t>(1, ceil_div(rows, mr))}; }
};

/// How to walk a block, panel by panel, for each all tiles; a matter of speed only.
struct BlockWalk {
  int64_t k_block = INT64_MAX;  ///< K is cut into pieces of about this many; partial sums rest in dst
  bool prefetch = true;         ///< fetch the next panel into L2 while this one is used
};

/// A run of panels of one packed matrix, and where its columns go.
struct PanelRun {
  const float* panels = nullptr;  ///< the first panel of the run
  int64_t first = 0;              ///< its number: columns [first * nr, ...) of dst
  int64_t count = 0;
  int64_t n = 0;            ///< columns of the whole matrix
  int64_t column_base = 0;  ///< added to the column in dst and in the epilogue (group offset)
  int64_t k_offset = 0;     ///< added to every source pointer (group offset)
};

/// dst = epilogue(A x B) for a block of rows and a run of panels.
void run_block(const TileKernels& kernels, const RowBlock& block, const PanelRun& panels,
               const Epilogue& epilogue, const BlockWalk& walk);

/// Cuts a product into chunks for a thread pool: a function of the sizes and of the ISA alone.
struct WorkSplit {
  EvenSplit rows;    ///< of units of rows: tiles, or whole output lines
  EvenSplit panels;  ///< of panels, those of all groups counted
  int64_t n_chunks() const { return rows.parts * panels.parts; }
};
/// `flops` of the whole work, `a_floats` and `b_floats` read and written on the row side and the panel side;
/// `batch` equal products beside this one, which are chunks already.
WorkSplit split_work(int64_t batch, int64_t row_units, int64_t panels, double flops, int64_t a_floats,
                     int64_t b_floats);

/// Scratch is handed out from one aligned piece of memory; sizes are counted first with a null base.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(int64_t count) {
    const int64_t at = used_;
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

}  // namespace hone::cpu
