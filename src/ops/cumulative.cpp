// CumSum, CumProd along an axis; `exclusive` leaves an element out of its own result, `reverse` runs from the
// end. Floats accumulate in f64.
#include "ops/axis_view.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  infer_same(ctx);
  if (!ctx.has_shape(0)) return;
  if (const auto axis = ctx.const_ints(1); axis && axis->size() == 1)
    ctx.axis((*axis)[0], static_cast<int>(ctx.shape(0).size()));
}

template <bool kSum>
void kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> axis = ctx.in(1).to_i64();
  if (axis.size() != 1) ctx.fail("axis must be one value, is " + ctx.in(1).type_text());
  const AxisView v(x.shape(), ctx.axis(axis[0], x.rank()));
  const bool exclusive = ctx.get_int("exclusive", 0) != 0, reverse = ctx.get_int("reverse", 0) != 0;
  Tensor& out = ctx.out(0, x.shape());
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = std::conditional_t<std::is_integral_v<T>, T, double>;
    ref_parallel(v.outer * v.inner, static_cast<double>(v.n), [&](int64_t line) {
      const int64_t at = line / v.inner * v.n * v.inner + line % v.inner;
      const T* xp = x.data<T>() + at;
      T* yp = out.data<T>() + at;
      Acc acc = kSum ? Acc{0} : Acc{1};
      for (int64_t s = 0; s < v.n; ++s) {
        const int64_t i = (reverse ? v.n - 1 - s : s) * v.inner;
        const Acc before = acc;
        acc =
            kSum ? wrap_add<Acc>(acc, static_cast<Acc>(xp[i])) : wrap_mul<Acc>(acc, static_cast<Acc>(xp[i]));
        yp[i] = static_cast<T>(exclusive ? before : acc);
      }
    });
  });
}

OpDef make(const char* name, void (*run)(KernelContext&)) {
  OpDef d;
  d.name = name;
  d.infer = infer;
  d.kernel = run;
  d.cost = elementwise_cost;
  return d;
}

}  // namespace

const OpDef& op_CumSum() {
  static const OpDef def = make("CumSum", kernel<true>);
  return def;
}
const OpDef& op_CumProd() {
  static const OpDef def = make("CumProd", kernel<false>);
  return def;
}

}  // namespace hone::ops
