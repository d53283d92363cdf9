// BatchNormalization, InstanceNormalization, GroupNormalization: y = (x - mean) / sqrt(var + epsilon) * scale
// + bias along channels (dim 1).
#include <algorithm>
#include <cmath>

#include "ops/conv.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

struct Moments {
  double mean = 0, var = 0;
};

/// Population mean and variance of n elements at x + i * step, i < runs, each `n` long: two passes, f64.
template <class T>
Moments moments(const T* x, int64_t n, int64_t step, int64_t runs) {
  const double total = static_cast<double>(n) * static_cast<double>(runs);
  double sum = 0, squares = 0;
  for (int64_t r = 0; r < runs; ++r) {
    for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[r * step + i]);
  }
  const double mean = sum / total;
  for (int64_t r = 0; r < runs; ++r) {
    for (int64_t i = 0; i < n; ++i) {
      const double d = static_cast<double>(x[r * step + i]) - mean;
      squares += d * d;
    }
  }
  return {mean, squares / total};
}

template <class T>
void normalise(const T* x, T* y, int64_t n, Moments m, double epsilon, double scale, double bias) {
  const double deviation = std::sqrt(m.var + epsilon);
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<T>((static_cast<double>(x[i]) - m.mean) / deviation * scale + bias);
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = 8.0 * static_cast<double>(numel(inputs[0]));
  return c;
}

/// Inputs scale, bias, ... have C (or another count of) values.
std::vector<double> channel_values(const KernelContext& ctx, size_t i, int64_t channels, const char* name) {
  if (ctx.in(i).numel() != channels)
    ctx.fail(std::string(name) + " " + ctx.in(i).type_text() + " is not one value for each of " +
             std::to_string(channels) + " channels");
  return to_doubles(ctx.in(i));
}

void check_channels(const InferContext& ctx, const Dims& x, size_t first, size_t last) {
  for (size_t i = first; i <= last; ++i) {
    if (!ctx.has_shape(i)) continue;
    if (ctx.shape(i).size() != 1)
      ctx.fail("input " + std::to_string(i) + " must have rank 1, is " + ctx.input(i).text());
    const Dim c = x.size() > 1 ? x[1] : Dim(1);
    if (c.is_const() && ctx.shape(i)[0].is_const() && !(c == ctx.shape(i)[0])) {
      ctx.fail("input " + std::to_string(i) + " has " + ctx.shape(i)[0].text() + " values for " + c.text() +
               " channels");
    }
  }
}

// --- BatchNormalization ---

void infer_batch(InferContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  if (ctx.has_shape(0)) check_channels(ctx, ctx.shape(0), 1, 4);
  for (size_t i = 1; i <= 2; ++i) ctx.set_output(i, ctx.input(i + 2));
}

void kernel_batch(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() < 1) ctx.fail("input X is a scalar");
  const int64_t channels = x.rank() > 1 ? x.dim(1) : 1;
  int64_t plane = 1;
  for (int d = 2; d < x.rank(); ++d) plane *= x.dim(d);
  const double epsilon = ctx.get_float("epsilon", 1e-5F), momentum = ctx.get_float("momentum", 0.9F);
  const bool training = ctx.get_int("training_mode", 0) != 0;
  const std::vector<double> scale = channel_values(ctx, 1, channels, "scale"),
                            bias = channel_values(ctx, 2, channels, "B");
  const std::vector<double> mean = channel_values(ctx, 3, channels, "input_mean"),
                            var = channel_values(ctx, 4, channels, "input_var");
  Tensor& out = ctx.out(0, x.shape());
  std::vector<Moments> used(static_cast<size_t>(channels));
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* xp = x.data<T>();
    T* yp = out.data<T>();
    const int64_t batch = x.dim(0);
    ref_parallel(channels, static_cast<double>(batch * plane), [&](int64_t c) {
      const auto i = static_cast<size_t>(c);
      used[i] = training ? moments(xp + c * plane, plane, channels * plane, batch) : Moments{mean[i], var[i]};
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t at = (n * channels + c) * plane;
        normalise(xp + at, yp + at, plane, used[i], epsilon, scale[i], bias[i]);
      }
    });
  });
  for (size_t k = 1; k <= 2; ++k) {
    if (!ctx.wants(k)) continue;
    Tensor running(DType::kF64, {channels});
    for (size_t i = 0; i < used.size(); ++i) {
      const double now = k == 1 ? used[i].mean : used[i].var, before = k == 1 ? mean[i] : var[i];
      running.data<double>()[i] = training ? before * momentum + now * (1 - momentum) : before;
    }
    Tensor& to = ctx.out(k, {channels});
    float_or_throw(ctx, to.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t i = 0; i < channels; ++i) to.data<T>()[i] = static_cast<T>(running.data<double>()[i]);
    });
  }
}

/// Versions before 14 mean inference when only Y is asked for; is_test, spatial and consumed_inputs are gone.
void adapt_batch(AdaptContext& ctx) {
  ir::Node& n = ctx.node;
  if (ctx.since < 9 && n.get_int("spatial", 1) == 0) {
    const TypeInfo& x = ctx.graph.value(n.inputs[0]).type;
    if (!x.known_rank() || x.rank() > 2)
      ctx.fail("attribute 'spatial' is 0 for an input of rank above 2: flatten it to N x C first");
  }
  if (ctx.since < 14) {
    for (size_t i = 1; i < n.outputs.size(); ++i) {
      const ir::ValueId id = n.outputs[i];
      if (id == ir::kNoValue) continue;
      if (!ctx.graph.value(id).uses.empty() || ctx.graph.is_output(id))
        ctx.fail("training outputs of BatchNormalization before opset 14 are not supported");
      ctx.graph.value(id).producer = nullptr;
    }
    if (n.outputs.size() > 1) n.outputs.resize(1);
  }
  for (const char* gone : {"is_test", "spatial", "consumed_inputs"}) n.attrs.erase(gone);
}

// --- InstanceNormalization, GroupNormalization ---

void infer_same_type(InferContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  if (!ctx.has_shape(0)) return;
  if (ctx.shape(0).size() < 2) ctx.fail("input " + ctx.input(0).text() + " needs at least N and C");
  check_channels(ctx, ctx.shape(0), 1, 2);
  if (!ctx.node().is("GroupNormalization")) return;
  const int64_t groups = ctx.node().get_int("num_groups", 0);
  if (groups < 1) ctx.fail("attribute 'num_groups' is " + std::to_string(groups) + ", must be at least 1");
  const Dim& c = ctx.shape(0)[1];
  if (c.is_const() && c.value() % groups != 0)
    ctx.fail("attribute 'num_groups': " + std::to_string(groups) + " does not divide " + c.text() +
             " channels");
}

/// Statistics over `per_group` channels of one sample; scale and bias by channel.
void group_norm(KernelContext& ctx, int64_t per_group) {
  const Tensor& x = ctx.in(0);
  const int64_t channels = x.dim(1);
  int64_t plane = 1;
  for (int d = 2; d < x.rank(); ++d) plane *= x.dim(d);
  const double epsilon = ctx.get_float("epsilon", 1e-5F);
  const std::vector<double> scale = channel_values(ctx, 1, channels, "scale"),
                            bias = channel_values(ctx, 2, channels, "bias");
  Tensor& out = ctx.out(0, x.shape());
  if (x.numel() == 0) return;
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t span = per_group * plane;
    ref_parallel(x.numel() / span, static_cast<double>(span), [&](int64_t g) {
      const T* xp = x.data<T>() + g * span;
      T* yp = out.data<T>() + g * span;
      const Moments m = moments(xp, span, 0, 1);
      for (int64_t c = 0; c < per_group; ++c) {
        const auto i = static_cast<size_t>((g * per_group + c) % channels);
        normalise(xp + c * plane, yp + c * plane, plane, m, epsilon, scale[i], bias[i]);
      }
    });
  });
}

void kernel_instance(KernelContext& ctx) {
  if (ctx.in(0).rank() < 2) ctx.fail("input " + ctx.in(0).type_text() + " needs at least N and C");
  group_norm(ctx, 1);
}

void kernel_group(KernelContext& ctx) {
  if (ctx.in(0).rank() < 2) ctx.fail("input " + ctx.in(0).type_text() + " needs at least N and C");
  const int64_t groups = ctx.get_int("num_groups", 0), channels = ctx.in(0).dim(1);
  if (groups < 1 || channels % groups != 0)
    ctx.fail("attribute 'num_groups' is " + std::to_string(groups) + " for " + std::to_string(channels) +
             " channels");
  group_norm(ctx, std::max<int64_t>(1, channels / groups));
}

void adapt_instance(AdaptContext& ctx) { ctx.node.attrs.erase("consumed_inputs"); }

/// Version 18 has one scale and bias a group, 21 one a channel: each is repeated C / num_groups times.
void adapt_group(AdaptContext& ctx) {
  if (ctx.since >= 21) return;
  ir::Graph& g = ctx.graph;
  ir::Node* node = &ctx.node;
  const int64_t groups = node->get_int("num_groups", 0);
  if (groups < 1) ctx.fail("attribute 'num_groups' is " + std::to_string(groups) + ", must be at least 1");
  const ir::ValueId one = ctx.ints("axis", {1}), flat = ctx.ints("flat", {-1}),
                    count = ctx.ints("groups", {groups});
  const AttrMap second = {{"start", int64_t{1}}, {"end", int64_t{2}}};
  const ir::ValueId channels = g.add_node("Shape", {node->inputs[0]}, second, "", node)->outputs[0];
  const ir::ValueId times = g.add_node("Div", {channels, count}, {}, "", node)->outputs[0];
  const ir::ValueId shape =
      g.add_node("Concat", {count, times}, {{"axis", int64_t{0}}}, "", node)->outputs[0];
  for (size_t i = 1; i <= 2; ++i) {
    const ir::ValueId column = g.add_node("Unsqueeze", {node->inputs[i], one}, {}, "", node)->outputs[0];
    const ir::ValueId wide = g.add_node("Expand", {column, shape}, {}, "", node)->outputs[0];
    g.set_input(node, i, g.add_node("Reshape", {wide, flat}, {}, "", node)->outputs[0]);
  }
}

OpDef make(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
           void (*adapt)(AdaptContext&)) {
  OpDef d;
  d.name = name;
  d.infer = infer;
  d.kernel = kernel;
  d.adapt = adapt;
  d.cost = cost;
  return d;
}

}  // namespace

const OpDef& op_BatchNormalization() {
  static const OpDef def = make("BatchNormalization", infer_batch, kernel_batch, adapt_batch);
  return def;
}
const OpDef& op_InstanceNormalization() {
  static const OpDef def = make("InstanceNormalization", infer_same_type, kernel_instance, adapt_instance);
  return def;
}
const OpDef& op_GroupNormalization() {
  static const OpDef def = make("GroupNormalization", infer_same_type, kernel_group, adapt_group);
  return def;
}

}  // namespace hone::ops
