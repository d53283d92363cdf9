// ArgMax, ArgMin: index of the largest (smallest) element along an axis; the first of several, or the last
// with select_last_index. NaN wins over every number, so that the index names what ReduceMax and ReduceMin
// return. Older versions lack select_last_index.
#include "ops/axis_view.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) return ctx.set_output(0, DType::kI64, std::nullopt);
  Dims out = ctx.shape(0);
  const int axis = ctx.axis(ctx.node().get_int("axis", 0), static_cast<int>(out.size()));
  if (ctx.node().get_int("keepdims", 1) != 0)
    out[static_cast<size_t>(axis)] = Dim(1);
  else
    out.erase(out.begin() + axis);
  ctx.set_output(0, DType::kI64, out);
}

template <bool kMax>
void kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const int axis = ctx.axis(ctx.get_int("axis", 0), x.rank());
  const bool last = ctx.get_int("select_last_index", 0) != 0;
  const AxisView v(x.shape(), axis);
  Shape shape = x.shape();
  if (ctx.get_int("keepdims", 1) != 0)
    shape[static_cast<size_t>(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  Tensor& out = ctx.out(0, DType::kI64, shape);
  if (v.n == 0 && out.numel() > 0) ctx.fail("the axis has no elements to choose from");
  int64_t* y = out.data<int64_t>();
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xp = x.data<T>();
    ref_parallel(v.outer, static_cast<double>(v.n * v.inner), [&](int64_t o) {
      for (int64_t k = 0; k < v.inner; ++k) {
        const T* line = xp + o * v.n * v.inner + k;
        int64_t best = 0;
        for (int64_t i = 1; i < v.n; ++i) {
          const T e = line[i * v.inner], b = line[best * v.inner];
          const bool nan_e = e != e, nan_b = b != b;
          const bool better = nan_e ? !nan_b : !nan_b && (kMax ? e > b : e < b);
          const bool equal = nan_e ? nan_b : e == b;
          if (better || (last && equal)) best = i;
        }
        y[o * v.inner + k] = best;
      }
    });
  });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = static_cast<double>(numel(inputs[0]));
  return c;
}

OpDef make(const char* name, void (*run)(KernelContext&)) {
  OpDef d;
  d.name = name;
  d.infer = infer;
  d.kernel = run;
  d.cost = cost;
  return d;
}

}  // namespace

const OpDef& op_ArgMax() {
  static const OpDef def = make("ArgMax", kernel<true>);
  return def;
}
const OpDef& op_ArgMin() {
  static const OpDef def = make("ArgMin", kernel<false>);
  return def;
}

}  // namespace hone::ops
