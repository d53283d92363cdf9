// RotaryEmbedding: pairs (x1, x2) of each head's first rotary_embedding_dim elements, halves or neighbours
// (interleaved), become (cos * x1 - sin * x2, sin * x1 + cos * x2); the rest passes. cos and sin come by
// position: cache[position_ids[b,s]], or cache[b,s] without ids.
#include "ops/conv.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  infer_same(ctx);
  if (!ctx.has_shape(0)) return;
  const size_t rank = ctx.shape(0).size();
  if (rank != 3 && rank != 4) ctx.fail("input X must have rank 3 or 4, is " + ctx.input(0).text());
  if (rank == 3 && ctx.node().get_int("num_heads", 0) < 1)
    ctx.fail("attribute 'num_heads' must be positive for a 3-D input");
}

void kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &cos = ctx.in(1), &sin = ctx.in(2);
  const bool flat = x.rank() == 3, interleaved = ctx.get_int("interleaved", 0) != 0;
  if (!flat && x.rank() != 4) ctx.fail("input X must have rank 3 or 4, is " + x.type_text());
  const int64_t heads = flat ? ctx.get_int("num_heads", 0) : x.dim(1);
  if (flat && (heads < 1 || x.dim(2) % heads != 0))
    ctx.fail("attribute 'num_heads': " + std::to_string(heads) + " does not divide the last dimension of " +
             x.type_text());
  const int64_t batch = x.dim(0), rows = flat ? x.dim(1) : x.dim(2),
                size = flat ? x.dim(2) / heads : x.dim(3);
  int64_t rotary = ctx.get_int("rotary_embedding_dim", 0);
  if (rotary == 0) rotary = size;
  if (rotary < 0 || rotary > size || rotary % 2 != 0)
    ctx.fail("attribute 'rotary_embedding_dim': " + std::to_string(rotary) +
             " is not even and at most the head size " + std::to_string(size));
  const int64_t half = rotary / 2;

  std::vector<int64_t> ids;
  const Shape by_row = {batch, rows, half};
  if (ctx.has_input(3)) {
    ids = ctx.in(3).to_i64();
    if (ctx.in(3).shape() != Shape{batch, rows})
      ctx.fail("position_ids " + ctx.in(3).type_text() + " must be [batch, sequence]");
    if (cos.rank() != 2 || cos.dim(1) != half || sin.shape() != cos.shape())
      ctx.fail("cos_cache " + cos.type_text() + " and sin_cache must be [positions, " + std::to_string(half) +
               "]");
    for (const int64_t id : ids) {
      if (id < 0 || id >= cos.dim(0))
        ctx.fail("position_ids holds " + std::to_string(id) + ", the caches have " +
                 std::to_string(cos.dim(0)) + " positions");
    }
  } else if (cos.shape() != by_row || sin.shape() != by_row) {
    ctx.fail("cos_cache " + cos.type_text() + " and sin_cache must be " + type_text(cos.dtype(), by_row));
  }
  Tensor& out = ctx.out(0, x.shape());
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ref_parallel(batch * heads * rows, static_cast<double>(4 * size), [&](int64_t i) {
      // i counts rows in memory order: b, s, h when flat, else b, h, s.
      const int64_t b = i / (heads * rows), s = flat ? i / heads % rows : i % rows;
      const int64_t at = (ids.empty() ? b * rows + s : ids[static_cast<size_t>(b * rows + s)]) * half;
      const T *xp = x.data<T>() + i * size, *c = cos.data<T>() + at, *n = sin.data<T>() + at;
      T* y = out.data<T>() + i * size;
      for (int64_t k = 0; k < half; ++k) {
        const int64_t first = interleaved ? 2 * k : k, second = interleaved ? 2 * k + 1 : half + k;
        const auto x1 = static_cast<double>(xp[first]), x2 = static_cast<double>(xp[second]);
        const auto cv = static_cast<double>(c[k]), sv = static_cast<double>(n[k]);
        y[first] = static_cast<T>(cv * x1 - sv * x2);
        y[second] = static_cast<T>(sv * x1 + cv * x2);
      }
      for (int64_t k = rotary; k < size; ++k) y[k] = xp[k];
    });
  });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = 3.0 * static_cast<double>(numel(inputs[0]));
  return c;
}

}  // namespace

const OpDef& op_RotaryEmbedding() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "RotaryEmbedding";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
