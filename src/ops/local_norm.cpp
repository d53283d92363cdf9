// LRN, LpNormalization, MeanVarianceNormalization. Older versions mean the same.
#include <algorithm>
#include <cmath>

#include "ops/axis_view.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = 8.0 * static_cast<double>(numel(inputs[0]));
  return c;
}

// --- LRN: Y = X / (bias + alpha / size * sum of squares over neighbouring channels)^beta ---

void infer_lrn(InferContext& ctx) {
  infer_same(ctx);
  if (ctx.node().get_int("size", 0) < 1) ctx.fail("attribute 'size' must be at least 1");
  if (ctx.has_shape(0) && ctx.shape(0).size() < 2) ctx.fail("input X needs at least N and C");
}

void kernel_lrn(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const int64_t size = ctx.get_int("size", 0);
  if (size < 1 || x.rank() < 2) ctx.fail("attribute 'size' must be at least 1, input X needs N and C");
  const double alpha = ctx.get_float("alpha", 1e-4F), beta = ctx.get_float("beta", 0.75F),
               bias = ctx.get_float("bias", 1.0F);
  const AxisView v(x.shape(), 1);
  Tensor& out = ctx.out(0, x.shape());
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xp = x.data<T>();
    T* yp = out.data<T>();
    ref_parallel(v.outer * v.n, static_cast<double>(v.inner * size), [&](int64_t row) {
      const int64_t c = row % v.n, first = row - c;
      const int64_t low = std::max<int64_t>(0, c - (size - 1) / 2),
                    high = std::min<int64_t>(v.n - 1, c + size / 2);  // ceil((size-1)/2)
      for (int64_t k = 0; k < v.inner; ++k) {
        double sum = 0;
        for (int64_t i = low; i <= high; ++i) {
          const auto e = static_cast<double>(xp[(first + i) * v.inner + k]);
          sum += e * e;
        }
        yp[row * v.inner + k] =
            static_cast<T>(static_cast<double>(xp[row * v.inner + k]) /
                           std::pow(bias + alpha / static_cast<double>(size) * sum, beta));
      }
    });
  });
}

// --- LpNormalization: x / |x|_p along an axis; 0 where the norm is 0 ---

void infer_lp(InferContext& ctx) {
  infer_same(ctx);
  const int64_t p = ctx.node().get_int("p", 2);
  if (p != 1 && p != 2) ctx.fail("attribute 'p' is " + std::to_string(p) + ", must be 1 or 2");
  if (ctx.has_shape(0)) ctx.axis(ctx.node().get_int("axis", -1), static_cast<int>(ctx.shape(0).size()));
}

void kernel_lp(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const int64_t p = ctx.get_int("p", 2);
  if (p != 1 && p != 2) ctx.fail("attribute 'p' is " + std::to_string(p) + ", must be 1 or 2");
  const AxisView v(x.shape(), ctx.axis(ctx.get_int("axis", -1), x.rank()));
  Tensor& out = ctx.out(0, x.shape());
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ref_parallel(v.outer, static_cast<double>(v.n * v.inner), [&](int64_t o) {
      const T* xp = x.data<T>() + o * v.n * v.inner;
      T* yp = out.data<T>() + o * v.n * v.inner;
      for (int64_t k = 0; k < v.inner; ++k) {
        double sum = 0;
        for (int64_t i = 0; i < v.n; ++i) {
          const auto e = static_cast<double>(xp[i * v.inner + k]);
          sum += p == 1 ? std::fabs(e) : e * e;
        }
        const double norm = p == 1 ? sum : std::sqrt(sum);
        for (int64_t i = 0; i < v.n; ++i) {
          yp[i * v.inner + k] =
              static_cast<T>(norm == 0 ? 0.0 : static_cast<double>(xp[i * v.inner + k]) / norm);
        }
      }
    });
  });
}

// --- MeanVarianceNormalization: (X - mean) / (sqrt(var) + 1e-9), as the operator's function body has it ---

void infer_mvn(InferContext& ctx) {
  infer_same(ctx);
  if (ctx.has_shape(0))
    ctx.axes(ctx.node().get_ints("axes", {0, 2, 3}), static_cast<int>(ctx.shape(0).size()));
}

void kernel_mvn(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  std::vector<bool> reduced(x.shape().size(), false);
  for (const int64_t a : ctx.get_ints("axes", {0, 2, 3}))
    reduced[static_cast<size_t>(ctx.axis(a, x.rank()))] = true;
  const ReduceView v(x.shape(), reduced);
  Tensor& out = ctx.out(0, x.shape());
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xp = x.data<T>();
    T* yp = out.data<T>();
    ref_parallel(v.outputs(), static_cast<double>(3 * v.count()), [&](int64_t i) {
      const int64_t base = v.base(i), n = v.count();
      double mean = 0, squares = 0;
      for (int64_t j = 0; j < n; ++j) mean += static_cast<double>(xp[base + v.offset(j)]);
      mean /= static_cast<double>(n);
      for (int64_t j = 0; j < n; ++j) {
        const double d = static_cast<double>(xp[base + v.offset(j)]) - mean;
        squares += d * d;
      }
      const double deviation = std::sqrt(squares / static_cast<double>(n)) + 1e-9;
      for (int64_t j = 0; j < n; ++j)
        yp[base + v.offset(j)] =
            static_cast<T>((static_cast<double>(xp[base + v.offset(j)]) - mean) / deviation);
    });
  });
}

OpDef make(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&)) {
  OpDef d;
  d.name = name;
  d.infer = infer;
  d.kernel = kernel;
  d.cost = cost;
  return d;
}

}  // namespace

const OpDef& op_LRN() {
  static const OpDef def = make("LRN", infer_lrn, kernel_lrn);
  return def;
}
const OpDef& op_LpNormalization() {
  static const OpDef def = make("LpNormalization", infer_lp, kernel_lp);
  return def;
}
const OpDef& op_MeanVarianceNormalization() {
  static const OpDef def = make("MeanVarianceNormalization", infer_mvn, kernel_mvn);
  return def;
}

}  // namespace hone::ops
