// ScatterElements ScatterND (and the deprecated Scatter): a copy of the data with some elements replaced or
// combined with updates, in the order of the indices. reduction: none, add, mul, max, min; NaN wins in max
// and min. An index out of range is an error. Sums and products of narrow floats are rounded once, at the
// end. Source: ONNX, opset 18.
#include <cmath>
#include <cstring>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

Reduction reduction_of(const KernelContext& ctx) {
  const std::string name = ctx.get_string("reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  ctx.fail("reduction must be none, add, mul, max or min, not '" + name + "'");
}

template <class T>
T combine(Reduction r, T a, T b) {
  const auto nan = [](T v) { return v != v; };
  switch (r) {
    case Reduction::kAdd: return wrap_add(a, b);
    case Reduction::kMul: return wrap_mul(a, b);
    case Reduction::kMax: return a > b || nan(a) ? a : b;
    case Reduction::kMin: return a < b || nan(a) ? a : b;
    default: return b;
  }
}

/// What both operators boil down to: blocks of `count` elements from updates go to element offsets of the
/// output.
struct Move {
  int64_t to, from, count;
};

template <class F>
void scatter(KernelContext& ctx, F each_move) {
  const Reduction reduction = reduction_of(ctx);
  Tensor x = ctx.in(0), updates = ctx.in(2);
  if (x.dtype() != updates.dtype())
    ctx.fail("data and updates differ in type: " + x.type_text() + " and " + updates.type_text());
  const DType declared = x.dtype();
  if (reduction == Reduction::kNone) {
    Tensor& y = ctx.out(0, declared, x.shape());
    if (y.numel() > 0) std::memcpy(y.raw(), x.raw(), static_cast<size_t>(x.nbytes()));
    const int64_t bytes = element_bytes(x);
    auto* dst = static_cast<char*>(y.raw());
    const auto* src = static_cast<const char*>(updates.raw());
    each_move([&](const Move& m) {
      std::memcpy(dst + m.to * bytes, src + m.from * bytes, static_cast<size_t>(m.count * bytes));
    });
    return;
  }
  const DType wide = is_narrow_float(declared)  ? DType::kF32
                     : declared == DType::kBool ? DType::kU8
                                                : declared;
  Tensor y = declared == DType::kBool ? Tensor(DType::kU8, x.shape()) : convert(x, wide).clone();
  if (declared == DType::kBool && x.numel() > 0)
    std::memcpy(y.raw(), x.raw(), static_cast<size_t>(x.numel()));
  if (declared != DType::kBool) updates = convert(updates, wide);
  number_or_throw(ctx, wide, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* dst = y.data<T>();
    const T* src = std::as_const(updates).template data<T>();
    each_move([&](const Move& m) {
      for (int64_t i = 0; i < m.count; ++i)
        dst[m.to + i] = combine(reduction, dst[m.to + i], src[m.from + i]);
    });
  });
  ctx.set_out(0, convert(y, declared));
}

void scatter_elements_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, scatter_elements_kernel);
  const Tensor& x = ctx.in(0);
  const Tensor& indices = ctx.in(1);
  if (x.rank() == 0 || indices.rank() != x.rank() || indices.shape() != ctx.in(2).shape()) {
    ctx.fail("data, indices and updates must have one rank, indices and updates one shape");
  }
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", 0), x.rank()));
  for (size_t d = 0; d < x.shape().size(); ++d) {
    if (d != axis && indices.shape()[d] > x.shape()[d])
      ctx.fail(indices.type_text() + " reaches beyond " + x.type_text());
  }
  const std::vector<int64_t> at = read_indices(ctx, 1);
  const std::vector<int64_t> strides = dense_strides(x.shape());
  scatter(ctx, [&](auto&& move) {
    const Shape& shape = indices.shape();
    std::vector<int64_t> index(shape.size(), 0);
    for (size_t k = 0; k < at.size(); ++k) {
      int64_t to = checked_index(ctx, at[k], x.shape()[axis]) * strides[axis];
      for (size_t d = 0; d < shape.size(); ++d) {
        if (d != axis) to += index[d] * strides[d];
      }
      move(Move{to, static_cast<int64_t>(k), 1});
      for (size_t d = shape.size(); d-- > 0;) {
        if (++index[d] < shape[d]) break;
        index[d] = 0;
      }
    }
  });
}

void scatter_nd_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, scatter_nd_kernel);
  const Tensor& x = ctx.in(0);
  const Tensor& indices = ctx.in(1);
  if (x.rank() == 0 || indices.rank() == 0) ctx.fail("data and indices must not be scalars");
  const int64_t depth = indices.shape().back();
  if (depth < 0 || depth > x.rank()) ctx.fail(indices.type_text() + " does not address " + x.type_text());
  Shape expected(indices.shape().begin(), indices.shape().end() - 1);
  const int64_t count = numel(expected);
  const Shape block_shape(x.shape().begin() + depth, x.shape().end());
  expected.insert(expected.end(), block_shape.begin(), block_shape.end());
  if (ctx.in(2).shape() != expected) {
    ctx.fail("updates are " + ctx.in(2).type_text() + ", indices and data ask for " +
             type_text(x.dtype(), expected));
  }
  const std::vector<int64_t> at = read_indices(ctx, 1);
  const std::vector<int64_t> strides = dense_strides(x.shape());
  const int64_t block = numel(block_shape);
  scatter(ctx, [&](auto&& move) {
    for (int64_t k = 0; k < count; ++k) {
      int64_t to = 0;
      for (int64_t d = 0; d < depth; ++d) {
        to += checked_index(ctx, at[static_cast<size_t>(k * depth + d)], x.shape()[static_cast<size_t>(d)]) *
              strides[static_cast<size_t>(d)];
      }
      move(Move{to, k * block, block});
    }
  });
}

/// Contents: unknown; the type is the data's.
void scatter_infer(InferContext& ctx) { infer_same(ctx); }

/// Scatter is ScatterElements under an older name.
void scatter_adapt(AdaptContext& ctx) { ctx.node.op = "ScatterElements"; }

OpDef scatter_op(const char* name, void (*kernel)(KernelContext&)) {
  OpDef def;
  def.name = name;
  def.infer = scatter_infer;
  def.kernel = kernel;
  def.cost = elementwise_cost;
  def.narrow = NarrowFloats::kNative;
  return def;
}

}  // namespace

const OpDef& op_ScatterElements() {
  static const OpDef def = scatter_op("ScatterElements", scatter_elements_kernel);
  return def;
}

const OpDef& op_ScatterND() {
  static const OpDef def = scatter_op("ScatterND", scatter_nd_kernel);
  return def;
}

const OpDef& op_Scatter() {
  static const OpDef def = [] {
    OpDef d = scatter_op("Scatter", scatter_elements_kernel);
    d.adapt = scatter_adapt;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
