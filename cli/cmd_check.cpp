#include <algorithm>

#include "commands.h"
#include "errors.h"
#include "hone/version.h"
#include "json_reports.h"
#include "open.h"
#include "tables.h"
#include "text.h"

namespace hone::cli {
namespace {

/// The gravest error decides: a model that is invalid anywhere is invalid.
int exit_of(const std::vector<Issue>& issues) {
  int code = 0;
  for (const Issue& i : issues) {
    if (i.severity != "error") continue;
    const int c = exit_code(i.code);
    const auto rank = [](int e) { return e == 70 ? 4 : e == 3 ? 3 : e == 5 ? 2 : e == 4 ? 1 : 0; };
    if (rank(c) >= rank(code)) code = c;
  }
  return code;
}

}  // namespace

int check_command(const Request& request) {
  need_path(request, "MODEL");
  if (Engine::is_engine(request.path))
    usage("'" + request.path + "' is an engine; hone inspect --verify checks it");
  CheckResult result;
  result.model = request.path;
  result.target = request.build.target;
  const BuildOptions options = options_for(request, false);
  result.issues = check(request.path, options);
  result.exit = exit_of(result.issues);
  if (std::none_of(result.issues.begin(), result.issues.end(),
                   [](const Issue& i) { return i.severity == "error" && i.stage == "import"; }))
    model_interface(request.path, &result.inputs, &result.outputs);
  if (request.json) {
    print(check_json(result) + "\n");
    return result.exit;
  }
  const auto number_of = [&](const char* severity) {
    return std::count_if(result.issues.begin(), result.issues.end(),
                         [&](const Issue& i) { return i.severity == severity; });
  };
  std::string text = printable(result.model) + "\n";
  if (!result.inputs.empty() || !result.outputs.empty())
    text += "  inputs:  " + interface_text(result.inputs) + "\n  outputs: " + interface_text(result.outputs) +
            "\n";
  text += issues_text(result.issues);
  text += result.exit == 0 ? "fine: " : "";
  text += count_text(number_of("error"), "error") + ", " + count_text(number_of("warning"), "warning") +
          ", " + count_text(number_of("note"), "note") + " (target " + result.target + ")\n";
  print(text);
  return result.exit;
}

int simplify_command(const Request& request) {
  need_path(request, "MODEL");
  if (request.out.empty())
    usage("no output file is given; write hone simplify " + request.path + " -o OUT.onnx");
  SimplifyResult result;
  result.model = request.path;
  result.out = request.out;
  const Clock::time_point start = Clock::now();
  simplify(request.path, request.out, options_for(request, false), request.opset, &result.report);
  result.seconds = ms_since(start) / 1000;
  if (request.json) {
    print(simplify_json(result) + "\n");
    return 0;
  }
  for (const Issue& i : result.report.issues)
    if (i.severity == "warning") warn(i.message);
  Table passes({{"pass", Table::Align::kLeft, true},
                {"changes", Table::Align::kRight},
                {"time", Table::Align::kRight}});
  for (const PassInfo& p : result.report.passes)
    if (p.changes > 0) passes.row({p.name, std::to_string(p.changes), ms_text(p.ms)});
  std::string text;
  if (!passes.empty()) text += passes.text();
  text += printable(request.path) + " -> " + printable(request.out) + ": " +
          std::to_string(result.report.nodes_imported) + " nodes became " +
          std::to_string(result.report.nodes_optimised) + " in " + ms_text(result.seconds * 1000) + "\n";
  print(text);
  return 0;
}

int list_passes_command(const Request& request) {
  const std::vector<PassInfo> passes = list_passes();
  if (request.json) {
    print(passes_json(passes) + "\n");
    return 0;
  }
  Table table({{"pass"}, {"numerics"}, {"what it does", Table::Align::kLeft, true}});
  for (const PassInfo& p : passes) table.row({p.name, p.numerics, p.what});
  print(table.text());
  return 0;
}

int list_ops_command(const Request& request) {
  const std::vector<OpInfo> ops = list_ops();
  if (request.json) {
    print(ops_json(ops) + "\n");
    return 0;
  }
  Table table({{"operator"}, {"since opset", Table::Align::kRight}, {"reference"}, {"own kernels"}});
  for (const OpInfo& o : ops) {
    std::string backends;
    for (const std::string& b : o.backends) backends += (backends.empty() ? "" : " ") + b;
    table.row({(o.domain.empty() ? "ai.onnx" : o.domain) + "::" + o.name, std::to_string(o.since),
               o.reference ? "yes" : "no", backends});
  }
  print(table.text());
  return 0;
}

int version_command(const Request& request) {
  if (request.json)
    print(version_json() + "\n");
  else
    print(std::string("hone ") + kVersion + " (ONNX opset " + std::to_string(kIrOpset) + ", IR version " +
          std::to_string(kOnnxIrVersion) + ", engine format " + std::to_string(kEngineFormatVersion) + ")\n");
  return 0;
}

}  // namespace hone::cli
