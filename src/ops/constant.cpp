// Operators that make tensors from attributes or sizes: Constant ConstantOfShape Range EyeLike. Source: ONNX,
// opsets up to 28.
#include <cmath>
#include <cstring>

#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

Cost no_cost(const AttrMap&, std::span<const Shape>, std::span<const Shape>) { return {}; }

// --- Constant ---

/// The value of a Constant node; undefined when it holds strings or a sparse tensor.
Tensor constant_value(const AttrMap& attrs) {
  if (const Tensor* t = ir::attr_tensor(attrs, "value")) return *t;
  if (attrs.contains("value_float")) return Tensor::f32_scalar(ir::attr_float(attrs, "value_float", 0));
  if (attrs.contains("value_int")) return Tensor::i64_scalar(ir::attr_int(attrs, "value_int", 0));
  if (attrs.contains("value_ints")) return Tensor::i64_vector(ir::attr_ints(attrs, "value_ints"));
  if (attrs.contains("value_floats")) {
    const std::vector<float> v = ir::attr_floats(attrs, "value_floats");
    return Tensor::of<float>(DType::kF32, {static_cast<int64_t>(v.size())}, v);
  }
  return {};
}

void constant_infer(InferContext& ctx) {
  const Tensor t = constant_value(ctx.node().attrs);
  if (!t.defined()) ctx.fail("a constant of strings or a sparse tensor, or none at all");
  ctx.set_output(0, t.dtype(), ir::to_dims(t.shape()));
  if (follows_contents(t.dtype()) && t.numel() <= static_cast<int64_t>(InferContext::kMaxContents)) {
    ctx.set_contents(0, ir::to_dims(t.to_i64()));
  }
}

void constant_kernel(KernelContext& ctx) {
  const Tensor t = constant_value(ctx.attrs);
  if (!t.defined()) ctx.fail("a constant of strings or a sparse tensor, or none at all");
  ctx.set_out(0, ctx.oracle && is_float(t.dtype()) ? convert(t, DType::kF64) : t);
}

// --- ConstantOfShape ---

Tensor fill_value(const AttrMap& attrs) {
  const Tensor* t = ir::attr_tensor(attrs, "value");
  return t != nullptr ? *t : Tensor::f32_scalar(0);
}

void constant_of_shape_infer(InferContext& ctx) {
  const Tensor value = fill_value(ctx.node().attrs);
  if (value.numel() != 1) ctx.fail("value must have one element, not " + value.type_text());
  const auto shape = ctx.contents(0);
  if (!shape) {
    const auto rank = vector_length(ctx, 0);
    ctx.set_output(0, value.dtype(),
                   rank ? std::optional<Dims>(unknown_dims(ctx, static_cast<size_t>(*rank))) : std::nullopt);
    return;
  }
  for (const Dim& d : *shape) {
    if (d.is_const() && d.value() < 0) ctx.fail("negative dimension in shape " + ir::dims_text(*shape));
  }
  ctx.set_output(0, value.dtype(), *shape);
  if (!follows_contents(value.dtype())) return;
  const Dim count = ir::product(*shape);
  if (count.is_const() && count.value() <= static_cast<int64_t>(InferContext::kMaxContents)) {
    ctx.set_contents(0, Dims(static_cast<size_t>(count.value()), Dim(value.to_i64()[0])));
  }
}

void constant_of_shape_kernel(KernelContext& ctx) {
  const Shape shape = input_ints(ctx, 0);
  const Tensor value = convert(fill_value(ctx.attrs), ctx.out_dtypes[0]);
  if (value.numel() != 1) ctx.fail("value must have one element, not " + value.type_text());
  check_budget(ctx, value.dtype(), shape);
  Tensor& y = ctx.out(0, value.dtype(), shape);
  const int bits = dtype_bits(value.dtype());
  if (bits >= 8) {
    fill_elements(y.raw(), value.raw(), y.numel(), bits / 8);
    return;
  }
  unsigned byte = 0;
  for (int at = 0; at < 8; at += bits) byte |= (*value.data<uint8_t>() & ((1U << bits) - 1)) << at;
  if (y.nbytes() > 0) std::memset(y.raw(), static_cast<int>(byte), static_cast<size_t>(y.nbytes()));
}

// --- Range ---

void range_infer(InferContext& ctx) {
  const DType t = ctx.dtype(0);
  const Tensor *start = ctx.constant(0), *limit = ctx.constant(1), *delta = ctx.constant(2);
  if (is_float(t)) {
    if (start == nullptr || limit == nullptr || delta == nullptr || start->numel() != 1 ||
        limit->numel() != 1 || delta->numel() != 1) {
      ctx.set_output(0, t, Dims{ctx.fresh_symbol()});
      return;
    }
    const double n = std::ceil((limit->at(0) - start->at(0)) / delta->at(0));
    if (!(std::fabs(n) < 9e15)) ctx.fail("start, limit and delta give no finite number of elements");
    ctx.set_output(0, t, Dims{static_cast<int64_t>(std::max(0.0, n))});
    return;
  }
  const auto s = ctx.contents(0), e = ctx.contents(1), d = ctx.contents(2);
  if (!s || !e || !d || s->size() != 1 || e->size() != 1 || d->size() != 1 || !(*d)[0].is_const()) {
    ctx.set_output(0, t, Dims{ctx.fresh_symbol()});
    return;
  }
  const int64_t step = (*d)[0].value();
  if (step == 0) ctx.fail("delta is 0");
  if (step == INT64_MIN) ctx.fail("delta is out of range");
  Dim count;
  try {
    const Dim span = step < 0 ? (*s)[0] - (*e)[0] : (*e)[0] - (*s)[0];
    count = Dim::ceildiv(span, Dim(step < 0 ? -step : step));
  } catch (const Error&) {  // the span of 64-bit integers has 65 bits
    ctx.set_output(0, t, Dims{ctx.fresh_symbol()});
    return;
  }
  if (!provably_nonneg(count)) count = Dim::max(Dim(0), count);
  ctx.set_output(0, t, Dims{count});
  if (!count.is_const() || count.value() > static_cast<int64_t>(InferContext::kMaxContents) ||
      !follows_contents(t))
    return;
  Dims values;
  for (int64_t i = 0; i < count.value(); ++i) values.push_back((*s)[0] + Dim(i) * Dim(step));
  ctx.set_contents(0, std::move(values));
}

void range_kernel(KernelContext& ctx) {
  const DType t = ctx.in(0).dtype();
  for (size_t i = 0; i < 3; ++i) {
    if (ctx.in(i).numel() != 1 || ctx.in(i).dtype() != t)
      ctx.fail("start, limit and delta must be scalars of one type");
  }
  number_or_throw(ctx, t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T start = *ctx.in(0).data<T>(), limit = *ctx.in(1).data<T>(), delta = *ctx.in(2).data<T>();
    if (delta == T{0}) ctx.fail("delta is 0");
    int64_t count = 0;
    if constexpr (std::is_integral_v<T>) {
      if ((delta > 0) == (limit > start) && limit != start) {
        // 128 bits hold every difference of 64-bit integers.
        const __int128 span = static_cast<__int128>(limit) - static_cast<__int128>(start),
                       step = static_cast<__int128>(delta);
        const __int128 n = (span + step - (step > 0 ? 1 : -1)) / step;
        count = n > kMaxTensorBytes ? kMaxTensorBytes + 1 : static_cast<int64_t>(n);
      }
    } else {
      const double n =
          std::ceil((static_cast<double>(limit) - static_cast<double>(start)) / static_cast<double>(delta));
      if (!(std::fabs(n) < 9e15)) ctx.fail("start, limit and delta give no finite number of elements");
      count = static_cast<int64_t>(std::max(0.0, n));
    }
    check_budget(ctx, t, {count});
    Tensor& y = ctx.out(0, t, {count});
    T* dst = y.data<T>();
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        dst[i] = wrap_add<T>(start, wrap_mul<T>(static_cast<T>(i), delta));
      } else {
        dst[i] =
            static_cast<T>(static_cast<double>(start) + static_cast<double>(i) * static_cast<double>(delta));
      }
    }
  });
}

// --- EyeLike ---

void eye_like_infer(InferContext& ctx) {
  if (ctx.has_shape(0) && ctx.shape(0).size() != 2)
    ctx.fail("input must be a matrix, not " + ctx.input(0).text());
  const DType t = ctx.node().has("dtype") ? checked_dtype(ctx, ctx.node().get_int("dtype", 1)) : ctx.dtype(0);
  ctx.set_output(0, t, ctx.has_shape(0) ? ctx.input(0).shape : std::optional<Dims>(unknown_dims(ctx, 2)));
}

void eye_like_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() != 2) ctx.fail("input must be a matrix, not " + x.type_text());
  const DType t = ctx.out_dtypes[0];
  const Tensor one = convert(Tensor::f32_scalar(1), t);
  const int64_t rows = x.dim(0), cols = x.dim(1), k = ctx.get_int("k", 0), bytes = dtype_bits(t) / 8;
  Tensor& y = ctx.out(0, t, x.shape());
  if (y.numel() == 0) return;
  std::memset(y.raw(), 0, static_cast<size_t>(y.nbytes()));
  if (k <= -rows || k >= cols) return;
  for (int64_t r = std::max<int64_t>(0, -k); r < rows && r + k < cols; ++r) {
    std::memcpy(static_cast<char*>(y.raw()) + (r * cols + r + k) * bytes, one.raw(),
                static_cast<size_t>(bytes));
  }
}

OpDef maker(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
            NarrowFloats narrow) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.cost = no_cost;
  def.narrow = narrow;
  return def;
}

}  // namespace

const OpDef& op_Constant() {
  static const OpDef def = maker("Constant", constant_infer, constant_kernel, NarrowFloats::kNative);
  return def;
}

const OpDef& op_ConstantOfShape() {
  static const OpDef def =
      maker("ConstantOfShape", constant_of_shape_infer, constant_of_shape_kernel, NarrowFloats::kNative);
  return def;
}

const OpDef& op_Range() {
  static const OpDef def = maker("Range", range_infer, range_kernel, NarrowFloats::kWiden);
  return def;
}

const OpDef& op_EyeLike() {
  static const OpDef def = maker("EyeLike", eye_like_infer, eye_like_kernel, NarrowFloats::kNative);
  return def;
}

}  // namespace hone::ops
