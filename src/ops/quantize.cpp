// QuantizeLinear DequantizeLinear DynamicQuantizeLinear. Source: ONNX, opset 28.
//
// Math: y = saturate(round_half_even(x / scale) + zero_point), division rounded to the scale's type (or
// `precision`); back: y = (x - zero_point) * scale, rounded once. NaN quantises to the zero point of an
// integer type. Scales are one number, one per index of an axis, or one per block of `block_size` along it.
// The oracle neither rounds the quotient nor float results.
#include "ops/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/float16.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"

namespace hone::ops {
namespace {

/// x seen as [outer, extent, inner] around the quantised axis; which scale an element has.
struct Granularity {
  int64_t outer = 1, extent = 1, inner = 1;
  int64_t block = 0;   ///< 0: one scale an index of the axis
  int64_t scales = 0;  ///< scales along the axis; 0: one for everything
  int64_t at(int64_t o, int64_t a, int64_t i) const {
    return scales == 0 ? 0 : block == 0 ? a : (o * scales + a / block) * inner + i;
  }
};

Granularity granularity(const KernelContext& ctx, const Tensor& x, const Tensor& scale) {
  Granularity g;
  const int64_t block = ctx.get_int("block_size", 0);
  if (block < 0) ctx.fail("block_size is negative");
  if (scale.rank() == 0 || (scale.numel() == 1 && block == 0 && scale.rank() <= 1)) {
    g.extent = x.numel();
    return g;
  }
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", 1), x.rank()));
  const Shape& s = x.shape();
  g.outer = numel(Shape(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(axis)));
  g.extent = s[axis];
  g.inner = numel(Shape(s.begin() + static_cast<std::ptrdiff_t>(axis) + 1, s.end()));
  if (block == 0) {
    if (scale.rank() != 1 || scale.dim(0) != g.extent)
      ctx.fail("scale " + scale.type_text() + " does not fit axis " + std::to_string(axis) + " of " +
               x.type_text());
    g.scales = g.extent;
    return g;
  }
  Shape expected = s;
  expected[axis] = scale.rank() == x.rank() ? scale.shape()[axis] : 0;
  if (scale.shape() != expected || expected[axis] < 1 || (g.extent + block - 1) / block != expected[axis]) {
    ctx.fail("scale " + scale.type_text() + " does not fit blocks of " + std::to_string(block) + " of " +
             x.type_text());
  }
  g.block = block;
  g.scales = expected[axis];
  return g;
}

template <class F>
void each_element(const Granularity& g, F fn) {
  int64_t k = 0;
  for (int64_t o = 0; o < g.outer; ++o) {
    for (int64_t a = 0; a < g.extent; ++a) {
      for (int64_t i = 0; i < g.inner; ++i, ++k) fn(k, g.at(o, a, i));
    }
  }
}

Tensor zero_point_of(const KernelContext& ctx, size_t i, const Tensor& scale) {
  if (!ctx.has_input(i)) return {};
  if (ctx.in(i).numel() != scale.numel())
    ctx.fail("zero point " + ctx.in(i).type_text() + " and scale " + scale.type_text() + " differ in shape");
  return convert(ctx.in(i), DType::kF64);
}

DType quantized_dtype(const InferContext& ctx) {
  const int64_t asked = ctx.node().get_int("output_dtype", 0);
  const DType zero = ctx.dtype(2);
  if (asked != 0 && zero != DType::kUndefined && static_cast<DType>(asked) != zero)
    ctx.fail("output_dtype differs from the zero point's type");
  if (asked != 0) return checked_dtype(ctx, asked);
  return ctx.has_input(2) ? zero : DType::kU8;
}

void quantize_infer(InferContext& ctx) { ctx.set_output(0, quantized_dtype(ctx), ctx.input(0).shape); }

void quantize_kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &scale = ctx.in(1);
  const Granularity g = granularity(ctx, x, scale);
  const int64_t asked = ctx.get_int("precision", 0);
  const DType precision = ctx.oracle ? DType::kF64 : asked != 0 ? static_cast<DType>(asked) : scale.dtype();
  const Tensor wide = convert(convert(x, precision), DType::kF64),
               scales = convert(convert(scale, precision), DType::kF64);
  const Tensor zero = zero_point_of(ctx, 2, scale);
  const double *src = wide.data<double>(), *s = scales.data<double>(),
               *z = zero.defined() ? zero.data<double>() : nullptr;
  const DType t = ctx.out_dtypes[0];
  const bool saturate = ctx.get_int("saturate", 1) != 0;

  Tensor values(DType::kF64, x.shape());
  double* dst = values.data<double>();
  if (is_integer(t)) {
    const auto [low, high] = integer_range(t);
    each_element(g, [&](int64_t k, int64_t p) {
      const double q = round_to(precision, src[k] / s[p]);
      const double v = (q == q ? std::nearbyint(q) : 0.0) + (z != nullptr ? z[p] : 0.0);
      dst[k] = std::clamp(v, low, high);
    });
    ctx.set_out(0, convert(values, t));
    return;
  }
  each_element(g, [&](int64_t k, int64_t p) {
    dst[k] = round_to(precision, src[k] / s[p]) + (z != nullptr ? z[p] : 0.0);
  });
  if (saturate || is_float(t) == false || dtype_bits(t) != 8) {
    ctx.set_out(0, convert(values, t));
    return;
  }
  uint8_t (*encode)(double, bool) = t == DType::kF8E4M3FN     ? to_f8e4m3fn
                                    : t == DType::kF8E4M3FNUZ ? to_f8e4m3fnuz
                                    : t == DType::kF8E5M2     ? to_f8e5m2
                                                              : to_f8e5m2fnuz;
  Tensor& y = ctx.out(0, t, x.shape());
  for (int64_t i = 0; i < values.numel(); ++i) y.data<uint8_t>()[i] = encode(dst[i], false);
}

void dequantize_infer(InferContext& ctx) {
  const int64_t asked = ctx.node().get_int("output_dtype", 0);
  ctx.set_output(0, asked != 0 ? checked_dtype(ctx, asked) : ctx.dtype(1), ctx.input(0).shape);
}

void dequantize_kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &scale = ctx.in(1);
  const Granularity g = granularity(ctx, x, scale);
  const Tensor wide = convert(x, DType::kF64), scales = convert(scale, DType::kF64),
               zero = zero_point_of(ctx, 2, scale);
  const double *src = wide.data<double>(), *s = scales.data<double>(),
               *z = zero.defined() ? zero.data<double>() : nullptr;
  Tensor values(DType::kF64, x.shape());
  double* dst = values.data<double>();
  each_element(g, [&](int64_t k, int64_t p) { dst[k] = (src[k] - (z != nullptr ? z[p] : 0.0)) * s[p]; });
  ctx.set_out(0, convert(values, ctx.out_dtypes[0]));
}

// --- DynamicQuantizeLinear: u8 over the range of the data and 0; constant zero data has scale 1 ---

void dynamic_infer(InferContext& ctx) {
  ctx.set_output(0, DType::kU8, ctx.input(0).shape);
  ctx.set_output(1, DType::kF32, Dims{});
  ctx.set_output(2, DType::kU8, Dims{});
}

void dynamic_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const DType precision = ctx.oracle ? DType::kF64 : DType::kF32;
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* src = x.data<T>();
    T low = 0, high = 0;
    for (int64_t i = 0; i < x.numel(); ++i) {
      low = src[i] < low ? src[i] : low;
      high = src[i] > high ? src[i] : high;
    }
    const double span = round_to(precision, static_cast<double>(high) - static_cast<double>(low));
    const double scale = span == 0 ? 1.0 : round_to(precision, span / 255);
    const double zero =
        std::clamp(std::nearbyint(round_to(precision, -static_cast<double>(low) / scale)), 0.0, 255.0);
    Tensor& y = ctx.out(0, DType::kU8, x.shape());
    auto* dst = y.data<uint8_t>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const double q = std::nearbyint(round_to(precision, static_cast<double>(src[i]) / scale));
      dst[i] = static_cast<uint8_t>(std::clamp((q == q ? q : 0.0) + zero, 0.0, 255.0));
    }
    ctx.set_out(1, convert(Tensor::of<double>(DType::kF64, {}, {scale}), precision));
    *ctx.out(2, DType::kU8, {}).template data<uint8_t>() = static_cast<uint8_t>(zero);
  });
}

OpDef quantize_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
                  NarrowFloats narrow) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.cost = elementwise_cost;
  def.narrow = narrow;
  return def;
}

}  // namespace

std::pair<double, double> integer_range(DType t) {
  const int bits = dtype_bits(t);
  if (is_signed_integer(t)) return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1) - 1};
  return {0.0, std::ldexp(1.0, bits) - 1};
}

double round_to(DType t, double x) {
  switch (t) {
    case DType::kF32: return static_cast<double>(static_cast<float>(x));
    case DType::kF16: return static_cast<double>(f16_to_f32(f64_to_f16(x)));
    case DType::kBF16: return static_cast<double>(bf16_to_f32(f64_to_bf16(x)));
    default: return x;
  }
}

const OpDef& op_QuantizeLinear() {
  static const OpDef def =
      quantize_op("QuantizeLinear", quantize_infer, quantize_kernel, NarrowFloats::kNative);
  return def;
}

const OpDef& op_DequantizeLinear() {
  static const OpDef def =
      quantize_op("DequantizeLinear", dequantize_infer, dequantize_kernel, NarrowFloats::kNative);
  return def;
}

const OpDef& op_DynamicQuantizeLinear() {
  static const OpDef def =
      quantize_op("DynamicQuantizeLinear", dynamic_infer, dynamic_kernel, NarrowFloats::kWiden);
  return def;
}

}  // namespace hone::ops
