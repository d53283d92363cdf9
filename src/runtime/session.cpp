#include "runtime/session.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>

#include "backends/backend.h"
#include "hone/error.h"
#include "ops/interpreter.h"
#include "ops/op.h"
#include "runtime/materialize.h"

namespace hone::runtime {

using engine::Engine;
using engine::kNone;
using engine::Place;
using engine::Plan;
using engine::PlanId;
using engine::PlanStep;
using engine::PlanValue;
using engine::StepKind;

namespace {

/// Page-aligned memory that asks for huge pages and is touched only where it is used.
class Arena {
 public:
  ~Arena() { release(); }
  void reserve(int64_t bytes) {
    if (bytes <= bytes_) return;
    release();
    void* p =
        mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      throw Error(ErrorCode::kOutOfMemory, "cannot get " + std::to_string(bytes) + " bytes for the arena",
                  {.stage = "bind"});
    if (bytes >= (4 << 20)) madvise(p, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    data_ = static_cast<char*>(p);
    bytes_ = bytes;
  }
  char* data() { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void release() {
    if (data_ != nullptr) munmap(data_, static_cast<size_t>(bytes_));
    data_ = nullptr;
    bytes_ = 0;
  }
  char* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// Copies a tensor in any layout to plain. Plain C++: taps and dynamic consumers only.
Tensor to_plain(const void* bytes, DType dtype, const Shape& shape, ops::Layout layout) {
  Tensor out(dtype, shape);
  const std::vector<int64_t> strides = ops::layout_strides(layout, shape);
  const int64_t size = dtype_bits(dtype) / 8;
  const int rank = static_cast<int>(shape.size());
  std::vector<int64_t> at(shape.size(), 0);
  char* dst = static_cast<char*>(out.raw());
  const int64_t n = out.numel();
  for (int64_t i = 0; i < n; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < rank; ++d) offset += at[static_cast<size_t>(d)] * strides[static_cast<size_t>(d)];
    std::memcpy(dst + i * size, static_cast<const char*>(bytes) + offset * size, static_cast<size_t>(size));
    for (int d = rank - 1; d >= 0; --d) {
      if (++at[static_cast<size_t>(d)] < shape[static_cast<size_t>(d)]) break;
      at[static_cast<size_t>(d)] = 0;
    }
  }
  return out;
}

constexpr size_t kMaxBounds = 16;  // distinct input shapes whose binding a session keeps

}  // namespace

struct Session::Impl {
  std::shared_ptr<const Engine> engine;
  int64_t max_memory = 0;
  Arena arena;
  std::deque<std::pair<std::vector<Shape>, std::shared_ptr<const Bound>>> bounds;
  std::vector<void*> pointers;       // per plan value
  std::vector<Tensor> dynamic;       // per plan value, run-time sized ones
  std::unique_ptr<ir::Graph> graph;  // only when a step has subgraphs
  std::vector<const ir::Node*> graph_nodes;
  std::vector<const void*> src_pointers;
  std::vector<void*> dst_pointers;

  const ir::Node& node(int32_t index) {
    if (!graph) {
      graph = materialize_graph(*engine);
      for (const auto& n : graph->nodes()) graph_nodes.push_back(n.get());
    }
    if (index < 0 || static_cast<size_t>(index) >= graph_nodes.size())
      throw Error(ErrorCode::kCorruptEngine, "a step names a node that the stored graph does not have",
                  {.stage = "run"});
    return *graph_nodes[static_cast<size_t>(index)];
  }

  Tensor as_tensor(const Bound& b, PlanId id) {
    const auto i = static_cast<size_t>(id);
    const PlanValue& v = engine->plan.values[i];
    if (v.place == Place::kDynamic) return dynamic[i];
    if (v.place == Place::kConstant) {
      const engine::Constant& c = engine->constants[static_cast<size_t>(v.constant)];
      if (!c.packing.empty())
        throw Error(ErrorCode::kCorruptEngine, "a host step reads the packed constant '" + c.name + "'",
                    {.stage = "run"});
      return c.bytes;
    }
    return Tensor::view(v.dtype, b.shapes[i], pointers[i]);
  }

  void run_host(const Bound& b, const PlanStep& s);
};

void Session::Impl::run_host(const Bound& b, const PlanStep& s) {
  std::vector<Tensor> held;
  held.reserve(s.srcs.size());
  std::vector<const Tensor*> srcs;
  for (PlanId id : s.srcs) {
    if (id == kNone) {
      srcs.push_back(nullptr);
      continue;
    }
    held.push_back(as_tensor(b, id));
    srcs.push_back(&held.back());
  }
  std::vector<DType> dtypes;
  for (const ops::Operand& o : s.problem.dsts) dtypes.push_back(o.dtype);
  // Subgraphs and the bodies of fused layers live in the stored graph.
  const bool by_node =
      s.reason == "control-flow" || (s.problem.domain == ir::kHoneDomain && s.problem.op == "Fused");
  std::vector<Tensor> outs;
  if (by_node) {
    const ir::Node& n = node(s.host_node);
    outs = ops::run_node(*graph, n, srcs);
  } else {
    const ops::OpDef* op = ops::find_op(s.problem.domain, s.problem.op);
    if (op == nullptr || op->kernel == nullptr)
      throw Error(ErrorCode::kUnsupported, "no reference kernel for " + s.problem.op,
                  {.stage = "run", .node = s.name});
    const ErrorContext where{.stage = "run", .node = s.name, .op = s.problem.op};
    outs = ops::run_op(*op, s.problem.attrs, srcs, dtypes, false, &where);
  }
  for (size_t k = 0; k < s.dsts.size(); ++k) {
    const PlanId id = s.dsts[k];
    if (id == kNone) continue;
    const auto i = static_cast<size_t>(id);
    const PlanValue& v = engine->plan.values[i];
    if (outs[k].dtype() != v.dtype)
      throw Error(ErrorCode::kInternal,
                  "host step '" + s.name + "' produced " + outs[k].type_text() + " for '" + v.name + "'",
                  {.stage = "run"});
    if (v.place == Place::kDynamic) {
      dynamic[i] = outs[k];
      continue;
    }
    if (outs[k].shape() != b.shapes[i])
      throw Error(ErrorCode::kInternal,
                  "host step '" + s.name + "' produced " + outs[k].type_text() + ", planned was " +
                      type_text(v.dtype, b.shapes[i]),
                  {.stage = "run"});
    if (outs[k].nbytes() > 0) std::memcpy(pointers[i], outs[k].raw(), static_cast<size_t>(outs[k].nbytes()));
  }
}

Session::Session(std::shared_ptr<const Engine> engine, int64_t max_memory) : impl_(std::make_unique<Impl>()) {
  impl_->engine = std::move(engine);
  impl_->max_memory = max_memory;
  const backends::Target target = backends::Target::parse(impl_->engine->target);
  const backends::Backend* backend = backends::find_backend(target.backend);
  if (backend == nullptr)
    throw Error(ErrorCode::kUnsupported,
                "engine built for '" + impl_->engine->target + "', found no such backend in this hone",
                {.stage = "load"});
  if (const std::string why = backend->refuse(target); !why.empty())
    throw Error(ErrorCode::kUnsupported, why, {.stage = "load"});
}

Session::~Session() = default;

int64_t Session::arena_bytes() const { return impl_->arena.bytes(); }

void Session::prepare(const std::vector<Shape>& input_shapes) {
  auto& bounds = impl_->bounds;
  const auto it =
      std::find_if(bounds.begin(), bounds.end(), [&](const auto& b) { return b.first == input_shapes; });
  if (it != bounds.end()) {
    bound_ = it->second;
  } else {
    bound_ = bind(*impl_->engine, input_shapes, impl_->max_memory);
    if (bounds.size() >= kMaxBounds) bounds.pop_front();
    bounds.emplace_back(input_shapes, bound_);
  }
  impl_->arena.reserve(bound_->memory.arena_bytes);
}

std::vector<Tensor> Session::run(const std::vector<Tensor>& inputs, const RunOptions& options) {
  std::vector<Tensor> outputs(impl_->engine->plan.outputs.size());
  run_into(inputs, outputs, options);
  return outputs;
}

void Session::run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs,
                       const RunOptions& options) {
  Impl& m = *impl_;
  const Plan& plan = m.engine->plan;
  std::vector<Shape> shapes;
  for (const Tensor& t : inputs) shapes.push_back(t.shape());
  if (!bound_ || m.bounds.empty() || m.bounds.back().second != bound_ || m.bounds.back().first != shapes)
    prepare(shapes);
  const Bound& b = *bound_;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const PlanValue& v = plan.values[static_cast<size_t>(plan.inputs[i])];
    if (inputs[i].dtype() != v.dtype)
      throw Error(ErrorCode::kInvalidArgument,
                  "input '" + v.name + "' is " + dtype_name(v.dtype) + ", but " + inputs[i].type_text() +
                      " was given",
                  {.stage = "run", .tensor = v.name});
  }

  // Where everything is in this run.
  m.pointers.assign(plan.values.size(), nullptr);
  m.dynamic.assign(plan.values.size(), Tensor());
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const PlanValue& v = plan.values[i];
    if (v.place == Place::kConstant)
      m.pointers[i] = const_cast<void*>(m.engine->constants[static_cast<size_t>(v.constant)].bytes.raw());
    else if (b.offsets[i] >= 0)
      m.pointers[i] = m.arena.data() + b.offsets[i];
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    m.pointers[static_cast<size_t>(plan.inputs[i])] = const_cast<void*>(inputs[i].raw());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto id = static_cast<size_t>(plan.outputs[i]);
    const PlanValue& v = plan.values[id];
    if (v.place != Place::kOutput) continue;
    if (!outputs[i].defined()) outputs[i] = Tensor(v.dtype, b.shapes[id]);
    if (outputs[i].dtype() != v.dtype || outputs[i].shape() != b.shapes[id])
      throw Error(ErrorCode::kInvalidArgument,
                  "output '" + v.name + "' is " + type_text(v.dtype, b.shapes[id]) +
                      ", the buffer given is " + outputs[i].type_text(),
                  {.stage = "run"});
    m.pointers[id] = outputs[i].raw();
  }
  for (size_t i = 0; i < plan.values.size(); ++i)
    if (plan.values[i].alias_of != kNone)
      m.pointers[i] = m.pointers[static_cast<size_t>(plan.values[i].alias_of)];

  using Clock = std::chrono::steady_clock;
  if (options.step_ns != nullptr) options.step_ns->assign(plan.steps.size(), 0.0);
  ThreadPool& pool = ThreadPool::process();
  backends::RunArgs args;
  args.pool = &pool;
  args.max_threads = options.threads > 0 ? std::min(options.threads, pool.n_threads()) : pool.n_threads();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& s = plan.steps[i];
    const Clock::time_point start = options.step_ns != nullptr ? Clock::now() : Clock::time_point();
    if (s.kind == StepKind::kHostOp) {
      m.run_host(b, s);
    } else if (b.prepared[i]) {
      bool any = false;  // a step all of whose results are empty has nothing to do
      for (PlanId id : s.dsts) any |= id != kNone && b.bytes[static_cast<size_t>(id)] > 0;
      if (any) {
        m.src_pointers.clear();
        m.dst_pointers.clear();
        for (PlanId id : s.srcs)
          m.src_pointers.push_back(id == kNone ? nullptr : m.pointers[static_cast<size_t>(id)]);
        for (PlanId id : s.dsts)
          m.dst_pointers.push_back(id == kNone ? nullptr : m.pointers[static_cast<size_t>(id)]);
        args.srcs = m.src_pointers.data();
        args.dsts = m.dst_pointers.data();
        args.workspace = b.workspace_offsets[i] >= 0 ? m.arena.data() + b.workspace_offsets[i] : nullptr;
        try {
          b.prepared[i]->run(args);
        } catch (const Error& e) {
          if (!e.context().node.empty()) throw;
          ErrorContext where = e.context();
          where.stage = "run";
          where.node = s.name;
          where.op = s.problem.op;
          throw Error(e.code(), e.message(), where, e.where());
        }
      }
    }
    if (options.step_ns != nullptr)
      (*options.step_ns)[i] = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    if (options.tap && !options.tap_values.empty())
      for (PlanId id : s.dsts)
        if (id != kNone &&
            std::find(options.tap_values.begin(), options.tap_values.end(), id) != options.tap_values.end()) {
          const PlanValue& v = plan.values[static_cast<size_t>(id)];
          if (v.place == Place::kDynamic)
            options.tap(id, m.dynamic[static_cast<size_t>(id)]);
          else
            options.tap(id, to_plain(m.pointers[static_cast<size_t>(id)], v.dtype,
                                     b.shapes[static_cast<size_t>(id)], v.layout));
        }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto id = static_cast<size_t>(plan.outputs[i]);
    if (plan.values[id].place == Place::kDynamic) outputs[i] = m.dynamic[id];
  }
}

}  // namespace hone::runtime
