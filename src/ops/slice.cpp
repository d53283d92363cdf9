// Slice: x[start:end:step] along some axes, with NumPy's clamping as the ONNX text words it. Source: ONNX
// Slice-13.
//
// With extent d and a positive step: negative bounds count from the end; start and end are clamped to [0, d].
// With a negative step start is clamped to [0, d-1] and end to [-1, d-1]. Elements: max(0, ceil((end - start)
// / step)).
#include <algorithm>

#include "ops/broadcast.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

struct Range {
  int64_t start, step, count;
};

Range clamp_range(int64_t start, int64_t end, int64_t step, int64_t d) {
  if (d == 0) return {0, step, 0};
  const auto from_end = [d](int64_t v) { return v < 0 ? v + d : v; };  // v < 0 and d >= 0: no overflow
  if (step > 0) {
    const int64_t s = std::clamp<int64_t>(from_end(start), 0, d),
                  e = std::clamp<int64_t>(from_end(end), 0, d);
    return {s, step, e > s ? (e - s - 1) / step + 1 : 0};
  }
  const int64_t s = std::clamp<int64_t>(from_end(start), 0, d - 1),
                e = std::clamp<int64_t>(from_end(end), -1, d - 1);
  if (s <= e) return {s, step, 0};
  const uint64_t stride = uint64_t{0} - static_cast<uint64_t>(step);  // |INT64_MIN| included
  return {s, step, static_cast<int64_t>(static_cast<uint64_t>(s - e - 1) / stride) + 1};
}

constexpr int64_t kFar = INT32_MAX;  // bounds at or beyond it mean "to the end", as exporters write them

/// A bound with a positive step, at most d; nullopt when its sign is not known.
std::optional<Dim> upper_bound(const Dim& v, const Dim& d) {
  if (v.is_const() && v.value() >= kFar) return d;
  if (v.is_const() && v.value() <= -kFar) return Dim(0);
  if (v == d) return d;
  if (v.is_const() && v.value() < 0)
    return d.is_const() ? Dim(std::max<int64_t>(0, d.value() + v.value())) : Dim::max(Dim(0), d + v);
  if (!provably_nonneg(v))
    return provably_nonneg(Dim(-1) - v) ? std::optional<Dim>(Dim::max(Dim(0), d + v)) : std::nullopt;
  return provably_nonneg(d - v) ? v : Dim::min(v, d);
}

/// Extent of a slice with symbols; nullopt when it cannot be said.
std::optional<Dim> slice_extent(const Dim& start, const Dim& end, int64_t step, const Dim& d) {
  if (start.is_const() && end.is_const() && d.is_const())
    return Dim(clamp_range(start.value(), end.value(), step, d.value()).count);
  if (step < 0) {
    const bool from_end =
        (start.is_const() && (start.value() == -1 || start.value() >= kFar)) || start == d - Dim(1);
    const bool to_begin = end.is_const() && end.value() <= -kFar;
    if (from_end && to_begin && step != INT64_MIN) return Dim::ceildiv(d, Dim(-step));
    return std::nullopt;
  }
  const auto e = upper_bound(end, d);
  if (!e) return std::nullopt;
  Dim length;
  if (start.is_const() && start.value() < 0) {
    if (*e == d && start.value() > -kFar) {
      length = Dim::min(d, Dim(-start.value()));
    } else {
      const Dim s = start.value() <= -kFar ? Dim(0) : Dim::max(Dim(0), d + start);
      length = Dim::max(Dim(0), *e - s);
    }
  } else {
    if (!provably_nonneg(start)) return std::nullopt;
    length = *e - start;  // a start beyond d gives a negative number: nothing
    if (!provably_nonneg(length)) length = Dim::max(Dim(0), length);
  }
  return step == 1 ? length : Dim::ceildiv(length, Dim(step));
}

void slice_contents(InferContext& ctx, const std::vector<int>& axes, const Dims& starts, const Dims& ends,
                    const std::vector<int64_t>& steps) {
  const auto known = known_contents(ctx, 0);
  auto shape = ir::const_dims(ctx.shape(0));
  if (!known || !shape) return;
  std::vector<int64_t> strides = dense_strides(*shape);
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!starts[i].is_const() || !ends[i].is_const()) return;
    const auto a = static_cast<size_t>(axes[i]);
    const Range r = clamp_range(starts[i].value(), ends[i].value(), steps[i], (*shape)[a]);
    (*shape)[a] = r.count;
    offset += r.start * strides[a];
    if (r.count > 1) strides[a] *= r.step;
  }
  strided_contents(ctx, *known, *shape, offset, strides);
}

void slice_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  Dims out = ctx.shape(0);
  const int rank = static_cast<int>(out.size());
  const auto starts = ctx.contents(1), ends = ctx.contents(2);
  std::optional<std::vector<int64_t>> axes, steps;
  const auto count =
      starts ? std::optional<int64_t>(static_cast<int64_t>(starts->size())) : vector_length(ctx, 1);
  if (ctx.has_input(3)) {
    axes = ctx.const_ints(3);
  } else if (count) {
    axes.emplace();
    for (int64_t i = 0; i < *count; ++i) axes->push_back(i);
  }
  if (ctx.has_input(4)) {
    steps = ctx.const_ints(4);
  } else if (count) {
    steps.emplace(static_cast<size_t>(*count), 1);
  }
  if (!axes) {
    ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, out.size()));
    return;
  }
  const std::vector<int> at = ctx.axes(*axes, rank);
  if ((starts && starts->size() != at.size()) || (ends && ends->size() != at.size()) ||
      (steps && steps->size() != at.size())) {
    ctx.fail("starts, ends, axes and steps differ in length");
  }
  for (size_t i = 0; i < at.size(); ++i) {
    Dim& d = out[static_cast<size_t>(at[i])];
    if (steps && (*steps)[i] == 0) ctx.fail("step 0");
    const auto extent =
        starts && ends && steps ? slice_extent((*starts)[i], (*ends)[i], (*steps)[i], d) : std::nullopt;
    d = extent ? *extent : ctx.fresh_symbol();
  }
  ctx.set_output(0, ctx.dtype(0), std::move(out));
  if (starts && ends && steps) slice_contents(ctx, at, *starts, *ends, *steps);
}

void slice_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, slice_kernel);
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> starts = input_ints(ctx, 1), ends = input_ints(ctx, 2);
  std::vector<int64_t> axes, steps(starts.size(), 1);
  if (ctx.has_input(3)) {
    axes = input_ints(ctx, 3);
  } else {
    for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (ctx.has_input(4)) steps = input_ints(ctx, 4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size()) {
    ctx.fail("starts, ends, axes and steps differ in length");
  }
  Shape shape = x.shape();
  std::vector<int64_t> strides = dense_strides(x.shape());
  std::vector<bool> seen(shape.size(), false);
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(ctx.axis(axes[i], x.rank()));
    if (seen[a]) ctx.fail("axes name dimension " + std::to_string(a) + " twice");
    seen[a] = true;
    if (steps[i] == 0) ctx.fail("step 0");
    const Range r = clamp_range(starts[i], ends[i], steps[i], x.shape()[a]);
    shape[a] = r.count;
    offset += r.start * strides[a];
    if (r.count > 1) strides[a] *= r.step;  // |step| < extent then: no overflow
  }
  Tensor& y = ctx.out(0, x.dtype(), shape);
  if (y.numel() == 0) return;
  const int64_t bytes = element_bytes(x);
  copy_strided(y.raw(), dense_strides(shape), static_cast<const char*>(x.raw()) + offset * bytes, strides,
               shape, bytes);
}

/// Slice-1 had attributes.
void slice_adapt(AdaptContext& ctx) {
  if (ctx.since >= 10) return;
  attr_to_input(ctx, "starts", 1);
  attr_to_input(ctx, "ends", 2);
  attr_to_input(ctx, "axes", 3);
}

}  // namespace

const OpDef& op_Slice() {
  static const OpDef def{.name = "Slice",
                         .infer = slice_infer,
                         .kernel = slice_kernel,
                         .adapt = slice_adapt,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
