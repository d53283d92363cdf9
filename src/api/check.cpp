// hone::check: everything that is wrong with a model, and what would fall back, in one pass.
#include <new>

#include "backends/backend.h"
#include "build/builder.h"
#include "build/lower.h"
#include "engine/engine.h"
#include "hone/builder.h"
#include "hone/error.h"
#include "onnx/import.h"

namespace hone {
namespace {

/// An error that ended a stage, as an issue.
Issue from_error(const Error& e, const std::string& stage) {
  Issue issue;
  issue.severity = "error";
  issue.stage = e.context().stage.empty() ? stage : e.context().stage;
  issue.node = e.context().node;
  issue.op = e.context().op;
  issue.opset = e.context().opset;
  issue.tensor = e.context().tensor;
  issue.message = e.message();
  issue.code = error_code_name(e.code());
  switch (e.code()) {
    case ErrorCode::kUnsupported:
    case ErrorCode::kNoTactic:
      issue.remedy =
          "express this part with other operators, or build for another target (--target ref runs "
          "everything)";
      break;
    case ErrorCode::kOutOfMemory: issue.remedy = "allow more memory, or give smaller --shapes"; break;
    case ErrorCode::kInternal: issue.remedy = "this is a bug in Hone: report it with the model"; break;
    default:
      issue.remedy =
          "export the model again; onnx.checker.check_model tells where it breaks the specification";
  }
  return issue;
}

/// Who asked for something that makes no sense: the caller's flags are not what the model contains.
bool callers_fault(const Error& e) { return e.code() == ErrorCode::kInvalidArgument; }

/// A step that no kernel of the target's own runs, with every tactic's reason.
Issue from_fallback(const engine::PlanStep& step, const backends::Backend& backend,
                    const backends::Target& target) {
  Issue issue;
  issue.stage = "plan";
  issue.node = step.sources.empty() ? step.name : step.sources.front();
  issue.op = (step.problem.domain.empty() ? "ai.onnx" : step.problem.domain) + "::" + step.problem.op;
  if (step.kind == engine::StepKind::kHostOp) {
    issue.severity = "note";
    issue.message = step.reason == "control-flow"
                        ? "control flow is interpreted by the reference, node by node"
                        : "sizes depend on data: the reference runs it";
    return issue;
  }
  issue.severity = "warning";
  issue.message =
      "no kernel of " + target.text() + " runs " + step.problem.text() + "; the reference does, slowly";
  for (const backends::Tactic* t : backend.tactics(step.problem, target)) {
    if (t->name() == "ref") continue;
    ops::Problem p = step.problem;
    t->choose_layouts(p);
    if (const backends::Support s = t->supports(p); !s) issue.message += "\n  " + t->name() + ": " + s.reason;
  }
  issue.remedy = "none is needed: results are the same, only slower";
  return issue;
}

}  // namespace

std::vector<Issue> check(const std::string& model_path, const BuildOptions& options) {
  std::vector<Issue> issues;
  const char* stage = "import";
  try {
    onnx::ImportReport found;
    onnx::ImportOptions import;
    import.override_initializers = options.override_initializers;
    try {
      (void)onnx::import_model(model_path, import, &found);
      issues = found.issues;
    } catch (const Error& e) {
      issues = found.issues;
      if (callers_fault(e)) throw;
      if (found.errors() == 0) issues.push_back(from_error(e, stage));
      for (Issue& i : issues)
        if (i.severity == "error") i.code = error_code_name(e.code());
      return issues;
    }
    stage = "infer";
    const ir::Model imported = builder::import_for_build(model_path, options, nullptr);
    stage = "optimize";
    engine::Plan head;
    BuildOptions quiet = options;
    quiet.progress = nullptr;
    const ir::Model model = builder::optimise(model_path, quiet, nullptr, &head);
    stage = "plan";
    builder::LowerOptions lowering;
    lowering.target = backends::Target::parse(options.target);
    lowering.profiles = head.profiles;
    lowering.strict_f32 = options.strict_f32;
    lowering.max_workspace = options.max_workspace;
    const engine::Engine engine = builder::lower(*model.graph, lowering);
    const backends::Backend* backend = backends::find_backend(lowering.target.backend);
    for (const engine::PlanStep& step : engine.plan.steps)
      if (!step.reason.empty()) issues.push_back(from_fallback(step, *backend, lowering.target));
  } catch (const Error& e) {
    if (callers_fault(e)) throw;
    issues.push_back(from_error(e, stage));
  } catch (const std::bad_alloc&) {
    issues.push_back(from_error(Error(ErrorCode::kOutOfMemory, "memory ran out"), stage));
  }
  return issues;
}

}  // namespace hone
