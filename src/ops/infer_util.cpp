#include "ops/infer_util.h"

#include <algorithm>

#include "ops/broadcast.h"

namespace hone::ops {

void infer_same(InferContext& ctx) { ctx.set_output(0, ctx.input(0)); }

void infer_broadcast(InferContext& ctx) { infer_broadcast_as(ctx, ctx.dtype(0)); }

void infer_broadcast_as(InferContext& ctx, DType dtype) {
  std::optional<Dims> shape;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    if (!ctx.has_shape(i)) {
      ctx.set_output(0, dtype, std::nullopt);
      return;
    }
    shape = shape ? ctx.broadcast(*shape, ctx.shape(i)) : ctx.shape(i);
  }
  ctx.set_output(0, dtype, std::move(shape));
}

bool provably_nonneg(const Dim& d) {
  if (d.is_const()) return d.value() >= 0;
  // Without a minus sign every coefficient is positive, and sums, products, floordiv, min and max of
  // non-negative values are not negative.
  return d.text().find('-') == std::string::npos;
}

std::optional<bool> decide_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  const Dim diff = a - b;
  if (diff.is_const()) return diff.value() == 0;
  if (provably_nonneg(diff - Dim(1)) || provably_nonneg(b - a - Dim(1))) return false;
  return std::nullopt;
}

std::optional<bool> decide_less(const Dim& a, const Dim& b) {
  const Dim diff = b - a;
  if (diff.is_const()) return diff.value() > 0;
  if (provably_nonneg(diff - Dim(1))) return true;
  if (provably_nonneg(a - b)) return false;
  return std::nullopt;
}

bool follows_contents(DType t) { return t == DType::kI64 || t == DType::kI32 || t == DType::kBool; }

std::optional<Dims> known_contents(const InferContext& ctx, size_t i) {
  if (!follows_contents(ctx.dtype(i))) return std::nullopt;
  if (auto dims = ctx.contents(i)) return dims;
  const Tensor* t = ctx.constant(i);
  if (t == nullptr || t->numel() > static_cast<int64_t>(InferContext::kMaxContents)) return std::nullopt;
  return ir::to_dims(t->to_i64());
}

void elementwise_contents(InferContext& ctx, const ContentsFn& fn) {
  const size_t n = ctx.num_inputs();
  if (n == 0 || !ctx.has_output(0)) return;
  std::vector<Dims> contents(n);
  std::vector<Shape> shapes(n);
  Shape out;
  for (size_t i = 0; i < n; ++i) {
    if (!follows_contents(ctx.dtype(i)) || !ctx.has_shape(i)) return;
    auto shape = ir::const_dims(ctx.shape(i));
    if (!shape) return;
    auto known = known_contents(ctx, i);
    if (!known) return;
    shapes[i] = std::move(*shape);
    contents[i] = std::move(*known);
    auto merged = broadcast_shapes(out, shapes[i]);
    if (!merged) return;
    out = std::move(*merged);
  }
  size_t count = 1;
  for (int64_t d : out) {
    count *= static_cast<size_t>(d);
    if (count > InferContext::kMaxContents) return;
  }
  std::vector<std::vector<int64_t>> strides(n);
  for (size_t i = 0; i < n; ++i) {
    strides[i] = broadcast_strides(shapes[i], out);
    int64_t size = 1;
    for (int64_t d : shapes[i]) size *= d;
    if (static_cast<size_t>(size) != contents[i].size()) return;
  }
  const std::vector<int64_t> dense = dense_strides(out);
  const bool narrow = ctx.graph().value(ctx.node().outputs[0]).type.dtype == DType::kI32;
  Dims result;
  result.reserve(count);
  std::vector<Dim> args(n);
  for (size_t e = 0; e < count; ++e) {
    for (size_t i = 0; i < n; ++i) {
      int64_t at = 0, rest = static_cast<int64_t>(e);
      for (size_t d = 0; d < out.size(); ++d) {
        at += rest / dense[d] * strides[i][d];
        rest %= dense[d];
      }
      args[i] = contents[i][static_cast<size_t>(at)];
    }
    std::optional<Dim> value;
    try {
      value = fn(args);
    } catch (const Error&) {
      return;  // overflow: kernels wrap, dimensions do not
    }
    if (!value) return;
    const auto number = value->maybe();
    if (number && narrow && (*number < INT32_MIN || *number > INT32_MAX)) return;
    result.push_back(std::move(*value));
  }
  ctx.set_contents(0, std::move(result));
}

void strided_contents(InferContext& ctx, const Dims& known, const std::vector<int64_t>& shape, int64_t offset,
                      const std::vector<int64_t>& strides) {
  size_t count = 1;
  for (const int64_t d : shape) {
    count *= static_cast<size_t>(d);
    if (count > InferContext::kMaxContents) return;
  }
  const std::vector<int64_t> dense = dense_strides(shape);
  Dims picked;
  for (size_t e = 0; e < count; ++e) {
    int64_t at = offset, rest = static_cast<int64_t>(e);
    for (size_t d = 0; d < shape.size(); ++d) {
      at += rest / dense[d] * strides[d];
      rest %= dense[d];
    }
    if (at < 0 || at >= static_cast<int64_t>(known.size())) return;  // contents that do not fit the shape
    picked.push_back(known[static_cast<size_t>(at)]);
  }
  ctx.set_contents(0, std::move(picked));
}

std::optional<int64_t> vector_length(const InferContext& ctx, size_t i) {
  if (!ctx.has_input(i) || !ctx.has_shape(i) || ctx.shape(i).size() != 1) return std::nullopt;
  return ctx.shape(i)[0].maybe();
}

DType checked_dtype(const InferContext& ctx, int64_t number) {
  if (number <= 0 || number > static_cast<int64_t>(DType::kI2)) {
    ctx.fail("no element type has the number " + std::to_string(number));
  }
  return static_cast<DType>(number);
}

Dims checked_dims(const InferContext& ctx, Dims dims) {
  for (const Dim& d : dims) {
    if (d.is_const() && d.value() < 0) ctx.fail("negative dimension in " + ir::dims_text(dims));
  }
  return dims;
}

Dims unknown_dims(InferContext& ctx, size_t rank) {
  Dims dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(ctx.fresh_symbol());
  return dims;
}

}  // namespace hone::ops
