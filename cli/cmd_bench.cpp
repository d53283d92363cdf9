#include <algorithm>
#include <cmath>

#include "commands.h"
#include "errors.h"
#include "hone/bench.h"
#include "hone/io.h"
#include "json_reports.h"
#include "open.h"
#include "tables.h"
#include "text.h"

namespace hone::cli {
namespace {

using Align = Table::Align;

std::string shapes_text(const std::vector<std::pair<std::string, Shape>>& shapes) {
  std::string s;
  for (const auto& [name, shape] : shapes) {
    s += (s.empty() ? "" : ", ") + name + "[";
    for (size_t i = 0; i < shape.size(); ++i) s += (i ? "," : "") + std::to_string(shape[i]);
    s += "]";
  }
  return s;
}

std::string percentile_name(double p) { return "p" + number_text(p, 4); }

}  // namespace

BenchResult run_bench(const Request& request) {
  need_path(request, "MODEL or ENGINE");
  BenchResult result;
  result.path = request.path;
  const bool is_engine = Engine::is_engine(request.path);
  if (request.record && !is_engine)
    usage("--record appends to an engine file; '" + request.path + "' is a model");

  Opened opened;
  if (is_engine) opened = open_engine(request);
  BenchOptions options;
  std::map<std::string, Shape> hints;
  if (!request.inputs.empty()) {
    options.inputs = read_samples(request.inputs, interface_for(request, is_engine, opened.engine)).front();
    for (const NamedTensor& t : options.inputs) hints[t.name] = t.tensor.shape();
  }
  if (!is_engine) opened = open_engine(request, hints);
  result.built = opened.from_model;
  if (options.inputs.empty())
    options.inputs = random_inputs(opened.engine.inputs(), shapes_for(request, opened.engine), request.seed);
  std::vector<Shape> shapes;
  for (const TensorInfo& t : opened.engine.inputs())
    for (const NamedTensor& given : options.inputs)
      if (given.name == t.name) {
        shapes.push_back(given.tensor.shape());
        result.shapes.emplace_back(t.name, given.tensor.shape());
      }

  // --iterations alone means exactly so many; as in trtexec, both limits hold when both are given.
  options.iterations = request.iterations.value_or(10);
  options.duration_ms = request.duration_s ? *request.duration_s * 1000 : request.iterations ? 0 : 3000;
  options.warm_up_ms = request.warm_up_ms.value_or(200);
  options.threads = request.threads;
  options.per_layer = request.dump_profile || !request.export_profile.empty();
  options.keep_times = !request.export_times.empty() || !request.percentiles.empty();
  result.report = bench(opened.engine, options);
  result.info = opened.engine.info(shapes);
  if (request.record) Engine::append_record(request.path, bench_record(result));
  return result;
}

void print_bench(const BenchResult& r, bool layers) {
  const BenchReport& b = r.report;
  std::string text = printable(r.path) + (r.built ? " (built in memory)" : "") + ", target " + r.info.target +
                     ", tactics " + (r.info.timed ? "timed" : "chosen by rule") + "\n";
  text += "  " + printable(shapes_text(r.shapes)) + ", " + count_text(b.threads, "thread") + ", " +
          count_text(b.runs, "run") + "\n\n";
  Table latency({{"latency"}, {"ms", Align::kRight}, {"95 % confidence", Align::kRight}});
  const auto ms = [](double v) { return number_text(v, 4); };
  latency.row({"min", ms(b.min_ms), ""});
  latency.row({"mean", ms(b.mean_ms), ""});
  for (const Percentile& p : b.percentiles)
    latency.row({percentile_name(p.p), ms(p.ms), ms(p.low_ms) + " to " + ms(p.high_ms)});
  latency.row({"max", ms(b.max_ms), ""});
  latency.row({"first run", ms(b.first_run_ms), ""});
  text += latency.text();
  text += "\nThroughput: " + number_text(b.throughput_per_s, 5) + " samples/s, " +
          number_text(b.mean_ms > 0 ? 1000 / b.mean_ms : 0, 5) + " runs/s; times vary by " +
          percent_text(b.cv) + " (standard deviation / mean)\n";
  text += memory_text(b.memory) + "        resident " + bytes_text(b.rss_bytes) + ", at most " +
          bytes_text(b.peak_rss_bytes) + "\n";
  if (layers && !b.layers.empty()) {
    Table table({{"layer", Align::kLeft, true},
                 {"tactic", Align::kLeft, true},
                 {"median", Align::kRight},
                 {"share", Align::kRight},
                 {"GFLOP/s", Align::kRight},
                 {"GB/s", Align::kRight}});
    std::vector<LayerTime> sorted = b.layers;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const LayerTime& x, const LayerTime& y) { return x.median_ms > y.median_ms; });
    for (const LayerTime& l : sorted) {
      if (l.median_ms <= 0) continue;
      table.row({l.name, l.tactic, ms_text(l.median_ms), percent_text(l.share),
                 l.gflops > 0 ? number_text(l.gflops) : "-", number_text(l.gbytes_per_s)});
    }
    text += "\nLayers, slowest first (profiled in runs of their own)\n" + table.text();
  }
  print(text);
}

void export_bench(const Request& request, const BenchResult& result) {
  if (!request.export_times.empty()) write_file(request.export_times, trtexec_times(result.report));
  if (!request.export_profile.empty()) write_file(request.export_profile, trtexec_profile(result.report));
  if (!request.export_layer_info.empty()) write_file(request.export_layer_info, trtexec_layers(result.info));
}

int bench_command(const Request& request) {
  const BenchResult result = run_bench(request);
  export_bench(request, result);
  for (const std::string& w : result.report.warnings) warn(w);
  if (request.json)
    print(bench_json(result) + "\n");
  else
    print_bench(result, request.dump_profile);
  return 0;
}

}  // namespace hone::cli
