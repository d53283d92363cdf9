// Concat and Split along one axis. Source: ONNX Concat-13, Split-18.
#include <cstring>

#include "base/checked.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

/// Elements before and after an axis.
int64_t outer_count(const Shape& s, int axis) { return numel(Shape(s.begin(), s.begin() + axis)); }
int64_t inner_count(const Shape& s, int axis) { return numel(Shape(s.begin() + axis + 1, s.end())); }

void concat_infer(InferContext& ctx) {
  const DType t = ctx.dtype(0);
  std::optional<size_t> rank;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    if (ctx.has_shape(i)) rank = ctx.shape(i).size();
  }
  if (!rank) {
    ctx.set_output(0, t, std::nullopt);
    return;
  }
  if (!ctx.node().has("axis")) ctx.fail("attribute 'axis' is missing");
  const auto axis = static_cast<size_t>(ctx.axis(ctx.node().get_int("axis", 0), static_cast<int>(*rank)));
  Dims out(*rank);
  std::vector<bool> set(*rank, false);
  Dim total = 0;
  bool all = true;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    if (!ctx.has_shape(i)) {
      all = false;
      continue;
    }
    const Dims& in = ctx.shape(i);
    if (in.size() != *rank) ctx.fail("inputs differ in rank");
    total = total + in[axis];
    for (size_t d = 0; d < *rank; ++d) {
      if (d == axis) continue;
      if (set[d] && out[d].is_const() && in[d].is_const() && !(out[d] == in[d])) {
        ctx.fail("dimension " + std::to_string(d) + " of input " + std::to_string(i) + " is " + in[d].text() +
                 ", before it was " + out[d].text());
      }
      if (!set[d] || in[d].is_const()) out[d] = in[d];
      set[d] = true;
    }
  }
  out[axis] = all ? total : ctx.fresh_symbol();
  ctx.set_output(0, t, std::move(out));
  if (!all || *rank != 1) return;
  Dims joined;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    const auto part = known_contents(ctx, i);
    if (!part) return;
    joined.insert(joined.end(), part->begin(), part->end());
  }
  ctx.set_contents(0, std::move(joined));
}

void concat_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, concat_kernel);
  const Tensor& first = ctx.in(0);
  const int axis = ctx.axis(ctx.get_int("axis", 0), first.rank());
  const auto at = static_cast<size_t>(axis);
  Shape shape = first.shape();
  shape[at] = 0;
  for (const Tensor* x : ctx.inputs) {
    if (x->rank() != first.rank() || x->dtype() != first.dtype()) {
      ctx.fail("inputs differ in rank or type: " + first.type_text() + " and " + x->type_text());
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (d != at && x->shape()[d] != shape[d])
        ctx.fail("inputs differ off the axis: " + first.type_text() + " and " + x->type_text());
    }
    shape[at] = checked_add(shape[at], x->shape()[at]);
  }
  check_budget(ctx, first.dtype(), shape);
  Tensor& y = ctx.out(0, first.dtype(), shape);
  const int64_t outer = outer_count(shape, axis), inner = inner_count(shape, axis) * element_bytes(first);
  const int64_t row = shape[at] * inner;
  auto* dst = static_cast<char*>(y.raw());
  for (const Tensor* x : ctx.inputs) {
    const int64_t part = x->shape()[at] * inner;
    const auto* src = static_cast<const char*>(x->raw());
    if (part > 0) {
      for (int64_t o = 0; o < outer; ++o)
        std::memcpy(dst + o * row, src + o * part, static_cast<size_t>(part));
    }
    dst += part;
  }
}

/// Concat-1 had axis 1 by default.
void concat_adapt(AdaptContext& ctx) {
  if (ctx.since < 4 && !ctx.node.has("axis")) ctx.node.attrs["axis"] = int64_t{1};
}

// --- Split ---

void split_infer(InferContext& ctx) {
  const size_t n = ctx.num_outputs();
  if (!ctx.has_shape(0)) {
    for (size_t i = 0; i < n; ++i) ctx.set_output(i, ctx.dtype(0), std::nullopt);
    return;
  }
  const Dims& in = ctx.shape(0);
  const auto axis = static_cast<size_t>(ctx.axis(ctx.node().get_int("axis", 0), static_cast<int>(in.size())));
  Dims parts;
  if (ctx.has_input(1)) {
    const auto sizes = ctx.contents(1);
    parts = sizes ? *sizes : unknown_dims(ctx, n);
    if (parts.size() != n)
      ctx.fail("split names " + std::to_string(parts.size()) + " parts, the node has " + std::to_string(n) +
               " outputs");
    Dim total = 0;
    for (const Dim& d : parts) {
      if (d.is_const() && d.value() < 0) ctx.fail("negative split size");
      total = total + d;
    }
    if (total.is_const() && in[axis].is_const() && !(total == in[axis])) {
      ctx.fail("split sizes sum to " + total.text() + ", the dimension is " + in[axis].text());
    }
  } else {
    const int64_t count = ctx.node().get_int("num_outputs", static_cast<int64_t>(n));
    if (count != static_cast<int64_t>(n))
      ctx.fail("num_outputs is " + std::to_string(count) + ", the node has " + std::to_string(n));
    const Dim each = Dim::ceildiv(in[axis], Dim(count));
    for (size_t i = 0; i + 1 < n; ++i) parts.push_back(each);
    parts.push_back(in[axis] - each * Dim(static_cast<int64_t>(n) - 1));
    // 5 in 4 parts leaves nothing for the last. The kernel refuses it; here it may stand in a branch that is
    // never taken.
    if (parts.back().is_const() && parts.back().value() < 0) parts = unknown_dims(ctx, n);
  }
  const auto known = in.size() == 1 ? known_contents(ctx, 0) : std::nullopt;
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    Dims out = in;
    out[axis] = parts[i];
    ctx.set_output(i, ctx.dtype(0), std::move(out));
    if (!known || !parts[i].is_const() || at + static_cast<size_t>(parts[i].value()) > known->size())
      continue;
    const size_t end = at + static_cast<size_t>(parts[i].value());
    ctx.set_contents(i, Dims(known->begin() + static_cast<std::ptrdiff_t>(at),
                             known->begin() + static_cast<std::ptrdiff_t>(end)));
    at = end;
  }
}

void split_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, split_kernel);
  const Tensor& x = ctx.in(0);
  const int axis = ctx.axis(ctx.get_int("axis", 0), x.rank());
  const int64_t extent = x.dim(axis);
  const auto n = static_cast<int64_t>(ctx.out_dtypes.size());
  std::vector<int64_t> parts;
  if (ctx.has_input(1)) {
    parts = input_ints(ctx, 1);
    int64_t total = 0;
    for (const int64_t p : parts) {
      if (p < 0 || !try_add(total, p, &total)) ctx.fail("bad split size " + std::to_string(p));
    }
    if (static_cast<int64_t>(parts.size()) != n)
      ctx.fail("split names " + std::to_string(parts.size()) + " parts, not " + std::to_string(n));
    if (total != extent)
      ctx.fail("split sizes sum to " + std::to_string(total) + ", the dimension is " +
               std::to_string(extent));
  } else {
    const int64_t each = (extent + n - 1) / n;
    parts.assign(static_cast<size_t>(n), each);
    parts.back() = extent - each * (n - 1);
    if (parts.back() < 0)
      ctx.fail("dimension " + std::to_string(extent) + " does not split into " + std::to_string(n) +
               " parts");
  }
  const int64_t outer = outer_count(x.shape(), axis), inner = inner_count(x.shape(), axis) * element_bytes(x);
  const auto* src = static_cast<const char*>(x.raw());
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t part = parts[i] * inner;
    if (ctx.wants(i)) {
      Shape shape = x.shape();
      shape[static_cast<size_t>(axis)] = parts[i];
      auto* dst = static_cast<char*>(ctx.out(i, x.dtype(), shape).raw());
      if (part > 0) {
        for (int64_t o = 0; o < outer; ++o)
          std::memcpy(dst + o * part, src + o * extent * inner, static_cast<size_t>(part));
      }
    }
    src += part;
  }
}

/// Sizes were an attribute before opset 13 (in Split-1 an optional second input besides); equal parts need no
/// count.
void split_adapt(AdaptContext& ctx) {
  if (ctx.since < 13) attr_to_input(ctx, "split", 1);
  const bool sizes = ctx.node.has_input(1);
  if (ctx.since < 18 && !sizes) ctx.node.attrs["num_outputs"] = static_cast<int64_t>(ctx.node.outputs.size());
}

}  // namespace

const OpDef& op_Concat() {
  static const OpDef def{.name = "Concat",
                         .infer = concat_infer,
                         .kernel = concat_kernel,
                         .adapt = concat_adapt,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_Split() {
  static const OpDef def{.name = "Split",
                         .infer = split_infer,
                         .kernel = split_kernel,
                         .adapt = split_adapt,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
