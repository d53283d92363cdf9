// MatMulInteger ConvInteger QLinearMatMul QLinearConv: integer products, exact in the f64 kernels of MatMul
// and Conv (sums stay below 2^53). Zero points are subtracted first, so that padding means the zero point.
// Source: ONNX, opsets 10 and 21.
#include <algorithm>
#include <cmath>

#include "ops/broadcast.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/quantize.h"
#include "ops/window.h"

namespace hone::ops {
namespace {

/// x - zero_point as f64. `zero` is absent, one number, or broadcasts against x.
Tensor centered(const KernelContext& ctx, const Tensor& x, Tensor zero) {
  Tensor wide = convert(x, DType::kF64);
  if (!zero.defined()) return wide;
  zero = convert(zero, DType::kF64);
  if (zero.numel() == 1) zero = zero.reshaped({});
  const auto shape = broadcast_shapes(wide.shape(), zero.shape());
  if (!shape || *shape != wide.shape())
    ctx.fail("zero point " + zero.type_text() + " does not fit " + x.type_text());
  Tensor y(DType::kF64, wide.shape());
  binary_loop(*shape, wide.shape(), zero.shape(), wide.data<double>(), zero.data<double>(), y.data<double>(),
              [](double a, double b) { return a - b; });
  return y;
}

Tensor optional_input(const KernelContext& ctx, size_t i) { return ctx.has_input(i) ? ctx.in(i) : Tensor(); }

/// A vector with one entry per row of a matrix (the left operand) as a column.
Tensor per_row(Tensor t) {
  return t.defined() && t.rank() == 1 && t.numel() > 1 ? t.reshaped({t.numel(), 1}) : t;
}
/// A vector with one entry per output channel of a filter of this rank.
Tensor per_filter(Tensor t, int rank) {
  if (!t.defined() || t.rank() != 1 || t.numel() == 1) return t;
  Shape shape(static_cast<size_t>(rank), 1);
  shape[0] = t.numel();
  return t.reshaped(shape);
}

Tensor exact(const KernelContext& ctx, const char* op, const AttrMap& attrs, const Tensor& a,
             const Tensor& b) {
  const OpDef* def = find_op("", op);
  return run_op(*def, attrs, {&a, &b}, {DType::kF64}, true, ctx.where)[0];
}

/// Exact integers in f64 to i32, wrapping as a 32-bit accumulator does.
Tensor to_i32(const Tensor& sums) {
  Tensor y(DType::kI32, sums.shape());
  for (int64_t i = 0; i < sums.numel(); ++i)
    y.data<int32_t>()[i] = static_cast<int32_t>(static_cast<int64_t>(sums.data<double>()[i]));
  return y;
}

/// fn(a, b) with b broadcast to a.
template <class F>
Tensor combine(const KernelContext& ctx, const Tensor& a, Tensor b, F fn) {
  b = convert(b, DType::kF64);
  if (b.numel() == 1) b = b.reshaped({});
  const auto shape = broadcast_shapes(a.shape(), b.shape());
  if (!shape || *shape != a.shape())
    ctx.fail("scale or zero point " + b.type_text() + " does not fit the result " + a.type_text());
  Tensor y(DType::kF64, a.shape());
  binary_loop(*shape, a.shape(), b.shape(), a.data<double>(), b.data<double>(), y.data<double>(), fn);
  return y;
}

/// saturate(round_half_even(v) + zero_point) in the output's type; float types are rounded by the conversion.
void requantize(KernelContext& ctx, const Tensor& v, const Tensor& zero) {
  const DType t = ctx.out_dtypes[0];
  if (!is_integer(t)) {
    ctx.set_out(0, convert(combine(ctx, v, zero, [](double a, double z) { return a + z; }), t));
    return;
  }
  const auto [low, high] = integer_range(t);
  const double lo = low, hi = high;
  ctx.set_out(0, convert(combine(ctx, v, zero,
                                 [lo, hi](double a, double z) {
                                   return std::clamp((a == a ? std::nearbyint(a) : 0.0) + z, lo, hi);
                                 }),
                         t));
}

// --- inference: the shapes of MatMul and Conv ---

void infer_matmul_shape(InferContext& ctx, size_t a_index, size_t b_index, DType t) {
  if (!ctx.has_shape(a_index) || !ctx.has_shape(b_index)) {
    ctx.set_output(0, t, std::nullopt);
    return;
  }
  Dims a = ctx.shape(a_index), b = ctx.shape(b_index);
  if (a.empty() || b.empty()) ctx.fail("operands must not be scalars");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  const Dim &k = a.back(), &l = b[b.size() - 2];
  if (k.is_const() && l.is_const() && !(k == l))
    ctx.fail("inner dimensions differ: " + ctx.input(a_index).text() + " and " + ctx.input(b_index).text());
  Dims out = ctx.broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(b.back());
  ctx.set_output(0, t, std::move(out));
}

void infer_conv_shape(InferContext& ctx, size_t x_index, size_t w_index, DType t) {
  if (!ctx.has_shape(x_index) || !ctx.has_shape(w_index)) {
    ctx.set_output(0, t, std::nullopt);
    return;
  }
  const Dims &x = ctx.shape(x_index), &w = ctx.shape(w_index);
  if (x.size() != w.size() || x.size() < 3) ctx.fail("data and filter must have one rank of at least 3");
  const auto kernel = ir::const_dims(Dims(w.begin() + 2, w.end()));
  if (!kernel) {
    ctx.set_output(0, t, unknown_dims(ctx, x.size()));
    return;
  }
  const Window window = read_window(ctx.node().attrs, static_cast<int>(kernel->size()), *kernel, failer(ctx));
  ctx.set_output(0, t, window_dims(window, x, w[0]));
}

// --- kernels ---

void matmul_integer_kernel(KernelContext& ctx) {
  const Tensor a = centered(ctx, ctx.in(0), per_row(optional_input(ctx, 2))),
               b = centered(ctx, ctx.in(1), optional_input(ctx, 3));
  ctx.set_out(0, to_i32(exact(ctx, "MatMul", {}, a, b)));
}

void conv_integer_kernel(KernelContext& ctx) {
  const Tensor x = centered(ctx, ctx.in(0), optional_input(ctx, 2)),
               w = centered(ctx, ctx.in(1), per_filter(optional_input(ctx, 3), ctx.in(1).rank()));
  ctx.set_out(0, to_i32(exact(ctx, "Conv", ctx.attrs, x, w)));
}

void qlinear_matmul_kernel(KernelContext& ctx) {
  const Tensor a = centered(ctx, ctx.in(0), per_row(ctx.in(2))), b = centered(ctx, ctx.in(3), ctx.in(5));
  Tensor v = exact(ctx, "MatMul", {}, a, b);
  const auto times = [](double p, double q) { return p * q; };
  v = combine(ctx, v, per_row(ctx.in(1)), times);
  v = combine(ctx, v, ctx.in(4), times);
  v = combine(ctx, v, per_row(ctx.in(6)), [](double p, double q) { return p / q; });
  requantize(ctx, v, per_row(ctx.in(7)));
}

void qlinear_conv_kernel(KernelContext& ctx) {
  const int rank = ctx.in(3).rank();
  const Tensor x = centered(ctx, ctx.in(0), ctx.in(2)),
               w = centered(ctx, ctx.in(3), per_filter(ctx.in(5), rank));
  Tensor v = exact(ctx, "Conv", ctx.attrs, x, w);
  Shape channel(v.shape().size(), 1);
  channel[1] = v.dim(1);
  if (ctx.has_input(8))
    v = combine(ctx, v, ctx.in(8).reshaped(channel), [](double p, double q) { return p + q; });
  const auto times = [](double p, double q) { return p * q; };
  v = combine(ctx, v, ctx.in(1), times);
  v = combine(ctx, v, ctx.in(4).numel() > 1 ? ctx.in(4).reshaped(channel) : ctx.in(4), times);
  v = combine(ctx, v, ctx.in(6), [](double p, double q) { return p / q; });
  requantize(ctx, v, ctx.in(7));
}

Cost matmul_cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost cost;
  if (inputs.empty() || inputs[0].empty() || outputs.empty()) return cost;
  cost.flops = 2.0 * static_cast<double>(numel(outputs[0])) * static_cast<double>(inputs[0].back());
  return cost;
}

/// `filter` is the position of the weights among the inputs.
template <size_t filter>
Cost conv_cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost cost;
  if (inputs.size() <= filter || inputs[filter].size() < 2 || outputs.empty()) return cost;
  cost.flops = 2.0 * static_cast<double>(numel(outputs[0])) *
               static_cast<double>(numel(Shape(inputs[filter].begin() + 1, inputs[filter].end())));
  return cost;
}

}  // namespace

const OpDef& op_MatMulInteger() {
  static const OpDef def{.name = "MatMulInteger",
                         .infer = [](InferContext& ctx) { infer_matmul_shape(ctx, 0, 1, DType::kI32); },
                         .kernel = matmul_integer_kernel,
                         .cost = matmul_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_ConvInteger() {
  static const OpDef def{.name = "ConvInteger",
                         .infer = [](InferContext& ctx) { infer_conv_shape(ctx, 0, 1, DType::kI32); },
                         .kernel = conv_integer_kernel,
                         .cost = conv_cost<1>,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_QLinearMatMul() {
  static const OpDef def{.name = "QLinearMatMul",
                         .infer = [](InferContext& ctx) { infer_matmul_shape(ctx, 0, 3, ctx.dtype(7)); },
                         .kernel = qlinear_matmul_kernel,
                         .cost = matmul_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_QLinearConv() {
  static const OpDef def{.name = "QLinearConv",
                         .infer = [](InferContext& ctx) { infer_conv_shape(ctx, 0, 3, ctx.dtype(7)); },
                         .kernel = qlinear_conv_kernel,
                         .cost = conv_cost<3>,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
