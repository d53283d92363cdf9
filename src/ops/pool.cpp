// MaxPool, AveragePool, LpPool. Windows and output sizes: window.h.
//   MaxPool      largest element of the window's inside; NaN if one is NaN; a window without inside gives the
//   type's lowest value AveragePool  mean of the inside, or with count_include_pad of the window as far as it
//   lies over the explicitly padded input LpPool       (sum |x|^p)^(1/p)
// Older versions lack ceil_mode, dilations, count_include_pad or the indices output; LpPool-1 has p as a
// float.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/dispatch.h"
#include "ops/ref_gemm.h"
#include "ops/window.h"

namespace hone::ops {
namespace {

void infer_pool(InferContext& ctx) {
  const bool indices = ctx.node().op == "MaxPool";
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    if (indices) ctx.set_output(1, DType::kI64, std::nullopt);
    return;
  }
  const Dims& x = ctx.shape(0);
  if (x.size() < 3)
    ctx.fail("input X has rank " + std::to_string(x.size()) +
             ", needs N, C and at least one spatial dimension");
  const Fail fail = failer(ctx);
  const Window w = read_window(ctx.node().attrs, static_cast<int>(x.size()) - 2, {}, fail);
  for (int d = 0; d < w.rank(); ++d) {
    if (x[static_cast<size_t>(d) + 2].is_const())
      window_out(w, d, x[static_cast<size_t>(d) + 2].value(), fail);
  }
  const Dims out = window_dims(w, x, x[1]);
  ctx.set_output(0, ctx.dtype(0), out);
  if (indices) ctx.set_output(1, DType::kI64, out);
}

/// Everything a pool needs to know of one call.
struct Pool {
  Window window;
  Shape out_shape;
  std::vector<int64_t> in, out, pad_begin, pad_end;
  int64_t planes = 0;

  explicit Pool(KernelContext& ctx) {
    const Tensor& x = ctx.in(0);
    if (x.rank() < 3) ctx.fail("input X " + x.type_text() + " needs N, C and at least one spatial dimension");
    const Fail fail = failer(ctx);
    window = read_window(ctx.attrs, x.rank() - 2, {}, fail);
    out_shape = window_shape(window, x.shape(), x.dim(1), fail);
    in = spatial(x.shape());
    out = spatial(out_shape);
    for (int d = 0; d < window.rank(); ++d) {
      const auto i = static_cast<size_t>(d);
      pad_begin.push_back(window_pad_begin(window, d, in[i], out[i]));
      pad_end.push_back(window_pad_end(window, d, in[i], out[i]));
    }
    planes = x.dim(0) * x.dim(1);
  }

  /// fn(plane, walk, position, origin of the window) for every output element, planes in parallel.
  template <class F>
  void each(F&& fn) const {
    const WindowWalk walk(window, in, out, pad_begin);
    const int64_t n = walk.positions();
    ref_parallel(planes, static_cast<double>(n * walk.taps()), [&](int64_t plane) {
      std::vector<int64_t> origin(in.size());
      for (int64_t i = 0; i < n; ++i) {
        walk.origin(i, origin.data());
        fn(plane, walk, i, origin.data());
      }
    });
  }
};

// --- MaxPool ---

/// Row-major offset in a plane as the Indices output counts it: column-major swaps the roles of the spatial
/// dimensions.
int64_t stored_index(const std::vector<int64_t>& in, int64_t offset, bool column_major) {
  if (!column_major) return offset;
  int64_t out = 0;
  std::vector<int64_t> coords(in.size());
  for (size_t d = in.size(); d-- > 0;) {
    coords[d] = offset % in[d];
    offset /= in[d];
  }
  for (size_t d = in.size(); d-- > 0;) out = out * in[d] + coords[d];
  return out;
}

template <class T>
void max_pool(KernelContext& ctx, const Pool& pool, Tensor* out, Tensor* indices) {
  const T* x = ctx.in(0).data<T>();
  T* y = out->data<T>();
  int64_t* index = indices != nullptr ? indices->data<int64_t>() : nullptr;
  const bool column_major = ctx.get_int("storage_order", 0) != 0;
  T lowest = std::numeric_limits<T>::lowest();
  if constexpr (std::numeric_limits<T>::has_infinity) lowest = -std::numeric_limits<T>::infinity();
  pool.each([&](int64_t plane, const WindowWalk& walk, int64_t position, const int64_t* origin) {
    const T* p = x + plane * walk.plane();
    T best = lowest;
    int64_t at = -1;
    for (int64_t t = 0, taps = walk.taps(); t < taps; ++t) {
      const int64_t offset = walk.offset(origin, t);
      if (offset < 0) continue;
      const T v = p[offset];
      if (at < 0 || v > best || (v != v && best == best)) {
        best = v;
        at = offset;
      }
    }
    const int64_t to = plane * walk.positions() + position;
    y[to] = best;
    if (index != nullptr)
      index[to] = at < 0 ? 0 : plane * walk.plane() + stored_index(pool.in, at, column_major);
  });
}

void kernel_max(KernelContext& ctx) {
  const Pool pool(ctx);
  Tensor* indices = ctx.wants(1) ? &ctx.out(1, pool.out_shape) : nullptr;
  Tensor& out = ctx.out(0, pool.out_shape);
  number_or_throw(ctx, ctx.in(0).dtype(),
                  [&](auto tag) { max_pool<typename decltype(tag)::type>(ctx, pool, &out, indices); });
}

// --- AveragePool ---

/// Elements of the window that lie over the padded input: the overhang that ceil_mode adds behind the padding
/// does not count.
int64_t padded_count(const Pool& pool, const int64_t* origin) {
  int64_t count = 1;
  for (int d = 0; d < pool.window.rank(); ++d) {
    const auto i = static_cast<size_t>(d);
    const int64_t room = pool.in[i] + pool.pad_end[i] - origin[d];  // from the window's first element
    const int64_t fits = room <= 0 ? 0 : (room - 1) / pool.window.dilations[i] + 1;
    count *= std::min(fits, pool.window.kernel[i]);
  }
  return count;
}

void kernel_average(KernelContext& ctx) {
  const Pool pool(ctx);
  const bool include_pad = ctx.get_int("count_include_pad", 0) != 0;
  Tensor& out = ctx.out(0, pool.out_shape);
  float_or_throw(ctx, ctx.in(0).dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = ctx.in(0).data<T>();
    T* y = out.data<T>();
    pool.each([&](int64_t plane, const WindowWalk& walk, int64_t position, const int64_t* origin) {
      const T* p = x + plane * walk.plane();
      double sum = 0;
      int64_t count = 0;
      for (int64_t t = 0, taps = walk.taps(); t < taps; ++t) {
        const int64_t offset = walk.offset(origin, t);
        if (offset < 0) continue;
        sum += static_cast<double>(p[offset]);
        ++count;
      }
      if (include_pad) count = padded_count(pool, origin);
      y[plane * walk.positions() + position] =
          static_cast<T>(count == 0 ? 0.0 : sum / static_cast<double>(count));
    });
  });
}

// --- LpPool ---

void kernel_lp(KernelContext& ctx) {
  const Pool pool(ctx);
  const int64_t p = ctx.get_int("p", 2);
  if (p < 1) ctx.fail("attribute 'p' is " + std::to_string(p) + ", must be at least 1");
  Tensor& out = ctx.out(0, pool.out_shape);
  float_or_throw(ctx, ctx.in(0).dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = ctx.in(0).data<T>();
    T* y = out.data<T>();
    pool.each([&](int64_t plane, const WindowWalk& walk, int64_t position, const int64_t* origin) {
      double sum = 0;
      for (int64_t t = 0, taps = walk.taps(); t < taps; ++t) {
        const int64_t offset = walk.offset(origin, t);
        if (offset < 0) continue;
        const auto v = static_cast<double>(x[plane * walk.plane() + offset]);
        sum += p == 1 ? std::fabs(v) : p == 2 ? v * v : std::pow(std::fabs(v), static_cast<double>(p));
      }
      const double norm = p == 1   ? sum
                          : p == 2 ? std::sqrt(sum)
                                   : std::pow(sum, 1.0 / static_cast<double>(p));
      y[plane * walk.positions() + position] = static_cast<T>(norm);
    });
  });
}

Cost cost_pool(const AttrMap& attrs, std::span<const Shape>, std::span<const Shape> outputs) {
  Cost c;
  if (outputs.empty()) return c;
  c.flops = static_cast<double>(numel(outputs[0]));
  for (const int64_t k : ir::attr_ints(attrs, "kernel_shape")) c.flops *= static_cast<double>(k);
  return c;
}

OpDef pool_def(const char* name, void (*kernel)(KernelContext&)) {
  OpDef d;
  d.name = name;
  d.infer = infer_pool;
  d.kernel = kernel;
  d.cost = cost_pool;
  return d;
}

}  // namespace

const OpDef& op_MaxPool() {
  static const OpDef def = pool_def("MaxPool", kernel_max);
  return def;
}
const OpDef& op_AveragePool() {
  static const OpDef def = pool_def("AveragePool", kernel_average);
  return def;
}
const OpDef& op_LpPool() {
  static const OpDef def = [] {
    OpDef d = pool_def("LpPool", kernel_lp);
    d.adapt = adapt_float_order;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
