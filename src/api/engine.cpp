#include "hone/engine.h"

#include <algorithm>
#include <set>

#include "backends/backend.h"
#include "engine/engine.h"
#include "engine/format.h"
#include "hone/error.h"
#include "ops/op.h"
#include "runtime/session.h"

namespace hone {
namespace {

/// A loaded engine remembers what its file said.
struct LoadedEngine : engine::Engine {
  engine::FileInfo file;
  std::vector<std::string> records;
};

std::vector<TensorInfo> interface(const engine::Engine& e, const std::vector<engine::PlanId>& ids) {
  std::vector<TensorInfo> out;
  for (engine::PlanId id : ids) {
    const engine::PlanValue& v = e.plan.values[static_cast<size_t>(id)];
    TensorInfo info;
    info.name = v.name;
    info.dtype = v.dtype;
    for (const ir::Dim& d : v.dims) info.dims.push_back(d.text());
    out.push_back(std::move(info));
  }
  return out;
}

const char* kind_name(engine::StepKind kind) {
  switch (kind) {
    case engine::StepKind::kTactic: return "tactic";
    case engine::StepKind::kReorder: return "reorder";
    case engine::StepKind::kHostOp: return "host";
    case engine::StepKind::kAlias: return "alias";
  }
  return "?";
}

double flops_of(const ops::Problem& p) {
  std::vector<Shape> in, out;
  for (size_t i = 0; i < p.num_anchor_srcs; ++i) in.push_back(p.srcs[i].dims);
  for (const ops::Operand& o : p.dsts) out.push_back(o.dims);
  double flops = 0;
  const ops::OpDef* op = ops::find_op(p.domain, p.op);
  if (op != nullptr && op->cost != nullptr) flops = op->cost(p.attrs, in, out).flops;
  const double elements = out.empty() ? 0 : static_cast<double>(numel(out[0]));
  for (const ops::PostOp& post : p.post)
    flops +=
        elements *
        (post.kind == ops::PostOp::Kind::kProgram ? static_cast<double>(post.program.instrs.size()) : 1.0);
  return flops;
}

}  // namespace

Engine Engine::load(const std::string& path, bool verify) {
  engine::FileInfo file;
  std::unique_ptr<engine::Engine> e = engine::load(path, {.verify_weights = verify}, &file);
  backends::Target target;
  try {
    target = backends::Target::parse(e->target);
  } catch (const Error&) {  // a level or device that only other builds know
    throw Error(ErrorCode::kUnsupported,
                "engine built for '" + e->target + "', which this hone does not know", {.stage = "load"});
  }
  const backends::Backend* backend = backends::find_backend(target.backend);
  if (backend == nullptr)
    throw Error(ErrorCode::kUnsupported,
                "engine built for '" + e->target + "', this hone was built without that backend",
                {.stage = "load"});
  if (const std::string why = backend->refuse(target); !why.empty())
    throw Error(ErrorCode::kUnsupported, why, {.stage = "load"});
  auto loaded = std::make_shared<LoadedEngine>();
  static_cast<engine::Engine&>(*loaded) = std::move(*e);
  loaded->file = file;
  loaded->records = engine::read_records(path);
  return Engine(std::shared_ptr<const engine::Engine>(loaded, loaded.get()));
}

bool Engine::is_engine(const std::string& path) { return engine::is_engine_file(path); }

void Engine::save(const std::string& path) const { engine::save(*impl_, path); }

void Engine::append_record(const std::string& path, const std::string& json) {
  engine::append_record(path, json);
}

std::string Engine::manifest(const std::string& path) { return engine::read_info(path).manifest_json; }

const std::string& Engine::graph_text() const { return impl_->graph_text; }

std::vector<TensorInfo> Engine::inputs() const { return interface(*impl_, impl_->plan.inputs); }
std::vector<TensorInfo> Engine::outputs() const { return interface(*impl_, impl_->plan.outputs); }

std::vector<std::string> Engine::tap_names() const {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const engine::PlanStep& s : impl_->plan.steps)
    for (engine::PlanId id : s.dsts)
      if (id != engine::kNone && s.kind != engine::StepKind::kReorder &&
          seen.insert(impl_->plan.values[static_cast<size_t>(id)].name).second)
        names.push_back(impl_->plan.values[static_cast<size_t>(id)].name);
  return names;
}

EngineInfo Engine::info(const std::vector<Shape>& shapes) const {
  const engine::Engine& e = *impl_;
  EngineInfo info;
  info.target = e.target;
  info.timed = e.timed;
  info.model_hash = e.model_hash;
  info.options_json = e.options_json;
  if (const auto* loaded = dynamic_cast<const LoadedEngine*>(&e)) {
    info.body_hash = loaded->file.body_hash;
    info.file_bytes = loaded->file.file_bytes;
    info.records = loaded->records;
  }
  info.inputs = inputs();
  info.outputs = outputs();
  for (const engine::Profile& p : e.plan.profiles) {
    std::vector<ProfileInfo> ranges;
    for (const engine::ProfileRange& r : p) ranges.push_back({r.input, r.min, r.opt, r.max});
    info.profiles.push_back(std::move(ranges));
  }
  std::vector<Shape> at = shapes;
  if (at.empty())
    for (const engine::ProfileRange& r : e.plan.profiles.front()) at.push_back(r.opt);
  const auto bound = runtime::bind(e, at);
  for (const engine::Constant& c : e.constants) info.memory.weights_bytes += c.bytes.nbytes();
  info.memory.arena_bytes = bound->memory.arena_bytes;
  info.memory.peak_live_bytes = bound->memory.peak_live_bytes;
  info.memory.peak = runtime::describe_peak(e, *bound);
  for (size_t i = 0; i < e.plan.steps.size(); ++i) {
    const engine::PlanStep& s = e.plan.steps[i];
    LayerInfo l;
    l.name = s.name;
    l.kind = kind_name(s.kind);
    l.op = s.problem.op;
    l.requested = s.requested;
    l.actual = s.actual;
    l.reason = s.reason;
    l.sources = s.sources;
    l.passes = s.passes;
    ops::Problem p = s.problem;
    for (size_t k = 0; k < p.srcs.size(); ++k) {
      if (s.srcs[k] == engine::kNone) continue;
      const auto v = static_cast<size_t>(s.srcs[k]);
      p.srcs[k].dims = bound->shapes[v];
      const engine::PlanValue& value = e.plan.values[v];
      l.inputs.push_back({value.name, value.dtype, bound->shapes[v], ops::layout_name(value.layout),
                          value.place == engine::Place::kConstant});
      if (s.kind == engine::StepKind::kAlias) continue;
      if (value.place == engine::Place::kConstant)
        l.weight_bytes += e.constants[static_cast<size_t>(value.constant)].bytes.nbytes();
      else
        l.bytes_read += bound->bytes[v];
    }
    for (size_t k = 0; k < p.dsts.size(); ++k) {
      if (s.dsts[k] == engine::kNone) continue;
      const auto v = static_cast<size_t>(s.dsts[k]);
      p.dsts[k].dims = bound->shapes[v];
      const engine::PlanValue& value = e.plan.values[v];
      l.outputs.push_back({value.name, value.dtype, bound->shapes[v], ops::layout_name(value.layout), false});
      if (s.kind != engine::StepKind::kAlias) l.bytes_written += bound->bytes[v];
    }
    l.problem = p.text();
    if (s.kind == engine::StepKind::kTactic || s.kind == engine::StepKind::kReorder) {
      const engine::TacticChoice& c = s.choices[static_cast<size_t>(bound->bucket)];
      l.tactic = c.tactic;
      l.tuned_time_ns = c.time_ns;
      l.tuned_error = c.error;
      l.workspace_bytes = bound->prepared[i]->workspace_bytes();
      l.flops = flops_of(p);
    }
    info.layers.push_back(std::move(l));
  }
  for (const engine::LedgerEntry& row : e.plan.ledger) {
    LedgerInfo l{row.pass, row.node, row.sources, row.bytes_not_moved.eval(bound->symbols).value_or(0),
                 row.bytes_not_moved.text()};
    info.ledger_bytes += l.bytes_not_moved;
    info.ledger.push_back(std::move(l));
  }
  info.unfused_bytes = e.plan.unfused_traffic_bytes.eval(bound->symbols).value_or(0);
  return info;
}

}  // namespace hone
