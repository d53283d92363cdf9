// Softmax, LogSoftmax, Hardmax along one axis. Before opset 13 the input is flattened to two dimensions at
// `axis` (default 1) first.
#include <cmath>
#include <limits>

#include "ops/axis_view.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

void infer(InferContext& ctx) {
  infer_same(ctx);
  if (ctx.has_shape(0)) ctx.axis(ctx.node().get_int("axis", -1), static_cast<int>(ctx.shape(0).size()));
}

/// fn(x, y, n, step) on every line along the axis; reads and writes stay `step` apart.
template <class F>
void each_line(KernelContext& ctx, F&& fn) {
  const Tensor& x = ctx.in(0);
  const AxisView v(x.shape(), ctx.axis(ctx.get_int("axis", -1), x.rank()));
  Tensor& out = ctx.out(0, x.shape());
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ref_parallel(v.outer, static_cast<double>(20 * v.n * v.inner), [&](int64_t o) {
      for (int64_t k = 0; k < v.inner; ++k) {
        const int64_t at = o * v.n * v.inner + k;
        fn(x.data<T>() + at, out.data<T>() + at, v.n, v.inner);
      }
    });
  });
}

/// Largest element; NaN when there is one.
template <class T>
double line_max(const T* x, int64_t n, int64_t step) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const auto v = static_cast<double>(x[i * step]);
    if (v > best || v != v) best = v;
    if (v != v) break;
  }
  return best;
}

void kernel_softmax(KernelContext& ctx) {
  each_line(ctx, []<class T>(const T* x, T* y, int64_t n, int64_t step) {
    const double max = line_max(x, n, step);
    std::vector<double> e(static_cast<size_t>(n));
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      e[static_cast<size_t>(i)] = std::exp(static_cast<double>(x[i * step]) - max);
      sum += e[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < n; ++i) y[i * step] = static_cast<T>(e[static_cast<size_t>(i)] / sum);
  });
}

void kernel_log_softmax(KernelContext& ctx) {
  each_line(ctx, []<class T>(const T* x, T* y, int64_t n, int64_t step) {
    const double max = line_max(x, n, step);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x[i * step]) - max);
    const double log_sum = std::log(sum);
    for (int64_t i = 0; i < n; ++i)
      y[i * step] = static_cast<T>(static_cast<double>(x[i * step]) - max - log_sum);
  });
}

/// One at the first largest element, 0 elsewhere.
void kernel_hardmax(KernelContext& ctx) {
  each_line(ctx, []<class T>(const T* x, T* y, int64_t n, int64_t step) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i) {
      const T v = x[i * step], b = x[best * step];
      if (v > b || (v != v && b == b)) best = i;
    }
    for (int64_t i = 0; i < n; ++i) y[i * step] = i == best ? T{1} : T{0};
  });
}

/// Versions 1 and 11: y = reshape(op(flatten(x, axis)), shape(x)). Along the last dimension the two meanings
/// are one.
void adapt(AdaptContext& ctx) {
  if (ctx.since >= 13) return;
  ir::Graph& g = ctx.graph;
  ir::Node& node = ctx.node;
  const int64_t axis = node.get_int("axis", 1);
  const ir::ValueId x = node.inputs[0];
  const TypeInfo& type = g.value(x).type;
  if (type.known_rank()) {
    const int rank = type.rank();
    if (axis < -rank || axis > rank || (axis == rank && rank != 0))
      ctx.fail("axis " + std::to_string(axis) + " is outside a rank " + std::to_string(rank) + " tensor");
    if ((axis < 0 ? axis + rank : axis) == rank - 1) {
      node.attrs["axis"] = int64_t{-1};
      return;
    }
  }
  const ir::ValueId shape = g.add_node("Shape", {x}, {}, "", &node, node.name + "/shape")->outputs[0];
  const ir::ValueId flat =
      g.add_node("Flatten", {x}, {{"axis", axis}}, "", &node, node.name + "/flatten")->outputs[0];
  const ir::ValueId rows =
      g.add_node(node.op, {flat}, {{"axis", int64_t{1}}}, "", &node, node.name + "/rows")->outputs[0];
  node.op = "Reshape";  // keeps the output and its name
  node.attrs.clear();
  node.attrs["allowzero"] = int64_t{1};  // the shape is a tensor's own: a zero in it means zero
  g.set_input(&node, 0, rows);
  g.append_input(&node, shape);
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (inputs.empty()) return c;
  c.flops = 4.0 * static_cast<double>(numel(inputs[0]));
  c.transcendentals = static_cast<double>(numel(inputs[0]));
  return c;
}

OpDef make(const char* name, void (*kernel)(KernelContext&)) {
  OpDef d;
  d.name = name;
  d.infer = infer;
  d.kernel = kernel;
  d.adapt = adapt;
  d.cost = cost;
  return d;
}

}  // namespace

const OpDef& op_Softmax() {
  static const OpDef def = make("Softmax", kernel_softmax);
  return def;
}
const OpDef& op_LogSoftmax() {
  static const OpDef def = make("LogSoftmax", kernel_log_softmax);
  return def;
}
const OpDef& op_Hardmax() {
  static const OpDef def = make("Hardmax", kernel_hardmax);
  return def;
}

}  // namespace hone::ops
