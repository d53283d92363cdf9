#include "backends/cpu/kernels/gemm.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/kernels/test_util.h"
#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

using testing::close;
using testing::fill;
using testing::Guarded;
using testing::same_bits;
using testing::sum_tolerance;

struct Case {
  GemmShape shape;
  int64_t pad_a = 0, pad_c = 0;
  bool share_b = false;
};

std::string name_of(const Case& c, Isa isa) {
  const GemmShape& s = c.shape;
  return std::string(isa_name(isa)) + " b" + std::to_string(s.batch) + " m" + std::to_string(s.m) + " n" +
         std::to_string(s.n) + " k" + std::to_string(s.k) + (s.a_transposed ? " At" : "") +
         (s.b_packed ? " packed" : "") + (s.b_transposed ? " Bt" : "");
}

// Runs a case on every ISA, at 1 and 3 threads, against a double loop.
void check(const Case& c) {
  const GemmShape& s = c.shape;
  const int64_t lda = (s.a_transposed ? s.m : s.k) + c.pad_a;
  const int64_t a_rows = s.a_transposed ? s.k : s.m;
  const int64_t ldb = s.b_transposed ? s.k : s.n;
  const int64_t ldc = s.n + c.pad_c;
  const int64_t b_batches = c.share_b ? 1 : s.batch;
  Guarded a(s.batch * a_rows * lda + 1, 1), b(b_batches * s.k * s.n + 1, 3);
  fill(a.data(), a.size(), 1);
  fill(b.data(), b.size(), 2);
  const auto a_at = [&](int64_t q, int64_t i, int64_t k) {
    return double{a[q * a_rows * lda + (s.a_transposed ? k * lda + i : i * lda + k)]};
  };
  const auto b_at = [&](int64_t q, int64_t k, int64_t j) {
    const float* p = b.data() + (c.share_b ? 0 : q) * s.k * s.n;
    return double{s.b_transposed ? p[j * ldb + k] : p[k * ldb + j]};
  };
  ThreadPool one(1), three(3);
  std::vector<float> across;  // avx2's result, to compare with avx512's
  for (Isa isa : supported_isas()) {
    SCOPED_TRACE(name_of(c, isa));
    const Gemm gemm(isa, s);
    const int64_t packed = packed_b_floats(isa, s.k, s.n);
    Guarded pb(s.b_packed ? b_batches * packed : 0);
    if (s.b_packed) {
      for (int64_t q = 0; q < b_batches; ++q) {
        pack_b(isa, b.data() + q * s.k * s.n, ldb, s.b_transposed, s.k, s.n, pb.data() + q * packed);
        std::vector<float> back(static_cast<size_t>(s.k * s.n));
        unpack_b(isa, pb.data() + q * packed, s.k, s.n, back.data());
        for (int64_t k = 0; k < s.k; ++k)
          for (int64_t j = 0; j < s.n; ++j)
            ASSERT_EQ(back[static_cast<size_t>(k * s.n + j)], static_cast<float>(b_at(q, k, j)));
      }
      pb.check("packed B");
    }
    std::vector<float> first;
    for (ThreadPool* pool : {&one, &three}) {
      Guarded out(s.batch * s.m * ldc, 2), ws(gemm.workspace_bytes(pool->n_threads()) / 4);
      GemmArgs args;
      args.a = a.data();
      args.lda = lda;
      args.a_batch = a_rows * lda;
      args.b = s.b_packed ? pb.data() : b.data();
      args.ldb = ldb;
      args.b_batch = c.share_b ? 0 : s.b_packed ? packed : s.k * s.n;
      args.c = out.data();
      args.ldc = ldc;
      args.c_batch = s.m * ldc;
      args.workspace = ws.data();
      std::fill_n(out.data(), out.size(), -77.0F);
      gemm.run(args, *pool);
      out.check("C");
      ws.check("workspace");
      for (int64_t q = 0; q < s.batch; ++q)
        for (int64_t i = 0; i < s.m; ++i) {
          for (int64_t j = 0; j < s.n; ++j) {
            double want = 0, magnitude = 0;
            for (int64_t k = 0; k < s.k; ++k) {
              want += a_at(q, i, k) * b_at(q, k, j);
              magnitude += std::fabs(a_at(q, i, k) * b_at(q, k, j));
            }
            ASSERT_TRUE(close(out[(q * s.m + i) * ldc + j], want, sum_tolerance(s.k, magnitude)))
                << q << "," << i << "," << j;
          }
          for (int64_t j = s.n; j < ldc; ++j)
            ASSERT_EQ(out[(q * s.m + i) * ldc + j], -77.0F) << "row gap written";
        }
      if (first.empty()) first.assign(out.data(), out.data() + out.size());
      EXPECT_TRUE(same_bits(first.data(), out.data(), out.size())) << "differs between 1 and 3 threads";
    }
    if (isa == Isa::kAvx2) across = first;
    if (isa == Isa::kAvx512) {
      EXPECT_EQ(across, first) << "avx2 and avx512 differ";
    }
  }
}

TEST(Gemm, odd_sizes_and_tails) {
  for (int64_t m : {1, 2, 5, 6, 7, 11, 12, 13, 25, 50})
    for (int64_t n : {1, 7, 8, 15, 16, 17, 31, 32, 33, 65})
      for (int64_t k : {1, 3, 4, 17}) check({{1, m, n, k}});
}

TEST(Gemm, deep_and_wide) {
  check({{1, 37, 70, 1031}});
  check({{1, 130, 100, 259}});
  check({{1, 3, 513, 300}});
  check({{1, 400, 24, 64}});
}

TEST(Gemm, few_columns) {
  for (int64_t n : {1, 2, 3, 4, 5})
    for (int64_t m : {1, 6, 13, 40})
      for (int64_t k : {15, 16, 17, 40, 64, 129, 1100}) check({{1, m, n, k}});
  check({{3, 30, 2, 50, false, false, true}});
}

TEST(Gemm, row_strides_leave_gaps_untouched) {
  check({{2, 14, 33, 9}, 5, 7});
  check({{1, 1, 40, 20}, 0, 3});
}

TEST(Gemm, batches_and_shared_b) {
  check({{5, 13, 20, 16}});
  check({{4, 7, 40, 12}, 0, 0, true});
}

TEST(Gemm, b_packed_on_the_way_in_both_orientations) {
  for (bool bt : {false, true})
    for (int64_t n : {1, 15, 16, 33, 64})
      for (int64_t m : {1, 9, 40}) check({{3, m, n, 21, false, false, bt}});
  check({{2, 128, 128, 64, false, false, true}});
}

TEST(Gemm, transposed_a) {
  for (bool packed : {true, false}) check({{2, 45, 33, 19, true, packed, false}});
  check({{1, 300, 40, 1200, true, true, true}});  // more rows than are packed at a time
}

TEST(Gemm, packing_a_transposed_b) { check({{1, 9, 37, 23, false, true, true}}); }

TEST(Gemm, zero_sizes) {
  check({{1, 0, 8, 8}});
  check({{1, 8, 0, 8}});
  check({{0, 8, 8, 8}});
  check({{1, 5, 9, 0}});
}

TEST(Gemm, every_walk_gives_the_same_bits) {
  const GemmShape s{1, 61, 100, 777};
  Guarded a(s.m * s.k), b(s.k * s.n);
  fill(a.data(), a.size(), 3);
  fill(b.data(), b.size(), 4);
  ThreadPool pool(1);
  for (Isa isa : supported_isas()) {
    Gemm gemm(isa, s);
    Guarded pb(packed_b_floats(isa, s.k, s.n)), ws(gemm.workspace_bytes(1) / 4);
    pack_b(isa, b.data(), s.n, false, s.k, s.n, pb.data());
    std::vector<float> bias(static_cast<size_t>(s.n), 0.5F);
    const std::vector<EpilogueOp> ops = {EpilogueOp::add(EpilogueOperand::per_column(bias.data())),
                                         EpilogueOp::activation(ActKind::kRelu),
                                         EpilogueOp::activation(ActKind::kTanh)};
    std::vector<float> first;
    for (const BlockWalk& walk :
         {BlockWalk{}, BlockWalk{100, true}, BlockWalk{INT64_MAX, false}, BlockWalk{256, false}}) {
      gemm.walk = walk;
      Guarded out(s.m * s.n);
      GemmArgs args;
      args.a = a.data();
      args.lda = s.k;
      args.b = pb.data();
      args.c = out.data();
      args.ldc = s.n;
      args.epilogue = Epilogue(ops);
      args.workspace = ws.data();
      gemm.run(args, pool);
      out.check("C");
      if (first.empty()) first.assign(out.data(), out.data() + out.size());
      EXPECT_TRUE(same_bits(first.data(), out.data(), out.size())) << isa_name(isa);
    }
  }
}

TEST(Gemm, nan_and_infinity_reach_their_row_or_column_only) {
  const GemmShape s{1, 20, 40, 10};
  ThreadPool pool(1);
  for (Isa isa : supported_isas()) {
    Guarded a(s.m * s.k), b(s.k * s.n);
    fill(a.data(), a.size(), 5);
    fill(b.data(), b.size(), 6);
    a[3 * s.k + 2] = NAN;
    a[7 * s.k + 1] = INFINITY;
    b[4 * s.n + 39] = -INFINITY;  // the last column: beside the zeros of the padded panel
    const Gemm gemm(isa, s);
    Guarded pb(packed_b_floats(isa, s.k, s.n)), ws(gemm.workspace_bytes(1) / 4), out(s.m * s.n);
    pack_b(isa, b.data(), s.n, false, s.k, s.n, pb.data());
    const std::vector<EpilogueOp> ops = {EpilogueOp::activation(ActKind::kRelu)};
    GemmArgs args;
    args.a = a.data();
    args.lda = s.k;
    args.b = pb.data();
    args.c = out.data();
    args.ldc = s.n;
    args.epilogue = Epilogue(ops);
    args.workspace = ws.data();
    gemm.run(args, pool);
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < s.k; ++k) sum += double{a[i * s.k + k]} * double{b[k * s.n + j]};
        const double want = sum < 0 ? 0 : sum;  // NaN stays
        ASSERT_TRUE(close(out[i * s.n + j], want, 1e-5)) << isa_name(isa) << " " << i << "," << j;
      }
  }
}

}  // namespace
}  // namespace hone::cpu
