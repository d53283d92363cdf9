#include "ops/op.h"

#include <algorithm>
#include <map>
#include <set>

#include "hone/version.h"

namespace hone::ops {

#define HONE_OP(Name) const OpDef& op_##Name();
#include "ops/ops.inc"
#undef HONE_OP

namespace {

/// Context of an error about a node: name and operator; the opset is the IR's unless said.
ErrorContext context_of(const char* stage, const ir::Node& node, int64_t opset) {
  ErrorContext c;
  c.stage = stage;
  c.node = node.name;
  c.op = node.op_text();
  c.opset = opset;
  return c;
}

int checked_axis(int64_t axis, int rank) {
  return axis >= -rank && axis < rank ? static_cast<int>(axis < 0 ? axis + rank : axis) : -1;
}

std::string axis_message(int64_t axis, int rank) {
  return "axis " + std::to_string(axis) + " is outside [" + std::to_string(-rank) + ", " +
         std::to_string(rank - 1) + "] of a rank " + std::to_string(rank) + " tensor";
}

}  // namespace

// --- registry ---

std::span<const OpDef* const> all_ops() {
  static const std::vector<const OpDef*> ops = {
#define HONE_OP(Name) &op_##Name(),
#include "ops/ops.inc"
#undef HONE_OP
  };
  return ops;
}

const OpDef* find_op(std::string_view domain, std::string_view name) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, const OpDef*> index = [] {
    std::map<Key, const OpDef*> m;
    for (const OpDef* op : all_ops()) m.emplace(Key(op->domain, op->name), op);
    return m;
  }();
  if (domain == "ai.onnx") domain = "";
  const auto it = index.find({domain, name});
  return it == index.end() ? nullptr : it->second;
}

Cost elementwise_cost(const AttrMap&, std::span<const Shape>, std::span<const Shape> outputs) {
  Cost cost;
  for (const Shape& s : outputs) cost.flops += static_cast<double>(numel(s));
  return cost;
}

// --- inference ---

const TypeInfo& InferContext::input(size_t i) const {
  static const TypeInfo unknown;
  return has_input(i) ? graph_.value(node_.inputs[i]).type : unknown;
}

const Tensor* InferContext::constant(size_t i) const {
  return has_input(i) ? graph_.value(node_.inputs[i]).data.get() : nullptr;
}

std::optional<Dims> InferContext::contents(size_t i) const {
  if (!has_input(i)) return std::nullopt;
  const ir::Value& v = graph_.value(node_.inputs[i]);
  if (v.contents) return v.contents;
  if (v.data == nullptr || !is_integer(v.data->dtype()) ||
      v.data->numel() > static_cast<int64_t>(kMaxContents))
    return std::nullopt;
  return ir::to_dims(v.data->to_i64());
}

std::optional<std::vector<int64_t>> InferContext::const_ints(size_t i) const {
  const Tensor* t = constant(i);
  if (t != nullptr && (is_integer(t->dtype()) || t->dtype() == DType::kBool)) return t->to_i64();
  const std::optional<Dims> dims = contents(i);
  return dims ? ir::const_dims(*dims) : std::nullopt;
}

Dim InferContext::fresh_symbol() {
  fresh_.push_back(graph_.fresh_symbol());
  return fresh_.back();
}

void InferContext::set_output(size_t i, DType dtype, std::optional<Dims> shape) {
  if (!has_output(i)) return;
  ir::Value& v = graph_.value(node_.outputs[i]);
  const auto contradicts = [&] {
    fail("output " + std::to_string(i) + " '" + v.name + "' is declared " + v.type.text() +
         " but is inferred as " + TypeInfo{dtype, shape}.text());
  };
  if (dtype != DType::kUndefined) {
    if (v.type.dtype != DType::kUndefined && v.type.dtype != dtype) contradicts();
    v.type.dtype = dtype;
  }
  if (!shape) return;
  if (!v.type.shape) {
    v.type.shape = std::move(shape);
    return;
  }
  Dims& have = *v.type.shape;
  if (have.size() != shape->size()) contradicts();
  for (size_t d = 0; d < have.size(); ++d) {
    const Dim& inferred = (*shape)[d];
    if (inferred.is_const()) {
      if (have[d].is_const() && have[d].value() != inferred.value()) contradicts();
      have[d] = inferred;
    } else if (!have[d].is_const() && std::find(fresh_.begin(), fresh_.end(), inferred) == fresh_.end()) {
      have[d] = inferred;  // inference speaks of the graph's own inputs; a declared name only repeats it
    }
  }
}

void InferContext::set_contents(size_t i, Dims contents) {
  if (!has_output(i) || contents.size() > kMaxContents) return;
  graph_.value(node_.outputs[i]).contents = std::move(contents);
}

int InferContext::axis(int64_t axis, int rank) const {
  const int a = checked_axis(axis, rank);
  if (a < 0) fail(axis_message(axis, rank));
  return a;
}

std::vector<int> InferContext::axes(const std::vector<int64_t>& axes, int rank) const {
  std::vector<int> out;
  std::set<int> seen;
  for (const int64_t a : axes) {
    out.push_back(axis(a, rank));
    if (!seen.insert(out.back()).second) fail("axes name dimension " + std::to_string(out.back()) + " twice");
  }
  return out;
}

Dims InferContext::broadcast(const Dims& a, const Dims& b) const {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {  // from the last dimension
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    Dim& d = out[out.size() - 1 - i];
    if (x == y || y == Dim(1)) {
      d = x;
    } else if (x == Dim(1)) {
      d = y;
    } else if (x.is_const() && y.is_const()) {
      fail("shapes " + ir::dims_text(a) + " and " + ir::dims_text(b) + " do not broadcast");
    } else if (x.is_const() || y.is_const()) {
      d = x.is_const() ? x : y;  // the symbol is 1 or that integer
    } else {
      d = Dim::max(x, y);
    }
  }
  return out;
}

void InferContext::fail(const std::string& message, std::source_location where) const {
  throw Error(ErrorCode::kInvalidModel, message, context_of("infer", node_, kIrOpset), where);
}

// --- kernels ---

Tensor& KernelContext::out(size_t i, const Shape& shape) { return out(i, out_dtypes[i], shape); }

Tensor& KernelContext::out(size_t i, DType dtype, const Shape& shape) {
  if (outputs.size() < out_dtypes.size()) outputs.resize(out_dtypes.size());
  outputs.at(i) = allocate ? allocate(i, dtype, shape) : Tensor(dtype, shape);
  return outputs[i];
}

void KernelContext::set_out(size_t i, Tensor tensor) {
  if (outputs.size() < out_dtypes.size()) outputs.resize(out_dtypes.size());
  outputs.at(i) = std::move(tensor);
}

int KernelContext::axis(int64_t axis, int rank) const {
  const int a = checked_axis(axis, rank);
  if (a < 0) fail(axis_message(axis, rank));
  return a;
}

void KernelContext::fail(const std::string& message, std::source_location at) const {
  ErrorContext context;
  if (where != nullptr) {
    context = *where;
  } else {
    context.stage = "run";
  }
  throw Error(ErrorCode::kInvalidData, message, context, at);
}

// --- adapters ---

void AdaptContext::fail(const std::string& message, std::source_location where) const {
  throw Error(ErrorCode::kInvalidModel, message, context_of("import", node, since), where);
}

ir::ValueId AdaptContext::ints(const std::string& name, const std::vector<int64_t>& values) {
  return graph.add_constant(node.name + "/" + name, Tensor::i64_vector(values));
}

}  // namespace hone::ops
