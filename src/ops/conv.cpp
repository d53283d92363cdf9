// Conv: Y[n,m,o] = B[m] + sum over c, k of X[n, c, o * stride - pad + k * dilation] * W[m,c,k], by groups.
// All versions (1, 11, 22) mean the same.
#include "ops/conv.h"

#include <algorithm>

#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) return ctx.set_output(0, ctx.dtype(0), std::nullopt);
  const Dims& x = ctx.shape(0);
  if (x.size() < 3)
    ctx.fail("input X has rank " + std::to_string(x.size()) +
             ", needs N, C and at least one spatial dimension");
  const auto rank = static_cast<int>(x.size()) - 2;
  const int64_t group = ctx.node().get_int("group", 1);
  if (group < 1) ctx.fail("attribute 'group' is " + std::to_string(group) + ", must be at least 1");
  std::vector<int64_t> kernel = ctx.node().get_ints("kernel_shape");
  Dim channels;
  bool known = true;
  if (ctx.has_shape(1)) {
    const Dims& w = ctx.shape(1);
    if (w.size() != x.size())
      ctx.fail("weights W have rank " + std::to_string(w.size()) + ", input X has " +
               std::to_string(x.size()));
    channels = w[0];
    const auto spatial_dims = ir::const_dims(Dims(w.begin() + 2, w.end()));
    if (spatial_dims) {
      if (!kernel.empty() && kernel != *spatial_dims)
        ctx.fail("attribute 'kernel_shape' differs from the shape of the weights");
      kernel = *spatial_dims;
    }
    if (x[1].is_const() && w[1].is_const() && x[1].value() != w[1].value() * group) {
      ctx.fail("attribute 'group': input has " + x[1].text() + " channels, weights take " + w[1].text() +
               " in each of " + std::to_string(group) + " groups");
    }
    if (w[0].is_const() && w[0].value() % group != 0)
      ctx.fail("attribute 'group' does not divide the " + w[0].text() + " output channels");
  } else {
    known = false;
  }
  if (ctx.has_shape(2) && ctx.shape(2).size() != 1) ctx.fail("bias B must have rank 1");
  if (!known || kernel.empty()) {
    Dims out = {x[0], known ? channels : ctx.fresh_symbol()};
    for (int d = 0; d < rank; ++d) out.push_back(ctx.fresh_symbol());
    return ctx.set_output(0, ctx.dtype(0), out);
  }
  const Fail fail = failer(ctx);
  const Window w = read_window(ctx.node().attrs, rank, kernel, fail);
  for (int d = 0; d < rank; ++d) {
    if (x[static_cast<size_t>(d) + 2].is_const())
      window_out(w, d, x[static_cast<size_t>(d) + 2].value(), fail);
  }
  ctx.set_output(0, ctx.dtype(0), window_dims(w, x, channels));
}

/// Packs the columns of the lowered input: row p is (channel, tap), column c an output position.
template <class T>
void pack_columns(const T* x, const WindowWalk& walk, int rank, int64_t j0, int64_t cols, int64_t p0,
                  int64_t kc, double* dst, int64_t width) {
  thread_local std::vector<int64_t> origins, offsets;
  thread_local std::vector<uint8_t> ready;
  const int64_t taps = walk.taps();
  origins.resize(static_cast<size_t>(cols * rank));
  offsets.resize(static_cast<size_t>(taps * width));
  ready.assign(static_cast<size_t>(taps), 0);
  for (int64_t c = 0; c < cols; ++c) walk.origin(j0 + c, origins.data() + c * rank);
  int64_t channel = p0 / taps, t = p0 % taps;
  for (int64_t p = 0; p < kc; ++p, dst += width) {
    int64_t* o = offsets.data() + t * width;
    if (ready[static_cast<size_t>(t)] == 0) {
      for (int64_t c = 0; c < cols; ++c) o[c] = walk.offset(origins.data() + c * rank, t);
      for (int64_t c = cols; c < width; ++c) o[c] = -1;
      ready[static_cast<size_t>(t)] = 1;
    }
    const T* plane = x + channel * walk.plane();
    for (int64_t c = 0; c < width; ++c) dst[c] = o[c] >= 0 ? static_cast<double>(plane[o[c]]) : 0.0;
    if (++t == taps) {
      t = 0;
      ++channel;
    }
  }
}

template <class T>
void run(KernelContext& ctx, const Window& w, Tensor* out) {
  const Tensor &x = ctx.in(0), &weights = ctx.in(1);
  const int64_t group = ctx.get_int("group", 1);
  const int64_t channels = weights.dim(1), m = weights.dim(0) / group;
  std::vector<int64_t> pads;
  for (int d = 0; d < w.rank(); ++d) pads.push_back(window_pad_begin(w, d, x.dim(d + 2), out->dim(d + 2)));
  const WindowWalk walk(w, spatial(x.shape()), spatial(out->shape()), pads);
  const int64_t n = walk.positions(), k = channels * walk.taps();
  const T* xp = x.data<T>();
  const T* wp = weights.data<T>();
  T* yp = out->data<T>();
  const std::vector<double> bias = ctx.has_input(2)
                                       ? to_doubles(ctx.in(2))
                                       : std::vector<double>(static_cast<size_t>(weights.dim(0)), 0.0);
  const int rank = w.rank();

  RefGemm g;
  g.batch = x.dim(0) * group;
  g.m = m;
  g.n = n;
  g.k = k;
  g.pack_a = [=](int64_t b, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width) {
    pack_strided(wp + (b % group * m + i0) * k + p0, 1, k, rows, kc, dst, width);
  };
  g.pack_b = [=, &walk](int64_t b, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst,
                        int64_t width) {
    pack_columns(xp + b * channels * walk.plane(), walk, rank, j0, cols, p0, kc, dst, width);
  };
  g.store = [=, &bias](int64_t b, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc,
                       int64_t ld) {
    for (int64_t r = 0; r < rows; ++r) {
      const double add = bias[static_cast<size_t>(b % group * m + i0 + r)];
      T* y = yp + (b * m + i0 + r) * n + j0;
      for (int64_t c = 0; c < cols; ++c) y[c] = static_cast<T>(acc[r * ld + c] + add);
    }
  };
  ref_gemm(g);
}

void kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &weights = ctx.in(1);
  const Fail fail = failer(ctx);
  check_conv_operands(ctx, x, weights, /*transposed=*/false);
  const Window w = read_window(ctx.attrs, x.rank() - 2, spatial(weights.shape()), fail);
  Tensor& out = ctx.out(0, window_shape(w, x.shape(), weights.dim(0), fail));
  float_or_throw(ctx, x.dtype(), [&](auto tag) { run<typename decltype(tag)::type>(ctx, w, &out); });
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost c;
  if (inputs.size() < 2 || inputs[1].empty() || outputs.empty()) return c;
  double per_output = 2;
  for (size_t d = 1; d < inputs[1].size(); ++d) per_output *= static_cast<double>(inputs[1][d]);
  c.flops = per_output * static_cast<double>(numel(outputs[0]));
  return c;
}

}  // namespace

std::vector<double> to_doubles(const Tensor& t) {
  std::vector<double> v(static_cast<size_t>(t.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = t.at(static_cast<int64_t>(i));
  return v;
}

void check_conv_operands(const KernelContext& ctx, const Tensor& x, const Tensor& weights, bool transposed) {
  const int64_t group = ctx.get_int("group", 1);
  if (group < 1) ctx.fail("attribute 'group' is " + std::to_string(group) + ", must be at least 1");
  if (x.rank() < 3 || weights.rank() != x.rank())
    ctx.fail("X " + x.type_text() + " and W " + weights.type_text() + " do not fit");
  const int64_t takes = transposed ? weights.dim(0) : weights.dim(1) * group;
  if (x.dim(1) != takes || weights.dim(0) % group != 0) {
    ctx.fail("attribute 'group': X " + x.type_text() + " and W " + weights.type_text() + " do not fit in " +
             std::to_string(group) + " groups");
  }
  const int64_t makes = transposed ? weights.dim(1) * group : weights.dim(0);
  if (ctx.has_input(2) && ctx.in(2).shape() != Shape{makes})
    ctx.fail("bias " + ctx.in(2).type_text() + " is not one value for each of " + std::to_string(makes) +
             " channels");
}

const OpDef& op_Conv() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "Conv";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
