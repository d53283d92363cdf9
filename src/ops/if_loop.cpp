// If and Loop. Source: ONNX, opsets up to 28.
//
// Loop runs while (no trip count or i < M) and (no condition input or the condition holds), checked before
// each iteration.
#include "ops/infer_util.h"
#include "ops/subgraph.h"

namespace hone::ops {
namespace {

Cost no_cost(const AttrMap&, std::span<const Shape>, std::span<const Shape>) { return {}; }

bool truth(const KernelContext& ctx, const Tensor& t) {
  if (t.dtype() != DType::kBool || t.numel() != 1)
    ctx.fail("a condition must be one bool, not " + t.type_text());
  return *t.data<uint8_t>() != 0;
}

/// A condition that is known: the branch not taken may contradict the shapes at hand, which is why exporters
/// put a condition before it.
std::optional<bool> known_condition(const InferContext& ctx) {
  const auto known = known_contents(ctx, 0);
  return known && known->size() == 1 && (*known)[0].is_const() ? std::optional<bool>((*known)[0].value() != 0)
                                                               : std::nullopt;
}

void if_infer(InferContext& ctx) {
  const auto then_body = body_of(ctx, "then_branch"), else_body = body_of(ctx, "else_branch");
  const std::optional<bool> condition = known_condition(ctx);
  for (ir::Graph* body : {then_body.get(), else_body.get()}) {
    if (body->outputs().size() != ctx.num_outputs())
      ctx.fail("a branch has " + std::to_string(body->outputs().size()) + " outputs");
    const bool dead = condition && body != (*condition ? then_body : else_body).get();
    try {
      infer_body(ctx, *body, {});
    } catch (const Error&) {
      if (!dead) throw;
    }
  }
  for (size_t i = 0; i < ctx.num_outputs(); ++i) {
    const ir::Value& a = then_body->value(then_body->outputs()[i]);
    const ir::Value& b = else_body->value(else_body->outputs()[i]);
    if (condition) {
      const ir::Value& taken = *condition ? a : b;
      ctx.set_output(i, taken.type);
      if (taken.contents) ctx.set_contents(i, *taken.contents);
      continue;
    }
    if (a.type.dtype != DType::kUndefined && b.type.dtype != DType::kUndefined &&
        a.type.dtype != b.type.dtype) {
      ctx.fail("the branches give " + a.type.text() + " and " + b.type.text());
    }
    ctx.set_output(i, join_types(ctx, a.type, b.type));
  }
}

void if_kernel(KernelContext& ctx) {
  const char* branch = truth(ctx, ctx.in(0)) ? "then_branch" : "else_branch";
  std::vector<Tensor> out = ctx.run_subgraph(body_of(ctx, branch), {});
  for (size_t i = 0; i < ctx.out_dtypes.size(); ++i) {
    if (ctx.wants(i)) ctx.set_out(i, std::move(out[i]));
  }
}

// --- Loop: inputs M, cond, carried...; body (i, cond, carried...) -> (cond, carried..., scanned...) ---

/// True when the condition can never end the loop: absent, or constantly true outside and passed through or
/// constantly true inside.
bool always_true(const InferContext& ctx, const ir::Graph& body) {
  const auto is_true = [](const Tensor* t) {
    return t != nullptr && t->dtype() == DType::kBool && t->numel() == 1 && *t->data<uint8_t>() != 0;
  };
  if (!ctx.has_input(1)) return true;
  if (!is_true(ctx.constant(1))) return false;
  ir::ValueId cond = body.outputs()[0];
  for (const ir::Node* n = body.value(cond).producer; n != nullptr && n->is("Identity");
       n = body.value(cond).producer)
    cond = n->inputs[0];
  return cond == body.inputs()[1] || is_true(body.value(cond).data.get());
}

void loop_infer(InferContext& ctx) {
  const auto body = body_of(ctx, "body");
  const size_t carried = ctx.num_inputs() < 2 ? 0 : ctx.num_inputs() - 2;
  if (body->inputs().size() != carried + 2 || body->outputs().size() != ctx.num_outputs() + 1 ||
      ctx.num_outputs() < carried) {
    ctx.fail("the body has " + std::to_string(body->inputs().size()) + " inputs and " +
             std::to_string(body->outputs().size()) + " outputs; the node carries " +
             std::to_string(carried) + " values and has " + std::to_string(ctx.num_outputs()) + " outputs");
  }
  std::vector<TypeInfo> inputs{{DType::kI64, Dims{}},
                               {DType::kBool, ctx.has_input(1) ? ctx.input(1).shape : Dims{}}};
  for (size_t i = 0; i < carried; ++i) inputs.push_back(ctx.input(i + 2));
  const std::vector<TypeInfo> types = infer_carried(ctx, *body, inputs, 2, carried, 1);
  for (size_t i = 0; i < carried; ++i) ctx.set_output(i, types[i]);
  const auto count = ctx.has_input(0) && always_true(ctx, *body) ? ctx.contents(0) : std::nullopt;
  const Dim trips =
      count && count->size() == 1 && provably_nonneg((*count)[0]) ? (*count)[0] : ctx.fresh_symbol();
  for (size_t i = carried; i < ctx.num_outputs(); ++i) {
    TypeInfo t = body->value(body->outputs()[i + 1]).type;
    if (t.shape) t.shape->insert(t.shape->begin(), trips);
    ctx.set_output(i, t);
  }
}

void loop_kernel(KernelContext& ctx) {
  const ir::Graph& body = body_of(ctx, "body");
  if (!ctx.has_input(0) && !ctx.has_input(1))
    ctx.fail("a loop with neither trip count nor condition never ends");
  const size_t carried = ctx.inputs.size() - 2;
  int64_t limit = INT64_MAX;
  if (ctx.has_input(0)) {
    if (ctx.in(0).numel() != 1 || ctx.in(0).dtype() != DType::kI64)
      ctx.fail("the trip count must be one i64, not " + ctx.in(0).type_text());
    limit = *ctx.in(0).data<int64_t>();
  }
  const bool conditional = ctx.has_input(1);
  bool cond = conditional ? truth(ctx, ctx.in(1)) : true;
  const Shape cond_shape = conditional ? ctx.in(1).shape() : Shape{};
  std::vector<Tensor> state;
  for (size_t i = 0; i < carried; ++i) {
    if (!ctx.has_input(i + 2)) ctx.fail("loop-carried value " + std::to_string(i) + " is absent");
    state.push_back(ctx.in(i + 2));
  }
  std::vector<Stack> stacks(ctx.out_dtypes.size() - carried, Stack(ctx));
  for (int64_t trip = 0; trip < limit && cond; ++trip) {
    std::vector<Tensor> in;
    in.push_back(Tensor::i64_scalar(trip));
    in.push_back(Tensor::of<uint8_t>(DType::kBool, cond_shape, {static_cast<uint8_t>(cond)}));
    for (Tensor& t : state) in.push_back(std::move(t));
    std::vector<Tensor> out = ctx.run_subgraph(body, std::move(in));
    if (conditional) cond = truth(ctx, out[0]);  // ignored otherwise, as the ONNX text says
    for (size_t i = 0; i < carried; ++i) state[i] = std::move(out[i + 1]);
    for (size_t i = 0; i < stacks.size(); ++i) stacks[i].push(std::move(out[carried + 1 + i]));
  }
  for (size_t i = 0; i < carried; ++i) {
    if (ctx.wants(i)) ctx.set_out(i, std::move(state[i]));
  }
  for (size_t i = 0; i < stacks.size(); ++i) {
    if (!ctx.wants(carried + i)) continue;
    const TypeInfo& element = body.value(body.outputs()[carried + 1 + i]).type;
    ctx.set_out(carried + i, stacks[i].finish(0, false, element, ctx.out_dtypes[carried + i]));
  }
}

}  // namespace

const OpDef& op_If() {
  static const OpDef def{
      .name = "If", .infer = if_infer, .kernel = if_kernel, .cost = no_cost, .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_Loop() {
  static const OpDef def{.name = "Loop",
                         .infer = loop_infer,
                         .kernel = loop_kernel,
                         .cost = no_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
