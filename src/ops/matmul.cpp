// MatMul: NumPy's matmul. Gemm: Y = alpha * A' * B' + beta * C with unidirectional broadcast of C.
// Gemm-1 and -6 have a `broadcast` flag for C, which 7 made the rule; Gemm before 11 requires C.
#include <algorithm>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

// --- MatMul ---

void infer_matmul(InferContext& ctx) {
  if (!ctx.has_shape(0) || !ctx.has_shape(1)) return ctx.set_output(0, ctx.dtype(0), std::nullopt);
  Dims a = ctx.shape(0), b = ctx.shape(1);
  if (a.empty() || b.empty())
    ctx.fail("a scalar is no matrix: A " + ctx.input(0).text() + ", B " + ctx.input(1).text());
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.emplace_back(1);
  const Dim ka = a.back(), kb = b[b.size() - 2];
  if (ka.is_const() && kb.is_const() && !(ka == kb))
    ctx.fail("inner dimensions differ: A " + ctx.input(0).text() + ", B " + ctx.input(1).text());
  Dims out = ctx.broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  ctx.set_output(0, ctx.dtype(0), out);
}

/// Batched product of matrices in wrapping integers.
template <class T>
void integer_matmul(const T* a, const T* b, T* y, int64_t m, int64_t n, int64_t k, int64_t sa_m, int64_t sa_k,
                    int64_t sb_k, int64_t sb_n) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum = wrap_add<T>(sum, wrap_mul<T>(a[i * sa_m + p * sa_k], b[p * sb_k + j * sb_n]));
      y[i * n + j] = sum;
    }
  }
}

void kernel_matmul(KernelContext& ctx) {
  Shape a = ctx.in(0).shape(), b = ctx.in(1).shape();
  if (a.empty() || b.empty()) ctx.fail("a scalar is no matrix");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  const int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  const Shape lead_a(a.begin(), a.end() - 2), lead_b(b.begin(), b.end() - 2);
  const auto lead = broadcast_shapes(lead_a, lead_b);
  if (b[b.size() - 2] != k || !lead)
    ctx.fail("A " + ctx.in(0).type_text() + " and B " + ctx.in(1).type_text() + " do not fit");
  Shape shape = *lead;
  if (!row) shape.push_back(m);
  if (!column) shape.push_back(n);
  Tensor& out = ctx.out(0, shape);

  // Offsets of the matrices of each batch.
  std::vector<int64_t> at_a, at_b;
  const int64_t batch = numel(*lead);
  const BroadcastLoop<2> loop(*lead, {&lead_a, &lead_b});
  loop.each_row([&](int64_t, const std::array<int64_t, 2>& off) {
    for (int64_t i = 0; i < loop.inner(); ++i) {
      at_a.push_back((off[0] + (loop.steps(0) ? i : 0)) * m * k);
      at_b.push_back((off[1] + (loop.steps(1) ? i : 0)) * k * n);
    }
  });

  const DType t = ctx.in(0).dtype();
  const bool is_float_type = dispatch_float(t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* pa = ctx.in(0).data<T>();
    const T* pb = ctx.in(1).data<T>();
    T* py = out.data<T>();
    RefGemm g;
    g.batch = batch;
    g.m = m;
    g.n = n;
    g.k = k;
    g.pack_a = [=, &at_a](int64_t i, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst,
                          int64_t width) {
      pack_strided(pa + at_a[static_cast<size_t>(i)] + i0 * k + p0, 1, k, rows, kc, dst, width);
    };
    g.pack_b = [=, &at_b](int64_t i, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst,
                          int64_t width) {
      pack_strided(pb + at_b[static_cast<size_t>(i)] + p0 * n + j0, n, 1, cols, kc, dst, width);
    };
    g.store = [=](int64_t i, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc,
                  int64_t ld) {
      for (int64_t r = 0; r < rows; ++r) {
        T* y = py + (i * m + i0 + r) * n + j0;
        for (int64_t c = 0; c < cols; ++c) y[c] = static_cast<T>(acc[r * ld + c]);
      }
    };
    ref_gemm(g);
  });
  if (is_float_type) return;
  integer_or_throw(ctx, t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < batch; ++i) {
      integer_matmul(ctx.in(0).data<T>() + at_a[static_cast<size_t>(i)],
                     ctx.in(1).data<T>() + at_b[static_cast<size_t>(i)], out.data<T>() + i * m * n, m, n, k,
                     k, int64_t{1}, n, int64_t{1});
    }
  });
}

Cost cost_matmul(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost c;
  if (inputs.empty() || inputs[0].empty() || outputs.empty()) return c;
  c.flops = 2.0 * static_cast<double>(inputs[0].back()) * static_cast<double>(numel(outputs[0]));
  return c;
}

// --- Gemm ---

void infer_gemm(InferContext& ctx) {
  const bool ta = ctx.node().get_int("transA", 0) != 0, tb = ctx.node().get_int("transB", 0) != 0;
  for (size_t i = 0; i < 2; ++i) {
    if (ctx.has_shape(i) && ctx.shape(i).size() != 2)
      ctx.fail(std::string(i == 0 ? "A" : "B") + " must be a matrix, is " + ctx.input(i).text());
  }
  if (!ctx.has_shape(0) || !ctx.has_shape(1)) {
    const Dim m = ctx.has_shape(0) ? ctx.shape(0)[ta ? 1 : 0] : ctx.fresh_symbol();
    const Dim n = ctx.has_shape(1) ? ctx.shape(1)[tb ? 0 : 1] : ctx.fresh_symbol();
    return ctx.set_output(0, ctx.dtype(0), Dims{m, n});
  }
  const Dim ka = ctx.shape(0)[ta ? 0 : 1], kb = ctx.shape(1)[tb ? 1 : 0];
  if (ka.is_const() && kb.is_const() && !(ka == kb)) {
    ctx.fail("inner dimensions differ: A " + ctx.input(0).text() + (ta ? " transposed" : "") + ", B " +
             ctx.input(1).text() + (tb ? " transposed" : ""));
  }
  const Dims out = {ctx.shape(0)[ta ? 1 : 0], ctx.shape(1)[tb ? 0 : 1]};
  if (ctx.has_shape(2)) {
    const Dims& c = ctx.shape(2);
    bool fits = c.size() <= 2;
    for (size_t i = 0; fits && i < c.size(); ++i) {
      const Dim &have = c[c.size() - 1 - i], &want = out[1 - i];
      fits = !have.is_const() || have.value() == 1 || !want.is_const() || have.value() == want.value();
    }
    if (!fits) ctx.fail("C " + ctx.input(2).text() + " does not broadcast to " + ir::dims_text(out));
  }
  ctx.set_output(0, ctx.dtype(0), out);
}

void kernel_gemm(KernelContext& ctx) {
  const Tensor &a = ctx.in(0), &b = ctx.in(1);
  const bool ta = ctx.get_int("transA", 0) != 0, tb = ctx.get_int("transB", 0) != 0;
  const double alpha = ctx.get_float("alpha", 1.0F), beta = ctx.get_float("beta", 1.0F);
  if (a.rank() != 2 || b.rank() != 2) ctx.fail("A and B must be matrices");
  const int64_t m = a.dim(ta ? 1 : 0), k = a.dim(ta ? 0 : 1), n = b.dim(tb ? 0 : 1);
  if (b.dim(tb ? 1 : 0) != k)
    ctx.fail("inner dimensions of A " + a.type_text() + " and B " + b.type_text() + " differ");
  const Shape shape = {m, n};
  int64_t sc_m = 0, sc_n = 0;
  if (ctx.has_input(2)) {
    const Shape& c = ctx.in(2).shape();
    const auto merged = broadcast_shapes(c, shape);
    if (!merged || *merged != shape)
      ctx.fail("C " + ctx.in(2).type_text() + " does not broadcast to " + type_text(a.dtype(), shape));
    const std::vector<int64_t> s = broadcast_strides(c, shape);
    sc_m = s[0];
    sc_n = s[1];
  }
  const int64_t sa_m = ta ? 1 : k, sa_k = ta ? m : 1, sb_k = tb ? 1 : n, sb_n = tb ? k : 1;
  Tensor& out = ctx.out(0, shape);
  const bool is_float_type = dispatch_float(a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* pa = a.data<T>();
    const T* pb = b.data<T>();
    const T* pc = ctx.has_input(2) ? ctx.in(2).data<T>() : nullptr;
    T* py = out.data<T>();
    RefGemm g;
    g.m = m;
    g.n = n;
    g.k = k;
    g.pack_a = [=](int64_t, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width) {
      pack_strided(pa + i0 * sa_m + p0 * sa_k, sa_k, sa_m, rows, kc, dst, width);
    };
    g.pack_b = [=](int64_t, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst, int64_t width) {
      pack_strided(pb + p0 * sb_k + j0 * sb_n, sb_k, sb_n, cols, kc, dst, width);
    };
    g.store = [=](int64_t, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc,
                  int64_t ld) {
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < cols; ++c) {
          double v = alpha * acc[r * ld + c];
          if (pc != nullptr) v += beta * static_cast<double>(pc[(i0 + r) * sc_m + (j0 + c) * sc_n]);
          py[(i0 + r) * n + j0 + c] = static_cast<T>(v);
        }
      }
    };
    ref_gemm(g);
  });
  if (is_float_type) return;
  integer_or_throw(ctx, a.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = out.data<T>();
    integer_matmul(a.data<T>(), b.data<T>(), y, m, n, k, sa_m, sa_k, sb_k, sb_n);
    const T* c = ctx.has_input(2) ? ctx.in(2).data<T>() : nullptr;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T& v = y[i * n + j];
        const T add = c != nullptr ? c[i * sc_m + j * sc_n] : T{0};
        v = alpha == 1 && beta == 1
                ? wrap_add<T>(v, add)
                : from_double<T>(alpha * static_cast<double>(v) + beta * static_cast<double>(add));
      }
    }
  });
}

void adapt_gemm(AdaptContext& ctx) { ctx.node.attrs.erase("broadcast"); }

Cost cost_gemm(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost c;
  if (inputs.empty() || inputs[0].size() != 2 || outputs.empty()) return c;
  c.flops = 2.0 * static_cast<double>(inputs[0][ir::attr_int(attrs, "transA", 0) != 0 ? 0 : 1]) *
            static_cast<double>(numel(outputs[0]));
  return c;
}

}  // namespace

const OpDef& op_MatMul() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "MatMul";
    d.infer = infer_matmul;
    d.kernel = kernel_matmul;
    d.cost = cost_matmul;
    return d;
  }();
  return def;
}

const OpDef& op_Gemm() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "Gemm";
    d.infer = infer_gemm;
    d.kernel = kernel_gemm;
    d.adapt = adapt_gemm;
    d.cost = cost_gemm;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
