#include "hone/session.h"

#include <algorithm>
#include <map>

#include "build/builder.h"
#include "engine/engine.h"
#include "engine/format.h"
#include "hone/error.h"
#include "ops/infer.h"
#include "ops/interpreter.h"
#include "runtime/materialize.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"

namespace hone {
namespace {

/// Tensors in the order of `names`; errors list every name that is missing or unknown.
std::vector<Tensor> by_position(const std::vector<std::string>& names,
                                const std::vector<NamedTensor>& given) {
  std::vector<Tensor> out(names.size());
  std::string wrong;
  for (const NamedTensor& t : given) {
    const auto it = std::find(names.begin(), names.end(), t.name);
    if (it == names.end())
      wrong += (wrong.empty() ? "" : "; ") + ("unknown input '" + t.name + "'");
    else
      out[static_cast<size_t>(it - names.begin())] = t.tensor;
  }
  for (size_t i = 0; i < names.size(); ++i)
    if (!out[i].defined()) wrong += (wrong.empty() ? "" : "; ") + ("missing input '" + names[i] + "'");
  if (!wrong.empty()) {
    std::string list;
    for (const std::string& n : names) list += (list.empty() ? "" : ", ") + n;
    throw Error(ErrorCode::kInvalidArgument, wrong + "; the inputs are: " + list, {.stage = "run"});
  }
  return out;
}

}  // namespace

struct Session::Impl {
  Engine engine;
  SessionOptions options;
  std::unique_ptr<runtime::Session> session;
  std::vector<std::string> names;
  runtime::RunOptions run;
  std::vector<double> step_ns;
};

Session::Session(Engine engine, SessionOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->session = std::make_unique<runtime::Session>(engine.impl(), options.max_memory);
  for (const TensorInfo& t : engine.inputs()) impl_->names.push_back(t.name);
  impl_->engine = std::move(engine);
  impl_->options = options;
  impl_->run.threads = options.threads;
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<NamedTensor> Session::run(const std::vector<NamedTensor>& inputs) {
  std::vector<Tensor> outputs = impl_->session->run(by_position(impl_->names, inputs), impl_->run);
  std::vector<NamedTensor> named;
  const std::vector<TensorInfo> infos = impl_->engine.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) named.push_back({infos[i].name, std::move(outputs[i])});
  return named;
}

void Session::run_into(const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  if (outputs.empty()) outputs.resize(impl_->engine.impl()->plan.outputs.size());
  impl_->session->run_into(inputs, outputs, impl_->run);
}

void Session::tap(const std::vector<std::string>& names,
                  std::function<void(const std::string&, const Tensor&)> fn) {
  const engine::Plan& plan = impl_->engine.impl()->plan;
  impl_->run.tap_values.clear();
  for (const std::string& name : names) {
    bool found = false;
    for (const engine::PlanStep& s : plan.steps)
      for (engine::PlanId id : s.dsts)
        if (!found && id != engine::kNone && plan.values[static_cast<size_t>(id)].name == name) {
          impl_->run.tap_values.push_back(id);
          found = true;
        }
    if (!found) {
      std::string near;
      for (const std::string& n : impl_->engine.tap_names())
        if (near.size() < 200 && (n.find(name) != std::string::npos || name.find(n) != std::string::npos))
          near += (near.empty() ? "" : ", ") + n;
      throw Error(ErrorCode::kInvalidArgument,
                  "no tensor '" + name + "' at a fused boundary" +
                      (near.empty() ? "; hone inspect lists the names" : "; did you mean: " + near),
                  {.stage = "run"});
    }
  }
  impl_->run.tap = [&plan, fn = std::move(fn)](engine::PlanId id, const Tensor& t) {
    fn(plan.values[static_cast<size_t>(id)].name, t);
  };
}

void Session::profile(bool on) { impl_->run.step_ns = on ? &impl_->step_ns : nullptr; }
const std::vector<double>& Session::step_ns() const { return impl_->step_ns; }

MemoryInfo Session::memory() const {
  const runtime::Bound& b = impl_->session->bound();
  MemoryInfo m;
  m.arena_bytes = b.memory.arena_bytes;
  m.peak_live_bytes = b.memory.peak_live_bytes;
  for (const engine::Constant& c : impl_->engine.impl()->constants) m.weights_bytes += c.bytes.nbytes();
  m.peak = runtime::describe_peak(*impl_->engine.impl(), b);
  return m;
}

std::vector<std::string> Session::events() const { return impl_->session->bound().events; }

struct Reference::Impl {
  std::unique_ptr<ir::Graph> graph;
  std::shared_ptr<const engine::Engine> engine;  // keeps the weights mapped
  std::vector<std::string> names;
};

Reference::Reference(const std::string& model_or_engine) : impl_(std::make_unique<Impl>()) {
  if (engine::is_engine_file(model_or_engine)) {
    impl_->engine = engine::load(model_or_engine, {});
    impl_->graph = runtime::materialize_graph(*impl_->engine);
    ops::infer_graph(*impl_->graph);
  } else {
    impl_->graph = std::move(builder::import_for_build(model_or_engine, {}, nullptr).graph);
  }
  for (ir::ValueId id : impl_->graph->inputs()) impl_->names.push_back(impl_->graph->value(id).name);
}
Reference::~Reference() = default;

std::vector<NamedTensor> Reference::run(const std::vector<NamedTensor>& inputs, bool oracle) {
  const ir::Graph& g = *impl_->graph;
  std::vector<Tensor> outputs = ops::interpret(g, by_position(impl_->names, inputs), {.oracle = oracle});
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.push_back({g.value(g.outputs()[i]).name, std::move(outputs[i])});
  return named;
}

std::vector<NamedTensor> run_reference(const std::string& model_or_engine,
                                       const std::vector<NamedTensor>& inputs, bool oracle) {
  return Reference(model_or_engine).run(inputs, oracle);
}

std::vector<NamedTensor> random_inputs(const std::vector<TensorInfo>& inputs,
                                       const std::vector<std::pair<std::string, Shape>>& shapes,
                                       uint64_t seed) {
  std::vector<NamedTensor> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape shape;
    const auto it =
        std::find_if(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == inputs[i].name; });
    if (it != shapes.end()) {
      shape = it->second;
    } else {
      for (const std::string& d : inputs[i].dims)
        shape.push_back(d.find_first_not_of("0123456789") == std::string::npos && !d.empty() ? std::stoll(d)
                                                                                             : 1);
    }
    out.push_back({inputs[i].name, runtime::random_input(inputs[i].dtype, shape, seed, i)});
  }
  return out;
}

}  // namespace hone
