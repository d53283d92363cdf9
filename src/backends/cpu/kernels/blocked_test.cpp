#include "backends/cpu/kernels/blocked.h"

#include <gtest/gtest.h>

namespace hone::cpu {
namespace {

TEST(EvenSplit, covers_everything_with_runs_that_differ_by_one_at_most) {
  for (int64_t count : {0, 1, 5, 12, 13, 100})
    for (int64_t parts : {1, 2, 3, 7, 13}) {
      const EvenSplit split(count, parts);
      EXPECT_EQ(split.begin(0), 0);
      EXPECT_EQ(split.begin(parts), count);
      for (int64_t i = 0; i < parts; ++i) {
        const int64_t length = split.begin(i + 1) - split.begin(i);
        EXPECT_TRUE(length == count / parts || length == count / parts + 1);
      }
    }
}

TEST(RowBlock, no_tile_is_thin) {
  RowBlock block;
  for (int64_t rows : {1, 11, 12, 13, 25, 49, 128}) {
    block.rows = rows;
    const EvenSplit tiles = block.tiles(12);
    for (int64_t t = 0; t < tiles.parts; ++t) {
      const int64_t height = tiles.begin(t + 1) - tiles.begin(t);
      EXPECT_LE(height, 12);
      EXPECT_GE(2 * height, std::min<int64_t>(rows, 12)) << rows;
    }
  }
}

TEST(WorkSplit, small_work_is_one_chunk) { EXPECT_EQ(split_work(1, 6, 2, 5e5, 8192, 4096).n_chunks(), 1); }

TEST(WorkSplit, weights_from_memory_are_read_once) {
  // 49 pixels, 512 channels from 4608 inputs: nine megabytes of weights.
  const WorkSplit s = split_work(1, 5, 16, 2.0 * 49 * 512 * 4608, 50176, 512 * 4608);
  EXPECT_EQ(s.rows.parts, 1);
  EXPECT_EQ(s.panels.parts, 16);
}

TEST(WorkSplit, many_pixels_and_few_weights_split_the_pixels) {
  const WorkSplit s = split_work(1, 262, 8, 2.0 * 3136 * 256 * 64, 3136 * 320, 256 * 64);
  EXPECT_EQ(s.panels.parts, 1);
  EXPECT_GE(s.rows.parts, 16);
}

TEST(WorkSplit, never_more_parts_than_units_and_a_batch_counts) {
  for (int64_t rows : {1, 2, 100})
    for (int64_t panels : {1, 3, 50}) {
      const WorkSplit s = split_work(1, rows, panels, 1e12, 1000, 1000);
      EXPECT_LE(s.rows.parts, rows);
      EXPECT_LE(s.panels.parts, panels);
      EXPECT_EQ(split_work(64, rows, panels, 1e12, 1000, 1000).n_chunks(), 1);
    }
}

TEST(Carver, pieces_are_aligned_and_disjoint) {
  alignas(64) char memory[512];
  Carver sizes(nullptr), real(memory);
  EXPECT_EQ(sizes.take<float>(3), nullptr);
  sizes.take<int64_t>(9);
  float* a = real.take<float>(3);
  int64_t* b = real.take<int64_t>(9);
  EXPECT_EQ(reinterpret_cast<char*>(a), memory);
  EXPECT_EQ(reinterpret_cast<char*>(b), memory + 64);
  EXPECT_EQ(sizes.used(), real.used());
  EXPECT_EQ(sizes.used(), 64 + 128);
}

}  // namespace
}  // namespace hone::cpu
