// MatMul and Gemm in f32: the packed-panel matrix product with post-ops in its epilogue.
#include <algorithm>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/fused_post.h"
#include "backends/cpu/kernels/gemm.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu {
namespace {

using hone::cpu::EpilogueOp;
using hone::cpu::EpilogueOperand;
using hone::cpu::Gemm;
using hone::cpu::GemmArgs;
using hone::cpu::GemmShape;

/// A problem reduced to one batched product.
struct Product {
  GemmShape shape;
  int64_t lda = 0, ldb = 0, ldc = 0;
  std::vector<int64_t> a_offsets, b_offsets, c_offsets;  ///< of each batch, in floats
  float alpha = 1, beta = 1;                             ///< Gemm's
  bool has_c = false;
};

bool is_gemm(const Problem& p) { return p.op == "Gemm"; }

bool packs_b(const Problem& p) { return p.srcs[1].constant && p.srcs[1].dims.size() == 2; }

Product make_product(const Problem& p) {
  Product g;
  const Shape& a = p.srcs[0].dims;
  const Shape& b = p.srcs[1].dims;
  GemmShape& s = g.shape;
  s.b_packed = packs_b(p);
  if (is_gemm(p)) {
    s.a_transposed = ir::attr_int(p.attrs, "transA", 0) != 0;
    s.b_transposed = ir::attr_int(p.attrs, "transB", 0) != 0;
    g.alpha = ir::attr_float(p.attrs, "alpha", 1.0F);
    g.beta = ir::attr_float(p.attrs, "beta", 1.0F);
    g.has_c = p.num_anchor_srcs > 2 && p.srcs[2].present();
    s.m = s.a_transposed ? a[1] : a[0];
    s.k = s.a_transposed ? a[0] : a[1];
    s.n = s.b_transposed ? b[0] : b[1];
    g.lda = a[1];
    g.ldb = b[1];
    g.ldc = s.n;
    g.a_offsets = g.b_offsets = g.c_offsets = {0};
    return g;
  }
  // MatMul: a rank-1 operand is a row (A) or a column (B); leading dimensions broadcast.
  const bool vector_a = a.size() == 1, vector_b = b.size() == 1;
  s.k = a.back();
  s.m = vector_a ? 1 : a[a.size() - 2];
  s.n = vector_b ? 1 : b.back();
  g.lda = s.k;
  g.ldb = s.n;
  g.ldc = s.n;
  Shape ab(a.begin(), vector_a ? a.begin() : a.end() - 2), bb(b.begin(), vector_b ? b.begin() : b.end() - 2);
  const size_t rank = std::max(ab.size(), bb.size());
  ab.insert(ab.begin(), rank - ab.size(), 1);
  bb.insert(bb.begin(), rank - bb.size(), 1);
  int64_t batch = 1;
  bool shared_b = true;
  for (size_t d = 0; d < rank; ++d) {
    batch *= bb[d] == 1 ? ab[d] : bb[d];
    shared_b &= bb[d] == 1;
  }
  if (shared_b && !vector_a) {  // one matrix B: the batches of A are more rows
    s.m *= batch;
    g.a_offsets = g.b_offsets = g.c_offsets = {0};
    return g;
  }
  s.batch = batch;
  for (int64_t i = 0; i < batch; ++i) {
    int64_t rest = i, ia = 0, ib = 0, sa = 1, sb = 1;
    for (size_t d = rank; d-- > 0;) {
      const int64_t extent = bb[d] == 1 ? ab[d] : bb[d];
      const int64_t at = rest % extent;
      rest /= extent;
      ia += ab[d] == 1 ? 0 : at * sa;
      ib += bb[d] == 1 ? 0 : at * sb;
      sa *= ab[d];
      sb *= bb[d];
    }
    g.a_offsets.push_back(ia * s.m * s.k);
    g.b_offsets.push_back(ib * s.k * s.n);
    g.c_offsets.push_back(i * s.m * s.n);
  }
  return g;
}

class MatMulPrepared final : public Prepared {
 public:
  MatMulPrepared(const Problem& p, Isa isa)
      : product_(make_product(p)),
        gemm_(isa, product_.shape),
        post_(p, -1, isa),
        workers_(ThreadPool::process().n_threads()) {
    if (product_.has_c && product_.beta != 0) {
      const auto strides = pw_strides(p.srcs[2], p.dsts[0].dims);
      c_ = *FusedPost::as_rows(p.dsts[0].dims, *strides);
    }
  }

  Gemm& kernel() { return gemm_; }
  int64_t workspace_bytes() const override { return gemm_.workspace_bytes(workers_); }

  void run(const RunArgs& args) const override {
    FusedPost::Run post;
    if (product_.alpha != 1) post.push(EpilogueOp::mul(EpilogueOperand::scalar(&product_.alpha)));
    if (product_.has_c && product_.beta != 0) {
      EpilogueOperand c = c_;
      c.data = static_cast<const float*>(args.srcs[2]);
      post.push(EpilogueOp::add(c));
    }
    post_.start(args, &post);
    GemmArgs g;
    g.a = static_cast<const float*>(args.srcs[0]);
    g.b = static_cast<const float*>(args.srcs[1]);
    g.c = static_cast<float*>(args.dsts[0]);
    g.lda = product_.lda;
    g.ldb = product_.ldb;
    g.ldc = product_.ldc;
    g.a_offsets = product_.a_offsets.data();
    g.b_offsets = product_.b_offsets.data();
    g.c_offsets = product_.c_offsets.data();
    g.epilogue = post.epilogue();
    g.workspace = args.workspace;
    gemm_.run(g, *args.pool, std::min(args.max_threads, workers_));
  }

 private:
  Product product_;
  Gemm gemm_;
  FusedPost post_;
  EpilogueOperand c_;
  int workers_;
};

/// With `k_block` the sum is cut into pieces whose weights stay in the first-level cache while partial sums
/// rest in the result: the same bits.
class MatMul final : public CpuTactic {
 public:
  explicit MatMul(Isa isa, int64_t k_block = 0)
      : CpuTactic(k_block > 0 ? "matmul_f32_panels_k" + std::to_string(k_block) : "matmul_f32_panels", isa,
                  Numerics::kReassociates),
        k_block_(k_block) {}

  Support supports(const Problem& p) const override {
    if (const Support s = require_f32(p); !s) return s;
    for (const Operand& o : p.srcs)
      if (o.layout != Layout::kPlain) return Support::no("layout: matrix products take plain layouts");
    if (p.dsts[0].layout != Layout::kPlain) return Support::no("layout: matrix products write plain layouts");
    if (p.dsts[0].dims.empty())
      return Support::no("rank: the result of two vectors is a scalar, left to the reference");
    if (p.srcs[0].dims.size() > 1 && p.srcs[1].dims.size() == 1 && !p.post.empty())
      return Support::no("post-op: the result has no column dimension");
    if (is_gemm(p) && p.num_anchor_srcs > 2 && p.srcs[2].present() &&
        ir::attr_float(p.attrs, "beta", 1.0F) != 0) {
      if (ir::attr_float(p.attrs, "beta", 1.0F) != 1.0F) return Support::no("beta: must be 0 or 1");
      const auto strides = pw_strides(p.srcs[2], p.dsts[0].dims);
      if (!strides || !FusedPost::as_rows(p.dsts[0].dims, *strides))
        return Support::no("C: does not broadcast over rows and columns");
    }
    if (k_block_ > 0 && make_product(p).shape.k < 2 * k_block_) return Support::no("k: too short to be cut");
    return post_supports(p, -1);
  }

  std::string packing(const Problem& p, size_t src) const override {
    if (src != 1 || !packs_b(p)) return "";
    const bool transposed = is_gemm(p) && ir::attr_int(p.attrs, "transB", 0) != 0;
    return std::string(transposed ? "panels_t__" : "panels__") + std::string(isa_name(isa()));
  }

  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    auto prepared = std::make_unique<MatMulPrepared>(p, isa());
    if (k_block_ > 0) prepared->kernel().walk.k_block = k_block_;
    return prepared;
  }

 private:
  int64_t k_block_;
};

}  // namespace

std::unique_ptr<Tactic> make_matmul(Isa isa) { return std::make_unique<MatMul>(isa); }
std::unique_ptr<Tactic> make_matmul_k512(Isa isa) { return std::make_unique<MatMul>(isa, 512); }

}  // namespace hone::backends::cpu
