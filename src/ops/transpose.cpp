// Transpose: y[i_perm[0], ...] = x[i_0, ...]. Source: ONNX, opsets up to 28.
#include "ops/broadcast.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

/// The permutation (reversal by default), or an empty list when the attribute is not one of `rank`.
std::vector<int64_t> permutation(const AttrMap& attrs, size_t rank) {
  std::vector<int64_t> perm = ir::attr_ints(attrs, "perm");
  if (perm.empty()) {
    for (size_t i = rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
    return perm;
  }
  std::vector<bool> seen(rank, false);
  if (perm.size() != rank) return {};
  for (int64_t& p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(p)]) return {};
    seen[static_cast<size_t>(p)] = true;
  }
  return perm;
}

void transpose_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    const size_t rank = ctx.node().get_ints("perm").size();
    ctx.set_output(0, ctx.dtype(0), rank > 0 ? std::optional<Dims>(unknown_dims(ctx, rank)) : std::nullopt);
    return;
  }
  const Dims& in = ctx.shape(0);
  const std::vector<int64_t> perm = permutation(ctx.node().attrs, in.size());
  if (perm.size() != in.size())
    ctx.fail("perm is not a permutation of " + std::to_string(in.size()) + " dimensions");
  Dims out;
  for (const int64_t p : perm) out.push_back(in[static_cast<size_t>(p)]);
  ctx.set_output(0, ctx.dtype(0), std::move(out));
  const auto known = known_contents(ctx, 0);
  const auto shape = ir::const_dims(in);
  if (!known || !shape) return;
  const std::vector<int64_t> dense = dense_strides(*shape);
  std::vector<int64_t> extents, strides;
  for (const int64_t p : perm) {
    extents.push_back((*shape)[static_cast<size_t>(p)]);
    strides.push_back(dense[static_cast<size_t>(p)]);
  }
  strided_contents(ctx, *known, extents, 0, strides);
}

void transpose_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, transpose_kernel);
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> perm = permutation(ctx.attrs, x.shape().size());
  if (perm.size() != x.shape().size())
    ctx.fail("perm is not a permutation of the dimensions of " + x.type_text());
  const std::vector<int64_t> in_strides = dense_strides(x.shape());
  Shape shape;
  std::vector<int64_t> strides;
  for (const int64_t p : perm) {
    shape.push_back(x.shape()[static_cast<size_t>(p)]);
    strides.push_back(in_strides[static_cast<size_t>(p)]);
  }
  Tensor& y = ctx.out(0, x.dtype(), shape);
  copy_strided(y.raw(), dense_strides(shape), x.raw(), strides, shape, element_bytes(x));
}

}  // namespace

const OpDef& op_Transpose() {
  static const OpDef def{.name = "Transpose",
                         .infer = transpose_infer,
                         .kernel = transpose_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
