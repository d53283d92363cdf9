#include "backends/cpu/kernels/pack.h"

#include <gtest/gtest.h>

#include "backends/cpu/kernels/test_util.h"
#include "backends/cpu/kernels/tile.h"

namespace hone::cpu {
namespace {

using testing::fill;
using testing::Guarded;

TEST(Pack, transpose_of_every_shape) {
  for (Isa isa : supported_isas())
    for (int64_t rows : {1, 2, 3, 4, 7, 8, 9, 16, 31})
      for (int64_t columns : {1, 3, 8, 15, 16, 17, 50, 129})
        for (int64_t pad : {0, 5}) {
          SCOPED_TRACE(::testing::Message()
                       << isa_name(isa) << " " << rows << " x " << columns << " pad " << pad);
          const int64_t ld_src = columns + pad, ld_dst = rows + pad;
          Guarded src(rows * ld_src, 1), dst(columns * ld_dst, 3);
          fill(src.data(), src.size(), 1);
          std::fill_n(dst.data(), dst.size(), -7.0F);
          transpose_fn(isa)(src.data(), ld_src, rows, columns, dst.data(), ld_dst);
          dst.check("dst");
          for (int64_t j = 0; j < columns; ++j)
            for (int64_t i = 0; i < ld_dst; ++i)
              ASSERT_EQ(dst[j * ld_dst + i], i < rows ? src[i * ld_src + j] : -7.0F) << i << "," << j;
        }
}

TEST(Pack, panels_are_padded_with_zeros) {
  for (Isa isa : supported_isas()) {
    const int nr = tile_kernels(isa).nr;
    for (bool transposed : {false, true})
      for (int n : {1, nr / 2, nr / 2 + 1, nr - 1, nr})
        for (int64_t k : {1, 5, 8, 33}) {
          // The matrix ends exactly where the panel does: a load past it is seen by the guards of
          // AddressSanitizer.
          const int64_t ld = transposed ? k : n;
          Guarded b(k * n, 1), packed(k * nr);
          fill(b.data(), b.size(), 1);
          pack_panel_fn(isa)(b.data(), ld, transposed, k, n, packed.data());
          packed.check("panel");
          for (int64_t i = 0; i < k; ++i)
            for (int j = 0; j < nr; ++j)
              ASSERT_EQ(packed[i * nr + j], j >= n       ? 0.0F
                                            : transposed ? b[j * ld + i]
                                                         : b[i * ld + j])
                  << isa_name(isa) << " n " << n << " at " << i << "," << j;
        }
  }
}

TEST(Pack, rows_of_a_transposed_matrix) {
  for (Isa isa : supported_isas()) {
    const int64_t k = 19, rows = 13, lda = 21;
    Guarded a(k * lda, 1), packed(rows * k, 1);
    fill(a.data(), a.size(), 1);
    pack_rows_fn(isa)(a.data(), lda, k, rows, packed.data());
    packed.check("rows");
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = 0; i < k; ++i) ASSERT_EQ(packed[r * k + i], a[i * lda + r]);
  }
}

}  // namespace
}  // namespace hone::cpu
