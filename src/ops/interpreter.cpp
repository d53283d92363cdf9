#include "ops/interpreter.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>

#include "hone/error.h"
#include "hone/version.h"

namespace hone::ops {
namespace {

/// What a kernel computes in for a declared type: f64 in the oracle, at least f32 where it widens.
DType compute_dtype(const OpDef& op, DType declared, bool oracle) {
  if (!is_float(declared)) return declared;
  if (oracle) return DType::kF64;
  return op.narrow == NarrowFloats::kWiden && is_narrow_float(declared) ? DType::kF32 : declared;
}

using SubgraphRunner = std::function<std::vector<Tensor>(const ir::Graph&, std::vector<Tensor>)>;
using Allocator = std::function<Tensor(size_t, DType, const Shape&)>;

std::vector<Tensor> run_kernel(const OpDef& op, const AttrMap& attrs, std::span<const Tensor* const> inputs,
                               const std::vector<DType>& declared, bool oracle, const ErrorContext* where,
                               const Allocator& allocate, const SubgraphRunner& run_subgraph) {
  if (op.kernel == nullptr)
    throw Error(ErrorCode::kUnsupported, "no reference kernel", where != nullptr ? *where : ErrorContext{});

  // Inputs in the type the kernel computes in. Converted copies live for this call only.
  std::vector<Tensor> converted;
  converted.reserve(inputs.size());
  std::vector<const Tensor*> in(inputs.begin(), inputs.end());
  for (const Tensor*& t : in) {
    if (t == nullptr || !is_float(t->dtype())) continue;
    const DType want = compute_dtype(op, t->dtype(), oracle);
    if (want != t->dtype()) t = &converted.emplace_back(convert(*t, want));
  }
  std::vector<DType> out_dtypes;
  for (const DType t : declared) out_dtypes.push_back(compute_dtype(op, t, oracle));

  std::vector<bool> placed(declared.size(), false);
  Allocator place;
  if (allocate) {
    // Outputs that are rounded afterwards are computed aside.
    place = [&](size_t i, DType t, const Shape& shape) {
      if (t != declared[i] && !oracle) return Tensor(t, shape);
      placed[i] = true;
      return allocate(i, t, shape);
    };
  }
  KernelContext ctx{attrs, in, out_dtypes, oracle, place, {}, run_subgraph, where};
  ctx.outputs.resize(declared.size());
  op.kernel(ctx);

  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i] == DType::kUndefined) continue;
    Tensor& t = ctx.outputs[i];
    if (!t.defined()) {
      throw Error(ErrorCode::kInternal, "the kernel left output " + std::to_string(i) + " undefined",
                  where != nullptr ? *where : ErrorContext{});
    }
    if (!oracle && t.dtype() != declared[i] && is_float(declared[i]) && is_float(t.dtype()))
      t = convert(t, declared[i]);
    if (allocate && !placed[i]) {
      Tensor at = allocate(i, t.dtype(), t.shape());
      if (at.raw() != t.raw() && t.nbytes() > 0)
        std::memcpy(at.raw(), t.raw(), static_cast<size_t>(t.nbytes()));
      t = std::move(at);
    }
  }
  return std::move(ctx.outputs);
}

ErrorContext context_of(const ir::Node& node) {
  ErrorContext c;
  c.stage = "run";
  c.node = node.name;
  c.op = node.op_text();
  c.opset = node.domain.empty() ? kIrOpset : 1;
  return c;
}

class Run {
 public:
  Run(const ir::Graph& graph, const InterpretOptions& options)
      : graph_(graph), options_(options), env_(graph.num_values()) {}

  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs, std::span<const Tensor* const> captures) {
    bind(inputs, captures);
    count_uses();
    for (const auto& node : graph_.nodes()) step(*node);
    std::vector<Tensor> out;
    for (const ir::ValueId id : graph_.outputs()) {
      const Tensor* t = lookup(id);
      if (t == nullptr)
        throw Error(ErrorCode::kInternal, "graph output '" + graph_.value(id).name + "' has no value");
      out.push_back(options_.oracle && is_float(t->dtype()) ? convert(*t, DType::kF64) : *t);
    }
    return out;
  }

 private:
  void bind(const std::vector<Tensor>& inputs, std::span<const Tensor* const> captures) {
    if (inputs.size() != graph_.inputs().size()) {
      throw Error(ErrorCode::kInvalidArgument, "graph '" + graph_.name + "' takes " +
                                                   std::to_string(graph_.inputs().size()) + " inputs, got " +
                                                   std::to_string(inputs.size()));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ir::Value& v = graph_.value(graph_.inputs()[i]);
      check_input(v, inputs[i]);
      env_[static_cast<size_t>(v.id)] =
          options_.oracle && is_float(inputs[i].dtype()) ? convert(inputs[i], DType::kF64) : inputs[i];
    }
    for (size_t i = 0; i < captures.size() && i < graph_.captures.size(); ++i) {
      const ir::ValueId id = graph_.captures[i];
      if (id != ir::kNoValue && captures[i] != nullptr) env_[static_cast<size_t>(id)] = *captures[i];
    }
  }

  void check_input(const ir::Value& v, const Tensor& t) const {
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::kInvalidArgument,
                  "input '" + v.name + "' is " + v.type.text() + ", got " + t.type_text() + why);
    };
    if (!t.defined()) refuse("");
    if (v.type.dtype != DType::kUndefined && t.dtype() != v.type.dtype &&
        !(options_.oracle && is_float(v.type.dtype) && t.dtype() == DType::kF64)) {
      refuse("");
    }
    if (!v.type.shape) return;
    if (v.type.shape->size() != t.shape().size()) refuse(": another rank");
    for (size_t d = 0; d < t.shape().size(); ++d) {
      const std::optional<int64_t> want = (*v.type.shape)[d].maybe();
      if (want && *want != t.shape()[d]) refuse(": dimension " + std::to_string(d) + " differs");
    }
  }

  void count_uses() {
    remaining_.assign(graph_.num_values(), 0);
    for (const auto& node : graph_.nodes()) {
      for (const ir::ValueId id : node->inputs) {
        if (id != ir::kNoValue) ++remaining_[static_cast<size_t>(id)];
      }
    }
    for (const ir::ValueId id : graph_.outputs()) ++remaining_[static_cast<size_t>(id)];
  }

  const Tensor* lookup(ir::ValueId id) const {
    if (id == ir::kNoValue) return nullptr;
    const ir::Value& v = graph_.value(id);
    if (v.is_const()) return v.data.get();
    const Tensor& t = env_[static_cast<size_t>(id)];
    return t.defined() ? &t : nullptr;
  }

  void step(const ir::Node& node);

  const ir::Graph& graph_;
  const InterpretOptions& options_;
  std::vector<Tensor> env_;  ///< by value id; constants stay in the graph
  std::vector<int> remaining_;
};

std::vector<Tensor> run_one(const ir::Graph& graph, const ir::Node& node,
                            const std::vector<const Tensor*>& inputs, const InterpretOptions& options,
                            const Allocator& allocate) {
  const ErrorContext where = context_of(node);
  if (node.body != nullptr) {
    std::vector<Tensor> in;
    for (const Tensor* t : inputs) in.push_back(t != nullptr ? *t : Tensor());
    InterpretOptions inner;
    inner.oracle = options.oracle;
    std::vector<Tensor> out = Run(*node.body, inner)(in, {});
    for (size_t i = 0; allocate && i < out.size(); ++i) {
      Tensor at = allocate(i, out[i].dtype(), out[i].shape());
      if (out[i].nbytes() > 0) std::memcpy(at.raw(), out[i].raw(), static_cast<size_t>(out[i].nbytes()));
      out[i] = std::move(at);
    }
    return out;
  }
  const OpDef* op = find_op(node.domain, node.op);
  if (op == nullptr) throw Error(ErrorCode::kUnsupported, "unknown operator", where);

  std::vector<DType> declared;
  for (const ir::ValueId id : node.outputs) {
    DType t = DType::kUndefined;
    if (id != ir::kNoValue) {
      t = graph.value(id).type.dtype;
      if (t == DType::kUndefined) {
        throw Error(ErrorCode::kInvalidModel,
                    "the element type of output '" + graph.value(id).name + "' is unknown", where);
      }
    }
    declared.push_back(t);
  }
  const auto num_own = inputs.size() - static_cast<size_t>(node.num_captures);
  const std::span<const Tensor* const> all(inputs);
  SubgraphRunner run_subgraph;
  if (node.num_captures > 0 || std::any_of(node.attrs.begin(), node.attrs.end(), [](const auto& a) {
        return std::holds_alternative<std::shared_ptr<ir::Graph>>(a.second);
      })) {
    run_subgraph = [&, captures = all.subspan(num_own)](const ir::Graph& g,
                                                        const std::vector<Tensor>& formals) {
      return Run(g, options)(formals, captures);
    };
  }
  try {
    return run_kernel(*op, node.attrs, all.first(num_own), declared, options.oracle, &where, allocate,
                      run_subgraph);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory, "not enough memory for this node", where);
  } catch (const std::length_error&) {
    throw Error(ErrorCode::kOutOfMemory, "a size exceeds what this machine can address", where);
  } catch (const Error& e) {
    if (!e.context().node.empty()) throw;
    ErrorContext c = where;  // thrown by code that does not know the node: sizes, conversions
    c.tensor = e.context().tensor;
    throw Error(e.code(), e.message(), c, e.where());
  }
}

void Run::step(const ir::Node& node) {
  std::vector<const Tensor*> inputs;
  for (const ir::ValueId id : node.inputs) inputs.push_back(lookup(id));
  std::vector<Tensor> outputs = run_one(graph_, node, inputs, options_, {});
  if (options_.observe) options_.observe(node, outputs);
  for (size_t i = 0; i < node.outputs.size() && i < outputs.size(); ++i) {
    const ir::ValueId id = node.outputs[i];
    if (id != ir::kNoValue && remaining_[static_cast<size_t>(id)] > 0)
      env_[static_cast<size_t>(id)] = std::move(outputs[i]);
  }
  for (const ir::ValueId id : node.inputs) {
    if (id != ir::kNoValue && --remaining_[static_cast<size_t>(id)] == 0)
      env_[static_cast<size_t>(id)] = Tensor();
  }
}

}  // namespace

std::vector<Tensor> interpret(const ir::Graph& graph, const std::vector<Tensor>& inputs,
                              const InterpretOptions& options) {
  return Run(graph, options)(inputs, {});
}

std::vector<Tensor> run_node(const ir::Graph& graph, const ir::Node& node,
                             const std::vector<const Tensor*>& inputs, bool oracle,
                             const Allocator& allocate) {
  InterpretOptions options;
  options.oracle = oracle;
  return run_one(graph, node, inputs, options, allocate);
}

std::vector<Tensor> run_op(const OpDef& op, const AttrMap& attrs, const std::vector<const Tensor*>& inputs,
                           const std::vector<DType>& out_dtypes, bool oracle, const ErrorContext* where,
                           const Allocator& allocate) {
  return run_kernel(op, attrs, inputs, out_dtypes, oracle, where, allocate, {});
}

}  // namespace hone::ops
