// Shape and Size: dimensions of a tensor as i64. Source: ONNX, opsets up to 28.
#include <algorithm>

#include "ops/infer_util.h"

namespace hone::ops {
namespace {

Cost no_cost(const AttrMap&, std::span<const Shape>, std::span<const Shape>) { return {}; }

/// [start, end) clamped into the rank; ends before it starts gives an empty range.
std::pair<size_t, size_t> range(int64_t start, int64_t end, size_t rank) {
  const auto r = static_cast<int64_t>(rank);
  const auto clamp = [r](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + r : v, 0, r); };
  const int64_t s = clamp(start), e = std::max(s, clamp(end));
  return {static_cast<size_t>(s), static_cast<size_t>(e)};
}

void shape_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, DType::kI64, Dims{ctx.fresh_symbol()});
    return;
  }
  const Dims& in = ctx.shape(0);
  const auto [s, e] = range(ctx.node().get_int("start", 0), ctx.node().get_int("end", INT64_MAX), in.size());
  Dims part(in.begin() + static_cast<std::ptrdiff_t>(s), in.begin() + static_cast<std::ptrdiff_t>(e));
  ctx.set_output(0, DType::kI64, Dims{static_cast<int64_t>(part.size())});
  ctx.set_contents(0, std::move(part));
}

void shape_kernel(KernelContext& ctx) {
  const Shape& in = ctx.in(0).shape();
  const auto [s, e] = range(ctx.get_int("start", 0), ctx.get_int("end", INT64_MAX), in.size());
  Tensor& y = ctx.out(0, DType::kI64, {static_cast<int64_t>(e - s)});
  for (size_t i = s; i < e; ++i) y.data<int64_t>()[i - s] = in[i];
}

void size_infer(InferContext& ctx) {
  ctx.set_output(0, DType::kI64, Dims{});
  if (ctx.has_shape(0)) ctx.set_contents(0, {ir::product(ctx.shape(0))});
}

void size_kernel(KernelContext& ctx) { *ctx.out(0, DType::kI64, {}).data<int64_t>() = ctx.in(0).numel(); }

}  // namespace

const OpDef& op_Shape() {
  static const OpDef def{.name = "Shape",
                         .infer = shape_infer,
                         .kernel = shape_kernel,
                         .cost = no_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_Size() {
  static const OpDef def{.name = "Size",
                         .infer = size_infer,
                         .kernel = size_kernel,
                         .cost = no_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
