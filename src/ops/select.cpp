// Operators whose result size depends on values: NonZero Compress Unique OneHot. Source: ONNX, opsets 13
// and 28.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

int64_t product_of(const Shape& s, size_t from, size_t to) {
  return numel(
      Shape(s.begin() + static_cast<std::ptrdiff_t>(from), s.begin() + static_cast<std::ptrdiff_t>(to)));
}

// --- NonZero: i64[rank, count], coordinates in row-major order; a NaN is not zero ---

void nonzero_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, DType::kI64, unknown_dims(ctx, 2));
    return;
  }
  ctx.set_output(0, DType::kI64, Dims{static_cast<int64_t>(ctx.shape(0).size()), ctx.fresh_symbol()});
}

void nonzero_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  std::vector<int64_t> hits;
  const auto collect = [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* src = x.data<T>();
    for (int64_t i = 0, n = x.numel(); i < n; ++i) {
      if (src[i] != T{0}) hits.push_back(i);
    }
  };
  if (x.dtype() == DType::kBool) {
    collect(Tag<uint8_t>{});
  } else {
    number_or_throw(ctx, x.dtype(), collect);
  }
  // A scalar counts as one row without coordinates in the ONNX text's NumPy form: rank 0 gives [0, count].
  const auto count = static_cast<int64_t>(hits.size());
  Tensor& y = ctx.out(0, DType::kI64, {x.rank(), count});
  auto* dst = y.data<int64_t>();
  const std::vector<int64_t> strides = dense_strides(x.shape());
  for (size_t d = 0; d < strides.size(); ++d) {
    const int64_t extent = x.shape()[d], stride = strides[d];
    for (int64_t k = 0; k < count; ++k) *dst++ = hits[static_cast<size_t>(k)] / stride % extent;
  }
}

// --- Compress: slices along an axis (or elements of the flattened input) where the condition holds ---

void compress_infer(InferContext& ctx) {
  if (!ctx.node().has("axis")) {
    ctx.set_output(0, ctx.dtype(0), Dims{ctx.fresh_symbol()});
    return;
  }
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  Dims out = ctx.shape(0);
  out[static_cast<size_t>(ctx.axis(ctx.node().get_int("axis", 0), static_cast<int>(out.size())))] =
      ctx.fresh_symbol();
  ctx.set_output(0, ctx.dtype(0), std::move(out));
}

void compress_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, compress_kernel);
  const Tensor x = ctx.attrs.contains("axis") ? ctx.in(0) : ctx.in(0).reshaped({ctx.in(0).numel()});
  const Tensor& condition = ctx.in(1);
  if (condition.rank() != 1 || condition.dtype() != DType::kBool)
    ctx.fail("condition must be a vector of bool, not " + condition.type_text());
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", 0), x.rank()));
  const int64_t extent = x.shape()[axis];
  std::vector<int64_t> keep;
  for (int64_t i = 0; i < condition.numel(); ++i) {
    if (condition.data<uint8_t>()[i] == 0) continue;
    if (i >= extent)
      ctx.fail("condition selects element " + std::to_string(i) + " of " + std::to_string(extent));
    keep.push_back(i);
  }
  Shape shape = x.shape();
  shape[axis] = static_cast<int64_t>(keep.size());
  Tensor& y = ctx.out(0, x.dtype(), shape);
  const int64_t outer = product_of(shape, 0, axis),
                block = product_of(shape, axis + 1, shape.size()) * element_bytes(x);
  if (y.numel() == 0) return;
  auto* dst = static_cast<char*>(y.raw());
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t i : keep) {
      std::memcpy(dst, static_cast<const char*>(x.raw()) + (o * extent + i) * block,
                  static_cast<size_t>(block));
      dst += block;
    }
  }
}

// --- Unique ---

void unique_infer(InferContext& ctx) {
  const Dim count = ctx.fresh_symbol();
  std::optional<Dims> shape = Dims{count};
  Dim inverse = ctx.fresh_symbol();
  if (ctx.node().has("axis")) {
    shape = ctx.input(0).shape;
    if (shape) {
      Dim& d = (*shape)[static_cast<size_t>(
          ctx.axis(ctx.node().get_int("axis", 0), static_cast<int>(shape->size())))];
      inverse = d;
      d = count;
    }
  } else if (ctx.has_shape(0)) {
    inverse = ir::product(ctx.shape(0));
  }
  ctx.set_output(0, ctx.dtype(0), shape);
  ctx.set_output(1, DType::kI64, Dims{count});
  ctx.set_output(2, DType::kI64, Dims{inverse});
  ctx.set_output(3, DType::kI64, Dims{count});
}

/// Slices [0, extent) of a [outer, extent, inner] tensor, compared lexicographically. NaN sorts last and
/// equals NaN.
template <class T>
void unique(KernelContext& ctx, const Tensor& x, size_t axis) {
  const int64_t outer = product_of(x.shape(), 0, axis), extent = x.shape()[axis],
                inner = product_of(x.shape(), axis + 1, x.shape().size());
  const T* src = x.data<T>();
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        const T u = src[(o * extent + a) * inner + i], v = src[(o * extent + b) * inner + i];
        if (u == v || (u != u && v != v)) continue;
        return u < v || (u == u && v != v) ? -1 : 1;
      }
    }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(extent));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  std::vector<int64_t> first, counts,
      inverse(static_cast<size_t>(extent));  // by sorted group; stable, so the first is the earliest
  for (size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || compare(order[k - 1], order[k]) != 0) {
      first.push_back(order[k]);
      counts.push_back(0);
    }
    ++counts.back();
    inverse[static_cast<size_t>(order[k])] = static_cast<int64_t>(first.size()) - 1;
  }
  if (ctx.get_int("sorted", 1) == 0) {
    std::vector<size_t> by_first(first.size());
    std::iota(by_first.begin(), by_first.end(), size_t{0});
    std::sort(by_first.begin(), by_first.end(), [&](size_t a, size_t b) { return first[a] < first[b]; });
    std::vector<int64_t> f, c, rank(first.size());
    for (size_t k = 0; k < by_first.size(); ++k) {
      f.push_back(first[by_first[k]]);
      c.push_back(counts[by_first[k]]);
      rank[by_first[k]] = static_cast<int64_t>(k);
    }
    first = std::move(f);
    counts = std::move(c);
    for (int64_t& i : inverse) i = rank[static_cast<size_t>(i)];
  }
  const auto n = static_cast<int64_t>(first.size());
  Shape shape = x.shape();
  shape[axis] = n;
  Tensor& y = ctx.out(0, x.dtype(), shape);
  T* dst = y.data<T>();
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t f : first) dst = std::copy_n(src + (o * extent + f) * inner, inner, dst);
  }
  const auto vector_out = [&](size_t i, const std::vector<int64_t>& v) {
    if (ctx.wants(i))
      std::copy(v.begin(), v.end(),
                ctx.out(i, DType::kI64, {static_cast<int64_t>(v.size())}).template data<int64_t>());
  };
  vector_out(1, first);
  vector_out(2, inverse);
  vector_out(3, counts);
}

void unique_kernel(KernelContext& ctx) {
  const Tensor x = ctx.attrs.contains("axis") ? ctx.in(0) : ctx.in(0).reshaped({ctx.in(0).numel()});
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", 0), x.rank()));
  if (x.dtype() == DType::kBool) return unique<uint8_t>(ctx, x, axis);
  number_or_throw(ctx, x.dtype(), [&](auto tag) { unique<typename decltype(tag)::type>(ctx, x, axis); });
}

// --- OneHot: off everywhere, on at the index along a new axis; an index outside [-depth, depth) sets nothing
// ---

void one_hot_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(2), std::nullopt);
    return;
  }
  Dims out = ctx.shape(0);
  const int axis = ctx.axis(ctx.node().get_int("axis", -1), static_cast<int>(out.size()) + 1);
  const Tensor* depth = ctx.constant(1);
  const auto known = ctx.contents(1);
  Dim d;
  if (depth != nullptr && depth->numel() == 1) {
    d = to_integer<int64_t>(depth->at(0));
    if (d.value() < 0) ctx.fail("depth is negative");
  } else if (known && known->size() == 1) {
    d = (*known)[0];
  } else {
    d = ctx.fresh_symbol();
  }
  out.insert(out.begin() + axis, d);
  ctx.set_output(0, ctx.dtype(2), std::move(out));
}

void one_hot_kernel(KernelContext& ctx) {
  const Tensor& indices = ctx.in(0);
  const Tensor& values = ctx.in(2);
  if (ctx.in(1).numel() != 1) ctx.fail("depth must be a scalar, not " + ctx.in(1).type_text());
  if (values.numel() != 2) ctx.fail("values must be [off, on], not " + values.type_text());
  const auto depth = to_integer<int64_t>(ctx.in(1).at(0));
  if (depth < 0) ctx.fail("depth is negative");
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", -1), indices.rank() + 1));
  Shape shape = indices.shape();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), depth);
  check_budget(ctx, values.dtype(), shape);
  Tensor& y = ctx.out(0, values.dtype(), shape);
  const int64_t bytes = element_bytes(values);
  const auto* off = static_cast<const char*>(values.raw());
  fill_elements(y.raw(), off, y.numel(), bytes);
  const int64_t inner = product_of(shape, axis + 1, shape.size());
  const Tensor at = is_float(indices.dtype()) ? convert(indices, DType::kI64) : indices;
  const std::vector<int64_t> positions = at.to_i64();
  for (size_t k = 0; k < positions.size(); ++k) {
    int64_t i = positions[k];
    if (i < -depth || i >= depth) continue;
    if (i < 0) i += depth;
    const int64_t o = static_cast<int64_t>(k) / inner, rest = static_cast<int64_t>(k) % inner;
    std::memcpy(static_cast<char*>(y.raw()) + ((o * depth + i) * inner + rest) * bytes, off + bytes,
                static_cast<size_t>(bytes));
  }
}

OpDef select_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
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

const OpDef& op_NonZero() {
  static const OpDef def = select_op("NonZero", nonzero_infer, nonzero_kernel, NarrowFloats::kWiden);
  return def;
}

const OpDef& op_Compress() {
  static const OpDef def = select_op("Compress", compress_infer, compress_kernel, NarrowFloats::kNative);
  return def;
}

const OpDef& op_Unique() {
  static const OpDef def = select_op("Unique", unique_infer, unique_kernel, NarrowFloats::kWiden);
  return def;
}

const OpDef& op_OneHot() {
  static const OpDef def = select_op("OneHot", one_hot_infer, one_hot_kernel, NarrowFloats::kNative);
  return def;
}

}  // namespace hone::ops
