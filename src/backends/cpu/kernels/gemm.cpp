#include "backends/cpu/kernels/gemm.h"

#include <algorithm>

#include "backends/cpu/kernels/pack.h"
#include "base/thread_pool.h"

namespace hone::cpu {

int panel_width(Isa isa) { return tile_kernels(isa).nr; }

int64_t packed_b_floats(Isa isa, int64_t k, int64_t n) {
  return ceil_div(n, panel_width(isa)) * panel_width(isa) * k;
}

void pack_b(Isa isa, const float* b, int64_t ldb, bool transposed, int64_t k, int64_t n, float* packed) {
  const int nr = panel_width(isa);
  const PackPanelFn pack = pack_panel_fn(isa);
  for (int64_t j = 0; j < n; j += nr) {
    pack(transposed ? b + j * ldb : b + j, ldb, transposed, k, static_cast<int>(std::min<int64_t>(nr, n - j)),
         packed);
    packed += k * nr;
  }
}

void unpack_b(Isa isa, const float* packed, int64_t k, int64_t n, float* b) {
  const int nr = panel_width(isa);
  for (int64_t j0 = 0; j0 < n; j0 += nr)
    for (int64_t i = 0; i < k; ++i, packed += nr)
      std::copy_n(packed, std::min<int64_t>(nr, n - j0), b + i * n + j0);
}

// What one worker needs: row tables for a chunk (or a packed block of it), a panel of B, a block of A.
struct Gemm::Scratch {
  const float** sources;
  float** dst;
  int64_t* ids;
  float* a;
  float* b;
  int64_t bytes;
};

Gemm::Scratch Gemm::scratch(void* base) const {
  Carver carver(base);
  Scratch s{};
  s.sources = carver.take<const float*>(block_rows_);
  s.dst = carver.take<float*>(block_rows_);
  s.ids = carver.take<int64_t>(block_rows_);
  s.a = carver.take<float>(shape_.a_transposed ? block_rows_ * shape_.k : 0);
  s.b = carver.take<float>(shape_.b_packed ? 0 : shape_.k * kernels_->nr);
  s.bytes = carver.used();
  return s;
}

Gemm::Gemm(Isa isa, const GemmShape& shape) : kernels_(&tile_kernels(isa)), shape_(shape) {
  const double flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                       static_cast<double>(shape.n) * static_cast<double>(std::max<int64_t>(1, shape.k));
  split_ = split_work(shape.batch, ceil_div(shape.m, kernels_->mr), ceil_div(shape.n, kernels_->nr), flops,
                      shape.m * (shape.k + shape.n), shape.n * shape.k);
  const int64_t chunk_rows = std::min(shape.m, ceil_div(split_.rows.count, split_.rows.parts) * kernels_->mr);
  block_rows_ = std::max<int64_t>(1, chunk_rows);
  if (shape.a_transposed) {
    const int64_t fit = (cache_sizes().l2_bytes / 4) / (std::max<int64_t>(1, shape.k) * sizeof(float));
    block_rows_ = std::min(block_rows_, std::max<int64_t>(kernels_->mr, fit / kernels_->mr * kernels_->mr));
  }
  worker_bytes_ = scratch(nullptr).bytes;
}

void Gemm::run_chunk(const GemmArgs& args, int64_t chunk, int worker) const {
  const int64_t per_batch = split_.n_chunks();
  const int64_t batch = chunk / per_batch;
  const int64_t part = chunk % per_batch;
  // Panels vary slowest: a worker's run of chunks then walks each part of B once.
  const int64_t row_part = part % split_.rows.parts;
  const int64_t panel_part = part / split_.rows.parts;
  const int64_t row0 = std::min(shape_.m, split_.rows.begin(row_part) * kernels_->mr);
  const int64_t row1 = std::min(shape_.m, split_.rows.begin(row_part + 1) * kernels_->mr);
  const int64_t panel0 = split_.panels.begin(panel_part);
  const int64_t panel1 = split_.panels.begin(panel_part + 1);

  const float* a = args.a + (args.a_offsets != nullptr ? args.a_offsets[batch] : batch * args.a_batch);
  const float* b = args.b + (args.b_offsets != nullptr ? args.b_offsets[batch] : batch * args.b_batch);
  float* c = args.c + (args.c_offsets != nullptr ? args.c_offsets[batch] : batch * args.c_batch);
  const Scratch s = scratch(static_cast<char*>(args.workspace) + worker * worker_bytes_);
  const int nr = kernels_->nr;

  for (int64_t first = row0; first < row1; first += block_rows_) {
    RowBlock block;
    block.rows = std::min(block_rows_, row1 - first);
    block.run = shape_.k;
    block.sources = s.sources;
    block.dst = s.dst;
    block.ids = s.ids;
    if (shape_.a_transposed) pack_rows_fn(kernels_->isa)(a + first, args.lda, shape_.k, block.rows, s.a);
    for (int64_t r = 0; r < block.rows; ++r) {
      s.sources[r] = shape_.a_transposed ? s.a + r * shape_.k : a + (first + r) * args.lda;
      s.dst[r] = c + (first + r) * args.ldc;
      s.ids[r] = batch * shape_.m + first + r;
    }
    PanelRun panels;
    panels.n = shape_.n;
    if (shape_.b_packed) {
      panels.panels = b + panel0 * shape_.k * nr;
      panels.first = panel0;
      panels.count = panel1 - panel0;
      run_block(*kernels_, block, panels, args.epilogue, walk);
      continue;
    }
    const PackPanelFn pack = pack_panel_fn(kernels_->isa);
    panels.panels = s.b;
    panels.count = 1;
    for (int64_t p = panel0; p < panel1; ++p) {
      const int64_t column = p * nr;
      pack(shape_.b_transposed ? b + column * args.ldb : b + column, args.ldb, shape_.b_transposed, shape_.k,
           static_cast<int>(std::min<int64_t>(nr, shape_.n - column)), s.b);
      panels.first = p;
      BlockWalk alone = walk;
      alone.prefetch = false;  // there is no next panel yet
      run_block(*kernels_, block, panels, args.epilogue, alone);
    }
  }
}

void Gemm::run(const GemmArgs& args, ThreadPool& pool, int max_workers) const {
  if (shape_.m == 0 || shape_.n == 0) return;
  pool.parallel_for(
      n_chunks(), [&](int64_t chunk, int worker) { run_chunk(args, chunk, worker); }, max_workers);
}

}  // namespace hone::cpu
