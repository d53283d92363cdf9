// SpaceToDepth and DepthToSpace: blocks of pixels to and from channels. Source: ONNX, opset 28.
//
// SpaceToDepth DCR (default): y[n, (bh*b + bw)*C + c, h, w] = x[n, c, h*b + bh, w*b + bw]; CRD: channel c*b*b
// + bh*b + bw. DepthToSpace inverts it in the same mode.
#include "ops/broadcast.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

Dim exact_quotient(const InferContext& ctx, const Dim& a, int64_t b) {
  if (a.is_const() && a.value() % b != 0)
    ctx.fail("dimension " + a.text() + " is not a multiple of " + std::to_string(b));
  return Dim::floordiv(a, Dim(b));
}

int64_t block_of(const InferContext& ctx) {
  const int64_t b = ctx.node().get_int("blocksize", 0);
  if (b < 1 || b > 65536) ctx.fail("blocksize = " + std::to_string(b) + " must be positive");
  return b;
}

void depth_infer(InferContext& ctx, bool to_depth) {
  const int64_t b = block_of(ctx);
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, 4));
    return;
  }
  const Dims& x = ctx.shape(0);
  if (x.size() != 4) ctx.fail("input must have rank 4, not " + ctx.input(0).text());
  if (to_depth) {
    ctx.set_output(0, ctx.dtype(0),
                   Dims{x[0], x[1] * Dim(b * b), exact_quotient(ctx, x[2], b), exact_quotient(ctx, x[3], b)});
  } else {
    ctx.set_output(0, ctx.dtype(0),
                   Dims{x[0], exact_quotient(ctx, x[1], b * b), x[2] * Dim(b), x[3] * Dim(b)});
  }
}

/// Both directions copy the same six-dimensional view [n, c, h, bh, w, bw]; one side is the image, the other
/// the channels.
void move_blocks(KernelContext& ctx, bool to_depth) {
  const Tensor& x = ctx.in(0);
  const int64_t b = ctx.get_int("blocksize", 0);
  if (x.rank() != 4 || b < 1 || b > 65536) ctx.fail("input must have rank 4 and blocksize be positive");
  const std::string mode = ctx.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") ctx.fail("mode must be DCR or CRD, not '" + mode + "'");
  const int64_t n = x.dim(0);
  const int64_t c = to_depth ? x.dim(1) : x.dim(1) / (b * b);
  const int64_t h = to_depth ? x.dim(2) / b : x.dim(2), w = to_depth ? x.dim(3) / b : x.dim(3);
  if (to_depth ? (h * b != x.dim(2) || w * b != x.dim(3)) : c * b * b != x.dim(1))
    ctx.fail(x.type_text() + " does not divide into blocks of " + std::to_string(b));
  const Shape result = to_depth ? Shape{n, c * b * b, h, w} : Shape{n, c, h * b, w * b};
  Tensor& y = ctx.out(0, x.dtype(), result);
  if (y.numel() == 0) return;
  const Shape view{n, c, h, b, w, b};
  const int64_t plane = h * w, step_c = mode == "DCR" ? plane : b * b * plane,
                step_b = mode == "DCR" ? c * plane : plane;
  const std::vector<int64_t> image{c * h * b * w * b, h * b * w * b, b * w * b, w * b, b, 1};
  const std::vector<int64_t> depth{c * b * b * plane, step_c, w, b * step_b, 1, step_b};
  copy_strided(y.raw(), to_depth ? depth : image, x.raw(), to_depth ? image : depth, view, element_bytes(x));
}

void space_to_depth_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, space_to_depth_kernel);
  move_blocks(ctx, true);
}
void depth_to_space_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, depth_to_space_kernel);
  move_blocks(ctx, false);
}

}  // namespace

const OpDef& op_SpaceToDepth() {
  static const OpDef def{.name = "SpaceToDepth",
                         .infer = [](InferContext& ctx) { depth_infer(ctx, true); },
                         .kernel = space_to_depth_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_DepthToSpace() {
  static const OpDef def{.name = "DepthToSpace",
                         .infer = [](InferContext& ctx) { depth_infer(ctx, false); },
                         .kernel = depth_to_space_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
