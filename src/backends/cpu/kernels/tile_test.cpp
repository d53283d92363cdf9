#include "backends/cpu/kernels/tile.h"

#include <gtest/gtest.h>

#include "backends/cpu/kernels/test_util.h"

namespace hone::cpu {
namespace {

using testing::close;
using testing::fill;
using testing::Guarded;

// Every kernel of every table: rows, full and partial panels, taps, offsets, the three starts, addition and
// clamp.
TEST(Tile, every_kernel_against_the_formula) {
  constexpr int64_t kTaps = 3, kOffset = 2, kColumn = 3;
  for (Isa isa : supported_isas()) {
    const TileKernels& kernels = tile_kernels(isa);
    ASSERT_LE(kernels.mr, kMaxTileRows);
    ASSERT_EQ(kernels.nr, 2 * kernels.width);
    for (int rows = 1; rows <= kernels.mr; ++rows)
      for (int n : {1, kernels.width - 1, kernels.width, kernels.width + 1, kernels.nr - 1, kernels.nr})
        for (int64_t run : {0, 1, 4, 7})
          for (int start = 0; start < 3; ++start) {
            SCOPED_TRACE(::testing::Message() << isa_name(isa) << " rows " << rows << " n " << n << " run "
                                              << run << " start " << start);
            Guarded a(kTaps * rows * (run + kOffset), 1), b(kTaps * run * kernels.nr),
                c(rows * (kColumn + n), 1), add(rows * n, 1), bias(n, 1);
            fill(a.data(), a.size(), 1);
            fill(b.data(), b.size(), 2);
            fill(c.data(), c.size(), 3);
            fill(add.data(), add.size(), 4);
            fill(bias.data(), bias.size(), 5);
            const std::vector<float> before(c.data(), c.data() + c.size());
            std::vector<const float*> sources, addends;
            std::vector<float*> dst;
            for (int64_t t = 0; t < kTaps; ++t)
              for (int r = 0; r < rows; ++r) sources.push_back(a.data() + (t * rows + r) * (run + kOffset));
            for (int r = 0; r < rows; ++r) {
              dst.push_back(c.data() + r * (kColumn + n));
              addends.push_back(add.data() + r * n);
            }
            Tile tile;
            tile.rows = sources.data();
            tile.n_taps = kTaps;
            tile.run = run;
            tile.k_offset = kOffset;
            tile.b = b.data();
            tile.dst = dst.data();
            tile.column = kColumn;
            tile.n = n;
            tile.accumulate = start == 1;
            tile.bias = start == 2 ? bias.data() : nullptr;
            tile.add = start == 0 ? nullptr : addends.data();
            tile.clamp = start == 2;
            tile.lo = -0.5F;
            tile.hi = 1.0F;
            kernels.pick(rows, n)(tile);
            c.check("dst");
            for (int r = 0; r < rows; ++r)
              for (int64_t j = 0; j < kColumn + n; ++j) {
                const int64_t at = r * (kColumn + n) + j, col = j - kColumn;
                if (col < 0) {
                  ASSERT_EQ(c[at], before[static_cast<size_t>(at)]) << "before the column";
                  continue;
                }
                double want = start == 1 ? before[static_cast<size_t>(at)] : start == 2 ? bias[col] : 0;
                for (int64_t t = 0; t < kTaps; ++t)
                  for (int64_t k = 0; k < run; ++k)
                    want += double{sources[static_cast<size_t>(t * rows + r)][kOffset + k]} *
                            double{b[(t * run + k) * kernels.nr + col]};
                if (start > 0) want += add[r * n + col];
                if (start == 2) want = std::min(1.0, std::max(-0.5, want));
                ASSERT_TRUE(close(c[at], want, 1e-5)) << r << "," << col;
              }
          }
  }
}

}  // namespace
}  // namespace hone::cpu
