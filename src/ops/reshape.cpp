// Operators that give the same bytes another shape: Reshape Flatten Squeeze Unsqueeze. Source: ONNX, opsets
// up to 28.
#include <algorithm>

#include "base/checked.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

Cost no_cost(const AttrMap&, std::span<const Shape>, std::span<const Shape>) { return {}; }

void pass_contents(InferContext& ctx) {
  if (auto known = known_contents(ctx, 0)) ctx.set_contents(0, std::move(*known));
}

void pass_bytes(KernelContext& ctx, Shape shape) {
  if (numel(shape) != ctx.in(0).numel()) {
    ctx.fail(ctx.in(0).type_text() + " cannot take the shape of " + type_text(ctx.in(0).dtype(), shape));
  }
  ctx.set_out(0, ctx.in(0).reshaped(std::move(shape)));
}

/// The quotient of two products of dimensions, equal factors cancelled first.
Dim quotient(Dims above, Dims below) {
  for (size_t i = 0; i < below.size();) {
    const auto same = std::find(above.begin(), above.end(), below[i]);
    if (same == above.end()) {
      ++i;
      continue;
    }
    above.erase(same);
    below.erase(below.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return Dim::floordiv(ir::product(above), ir::product(below));
}

void reshape_infer(InferContext& ctx) {
  const auto target = ctx.contents(1);
  if (!target) {
    const auto rank = vector_length(ctx, 1);
    ctx.set_output(0, ctx.dtype(0),
                   rank ? std::optional<Dims>(unknown_dims(ctx, static_cast<size_t>(*rank))) : std::nullopt);
    return;
  }
  const bool allow_zero = ctx.node().get_int("allowzero", 0) != 0;
  const bool known = ctx.has_shape(0);
  const Dims in = known ? ctx.shape(0) : Dims{};
  Dims out;
  std::optional<size_t> slot;
  for (size_t i = 0; i < target->size(); ++i) {
    const Dim& d = (*target)[i];
    if (d == Dim(-1)) {
      if (slot) ctx.fail("shape has more than one -1: " + ir::dims_text(*target));
      slot = i;
      out.push_back(Dim(1));
    } else if (d == Dim(0) && !allow_zero) {
      if (known && i >= in.size())
        ctx.fail("shape copies dimension " + std::to_string(i) + " of a rank " + std::to_string(in.size()) +
                 " tensor");
      out.push_back(known ? in[i] : ctx.fresh_symbol());
    } else {
      if (d.is_const() && d.value() < 0) ctx.fail("negative dimension in shape " + ir::dims_text(*target));
      out.push_back(d);
    }
  }
  if (slot) {
    Dims others = out;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(*slot));
    const bool has_zero = std::any_of(others.begin(), others.end(), [](const Dim& d) { return d == Dim(0); });
    if (!known || has_zero) {
      out[*slot] = ctx.fresh_symbol();
    } else {
      const auto whole = ir::const_dims(in);
      const auto part = ir::const_dims(others);
      if (whole && part && numel(*whole) % numel(*part) != 0) {
        ctx.fail(ctx.input(0).text() + " does not divide into " + ir::dims_text(*target));
      }
      out[*slot] = quotient(in, others);
    }
  } else if (known) {
    const auto from = ir::const_dims(in);
    const auto to = ir::const_dims(out);
    if (from && to && numel(*from) != numel(*to))
      ctx.fail(ctx.input(0).text() + " cannot take the shape " + ir::dims_text(out));
  }
  ctx.set_output(0, ctx.dtype(0), std::move(out));
  pass_contents(ctx);
}

void reshape_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  Shape shape = input_ints(ctx, 1);
  const bool allow_zero = ctx.get_int("allowzero", 0) != 0;
  int64_t rest = 1;
  std::optional<size_t> slot;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) {
      if (slot) ctx.fail("shape has more than one -1");
      slot = i;
      continue;
    }
    if (shape[i] == 0 && !allow_zero) {
      if (i >= x.shape().size())
        ctx.fail("shape copies dimension " + std::to_string(i) + " of " + x.type_text());
      shape[i] = x.shape()[i];
    }
    if (shape[i] < 0 || !try_mul(rest, shape[i], &rest))
      ctx.fail("bad dimension " + std::to_string(shape[i]) + " in shape");
  }
  if (slot) {
    if (rest == 0 ? x.numel() != 0 : x.numel() % rest != 0)
      ctx.fail(x.type_text() + " does not divide into the requested shape");
    shape[*slot] = rest == 0 ? 0 : x.numel() / rest;
  }
  pass_bytes(ctx, std::move(shape));
}

void reshape_adapt(AdaptContext& ctx) {
  ctx.node.attrs.erase("consumed_inputs");
  if (ctx.since < 5) attr_to_input(ctx, "shape", 1);
}

// --- Flatten ---

int flatten_axis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

void flatten_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, 2));
    return;
  }
  const Dims& in = ctx.shape(0);
  const int rank = static_cast<int>(in.size());
  const int64_t axis = ctx.node().get_int("axis", 1);
  if (axis < -rank || axis > rank) ctx.fail("axis " + std::to_string(axis) + " is outside [-rank, rank]");
  const auto at = in.begin() + flatten_axis(axis, rank);
  ctx.set_output(0, ctx.dtype(0), Dims{ir::product(Dims(in.begin(), at)), ir::product(Dims(at, in.end()))});
  pass_contents(ctx);
}

void flatten_kernel(KernelContext& ctx) {
  const Shape& in = ctx.in(0).shape();
  const int rank = ctx.in(0).rank();
  const int64_t axis = ctx.get_int("axis", 1);
  if (axis < -rank || axis > rank) ctx.fail("axis " + std::to_string(axis) + " is outside [-rank, rank]");
  const auto at = in.begin() + flatten_axis(axis, rank);
  pass_bytes(ctx, {numel(Shape(in.begin(), at)), numel(Shape(at, in.end()))});
}

// --- Squeeze, Unsqueeze ---

void squeeze_infer(InferContext& ctx) {
  const auto axes = ctx.has_input(1) ? ctx.const_ints(1) : std::nullopt;
  if (!ctx.has_shape(0) || (ctx.has_input(1) && !axes)) {
    const auto count = vector_length(ctx, 1);
    const bool rank_known = ctx.has_shape(0) && count && *count <= static_cast<int64_t>(ctx.shape(0).size());
    ctx.set_output(
        0, ctx.dtype(0),
        rank_known ? std::optional<Dims>(unknown_dims(ctx, ctx.shape(0).size() - static_cast<size_t>(*count)))
                   : std::nullopt);
    return;
  }
  const Dims& in = ctx.shape(0);
  std::vector<bool> drop(in.size(), false);
  if (axes) {
    for (const int a : ctx.axes(*axes, static_cast<int>(in.size()))) {
      const Dim& d = in[static_cast<size_t>(a)];
      if (d.is_const() && d.value() != 1)
        ctx.fail("dimension " + std::to_string(a) + " of " + ctx.input(0).text() + " is not 1");
      drop[static_cast<size_t>(a)] = true;
    }
  } else {
    for (size_t i = 0; i < in.size(); ++i) {
      if (!in[i].is_const()) {  // the rank depends on whether it is 1
        ctx.set_output(0, ctx.dtype(0), std::nullopt);
        return;
      }
      drop[i] = in[i] == Dim(1);
    }
  }
  Dims out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!drop[i]) out.push_back(in[i]);
  }
  ctx.set_output(0, ctx.dtype(0), std::move(out));
  pass_contents(ctx);
}

void squeeze_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  std::vector<bool> drop(x.shape().size(), false);
  if (ctx.has_input(1)) {
    for (const int64_t a : input_ints(ctx, 1)) {
      const auto i = static_cast<size_t>(ctx.axis(a, x.rank()));
      if (x.shape()[i] != 1)
        ctx.fail("dimension " + std::to_string(a) + " of " + x.type_text() + " is not 1");
      drop[i] = true;
    }
  } else {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = x.shape()[i] == 1;
  }
  Shape out;
  for (size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) out.push_back(x.shape()[i]);
  }
  pass_bytes(ctx, std::move(out));
}

void unsqueeze_infer(InferContext& ctx) {
  const auto axes = ctx.const_ints(1);
  if (!ctx.has_shape(0) || !axes) {
    const auto count = vector_length(ctx, 1);
    ctx.set_output(0, ctx.dtype(0),
                   ctx.has_shape(0) && count ? std::optional<Dims>(unknown_dims(
                                                   ctx, ctx.shape(0).size() + static_cast<size_t>(*count)))
                                             : std::nullopt);
    return;
  }
  const Dims& in = ctx.shape(0);
  Dims out(in.size() + axes->size());
  std::vector<bool> added(out.size(), false);
  for (const int a : ctx.axes(*axes, static_cast<int>(out.size()))) added[static_cast<size_t>(a)] = true;
  size_t next = 0;
  for (size_t i = 0; i < out.size(); ++i) out[i] = added[i] ? Dim(1) : in[next++];
  ctx.set_output(0, ctx.dtype(0), std::move(out));
  pass_contents(ctx);
}

void unsqueeze_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> axes = input_ints(ctx, 1);
  Shape out(x.shape().size() + axes.size(), 0);
  for (const int64_t a : axes) {
    const auto i = static_cast<size_t>(ctx.axis(a, static_cast<int>(out.size())));
    if (out[i] == 1) ctx.fail("axes name dimension " + std::to_string(i) + " twice");
    out[i] = 1;
  }
  size_t next = 0;
  for (int64_t& d : out) {
    if (d == 0) d = x.shape()[next++];
  }
  pass_bytes(ctx, std::move(out));
}

/// Axes were an attribute before opset 13.
void axes_adapt(AdaptContext& ctx) {
  if (ctx.since < 13) attr_to_input(ctx, "axes", 1);
}

OpDef view_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
              void (*adapt)(AdaptContext&)) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.adapt = adapt;
  def.cost = no_cost;
  def.narrow = NarrowFloats::kNative;
  return def;
}

}  // namespace

const OpDef& op_Reshape() {
  static const OpDef def = view_op("Reshape", reshape_infer, reshape_kernel, reshape_adapt);
  return def;
}

const OpDef& op_Flatten() {
  static const OpDef def = view_op("Flatten", flatten_infer, flatten_kernel, nullptr);
  return def;
}

const OpDef& op_Squeeze() {
  static const OpDef def = view_op("Squeeze", squeeze_infer, squeeze_kernel, axes_adapt);
  return def;
}

const OpDef& op_Unsqueeze() {
  static const OpDef def = view_op("Unsqueeze", unsqueeze_infer, unsqueeze_kernel, axes_adapt);
  return def;
}

}  // namespace hone::ops
