#include "ops/ref_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/thread_pool.h"
#include "support/op_expect.h"

namespace hone::ops {
namespace {

/// C = A * B through ref_gemm.
std::vector<double> multiply(int64_t batch, int64_t m, int64_t n, int64_t k, const std::vector<float>& a,
                             const std::vector<float>& b) {
  std::vector<double> c(static_cast<size_t>(batch * m * n), -1.0);
  RefGemm g;
  g.batch = batch;
  g.m = m;
  g.n = n;
  g.k = k;
  g.pack_a = [&](int64_t i, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width) {
    pack_strided(a.data() + (i * m + i0) * k + p0, 1, k, rows, kc, dst, width);
  };
  g.pack_b = [&](int64_t i, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst, int64_t width) {
    pack_strided(b.data() + (i * k + p0) * n + j0, n, 1, cols, kc, dst, width);
  };
  g.store = [&](int64_t i, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc,
                int64_t ld) {
    for (int64_t r = 0; r < rows; ++r)
      std::copy(acc + r * ld, acc + r * ld + cols, &c[static_cast<size_t>((i * m + i0 + r) * n + j0)]);
  };
  ref_gemm(g);
  return c;
}

TEST(RefGemm, SumsInOrder) {
  for (const auto& [batch, m, n, k] : {std::array<int64_t, 4>{1, 1, 1, 1},
                                       {3, 7, 33, 385},
                                       {1, 64, 128, 192},
                                       {2, 65, 130, 193},
                                       {1, 2, 3, 0}}) {
    const auto a = testing::noise(batch * m * k), b = testing::noise(batch * k * n, 2);
    const auto c = multiply(batch, m, n, k, a, b);
    for (int64_t i = 0; i < batch; ++i) {
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < k; ++p) {
            const double product = static_cast<double>(a[static_cast<size_t>((i * m + r) * k + p)]) *
                                   static_cast<double>(b[static_cast<size_t>((i * k + p) * n + j)]);
            sum += product;
          }
          ASSERT_EQ(c[static_cast<size_t>((i * m + r) * n + j)], sum);
        }
      }
    }
  }
}

TEST(RefGemm, NaNAndInfStayInTheirRowAndColumn) {
  std::vector<float> a(5 * 3, 1.0F), b(3 * 18, 1.0F);
  a[4] = NAN;                 // row 1
  b[2 * 18 + 17] = INFINITY;  // column 17
  const auto c = multiply(1, 5, 18, 3, a, b);
  for (int64_t r = 0; r < 5; ++r) {
    for (int64_t j = 0; j < 18; ++j) {
      const double v = c[static_cast<size_t>(r * 18 + j)];
      if (r == 1)
        EXPECT_TRUE(std::isnan(v));
      else if (j == 17)
        EXPECT_EQ(v, INFINITY);
      else
        EXPECT_EQ(v, 3);
    }
  }
}

TEST(RefGemm, SameBitsForAnyNumberOfThreads) {
  const auto a = testing::noise(200 * 300), b = testing::noise(300 * 250, 2);
  ThreadPool& pool = ThreadPool::process();
  const int before = pool.n_threads();
  pool.set_n_threads(1);
  const auto one = multiply(1, 200, 250, 300, a, b);
  pool.set_n_threads(before);
  const auto many = multiply(1, 200, 250, 300, a, b);
  EXPECT_EQ(0, std::memcmp(one.data(), many.data(), one.size() * sizeof(double)));
}

TEST(RefParallel, CoversEveryIndexOnce) {
  std::vector<int> seen(100000, 0);
  ref_parallel(100000, 100, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 100000);
  ref_parallel(0, 1, [&](int64_t) { FAIL(); });
}

// Prints the rate; judged by eye, since other programs share the machine.
TEST(RefGemm, Rate) {
  const int64_t n = 512;
  const auto a = testing::noise(n * n), b = testing::noise(n * n, 2);
  multiply(1, n, n, n, a, b);
  const auto start = std::chrono::steady_clock::now();
  multiply(1, n, n, n, a, b);
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  RecordProperty("gflops", std::to_string(2e-9 * static_cast<double>(n * n * n) / s));
  std::printf("ref_gemm %lld: %.1f GFLOP/s\n", static_cast<long long>(n),
              2e-9 * static_cast<double>(n * n * n) / s);
}

}  // namespace
}  // namespace hone::ops
