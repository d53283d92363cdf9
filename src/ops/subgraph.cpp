#include "ops/subgraph.h"

#include "ops/broadcast.h"
#include "ops/infer.h"
#include "ops/interpreter.h"
#include "ops/movement.h"

namespace hone::ops {

std::shared_ptr<ir::Graph> body_of(InferContext& ctx, std::string_view attr) {
  std::shared_ptr<ir::Graph> body = ctx.node().get_graph(attr);
  if (body == nullptr) ctx.fail("attribute '" + std::string(attr) + "' is missing");
  return body;
}

const ir::Graph& body_of(const KernelContext& ctx, std::string_view attr) {
  if (!ctx.run_subgraph) ctx.fail("a node with subgraphs runs inside a graph only");
  const auto it = ctx.attrs.find(attr);
  if (it == ctx.attrs.end() || !std::holds_alternative<std::shared_ptr<ir::Graph>>(it->second)) {
    ctx.fail("attribute '" + std::string(attr) + "' is missing");
  }
  return *std::get<std::shared_ptr<ir::Graph>>(it->second);
}

void type_captures(InferContext& ctx, ir::Graph& body) {
  const ir::Node& node = ctx.node();
  for (size_t i = 0; i < body.captures.size() && ctx.num_inputs() + i < node.inputs.size(); ++i) {
    const ir::ValueId outer = node.inputs[ctx.num_inputs() + i], inner = body.captures[i];
    if (outer == ir::kNoValue || inner == ir::kNoValue) continue;
    const ir::Value& from = ctx.graph().value(outer);
    ir::Value& to = body.value(inner);
    to.type = from.type;
    to.contents = from.contents;
    if (!to.contents && from.data != nullptr && is_integer(from.data->dtype()) &&
        from.data->numel() <= static_cast<int64_t>(InferContext::kMaxContents)) {
      to.contents = ir::to_dims(from.data->to_i64());
    }
  }
}

void infer_body(InferContext& ctx, ir::Graph& body, const std::vector<TypeInfo>& inputs) {
  if (body.inputs().size() != inputs.size()) {
    ctx.fail("the subgraph '" + body.name + "' takes " + std::to_string(body.inputs().size()) +
             " inputs, the node gives " + std::to_string(inputs.size()));
  }
  type_captures(ctx, body);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ir::Value& v = body.value(body.inputs()[i]);
    if (v.type.dtype != DType::kUndefined && inputs[i].dtype != DType::kUndefined &&
        v.type.dtype != inputs[i].dtype) {
      ctx.fail("the subgraph's input '" + v.name + "' is declared " + v.type.text() + " but gets " +
               inputs[i].text());
    }
    if (inputs[i].dtype != DType::kUndefined) v.type.dtype = inputs[i].dtype;
    v.type.shape = inputs[i].shape;
    v.contents.reset();
  }
  infer_graph(body, true);
}

TypeInfo join_types(InferContext& ctx, const TypeInfo& a, const TypeInfo& b) {
  TypeInfo out;
  out.dtype = a.dtype != DType::kUndefined ? a.dtype : b.dtype;
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return out;
  out.shape = Dims();
  for (size_t d = 0; d < a.shape->size(); ++d) {
    out.shape->push_back((*a.shape)[d] == (*b.shape)[d] ? (*a.shape)[d] : ctx.fresh_symbol());
  }
  return out;
}

std::vector<TypeInfo> infer_carried(InferContext& ctx, ir::Graph& body, std::vector<TypeInfo> inputs,
                                    size_t first_input, size_t carried, size_t first_output) {
  // Bodies nest: three rounds a level would be exponential in the depth, so that deep ones get unknown shapes
  // and one round.
  thread_local int depth = 0;
  struct Level {
    Level() { ++depth; }
    ~Level() { --depth; }
  } level;
  const bool deep = depth > 3;
  for (size_t i = 0; deep && i < carried; ++i) inputs[first_input + i].shape.reset();
  // A dimension that changes becomes a symbol of its own, "the extent in this iteration", and may then come
  // back as anything; a shape whose rank changes becomes unknown. Every round frees at least one more
  // dimension.
  std::vector<std::vector<bool>> free(carried);
  for (size_t i = 0; i < carried; ++i)
    free[i].assign(inputs[first_input + i].shape ? inputs[first_input + i].shape->size() : 0, false);
  constexpr int kRounds = 4;
  for (int round = 1;; ++round) {
    infer_body(ctx, body, inputs);
    bool changed = false;
    for (size_t i = 0; i < carried; ++i) {
      TypeInfo& in = inputs[first_input + i];
      const TypeInfo& out = body.value(body.outputs()[first_output + i]).type;
      if (in.dtype != DType::kUndefined && out.dtype != DType::kUndefined && in.dtype != out.dtype) {
        ctx.fail("loop-carried value " + std::to_string(i) + " enters as " + in.text() + " and leaves as " +
                 out.text());
      }
      if (!in.shape) continue;
      if (!out.shape || out.shape->size() != in.shape->size()) {
        in.shape.reset();
        changed = true;
        continue;
      }
      for (size_t d = 0; d < in.shape->size(); ++d) {
        if (free[i][d] || (*in.shape)[d] == (*out.shape)[d]) continue;
        (*in.shape)[d] = ctx.fresh_symbol();
        free[i][d] = true;
        changed = true;
      }
    }
    if (!changed) break;
    if (round > kRounds) {
      for (size_t i = 0; i < carried; ++i) inputs[first_input + i].shape.reset();
      infer_body(ctx, body, inputs);
      break;
    }
  }
  std::vector<TypeInfo> found;
  for (size_t i = 0; i < carried; ++i) {
    TypeInfo t = inputs[first_input + i];
    for (size_t d = 0; t.shape && d < t.shape->size(); ++d) {
      if (free[i][d]) (*t.shape)[d] = ctx.fresh_symbol();  // the extent after the last iteration
    }
    found.push_back(std::move(t));
  }
  return found;
}

void Stack::push(Tensor t) {
  if (!parts_.empty() && (t.shape() != parts_[0].shape() || t.dtype() != parts_[0].dtype())) {
    ctx_.fail("an iteration gave " + t.type_text() + ", the one before " + parts_[0].type_text());
  }
  bytes_ += t.nbytes();
  if (bytes_ > kMaxTensorBytes) {
    throw Error(
        ErrorCode::kOutOfMemory,
        "stacked results exceed the budget of " + std::to_string(kMaxTensorBytes >> 30) + " GiB a tensor",
        ctx_.where != nullptr ? *ctx_.where : ErrorContext{});
  }
  parts_.push_back(std::move(t));
}

Tensor Stack::finish(int64_t axis, bool reverse, const TypeInfo& element, DType dtype) const {
  Shape shape;
  if (!parts_.empty()) {
    shape = parts_[0].shape();
    dtype = parts_[0].dtype();
  } else if (element.shape) {
    for (const Dim& d : *element.shape) shape.push_back(d.maybe().value_or(0));
  }
  const int at = ctx_.axis(axis, static_cast<int>(shape.size()) + 1);
  const Shape part = shape;
  const auto n = static_cast<int64_t>(parts_.size());
  shape.insert(shape.begin() + at, n);
  const int bits = dtype_bits(dtype);
  if (bits > 0 && bits < 8) {
    if (n == 0) return Tensor(dtype, shape);
    Stack wide(ctx_);
    for (const Tensor& t : parts_) wide.push(unpack_subbyte(t));
    return pack_subbyte(wide.finish(axis, reverse, element, DType::kU8), dtype);
  }
  Tensor out(dtype, shape);
  std::vector<int64_t> strides = dense_strides(shape);
  const int64_t step = strides[static_cast<size_t>(at)];
  strides.erase(strides.begin() + at);
  for (int64_t i = 0; i < n && out.numel() > 0; ++i) {
    const Tensor& src = parts_[static_cast<size_t>(reverse ? n - 1 - i : i)];
    copy_strided(static_cast<char*>(out.raw()) + i * step * (bits / 8), strides, src.raw(),
                 dense_strides(part), part, bits / 8);
  }
  return out;
}

}  // namespace hone::ops
