// The one blocked kernel of the reference: products and sums in f64, in a fixed order, for matmul,
// convolution and attention.
#pragma once

#include <cstdint>
#include <functional>

namespace hone::ops {

/// Math: acc[b][i][j] = sum over p = 0 .. k-1, in that order, of round64(A[b][i][p] * B[b][p][j]); every
/// partial sum is rounded to f64. No fused multiply-add, and lanes are independent outputs: the same bits on
/// every ISA, for any tiling and number of threads.
///
/// Operands are read through callbacks that convert a block to f64 (weights are thus converted op by op,
/// never kept), results leave through one. Callbacks run on several threads at once, each block once or more;
/// they must be pure but for their destination.
struct RefGemm {
  int64_t batch = 1, m = 0, n = 0, k = 0;

  /// dst[p * width + c] = A[b][i0 + c][p0 + p] for p < kc, c < rows; columns rows .. width-1 are to be set to
  /// 0.
  std::function<void(int64_t b, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width)>
      pack_a;
  /// dst[p * width + c] = B[b][p0 + p][j0 + c] for p < kc, c < cols; columns cols .. width-1 are to be set to
  /// 0.
  std::function<void(int64_t b, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst, int64_t width)>
      pack_b;
  /// acc[r * ld + c] is the sum for row i0 + r, column j0 + c.
  std::function<void(int64_t b, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc,
                     int64_t ld)>
      store;
};

/// Runs it on the process's thread pool. k = 0 stores zeros.
void ref_gemm(const RefGemm& gemm);

/// pack_a / pack_b of a strided matrix: element (p, c) at src[p * stride_p + c * stride_c].
template <class T>
void pack_strided(const T* src, int64_t stride_p, int64_t stride_c, int64_t cols, int64_t kc, double* dst,
                  int64_t width) {
  for (int64_t p = 0; p < kc; ++p) {
    const T* s = src + p * stride_p;
    double* d = dst + p * width;
    int64_t c = 0;
    if (stride_c == 1) {
      for (; c < cols; ++c) d[c] = static_cast<double>(s[c]);
    } else {
      for (; c < cols; ++c) d[c] = static_cast<double>(s[c * stride_c]);
    }
    for (; c < width; ++c) d[c] = 0;
  }
}

/// fn(i) for i in [0, n) on the process's thread pool, a few neighbouring i a chunk. `work` is the cost of
/// one i in operations: small loops stay on the calling thread.
void ref_parallel(int64_t n, double work, const std::function<void(int64_t)>& fn);

}  // namespace hone::ops
