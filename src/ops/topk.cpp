// TopK: the k largest (smallest) elements along an axis and their indices, sorted; of equal elements the
// lower index comes first. NaN counts as larger than every number. TopK-1 has k as an attribute; 1 and 10
// give the largest, sorted.
#include <algorithm>
#include <numeric>

#include "ops/axis_view.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  std::optional<Dims> out;
  if (ctx.has_shape(0)) {
    out = ctx.shape(0);
    Dim& d =
        (*out)[static_cast<size_t>(ctx.axis(ctx.node().get_int("axis", -1), static_cast<int>(out->size())))];
    const auto k = ctx.contents(1);
    if (k && k->size() == 1) {
      const Dim& want = (*k)[0];
      if (want.is_const() && (want.value() < 0 || (d.is_const() && want.value() > d.value())))
        ctx.fail("K is " + want.text() + " of " + d.text() + " elements");
      d = want;
    } else {
      d = ctx.fresh_symbol();
    }
  }
  ctx.set_output(0, ctx.dtype(0), out);
  ctx.set_output(1, DType::kI64, out);
}

void kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const int axis = ctx.axis(ctx.get_int("axis", -1), x.rank());
  const std::vector<int64_t> want = ctx.in(1).to_i64();
  const AxisView v(x.shape(), axis);
  if (want.size() != 1 || want[0] < 0 || want[0] > v.n)
    ctx.fail("K must be one value from 0 to " + std::to_string(v.n));
  const int64_t k = want[0];
  const bool largest = ctx.get_int("largest", 1) != 0;
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = k;
  Tensor* values = ctx.wants(0) ? &ctx.out(0, shape) : nullptr;
  Tensor* indices = ctx.wants(1) ? &ctx.out(1, shape) : nullptr;
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xp = x.data<T>();
    T* vp = values != nullptr ? values->data<T>() : nullptr;
    ref_parallel(v.outer * v.inner, static_cast<double>(10 * v.n), [&](int64_t line) {
      const int64_t o = line / v.inner, i = line % v.inner;
      const T* p = xp + o * v.n * v.inner + i;
      std::vector<int64_t> order(static_cast<size_t>(v.n));
      std::iota(order.begin(), order.end(), 0);
      const auto before = [&](int64_t a, int64_t b) {
        const T ea = p[a * v.inner], eb = p[b * v.inner];
        const bool nan_a = ea != ea, nan_b = eb != eb;
        if (nan_a != nan_b) return largest ? nan_a : nan_b;
        if (!nan_a && ea != eb) return largest ? ea > eb : ea < eb;
        return a < b;
      };
      std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
      for (int64_t j = 0; j < k; ++j) {
        const int64_t from = order[static_cast<size_t>(j)], to = (o * k + j) * v.inner + i;
        if (vp != nullptr) vp[to] = p[from * v.inner];
        if (indices != nullptr) indices->data<int64_t>()[to] = from;
      }
    });
  });
}

void adapt(AdaptContext& ctx) {
  if (ctx.since >= 10) return;
  const int64_t k = ctx.node.get_int("k", -1);
  if (k < 0) ctx.fail("attribute 'k' is " + std::to_string(k));
  ctx.node.attrs.erase("k");
  ctx.graph.append_input(&ctx.node, ctx.ints("k", {k}));
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = 10.0 * static_cast<double>(numel(inputs[0]));
  return c;
}

}  // namespace

const OpDef& op_TopK() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "TopK";
    d.infer = infer;
    d.kernel = kernel;
    d.adapt = adapt;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
