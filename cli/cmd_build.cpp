#include <algorithm>

#include "commands.h"
#include "errors.h"
#include "json_reports.h"
#include "open.h"
#include "progress.h"
#include "tables.h"
#include "text.h"

namespace hone::cli {
namespace {

/// What the written file says of itself; an engine for another machine is described from memory.
EngineInfo info_of(const std::string& path, const Engine& engine) {
  try {
    return Engine::load(path).info();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::kUnsupported) throw;
    EngineInfo info = engine.info();
    info.file_bytes = file_size(path);
    return info;
  }
}

}  // namespace

BuildResult run_build(const Request& request) {
  need_path(request, "MODEL");
  if (request.out.empty()) usage("no engine file is given; write hone build " + request.path + " -o ENGINE");
  if (Engine::is_engine(request.path))
    usage("'" + request.path + "' is an engine already; build takes a model");
  BuildResult result;
  result.model = request.path;
  result.engine = request.out;
  result.timing_cache = request.build.timing_cache_file;
  result.tuned = request.tune.value_or(true);
  BuildOptions options = options_for(request, result.tuned);
  const Clock::time_point start = Clock::now();
  Engine engine;
  {
    Progress progress;
    options.progress = progress.callback();
    engine = build(request.path, options, &result.report);
  }
  engine.save(request.out);
  result.seconds = ms_since(start) / 1000;
  result.model_bytes = file_size(request.path);
  result.engine_bytes = file_size(request.out);
  result.info = info_of(request.out, engine);
  if (!request.save_onnx.empty()) {
    options.progress = nullptr;
    simplify(request.path, request.save_onnx, options, request.opset);
  }
  return result;
}

void print_build(const BuildResult& r, bool layers, bool stays) {
  std::string text = printable(r.model) + " (" + bytes_text(r.model_bytes) + ") -> " + printable(r.engine) +
                     " (" + bytes_text(r.engine_bytes) + ")\n";
  text += "  target:  " + r.info.target + ", tactics " +
          (r.info.timed ? "timed" : "chosen by rule, untimed") + "\n";
  text +=
      "  inputs:  " + interface_text(r.info.inputs) + "\n  outputs: " + interface_text(r.info.outputs) + "\n";
  text += "  plan:    " + std::to_string(r.report.nodes_imported) + " nodes became " +
          std::to_string(r.report.nodes_optimised) + ": " + steps_text(r.info.layers) + "\n";
  text += "  time:    " + ms_text(r.seconds * 1000) + " (import " + ms_text(r.report.import_ms) +
          ", optimise " + ms_text(r.report.optimize_ms) + ", plan " + ms_text(r.report.plan_ms) + ", tune " +
          ms_text(r.report.tune_ms) + ")\n";
  if (r.tuned || !r.timing_cache.empty())
    text += "  tuning:  " + count_text(r.report.tactics_timed, "tactic") + " timed, " +
            count_text(r.report.cache_hits, "cache hit") + ", " + std::to_string(r.report.cache_misses) +
            (r.report.cache_misses == 1 ? " miss" : " misses") +
            (r.timing_cache.empty() ? "" : " (" + printable(r.timing_cache) + ")") + "\n";
  if (!r.info.body_hash.empty()) text += "  engine:  " + r.info.body_hash + "\n";
  if (layers) text += "\nLayers (one inference at the opt shapes)\n" + layers_table(r.info.layers);
  text +=
      "\n" + ledger_table(r.info) + "\n" + precision_table(r.info.layers) + "\n" + memory_text(r.info.memory);
  if (!r.info.profiles.empty()) text += "\n" + profiles_table(r.info);
  if (!layers && stays) text += "hone inspect " + printable(r.engine) + " shows every layer\n";
  print(text);
}

int build_command(const Request& request) {
  const BuildResult result = run_build(request);
  for (const Issue& i : result.report.issues)
    if (i.severity == "warning") warn((i.node.empty() ? "" : "node '" + i.node + "': ") + i.message);
  if (request.json)
    print(build_json(result) + "\n");
  else
    print_build(result, request.verbose);
  return 0;
}

int tune_command(const Request& request) {
  need_path(request, "MODEL or ENGINE");
  refuse_precision(request);
  if (request.build.timing_cache_file.empty()) usage("no timing cache is given; add --timingCacheFile=FILE");
  TuneResult result;
  result.model = request.path;
  result.cache = request.build.timing_cache_file;
  const bool again = Engine::is_engine(request.path);
  if (again && (!request.build.profiles.empty() || !request.build.shapes.empty() || request.build.batch > 0))
    usage("an engine's shapes were fixed when it was built; '" + request.path + "' is an engine");
  BuildOptions options = again ? request.build : options_for(request, true);
  options.tune = true;
  const Clock::time_point start = Clock::now();
  Engine engine;
  {
    Progress progress;
    options.progress = progress.callback();
    engine = again ? retune(Engine::load(request.path), options, &result.report)
                   : build(request.path, options, &result.report);
  }
  result.seconds = ms_since(start) / 1000;
  result.info = engine.info();
  if (!request.out.empty()) {
    engine.save(request.out);
    result.engine = request.out;
  }
  for (const Issue& i : result.report.issues)
    if (i.severity == "warning") warn(i.message);
  if (request.json) {
    print(tune_json(result) + "\n");
    return 0;
  }
  Table table({{"layer", Table::Align::kLeft, true},
               {"tactic", Table::Align::kLeft, true},
               {"time", Table::Align::kRight},
               {"error", Table::Align::kRight}});
  double sum_ns = 0;
  for (const LayerInfo& l : result.info.layers) {
    if (l.tuned_time_ns <= 0) continue;
    sum_ns += l.tuned_time_ns;
    table.row({l.name, l.tactic, ms_text(l.tuned_time_ns * 1e-6),
               l.tuned_error < 0 ? "-" : number_text(l.tuned_error, 2)});
  }
  std::string text = table.empty() ? "" : table.text();
  text += count_text(result.report.tactics_timed, "tactic") + " timed, " +
          count_text(result.report.cache_hits, "cache hit") + ", in " + ms_text(result.seconds * 1000) +
          "; the tuned layers take " + ms_text(sum_ns * 1e-6) + "\n" + printable(result.cache) +
          " holds the times\n";
  print(text);
  return 0;
}

}  // namespace hone::cli
