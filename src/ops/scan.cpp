// Scan: a body over slices of its inputs, with carried state. Source: ONNX, opsets up to 28.
//
// Inputs are N states then M scanned tensors; the body maps (states, slices) to (states, elements of K
// results). Directions 1 read or write from the end.
#include "ops/broadcast.h"
#include "ops/infer_util.h"
#include "ops/movement.h"
#include "ops/subgraph.h"

namespace hone::ops {
namespace {

Cost no_cost(const AttrMap&, std::span<const Shape>, std::span<const Shape>) { return {}; }

void scan_infer(InferContext& ctx) {
  const auto body = body_of(ctx, "body");
  const int64_t scanned = ctx.node().get_int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<int64_t>(ctx.num_inputs()))
    ctx.fail("num_scan_inputs = " + std::to_string(scanned));
  const size_t m = static_cast<size_t>(scanned), n = ctx.num_inputs() - m;
  if (body->inputs().size() != n + m || body->outputs().size() != ctx.num_outputs() ||
      ctx.num_outputs() < n) {
    ctx.fail("the body has " + std::to_string(body->inputs().size()) + " inputs and " +
             std::to_string(body->outputs().size()) + " outputs");
  }
  const std::vector<int64_t> in_axes = ctx.node().get_ints("scan_input_axes"),
                             out_axes = ctx.node().get_ints("scan_output_axes");
  if (!in_axes.empty() && in_axes.size() != m) ctx.fail("scan_input_axes has the wrong length");
  if (!out_axes.empty() && out_axes.size() != ctx.num_outputs() - n)
    ctx.fail("scan_output_axes has the wrong length");
  std::vector<TypeInfo> inputs;
  std::optional<Dim> length;
  for (size_t i = 0; i < n + m; ++i) {
    TypeInfo t = ctx.input(i);
    if (i >= n && t.shape) {
      if (t.shape->empty()) ctx.fail("a scanned input must not be a scalar");
      const int axis = ctx.axis(in_axes.empty() ? 0 : in_axes[i - n], t.rank());
      const Dim d = (*t.shape)[static_cast<size_t>(axis)];
      if (length && length->is_const() && d.is_const() && !(*length == d))
        ctx.fail("scanned inputs differ in length");
      if (!length || d.is_const()) length = d;
      t.shape->erase(t.shape->begin() + axis);
    }
    inputs.push_back(std::move(t));
  }
  const std::vector<TypeInfo> states = infer_carried(ctx, *body, inputs, 0, n, 0);
  for (size_t i = 0; i < n; ++i) ctx.set_output(i, states[i]);
  for (size_t i = n; i < ctx.num_outputs(); ++i) {
    TypeInfo t = body->value(body->outputs()[i]).type;
    if (t.shape) {
      const int axis = ctx.axis(out_axes.empty() ? 0 : out_axes[i - n], t.rank() + 1);
      t.shape->insert(t.shape->begin() + axis, length ? *length : ctx.fresh_symbol());
    }
    ctx.set_output(i, t);
  }
}

/// x[..., at, ...] along an axis, which disappears.
Tensor take(const Tensor& x, int axis, int64_t at) {
  const int bits = dtype_bits(x.dtype());
  if (bits > 0 && bits < 8) return pack_subbyte(take(unpack_subbyte(x), axis, at), x.dtype());
  Shape shape = x.shape();
  std::vector<int64_t> strides = dense_strides(shape);
  const int64_t offset = at * strides[static_cast<size_t>(axis)] * (bits / 8);
  shape.erase(shape.begin() + axis);
  strides.erase(strides.begin() + axis);
  Tensor y(x.dtype(), shape);
  if (y.numel() > 0)
    copy_strided(y.raw(), dense_strides(shape), static_cast<const char*>(x.raw()) + offset, strides, shape,
                 bits / 8);
  return y;
}

void scan_kernel(KernelContext& ctx) {
  const ir::Graph& body = body_of(ctx, "body");
  const auto m = static_cast<size_t>(ctx.get_int("num_scan_inputs", 0));
  if (m < 1 || m > ctx.inputs.size()) ctx.fail("num_scan_inputs is out of range");
  const size_t n = ctx.inputs.size() - m, k = ctx.out_dtypes.size() - n;
  const auto list = [&](const char* name, size_t count) {
    std::vector<int64_t> v = ctx.get_ints(name);
    if (v.empty()) v.assign(count, 0);
    if (v.size() != count) ctx.fail(std::string(name) + " has the wrong length");
    return v;
  };
  const std::vector<int64_t> in_axes = list("scan_input_axes", m),
                             in_directions = list("scan_input_directions", m);
  const std::vector<int64_t> out_axes = list("scan_output_axes", k),
                             out_directions = list("scan_output_directions", k);
  std::vector<int> axes;
  int64_t length = -1;
  for (size_t i = 0; i < m; ++i) {
    const Tensor& x = ctx.in(n + i);
    axes.push_back(ctx.axis(in_axes[i], x.rank()));
    const int64_t d = x.dim(axes.back());
    if (length >= 0 && d != length)
      ctx.fail("scanned inputs differ in length: " + std::to_string(length) + " and " + std::to_string(d));
    length = d;
  }
  std::vector<Tensor> state;
  for (size_t i = 0; i < n; ++i) state.push_back(ctx.in(i));
  std::vector<Stack> stacks(k, Stack(ctx));
  for (int64_t t = 0; t < length; ++t) {
    std::vector<Tensor> in = std::move(state);
    for (size_t i = 0; i < m; ++i)
      in.push_back(take(ctx.in(n + i), axes[i], in_directions[i] != 0 ? length - 1 - t : t));
    std::vector<Tensor> out = ctx.run_subgraph(body, std::move(in));
    state.clear();
    for (size_t i = 0; i < n; ++i) state.push_back(std::move(out[i]));
    for (size_t i = 0; i < k; ++i) stacks[i].push(std::move(out[n + i]));
  }
  for (size_t i = 0; i < n; ++i) {
    if (ctx.wants(i)) ctx.set_out(i, std::move(state[i]));
  }
  for (size_t i = 0; i < k; ++i) {
    if (!ctx.wants(n + i)) continue;
    const TypeInfo& element = body.value(body.outputs()[n + i]).type;
    ctx.set_out(n + i, stacks[i].finish(out_axes[i], out_directions[i] != 0, element, ctx.out_dtypes[n + i]));
  }
}

/// Scan-8 had a batch: sequence lengths (optional), then states [B, ...] and scanned tensors [B, T, ...]. It
/// becomes a scan over the batch whose body is the scan over time.
void scan_adapt(AdaptContext& ctx) {
  if (ctx.since >= 9) return;
  ir::Node& node = ctx.node;
  if (node.inputs[0] != ir::kNoValue)
    ctx.fail("Scan-8 with sequence_lens is not supported: pad-free batches only");
  const auto body = node.get_graph("body");
  if (body == nullptr) ctx.fail("attribute 'body' is missing");
  const size_t captures = static_cast<size_t>(node.num_captures), formals = node.inputs.size() - 1 - captures;
  for (size_t i = 0; i + 1 < node.inputs.size(); ++i) ctx.graph.set_input(&node, i, node.inputs[i + 1]);
  ctx.graph.pop_input(&node);

  auto outer = std::make_shared<ir::Graph>();
  outer->share_symbols(ctx.graph);
  outer->name = node.name + "/batch";
  std::vector<ir::ValueId> inputs;
  for (size_t i = 0; i < formals; ++i) inputs.push_back(outer->add_input("x" + std::to_string(i), {}));
  for (size_t i = 0; i < captures; ++i) {
    inputs.push_back(
        outer->add_value("c" + std::to_string(i), ctx.graph.value(node.inputs[formals + i]).type));
    outer->captures.push_back(inputs.back());
  }
  ir::AttrMap inner{{"body", body}, {"num_scan_inputs", node.get_int("num_scan_inputs", 1)}};
  if (node.has("directions")) inner["scan_input_directions"] = node.get_ints("directions");
  ir::Node* scan = outer->add_node("Scan", inputs, std::move(inner), "", nullptr, node.name + "/time",
                                   static_cast<int>(node.outputs.size()));
  scan->num_captures = node.num_captures;
  for (const ir::ValueId id : scan->outputs) outer->add_output(id);
  node.attrs.clear();
  node.attrs["body"] = std::move(outer);
  node.attrs["num_scan_inputs"] = static_cast<int64_t>(formals);
}

}  // namespace

const OpDef& op_Scan() {
  static const OpDef def{.name = "Scan",
                         .infer = scan_infer,
                         .kernel = scan_kernel,
                         .adapt = scan_adapt,
                         .cost = no_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
