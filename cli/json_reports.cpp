#include "json_reports.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "hone/version.h"
#include "tables.h"
#include "text.h"

namespace hone::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes that are not UTF-8 are replaced: names come from files.
std::string dump(const Json& j) { return j.dump(1, ' ', false, Json::error_handler_t::replace); }

/// JSON has no NaN and no infinity: those are null.
Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }

Json parsed(const std::string& text) {
  Json j = Json::parse(text, nullptr, false);
  return j.is_discarded() ? Json(text) : j;
}

Json to_json(const std::vector<TensorInfo>& tensors) {
  Json list = Json::array();
  for (const TensorInfo& t : tensors) {
    Json shape = Json::array();
    for (const std::string& d : t.dims) {
      if (!d.empty() && d.size() < 19 && d.find_first_not_of("0123456789") == std::string::npos)
        shape.push_back(std::stoll(d));
      else
        shape.push_back(d);
    }
    list.push_back(
        {{"name", t.name}, {"dtype", dtype_name(t.dtype)}, {"shape", t.ranked ? shape : Json(nullptr)}});
  }
  return list;
}

Json to_json(const std::vector<Issue>& issues) {
  Json list = Json::array();
  for (const Issue& i : issues) {
    Json j = {{"severity", i.severity}, {"stage", i.stage},   {"node", i.node},       {"op", i.op},
              {"opset", i.opset},       {"tensor", i.tensor}, {"message", i.message}, {"remedy", i.remedy}};
    if (!i.code.empty()) j["code"] = i.code;
    list.push_back(std::move(j));
  }
  return list;
}

Json to_json(const std::vector<LayerTensor>& tensors) {
  Json list = Json::array();
  for (const LayerTensor& t : tensors)
    list.push_back({{"name", t.name},
                    {"dtype", dtype_name(t.dtype)},
                    {"shape", t.shape},
                    {"layout", t.layout},
                    {"constant", t.constant}});
  return list;
}

Json to_json(const LayerInfo& l) {
  return {{"name", l.name},
          {"kind", l.kind},
          {"op", l.op},
          {"tactic", l.tactic},
          {"problem", l.problem},
          {"requested", l.requested},
          {"actual", l.actual},
          {"reason", l.reason},
          {"nodes", l.sources},
          {"rewrites", l.passes},
          {"tuned_ns", l.tuned_time_ns},
          {"tuned_error", l.tuned_error < 0 ? Json(nullptr) : number(l.tuned_error)},
          {"bytes_read", l.bytes_read},
          {"bytes_written", l.bytes_written},
          {"weight_bytes", l.weight_bytes},
          {"workspace_bytes", l.workspace_bytes},
          {"flops", l.flops},
          {"inputs", to_json(l.inputs)},
          {"outputs", to_json(l.outputs)}};
}

Json to_json(const MemoryInfo& m) {
  Json peak = Json::array();
  std::string line;
  for (const char c : m.peak + "\n") {
    if (c != '\n') {
      line += c;
    } else if (!line.empty()) {
      peak.push_back(std::exchange(line, {}));
    }
  }
  return {{"arena_bytes", m.arena_bytes},
          {"peak_live_bytes", m.peak_live_bytes},
          {"weights_bytes", m.weights_bytes},
          {"live_at_peak", peak}};
}

Json fallbacks(const EngineInfo& e) {
  Json list = Json::array();
  for (const LayerInfo& l : e.layers)
    if (is_fallback(l))
      list.push_back({{"layer", l.name},
                      {"op", l.op},
                      {"requested", l.requested},
                      {"actual", l.actual},
                      {"reason", l.reason},
                      {"explanation", reason_text(l.reason)}});
  return list;
}

Json ledger(const EngineInfo& e) {
  Json list = Json::array();
  for (const LedgerInfo& l : e.ledger)
    list.push_back({{"rule", l.pass},
                    {"node", l.node},
                    {"nodes", l.sources},
                    {"bytes_not_moved", l.bytes_not_moved},
                    {"formula", l.formula}});
  return list;
}

Json profiles(const EngineInfo& e) {
  Json list = Json::array();
  for (const auto& profile : e.profiles) {
    Json inputs = Json::object();
    for (const ProfileInfo& p : profile) inputs[p.input] = {{"min", p.min}, {"opt", p.opt}, {"max", p.max}};
    list.push_back(std::move(inputs));
  }
  return list;
}

/// What an engine is, in the keys that build, inspect and bench share.
void add_engine(Json& j, const EngineInfo& e) {
  j["target"] = e.target;
  j["timed"] = e.timed;
  j["body_hash"] = e.body_hash;
  j["model_hash"] = e.model_hash;
  j["options"] = parsed(e.options_json.empty() ? "{}" : e.options_json);
  j["inputs"] = to_json(e.inputs);
  j["outputs"] = to_json(e.outputs);
}

void add_plan(Json& j, const EngineInfo& e) {
  Json layers = Json::array();
  for (const LayerInfo& l : e.layers) layers.push_back(to_json(l));
  j["layers"] = std::move(layers);
  j["fallbacks"] = fallbacks(e);
  j["ledger"] = ledger(e);
  j["bytes_not_moved"] = e.ledger_bytes;
  j["activation_bytes_unfused"] = e.unfused_bytes;
  j["memory"] = to_json(e.memory);
  j["profiles"] = profiles(e);
}

Json passes(const std::vector<PassInfo>& list) {
  Json j = Json::array();
  for (const PassInfo& p : list)
    j.push_back({{"name", p.name}, {"numerics", p.numerics}, {"changes", p.changes}, {"ms", p.ms}});
  return j;
}

void add_report(Json& j, const BuildReport& r) {
  j["nodes_before"] = r.nodes_imported;
  j["nodes_after"] = r.nodes_optimised;
  j["phases_ms"] = {
      {"import", r.import_ms}, {"optimize", r.optimize_ms}, {"plan", r.plan_ms}, {"tune", r.tune_ms}};
  j["passes"] = passes(r.passes);
  j["warnings"] = to_json(r.issues);
}

Json tuning(const BuildReport& r, const std::string& cache) {
  return {{"tactics_timed", r.tactics_timed},
          {"cache_hits", r.cache_hits},
          {"cache_misses", r.cache_misses},
          {"cache", cache.empty() ? Json(nullptr) : Json(cache)}};
}

Json bench_object(const BenchResult& r) {
  const BenchReport& b = r.report;
  Json j;
  j["file"] = r.path;
  j["target"] = r.info.target;
  j["timed"] = r.info.timed;
  j["body_hash"] = r.info.body_hash;
  Json shapes = Json::object();
  for (const auto& [name, shape] : r.shapes) shapes[name] = shape;
  j["shapes"] = std::move(shapes);
  j["threads"] = b.threads;
  j["iterations"] = b.runs;
  Json latency = {{"min", b.min_ms}, {"mean", b.mean_ms}, {"max", b.max_ms}};
  Json confidence = Json::object();
  for (const Percentile& p : b.percentiles) {
    std::string key = "p" + number_text(p.p, 4);
    for (char& c : key) c = c == '.' ? '_' : c;
    latency[key] = number(p.ms);
    confidence[key] = {number(p.low_ms), number(p.high_ms)};
  }
  latency["first_run"] = b.first_run_ms;
  latency["cv"] = number(b.cv);
  latency["confidence_95"] = std::move(confidence);
  j["latency_ms"] = std::move(latency);
  j["runs_per_s"] = b.mean_ms > 0 ? number(1000 / b.mean_ms) : Json(nullptr);
  j["samples_per_s"] = number(b.throughput_per_s);
  j["memory"] = to_json(b.memory);
  j["memory"]["rss_bytes"] = b.rss_bytes;
  j["memory"]["peak_rss_bytes"] = b.peak_rss_bytes;
  Json layers = Json::array();
  for (const LayerTime& l : b.layers)
    layers.push_back({{"name", l.name},
                      {"tactic", l.tactic},
                      {"median_ms", l.median_ms},
                      {"mean_ms", l.mean_ms},
                      {"share", l.share},
                      {"gflops", l.gflops},
                      {"gbytes_per_s", l.gbytes_per_s}});
  j["layers"] = std::move(layers);
  j["warnings"] = b.warnings;
  return j;
}

}  // namespace

std::string error_json(const Error& e, int exit) {
  const ErrorContext& c = e.context();
  return dump({{"error",
                {{"code", error_code_name(e.code())},
                 {"message", e.message()},
                 {"stage", c.stage},
                 {"node", c.node},
                 {"op", c.op},
                 {"opset", c.opset},
                 {"tensor", c.tensor},
                 {"exit", exit}}}});
}

std::string version_json() {
  return dump({{"version", kVersion},
               {"opset", kIrOpset},
               {"ir_version", kOnnxIrVersion},
               {"engine_format", kEngineFormatVersion}});
}

std::string passes_json(const std::vector<PassInfo>& list) {
  Json j = Json::array();
  for (const PassInfo& p : list) j.push_back({{"name", p.name}, {"numerics", p.numerics}, {"what", p.what}});
  return dump({{"passes", std::move(j)}});
}

std::string ops_json(const std::vector<OpInfo>& ops) {
  Json j = Json::array();
  for (const OpInfo& o : ops)
    j.push_back({{"domain", o.domain.empty() ? "ai.onnx" : o.domain},
                 {"name", o.name},
                 {"since", o.since},
                 {"reference", o.reference},
                 {"backends", o.backends}});
  return dump({{"ops", std::move(j)}});
}

std::string check_json(const CheckResult& r) {
  return dump({{"model", r.model},
               {"target", r.target},
               {"ok", r.exit == 0},
               {"inputs", to_json(r.inputs)},
               {"outputs", to_json(r.outputs)},
               {"problems", to_json(r.issues)}});
}

std::string build_json(const BuildResult& r) {
  Json j = {{"model", r.model},
            {"engine", r.engine},
            {"model_bytes", r.model_bytes},
            {"engine_bytes", r.engine_bytes}};
  add_engine(j, r.info);
  j["build_seconds"] = r.seconds;
  add_report(j, r.report);
  j["tuning"] = tuning(r.report, r.timing_cache);
  add_plan(j, r.info);
  return dump(j);
}

std::string simplify_json(const SimplifyResult& r) {
  Json j = {{"model", r.model}, {"output", r.out}, {"seconds", r.seconds}};
  add_report(j, r.report);
  return dump(j);
}

std::string run_json(const RunResult& r) {
  Json outputs = Json::array();
  for (const OutputSummary& s : r.values) {
    const bool range = s.numeric && s.elements > s.nan + s.infinite;
    outputs.push_back({{"name", s.name},
                       {"dtype", s.dtype},
                       {"shape", s.shape},
                       {"tap", s.tap},
                       {"min", range ? number(s.min) : Json(nullptr)},
                       {"mean", range ? number(s.mean) : Json(nullptr)},
                       {"max", range ? number(s.max) : Json(nullptr)},
                       {"nan", s.nan},
                       {"infinite", s.infinite}});
  }
  return dump({{"file", r.path},
               {"backend", r.backend},
               {"samples", r.samples},
               {"random_inputs", r.random_inputs},
               {"load_ms", r.load_ms},
               {"run_ms", r.run_ms},
               {"peak_rss_bytes", r.peak_rss_bytes},
               {"output_file", r.outputs.empty() ? Json(nullptr) : Json(r.outputs)},
               {"outputs", std::move(outputs)},
               {"events", r.events}});
}

std::string bench_json(const BenchResult& r) { return dump(bench_object(r)); }

std::string bench_record(const BenchResult& r) {
  Json j = {{"kind", "bench"}, {"body_hash", r.info.body_hash}};
  Json measured = bench_object(r);
  measured.erase("file");  // a path of this machine
  measured.erase("body_hash");
  j.update(measured);
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string inspect_json(const InspectResult& r) {
  Json j = {{"file", r.path}, {"kind", r.from_model ? "model" : "engine"}};
  if (!r.manifest.empty()) j["manifest"] = parsed(r.manifest);
  j["loaded"] = r.info.has_value();
  j["why_not"] = r.why;
  if (!r.info) return dump(j);
  j["verified"] = r.verified;
  j["file_bytes"] = r.info->file_bytes;
  add_engine(j, *r.info);
  if (r.report) add_report(j, *r.report);
  add_plan(j, *r.info);
  j["taps"] = r.tap_names;
  Json records = Json::array();
  for (const std::string& record : r.info->records) records.push_back(parsed(record));
  j["records"] = std::move(records);
  return dump(j);
}

std::string engine_diff_json(const EngineDiff& d) {
  const auto side = [](const std::string& path, const EngineInfo& e) {
    Json j = {{"file", path}};
    add_engine(j, e);
    j["file_bytes"] = e.file_bytes;
    double tuned = 0;
    for (const LayerInfo& l : e.layers) tuned += l.tuned_time_ns;
    j["steps"] = e.layers.size();
    j["tuned_ns"] = tuned;
    j["bytes_not_moved"] = e.ledger_bytes;
    j["memory"] = to_json(e.memory);
    Json rules = Json::object();
    for (const LedgerSum& s : ledger_sums(e))
      rules[s.pass] = {{"times", s.count}, {"bytes_not_moved", s.bytes}};
    j["ledger"] = std::move(rules);
    return j;
  };
  Json layers = Json::array();
  for (const LayerDiff& l : d.layers)
    layers.push_back({{"name", l.name},
                      {"a", l.a != nullptr ? to_json(*l.a) : Json(nullptr)},
                      {"b", l.b != nullptr ? to_json(*l.b) : Json(nullptr)}});
  return dump({{"kind", "engines"},
               {"same", d.layers.empty() && d.a.body_hash == d.b.body_hash},
               {"a", side(d.path_a, d.a)},
               {"b", side(d.path_b, d.b)},
               {"same_layers", d.same_layers},
               {"different_layers", std::move(layers)}});
}

std::string tensor_diff_json(const TensorDiff& d) {
  Json arrays = Json::array();
  for (const ArrayDiff& a : d.arrays) {
    Json j = {{"name", a.name},
              {"a", a.type_a.empty() ? Json(nullptr) : Json(a.type_a)},
              {"b", a.type_b.empty() ? Json(nullptr) : Json(a.type_b)},
              {"pass", a.pass},
              {"why", a.why}};
    if (a.compared) {
      j["equal"] = a.equal;
      j["elements"] = a.elements;
      j["different_elements"] = a.mismatched;
      j["max_abs"] = number(a.max_abs);
      j["max_rel"] = number(a.max_rel);
      j["worst_index"] = a.worst_index;
      j["relative_l2"] = number(a.rel_l2);
      j["cosine"] = number(a.cosine);
      j["nan_a"] = a.nan_a;
      j["nan_b"] = a.nan_b;
    }
    arrays.push_back(std::move(j));
  }
  return dump({{"kind", "tensors"},
               {"a", d.path_a},
               {"b", d.path_b},
               {"limits", d.limits},
               {"pass", d.pass},
               {"arrays", std::move(arrays)}});
}

std::string tune_json(const TuneResult& r) {
  Json j = {{"model", r.model},
            {"engine", r.engine.empty() ? Json(nullptr) : Json(r.engine)},
            {"target", r.info.target},
            {"seconds", r.seconds}};
  j["tuning"] = tuning(r.report, r.cache);
  Json layers = Json::array();
  for (const LayerInfo& l : r.info.layers)
    if (l.tuned_time_ns > 0)
      layers.push_back({{"name", l.name},
                        {"problem", l.problem},
                        {"tactic", l.tactic},
                        {"tuned_ns", l.tuned_time_ns},
                        {"tuned_error", l.tuned_error < 0 ? Json(nullptr) : number(l.tuned_error)}});
  j["layers"] = std::move(layers);
  j["warnings"] = to_json(r.report.issues);
  return dump(j);
}

}  // namespace hone::cli
