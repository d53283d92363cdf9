#include "backends/cpu/kernels/epilogue.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/test_util.h"
#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

using testing::close;
using testing::fill;
using testing::Guarded;

double act(ActKind kind, double x, double a, double b) {
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  const auto clip = [](double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; };
  switch (kind) {
    case ActKind::kRelu: return x < 0 ? 0 : x;
    case ActKind::kLeakyRelu: return x < 0 ? a * x : x;
    case ActKind::kClip: return clip(x, a, b);
    case ActKind::kSigmoid: return sigmoid(x);
    case ActKind::kHardSigmoid: return clip(a * x + b, 0, 1);
    case ActKind::kHardSwish: return x * clip(x / 6 + 0.5, 0, 1);
    case ActKind::kSwish: return x * sigmoid(a * x);
    case ActKind::kTanh: return std::tanh(x);
    case ActKind::kGeluErf: return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case ActKind::kGeluTanh: return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ActKind::kElu: return x < 0 ? a * std::expm1(x) : x;
    case ActKind::kSelu: return b * (x <= 0 ? a * std::expm1(x) : x);
    case ActKind::kCelu: return std::isnan(x) ? x : std::max(0.0, x) + std::min(0.0, a * std::expm1(x / a));
    case ActKind::kSoftplus: return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case ActKind::kMish: return x * std::tanh(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
    case ActKind::kAbs: return std::fabs(x);
    case ActKind::kNeg: return -x;
    case ActKind::kExp: return std::exp(x);
    case ActKind::kLog: return std::log(x);
    case ActKind::kSqrt: return std::sqrt(x);
    case ActKind::kReciprocal: return 1 / x;
    case ActKind::kErf: return std::erf(x);
    case ActKind::kFloor: return std::floor(x);
    case ActKind::kCeil: return std::ceil(x);
    case ActKind::kRound: return std::nearbyint(x);
    case ActKind::kSign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case ActKind::kSoftsign: return x / (1 + std::fabs(x));
    case ActKind::kThresholdedRelu: return x > a || std::isnan(x) ? x : 0;
    case ActKind::kIdentity: return x;
    case ActKind::kSin:
    case ActKind::kCos: break;
  }
  return 0;
}

TEST(Epilogue, every_activation_on_every_isa) {
  std::vector<float> x;
  for (int i = -200; i <= 200; ++i) x.push_back(static_cast<float>(i) * 0.05F);
  for (float v : {NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 3e38F, -3e38F, 1e-40F}) x.push_back(v);
  const auto n = static_cast<int64_t>(x.size());
  for (Isa isa : supported_isas())
    for (int k = 0; k <= static_cast<int>(ActKind::kIdentity); ++k) {
      const auto kind = static_cast<ActKind>(k);
      if (!act_supported(kind)) continue;
      // Parameters that make sense for every kind that reads them.
      const float a = kind == ActKind::kClip ? -1.5F : 0.75F;
      const float b = kind == ActKind::kClip ? 2.0F : 0.5F;
      Guarded y(n);
      std::copy(x.begin(), x.end(), y.data());
      const EpilogueOp op = EpilogueOp::activation(kind, a, b);
      float* rows[] = {y.data()};
      const int64_t ids[] = {0};
      epilogue_tile_fn(isa)(&op, 1, rows, ids, 1, 0, n);
      y.check("activation");
      for (int64_t i = 0; i < n; ++i) {
        const float v = x[static_cast<size_t>(i)];
        if (kind == ActKind::kGeluTanh && std::fabs(v) > 1e12F) continue;  // x^3 leaves the range of f32
        const double want = act(kind, v, a, b);
        const double rounded = static_cast<float>(want);
        const double tol = 1e-6 * std::fabs(std::isinf(want) ? 1 : want) +
                           4e-7 * std::min(8.0, std::fabs(double{v})) + 3e-44;
        ASSERT_TRUE(close(y[i], std::isinf(rounded) ? rounded : want, tol))
            << isa_name(isa) << " act " << k << " at " << v;
      }
    }
}

TEST(Epilogue, prefix_recognised_and_order_kept) {
  const float data[64] = {};
  const EpilogueOp bias = EpilogueOp::add(EpilogueOperand::per_column(data));
  const EpilogueOp add = EpilogueOp::add(EpilogueOperand::full(data, 32));
  const EpilogueOp relu = EpilogueOp::activation(ActKind::kRelu);
  const EpilogueOp scale = EpilogueOp::mul(EpilogueOperand::per_column(data));
  const auto shape = [](const std::vector<EpilogueOp>& ops) {
    const Epilogue e(ops);
    return std::string(e.bias ? "b" : "") + (e.has_add ? "a" : "") + (e.clamp ? "c" : "") +
           std::to_string(e.n_rest);
  };
  EXPECT_EQ(shape({}), "0");
  EXPECT_EQ(shape({bias, add, relu}), "bac0");
  EXPECT_EQ(shape({bias, relu, add}), "bc1");
  EXPECT_EQ(shape({relu, bias}), "c1");
  EXPECT_EQ(shape({scale, bias, relu}), "3");
  EXPECT_EQ(shape({add, scale}), "a1");
  EXPECT_EQ(shape({bias, bias}), "ba0");
}

void add_row_number(const void* context, float* x, int64_t row, int64_t column, int64_t n) {
  const float step = *static_cast<const float*>(context);
  for (int64_t i = 0; i < n; ++i) x[i] += step * static_cast<float>(row * 100 + column + i);
}

// Random-looking lists over a product with batches: each element against the list applied in double.
TEST(Epilogue, lists_on_a_product) {
  const GemmShape s{2, 15, 37, 8};
  const int64_t rows = s.batch * s.m;
  Guarded a(rows * s.k), b(s.k * s.n), bias(s.n), full(rows * s.n), outer(s.batch * s.n), per_row(rows),
      one(1);
  fill(a.data(), a.size(), 1);
  fill(b.data(), b.size(), 2);
  fill(bias.data(), bias.size(), 3);
  fill(full.data(), full.size(), 4);
  fill(outer.data(), outer.size(), 5);
  fill(per_row.data(), per_row.size(), 6);
  one[0] = 0.3F;
  const float step = 0.001F;
  const EpilogueOperand by_row{per_row.data(), INT64_MAX, 0, 1, 0};
  const std::vector<std::vector<EpilogueOp>> lists = {
      {},
      {EpilogueOp::add(EpilogueOperand::per_column(bias.data())),
       EpilogueOp::add(EpilogueOperand::full(full.data(), s.n)),
       EpilogueOp::activation(ActKind::kClip, -0.5F, 0.75F)},
      {EpilogueOp::mul(EpilogueOperand::per_column(bias.data())),
       EpilogueOp::add(EpilogueOperand::scalar(one.data())), EpilogueOp::activation(ActKind::kSigmoid)},
      {EpilogueOp::add(EpilogueOperand::per_outer(outer.data(), s.m, s.n)),
       EpilogueOp::activation(ActKind::kRelu),
       EpilogueOp::mul(EpilogueOperand::per_outer(outer.data(), s.m, s.n)), EpilogueOp::mul(by_row)},
      {EpilogueOp::activation(ActKind::kRelu), EpilogueOp::call(add_row_number, &step),
       EpilogueOp::add(by_row), EpilogueOp::mul(EpilogueOperand::full(full.data(), s.n))}};
  ThreadPool pool(2);
  for (Isa isa : supported_isas())
    for (size_t l = 0; l < lists.size(); ++l) {
      SCOPED_TRACE(std::string(isa_name(isa)) + " list " + std::to_string(l));
      const Gemm gemm(isa, s);
      Guarded pb(packed_b_floats(isa, s.k, s.n)), ws(gemm.workspace_bytes(2) / 4), out(rows * s.n);
      pack_b(isa, b.data(), s.n, false, s.k, s.n, pb.data());
      GemmArgs args;
      args.a = a.data();
      args.lda = s.k;
      args.a_batch = s.m * s.k;
      args.b = pb.data();
      args.c = out.data();
      args.ldc = s.n;
      args.c_batch = s.m * s.n;
      args.epilogue = Epilogue(lists[l]);
      args.workspace = ws.data();
      gemm.run(args, pool);
      out.check("C");
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          double v = 0;
          for (int64_t k = 0; k < s.k; ++k) v += double{a[i * s.k + k]} * double{b[k * s.n + j]};
          for (const EpilogueOp& op : lists[l]) switch (op.kind) {
              case EpilogueOp::Kind::kAdd: v += *op.operand.at(i, j); break;
              case EpilogueOp::Kind::kMul: v *= *op.operand.at(i, j); break;
              case EpilogueOp::Kind::kAct: v = act(op.act, v, op.alpha, op.beta); break;
              case EpilogueOp::Kind::kCallback: v += 0.001 * static_cast<double>(i * 100 + j); break;
            }
          ASSERT_TRUE(close(out[i * s.n + j], v, 1e-5)) << i << "," << j;
        }
    }
}

}  // namespace
}  // namespace hone::cpu
