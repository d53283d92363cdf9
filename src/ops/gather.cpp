// Gather GatherElements GatherND. An index outside [-extent, extent) is an error. Source: ONNX, opset 13.
#include <cstring>

#include "ops/broadcast.h"
#include "ops/indices.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

int64_t product_of(const Shape& s, size_t from, size_t to) {
  return numel(
      Shape(s.begin() + static_cast<std::ptrdiff_t>(from), s.begin() + static_cast<std::ptrdiff_t>(to)));
}

// --- Gather: y = x[:axis] + indices + x[axis+1:] ---

void gather_infer(InferContext& ctx) {
  if (!ctx.has_shape(0) || !ctx.has_shape(1)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  const Dims &x = ctx.shape(0), &indices = ctx.shape(1);
  if (x.empty()) ctx.fail("data must have a dimension to gather from");
  const int axis = ctx.axis(ctx.node().get_int("axis", 0), static_cast<int>(x.size()));
  Dims out(x.begin(), x.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), x.begin() + axis + 1, x.end());
  ctx.set_output(0, ctx.dtype(0), std::move(out));
  const auto known = x.size() == 1 ? known_contents(ctx, 0) : std::nullopt;
  const auto at = known ? ctx.const_ints(1) : std::nullopt;
  if (!at) return;
  const auto n = static_cast<int64_t>(known->size());
  Dims picked;
  for (const int64_t i : *at) {
    if (i < -n || i >= n)
      ctx.fail("index " + std::to_string(i) + " is outside a vector of " + std::to_string(n));
    picked.push_back((*known)[static_cast<size_t>(i < 0 ? i + n : i)]);
  }
  ctx.set_contents(0, std::move(picked));
}

void gather_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, gather_kernel);
  const Tensor& x = ctx.in(0);
  if (x.rank() == 0) ctx.fail("data must have a dimension to gather from");
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", 0), x.rank()));
  const int64_t extent = x.shape()[axis];
  std::vector<int64_t> at = read_indices(ctx, 1);
  for (int64_t& i : at) i = checked_index(ctx, i, extent);
  Shape shape(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), ctx.in(1).shape().begin(), ctx.in(1).shape().end());
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape().end());
  check_budget(ctx, x.dtype(), shape);
  Tensor& y = ctx.out(0, x.dtype(), shape);
  const int64_t outer = product_of(x.shape(), 0, axis);
  const int64_t bytes = product_of(x.shape(), axis + 1, x.shape().size()) * element_bytes(x);
  if (y.numel() == 0) return;
  auto* dst = static_cast<char*>(y.raw());
  const auto* src = static_cast<const char*>(x.raw());
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t i : at) {
      std::memcpy(dst, src + (o * extent + i) * bytes, static_cast<size_t>(bytes));
      dst += bytes;
    }
  }
}

// --- GatherElements: y[i0..] = x[i0, .., indices[i0..], ..] ---

void gather_elements_infer(InferContext& ctx) {
  if (ctx.has_shape(0) && ctx.has_shape(1)) {
    if (ctx.shape(0).size() != ctx.shape(1).size()) ctx.fail("data and indices differ in rank");
    ctx.axis(ctx.node().get_int("axis", 0), static_cast<int>(ctx.shape(0).size()));
  }
  ctx.set_output(0, ctx.dtype(0), ctx.input(1).shape);
}

template <class T>
void gather_elements(KernelContext& ctx, const Tensor& x, const std::vector<int64_t>& at, size_t axis,
                     Tensor* y) {
  // Walk the indices row by row; `base` is the source offset of the row without the gathered axis.
  const Shape& shape = y->shape();
  const std::vector<int64_t> strides = dense_strides(x.shape());
  const int64_t extent = x.shape()[axis], inner = shape.back();
  const bool along = axis + 1 == shape.size();
  const int64_t step = along ? 0 : 1, stride = strides[axis];
  std::vector<int64_t> index(shape.size() - 1, 0);
  const T* src = x.data<T>();
  T* dst = y->data<T>();
  for (int64_t done = 0; done < y->numel(); done += inner) {
    int64_t base = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      if (d != axis) base += index[d] * strides[d];
    }
    for (int64_t j = 0; j < inner; ++j) {
      dst[done + j] =
          src[base + j * step + checked_index(ctx, at[static_cast<size_t>(done + j)], extent) * stride];
    }
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

struct Bytes16 {
  uint64_t lo, hi;
};

void gather_elements_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, gather_elements_kernel);
  const Tensor& x = ctx.in(0);
  const Tensor& indices = ctx.in(1);
  if (x.rank() != indices.rank() || x.rank() == 0)
    ctx.fail("data and indices must have one rank, at least 1");
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", 0), x.rank()));
  for (size_t d = 0; d < x.shape().size(); ++d) {
    if (d != axis && indices.shape()[d] > x.shape()[d])
      ctx.fail(indices.type_text() + " reaches beyond " + x.type_text());
  }
  const std::vector<int64_t> at = read_indices(ctx, 1);
  Tensor& y = ctx.out(0, x.dtype(), indices.shape());
  if (y.numel() == 0) return;
  switch (element_bytes(x)) {
    case 1: return gather_elements<uint8_t>(ctx, x, at, axis, &y);
    case 2: return gather_elements<uint16_t>(ctx, x, at, axis, &y);
    case 4: return gather_elements<uint32_t>(ctx, x, at, axis, &y);
    case 8: return gather_elements<uint64_t>(ctx, x, at, axis, &y);
    default: return gather_elements<Bytes16>(ctx, x, at, axis, &y);
  }
}

// --- GatherND: the last dimension of the indices addresses the data after `batch_dims` shared dimensions ---

void gather_nd_infer(InferContext& ctx) {
  if (!ctx.has_shape(0) || !ctx.has_shape(1) || ctx.shape(1).empty() || !ctx.shape(1).back().is_const()) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  const Dims &x = ctx.shape(0), &indices = ctx.shape(1);
  const int64_t batch = ctx.node().get_int("batch_dims", 0), depth = indices.back().value();
  if (batch < 0 || depth < 1 || batch >= static_cast<int64_t>(indices.size()) ||
      batch + depth > static_cast<int64_t>(x.size())) {
    ctx.fail("indices " + ctx.input(1).text() + " with batch_dims " + std::to_string(batch) +
             " do not address " + ctx.input(0).text());
  }
  Dims out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), x.begin() + batch + depth, x.end());
  ctx.set_output(0, ctx.dtype(0), std::move(out));
}

void gather_nd_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, gather_nd_kernel);
  const Tensor& x = ctx.in(0);
  const Tensor& indices = ctx.in(1);
  const auto batch = static_cast<size_t>(std::max<int64_t>(0, ctx.get_int("batch_dims", 0)));
  if (indices.rank() == 0 || ctx.get_int("batch_dims", 0) < 0 || batch >= indices.shape().size())
    ctx.fail("bad batch_dims or indices");
  const auto depth = static_cast<size_t>(indices.shape().back());
  if (depth < 1 || batch + depth > x.shape().size())
    ctx.fail(indices.type_text() + " does not address " + x.type_text());
  for (size_t d = 0; d < batch; ++d) {
    if (indices.shape()[d] != x.shape()[d]) ctx.fail("batch dimensions of data and indices differ");
  }
  Shape shape(indices.shape().begin(), indices.shape().end() - 1);
  shape.insert(shape.end(), x.shape().begin() + static_cast<std::ptrdiff_t>(batch + depth), x.shape().end());
  check_budget(ctx, x.dtype(), shape);
  Tensor& y = ctx.out(0, x.dtype(), shape);
  if (y.numel() == 0) return;
  const std::vector<int64_t> strides = dense_strides(x.shape());
  const std::vector<int64_t> at = read_indices(ctx, 1);
  const int64_t batches = product_of(x.shape(), 0, batch);
  const int64_t per_batch = product_of(indices.shape(), batch, indices.shape().size() - 1);
  const int64_t batch_stride = product_of(x.shape(), batch, x.shape().size());
  const int64_t bytes = element_bytes(x),
                block = product_of(x.shape(), batch + depth, x.shape().size()) * bytes;
  auto* dst = static_cast<char*>(y.raw());
  const auto* src = static_cast<const char*>(x.raw());
  const int64_t* index = at.data();
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t k = 0; k < per_batch; ++k, index += depth, dst += block) {
      int64_t offset = b * batch_stride;
      for (size_t d = 0; d < depth; ++d)
        offset += checked_index(ctx, index[d], x.shape()[batch + d]) * strides[batch + d];
      std::memcpy(dst, src + offset * bytes, static_cast<size_t>(block));
    }
  }
}

OpDef gather_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&)) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.cost = elementwise_cost;
  def.narrow = NarrowFloats::kNative;
  return def;
}

}  // namespace

const OpDef& op_Gather() {
  static const OpDef def = gather_op("Gather", gather_infer, gather_kernel);
  return def;
}

const OpDef& op_GatherElements() {
  static const OpDef def = gather_op("GatherElements", gather_elements_infer, gather_elements_kernel);
  return def;
}

const OpDef& op_GatherND() {
  static const OpDef def = gather_op("GatherND", gather_nd_infer, gather_nd_kernel);
  return def;
}

}  // namespace hone::ops
