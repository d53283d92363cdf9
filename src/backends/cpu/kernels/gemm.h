// f32 matrix product with a fused epilogue: C = epilogue(A x B), batched, B packed ahead (weights) or on the
// way (activations).
//
// Math: c[b][i][j] = epilogue(sum over k of A[b][i][k] * B[b][k][j]), each element one chain of multiply-adds
// in rising k (see tile.h): the same bits for every thread count, blocking and packing, and on avx2 and
// avx512 alike. Sizes may be zero; k = 0 gives epilogue(0).
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/blocked.h"
#include "backends/cpu/kernels/epilogue.h"
#include "base/cpu.h"

namespace hone {
class ThreadPool;
}

namespace hone::cpu {

/// Columns per panel of packed B: 32 on avx512, 16 on avx2, 8 on portable.
int panel_width(Isa isa);
/// Floats of a packed [k, n] matrix: whole panels.
int64_t packed_b_floats(Isa isa, int64_t k, int64_t n);
/// Packs B into panels [ceil(n / nr)][k][nr], columns past n as zeros. Element (i, j) of B is b[i * ldb + j],
/// or b[j * ldb + i] when transposed.
void pack_b(Isa isa, const float* b, int64_t ldb, bool transposed, int64_t k, int64_t n, float* packed);
/// The inverse, into a dense row-major [k, n].
void unpack_b(Isa isa, const float* packed, int64_t k, int64_t n, float* b);

struct GemmShape {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool a_transposed = false;  ///< A is stored [k, m]
  bool b_packed = true;       ///< B comes packed; else it is packed on the way
  bool b_transposed = false;  ///< unpacked B is stored [n, k]
};

/// Pointers of one run. Batch b of X starts at x + (x_offsets ? x_offsets[b] : b * x_batch), in floats; a
/// batch stride of 0 shares the matrix.
struct GemmArgs {
  const float* a = nullptr;
  int64_t lda = 0;
  int64_t a_batch = 0;
  const int64_t* a_offsets = nullptr;
  const float* b = nullptr;  ///< packed or not, as the shape says
  int64_t ldb = 0;           ///< unpacked only
  int64_t b_batch = 0;
  const int64_t* b_offsets = nullptr;
  float* c = nullptr;
  int64_t ldc = 0;
  int64_t c_batch = 0;
  const int64_t* c_offsets = nullptr;
  Epilogue epilogue;  ///< row numbers: batch * m + i
  void* workspace =
      nullptr;  ///< Gemm::workspace_bytes(n), 64-byte aligned, for n >= the workers that may run
};

/// A product of fixed sizes. Threads: run() is const and may be called concurrently with different arguments.
class Gemm {
 public:
  Gemm(Isa isa, const GemmShape& shape);

  int64_t n_chunks() const { return shape_.batch * split_.n_chunks(); }
  int64_t workspace_bytes(int workers) const { return worker_bytes_ * workers; }
  void run(const GemmArgs& args, ThreadPool& pool, int max_workers = 0) const;
  /// One chunk, with the scratch of `worker`: for callers with a schedule of their own.
  void run_chunk(const GemmArgs& args, int64_t chunk, int worker) const;

  BlockWalk walk;  ///< benchmarks and tests may change it

 private:
  struct Scratch;
  Scratch scratch(void* base) const;

  const TileKernels* kernels_;
  GemmShape shape_;
  WorkSplit split_;
  int64_t block_rows_ = 0;  ///< rows of A packed at a time, when it is transposed
  int64_t max_rows_ = 0;    ///< of a chunk
  int64_t worker_bytes_ = 0;
};

}  // namespace hone::cpu
