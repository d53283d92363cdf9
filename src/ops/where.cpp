// Where: condition ? X : Y, all three broadcast. Moves elements of any type. Source: ONNX Where-16.
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

struct Bytes16 {
  uint64_t lo, hi;
};

template <class T>
void select(const Shape& shape, const Tensor& c, const Tensor& x, const Tensor& y, Tensor* out) {
  const BroadcastLoop<3> loop(shape, {&c.shape(), &x.shape(), &y.shape()});
  const int64_t n = loop.inner(), sc = loop.steps(0), sx = loop.steps(1), sy = loop.steps(2);
  loop.each_row([&](int64_t at, const std::array<int64_t, 3>& off) {
    const uint8_t* pc = c.data<uint8_t>() + off[0];
    const T* px = x.data<T>() + off[1];
    const T* py = y.data<T>() + off[2];
    T* dst = out->data<T>() + at;
    for (int64_t i = 0; i < n; ++i) dst[i] = pc[i * sc] != 0 ? px[i * sx] : py[i * sy];
  });
}

void where_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, where_kernel);
  const Tensor &c = ctx.in(0), &x = ctx.in(1), &y = ctx.in(2);
  if (c.dtype() != DType::kBool) ctx.fail("condition must be bool, not " + c.type_text());
  if (x.dtype() != y.dtype()) ctx.fail("X and Y differ in type: " + x.type_text() + " and " + y.type_text());
  auto shape = broadcast_shapes(x.shape(), y.shape());
  if (shape) shape = broadcast_shapes(*shape, c.shape());
  if (!shape)
    ctx.fail("shapes of " + c.type_text() + ", " + x.type_text() + " and " + y.type_text() +
             " do not broadcast");
  Tensor& out = ctx.out(0, x.dtype(), *shape);
  switch (element_bytes(x)) {
    case 1: return select<uint8_t>(*shape, c, x, y, &out);
    case 2: return select<uint16_t>(*shape, c, x, y, &out);
    case 4: return select<uint32_t>(*shape, c, x, y, &out);
    case 8: return select<uint64_t>(*shape, c, x, y, &out);
    case 16: return select<Bytes16>(*shape, c, x, y, &out);
    default: unsupported_type(ctx, x.dtype());
  }
}

void where_infer(InferContext& ctx) {
  const DType t = ctx.dtype(1) != DType::kUndefined ? ctx.dtype(1) : ctx.dtype(2);
  infer_broadcast_as(ctx, t);
  elementwise_contents(ctx, [](const std::vector<Dim>& v) -> std::optional<Dim> {
    if (v[1] == v[2]) return v[1];
    return v[0].value() != 0 ? v[1] : v[2];
  });
}

}  // namespace

const OpDef& op_Where() {
  static const OpDef def{.name = "Where",
                         .infer = where_infer,
                         .kernel = where_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative,
                         .elementwise = true};
  return def;
}

}  // namespace hone::ops
