// Expand and Tile: repetition along dimensions. Source: ONNX Expand-13, Tile-13.
#include <algorithm>

#include "base/checked.h"
#include "ops/broadcast.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

/// A vector's or scalar's contents repeated to `out` elements, where both are known.
void repeat_contents(InferContext& ctx, const Dims& out) {
  const auto known = known_contents(ctx, 0);
  const auto shape = ir::const_dims(out);
  if (!known || known->empty() || !shape || shape->size() > 1) return;
  const int64_t count = numel(*shape);
  if (count > static_cast<int64_t>(InferContext::kMaxContents)) return;
  Dims repeated;
  for (int64_t i = 0; i < count; ++i) repeated.push_back((*known)[static_cast<size_t>(i) % known->size()]);
  ctx.set_contents(0, std::move(repeated));
}

void expand_infer(InferContext& ctx) {
  const auto target = ctx.contents(1);
  if (!ctx.has_shape(0) || !target) {
    const auto rank = vector_length(ctx, 1);
    ctx.set_output(0, ctx.dtype(0),
                   ctx.has_shape(0) && rank
                       ? std::optional<Dims>(
                             unknown_dims(ctx, std::max(ctx.shape(0).size(), static_cast<size_t>(*rank))))
                       : std::nullopt);
    return;
  }
  for (const Dim& d : *target) {
    if (d.is_const() && d.value() < 0) ctx.fail("negative dimension in shape " + ir::dims_text(*target));
  }
  Dims out = ctx.broadcast(ctx.shape(0), *target);
  ctx.set_output(0, ctx.dtype(0), out);
  repeat_contents(ctx, out);
}

void expand_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, expand_kernel);
  const Tensor& x = ctx.in(0);
  const Shape target = input_ints(ctx, 1);
  for (const int64_t d : target) {
    if (d < 0) ctx.fail("negative dimension " + std::to_string(d) + " in shape");
  }
  const auto shape = broadcast_shapes(x.shape(), target);
  if (!shape) ctx.fail(x.type_text() + " does not expand to " + type_text(x.dtype(), target));
  check_budget(ctx, x.dtype(), *shape);
  Tensor& y = ctx.out(0, x.dtype(), *shape);
  copy_strided(y.raw(), dense_strides(*shape), x.raw(), broadcast_strides(x.shape(), *shape), *shape,
               element_bytes(x));
}

// --- Tile ---

void tile_infer(InferContext& ctx) {
  const auto repeats = ctx.contents(1);
  if (!ctx.has_shape(0)) {
    const auto rank = vector_length(ctx, 1);
    ctx.set_output(0, ctx.dtype(0),
                   rank ? std::optional<Dims>(unknown_dims(ctx, static_cast<size_t>(*rank))) : std::nullopt);
    return;
  }
  const Dims& in = ctx.shape(0);
  if (!repeats) {
    ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, in.size()));
    return;
  }
  if (repeats->size() != in.size())
    ctx.fail("repeats has " + std::to_string(repeats->size()) + " entries for rank " +
             std::to_string(in.size()));
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) {
    if ((*repeats)[i].is_const() && (*repeats)[i].value() < 0) ctx.fail("negative repeat");
    out.push_back(in[i] * (*repeats)[i]);
  }
  ctx.set_output(0, ctx.dtype(0), out);
  repeat_contents(ctx, out);
}

void tile_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, tile_kernel);
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> repeats = input_ints(ctx, 1);
  const size_t rank = x.shape().size();
  if (repeats.size() != rank)
    ctx.fail("repeats has " + std::to_string(repeats.size()) + " entries for " + x.type_text());
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    if (repeats[i] < 0) ctx.fail("negative repeat");
    shape.push_back(checked_mul(x.shape()[i], repeats[i]));
  }
  check_budget(ctx, x.dtype(), shape);
  Tensor& y = ctx.out(0, x.dtype(), shape);
  // Each dimension as (repeat, extent); the source stands still along the repeat.
  const std::vector<int64_t> in_strides = dense_strides(x.shape()), out_strides = dense_strides(shape);
  Shape blocks;
  std::vector<int64_t> dst, src;
  for (size_t i = 0; i < rank; ++i) {
    blocks.insert(blocks.end(), {repeats[i], x.shape()[i]});
    dst.insert(dst.end(), {out_strides[i] * x.shape()[i], out_strides[i]});
    src.insert(src.end(), {0, in_strides[i]});
  }
  copy_strided(y.raw(), dst, x.raw(), src, blocks, element_bytes(x));
}

/// Tile-1 took one axis and one count (both scalars).
void tile_adapt(AdaptContext& ctx) {
  if (ctx.since >= 6) return;
  const ir::Value& x = ctx.graph.value(ctx.node.inputs[0]);
  const ir::Value& count = ctx.graph.value(ctx.node.inputs[1]);
  const ir::Value& axis = ctx.graph.value(ctx.node.inputs[2]);
  if (!x.type.known_rank() || !count.is_const() || !axis.is_const() || count.data->numel() != 1 ||
      axis.data->numel() != 1) {
    ctx.fail("Tile-1 needs a known rank, a constant count and a constant axis");
  }
  std::vector<int64_t> repeats(static_cast<size_t>(x.type.rank()), 1);
  const auto at = static_cast<int64_t>(axis.data->at(0));
  if (at < 0 || at >= x.type.rank()) ctx.fail("axis out of range");
  repeats[static_cast<size_t>(at)] = static_cast<int64_t>(count.data->at(0));
  ctx.graph.pop_input(&ctx.node);
  ctx.graph.set_input(&ctx.node, 1, ctx.ints("repeats", repeats));
}

}  // namespace

const OpDef& op_Expand() {
  static const OpDef def{.name = "Expand",
                         .infer = expand_infer,
                         .kernel = expand_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_Tile() {
  static const OpDef def{.name = "Tile",
                         .infer = tile_infer,
                         .kernel = tile_kernel,
                         .adapt = tile_adapt,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
