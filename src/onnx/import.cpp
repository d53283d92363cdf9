#include "onnx/import.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/str.h"
#include "hone/version.h"
#include "ir/verify.h"
#include "onnx/import_context.h"
#include "ops/schema.h"

namespace hone::onnx {

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

size_t ImportReport::errors() const {
  return static_cast<size_t>(
      std::count_if(issues.begin(), issues.end(), [](const Issue& i) { return i.severity == "error"; }));
}

// --- issues ---

void Issues::add(const char* severity, Subject s, std::string message, std::string remedy) {
  if (out_->size() >= kMaxKept) return;
  Issue issue;
  issue.severity = severity;
  issue.stage = "import";
  issue.node = std::move(s.node);
  issue.op = std::move(s.op);
  issue.opset = s.opset;
  issue.tensor = std::move(s.tensor);
  issue.message = std::move(message);
  issue.remedy = std::move(remedy);
  if (log_enabled(Log::kOnnx))
    log(Log::kOnnx, std::string(severity) + ": " + issue.node + ": " + issue.message);
  out_->push_back(std::move(issue));
}

void Issues::error(ErrorCode code, Subject subject, std::string message, std::string remedy,
                   std::source_location where) {
  if (errors_++ == 0) first_ = where;
  invalid_ = invalid_ || code != ErrorCode::kUnsupported;
  if (remedy.empty()) remedy = default_remedy(code);
  add("error", std::move(subject), std::move(message), std::move(remedy));
}
void Issues::warning(Subject subject, std::string message, std::string remedy) {
  add("warning", std::move(subject), std::move(message), std::move(remedy));
}
void Issues::note(Subject subject, std::string message) {
  add("note", std::move(subject), std::move(message), {});
}

std::string default_remedy(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnsupported:
      return "export this part as basic operators, or as a model-local function of them";
    case ErrorCode::kOutOfMemory: return "raise the budget, or use a machine with more memory";
    default:
      return "export the model again; onnx.checker.check_model tells where it breaks the specification";
  }
}

void Issues::throw_if_any() const {
  if (errors_ == 0) return;
  const ErrorCode code = invalid_ ? ErrorCode::kInvalidModel : ErrorCode::kUnsupported;
  ErrorContext context;
  context.stage = "import";
  std::vector<std::string> lines;
  const Issue* only = nullptr;
  for (const Issue& i : *out_) {
    if (i.severity != "error") continue;
    only = &i;
    std::string line;
    if (!i.node.empty()) line += "node '" + i.node + "' ";
    if (!i.op.empty()) line += "op " + i.op + " ";
    if (i.opset != 0) line += "opset " + std::to_string(i.opset) + " ";
    if (!line.empty()) line.back() = ':';
    line += (line.empty() ? "" : " ") + i.message;
    if (!i.tensor.empty()) line += "; " + i.tensor;
    lines.push_back(line + " (remedy: " + i.remedy + ")");
  }
  if (errors_ == 1 && only != nullptr) {
    context.node = only->node;
    context.op = only->op;
    context.opset = only->opset;
    context.tensor = only->tensor;
    throw Error(code, only->message + " (remedy: " + only->remedy + ")", std::move(context), first_);
  }
  constexpr size_t kShown = 100;
  std::string message = std::to_string(errors_) + " problems:";
  for (size_t i = 0; i < lines.size() && i < kShown; ++i) message += "\n  " + lines[i];
  if (errors_ > std::min(lines.size(), kShown))
    message += "\n  ... and " + std::to_string(errors_ - std::min(lines.size(), kShown)) + " more";
  throw Error(code, std::move(message), std::move(context), first_);
}

// --- the model ---

Opsets Importer::opset_table(const std::vector<OpsetProto>& imports, const std::string& whose) {
  Opsets table;
  for (const OpsetProto& o : imports) {
    const std::string domain(plain_domain(o.domain));
    const std::string shown = domain.empty() ? "ai.onnx" : domain;
    if (!table.emplace(domain, o.version).second) {
      issues_.error(ErrorCode::kInvalidModel, {}, whose + " imports domain " + shown + " twice", {});
    }
    if (o.version < 1) {
      issues_.error(ErrorCode::kInvalidModel, {},
                    whose + " imports opset " + std::to_string(o.version) + " of domain " + shown, {});
    }
  }
  return table;
}

void Importer::check_opset(int64_t version, const std::string& whose) {
  if (version <= kIrOpset) return;
  // Which operators changed after the newest opset that we know cannot be known: all that the model uses are
  // named.
  std::set<std::string> ops;
  std::vector<const std::vector<NodeProto>*> lists{&proto_.graph.node};
  for (const FunctionProto& f : proto_.functions) lists.push_back(&f.node);
  for (const auto* list : lists) {
    for (const NodeProto& n : *list) {
      if (plain_domain(n.domain).empty() && find_function(n) == nullptr) ops.insert(std::string(n.op_type));
    }
  }
  std::vector<std::string> known;
  for (const std::string& op : ops) {
    const ops::SchemaVersion* newest = ops::newest_schema("", op);
    known.push_back(op + (newest == nullptr ? " (unknown)"
                                            : " (known to version " + std::to_string(newest->since) + ")"));
  }
  issues_.error(ErrorCode::kUnsupported, {{}, {}, version, {}},
                whose + " uses opset " + std::to_string(version) + ", the newest known is " +
                    std::to_string(kIrOpset) + "; operators it uses: " + join_some(known, ", ", 60),
                "export with opset " + std::to_string(kIrOpset) + " or lower");
}

void Importer::read_opsets(ir::Model* model) {
  opsets_ = opset_table(proto_.opset_import, "the model");
  if (opsets_.empty()) {
    if (proto_.ir_version >= 3) {
      issues_.error(ErrorCode::kInvalidModel, {}, "opset_import is missing",
                    "export again with a current exporter");
    } else {
      issues_.warning({}, "the file has no opset_import (IR version " + std::to_string(proto_.ir_version) +
                              "): opset 1 is taken");
    }
    opsets_.emplace("", 1);
  }
  model->opsets = opsets_;
  if (const auto it = opsets_.find(std::string_view()); it != opsets_.end())
    check_opset(it->second, "the model");
}

ir::Model Importer::run() {
  ir::Model model;
  model.ir_version = proto_.ir_version;
  const std::string producer = std::string(proto_.producer_name) +
                               (proto_.producer_version.empty() ? "" : " ") +
                               std::string(proto_.producer_version);
  model.producer = is_utf8(producer) ? producer : quote(producer);
  for (const KeyValue& kv : proto_.metadata) {
    if (is_utf8(kv.key) && is_utf8(kv.value)) model.metadata[std::string(kv.key)] = std::string(kv.value);
  }
  if (!proto_.has_graph) {
    issues_.error(ErrorCode::kInvalidModel, {}, "the file holds no graph",
                  "check that this is an ONNX model");
    issues_.throw_if_any();
  }
  if (proto_.ir_version < 1) {
    issues_.error(ErrorCode::kInvalidModel, {},
                  "IR version " + std::to_string(proto_.ir_version) + " does not exist",
                  "check that this is an ONNX model");
  }
  if (proto_.ir_version > kOnnxIrVersion) {
    issues_.warning({}, "IR version " + std::to_string(proto_.ir_version) + " is newer than " +
                            std::to_string(kOnnxIrVersion) +
                            ", the newest known; fields that it added are ignored");
  }
  if (proto_.has_training_info) issues_.note({}, "training information is ignored");
  read_functions();
  read_opsets(&model);
  issues_.throw_if_any();

  model.graph = std::make_unique<ir::Graph>();
  fresh_ = model.graph.get();
  model.graph->name = proto_.graph.name;
  model.graph->doc = is_utf8(proto_.graph.doc) ? std::string(proto_.graph.doc) : quote(proto_.graph.doc);
  Scope scope;
  scope.graph = model.graph.get();
  scope.opsets = &opsets_;
  build(proto_.graph, scope);
  // Types of a graph that hangs together badly would only give consequential errors.
  if (!issues_.any()) upgrade(*model.graph);
  issues_.throw_if_any();
  ir::verify_or_throw(*model.graph, "import");
  for (size_t i = 0; i < model.graph->num_values(); ++i) {
    const ir::Value& v = model.graph->value(static_cast<ir::ValueId>(i));
    if (!v.is_const()) continue;
    ++report_->constants;
    report_->constant_bytes += v.data->nbytes();
  }
  if (log_enabled(Log::kOnnx)) {
    log(Log::kOnnx, std::to_string(report_->nodes) + " nodes, " + std::to_string(report_->functions_inlined) +
                        " calls inlined, " + std::to_string(report_->constants) + " constants of " +
                        bytes_text(report_->constant_bytes));
  }
  return model;
}

// --- entry points ---

namespace {

ir::Model import_bytes(const MappedFile& file, const std::string& directory, const ImportOptions& options,
                       ImportReport* report) {
  ImportReport local;
  if (report == nullptr) report = &local;
  ReadLimits limits = options.limits;
  limits.subgraph_depth = std::min(limits.subgraph_depth, ir::kMaxSubgraphDepth);
  const ModelProto proto = read_model(file.data, file.size, limits);
  ExternalFiles external(directory);
  const WeightSource source{file, &external, options.dense_budget};
  return Importer(proto, source, options, report).run();
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

ir::Model import_model(const std::string& path, const ImportOptions& options, ImportReport* report) {
  MappedFile file;
  try {
    file = map_file(path);
  } catch (const Error& e) {
    ErrorContext context;
    context.stage = "import";
    throw Error(e.code(), e.message(), std::move(context), e.where());
  }
  const std::string directory =
      options.external_directory.empty() ? directory_of(path) : options.external_directory;
  return import_bytes(file, directory, options, report);
}

ir::Model import_model(const void* data, size_t size, const ImportOptions& options, ImportReport* report) {
  // Without an owner nothing becomes a view: the caller may free the bytes afterwards.
  const MappedFile bytes{static_cast<const uint8_t*>(data), size, nullptr};
  return import_bytes(bytes, options.external_directory, options, report);
}

}  // namespace hone::onnx
