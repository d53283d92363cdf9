#include "hone/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>

#include "base/thread_pool.h"
#include "engine/engine.h"
#include "hone/error.h"
#include "stats/timing.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point t) {
  return std::chrono::duration<double, std::milli>(Clock::now() - t).count();
}

/// A line "Key:   N kB" of /proc/self/status, in bytes.
int64_t status_bytes(const char* key) {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind(key, 0) == 0) return std::strtoll(line.c_str() + std::strlen(key), nullptr, 10) * 1024;
  return 0;
}

}  // namespace

BenchReport bench(const Engine& engine, const BenchOptions& options) {
  std::vector<NamedTensor> named = options.inputs;
  const engine::Plan& plan = engine.impl()->plan;
  if (named.empty()) {
    std::vector<std::pair<std::string, Shape>> shapes;
    for (const engine::ProfileRange& r : plan.profiles.front()) shapes.emplace_back(r.input, r.opt);
    named = random_inputs(engine.inputs(), shapes, 1);
  }
  SessionOptions session_options;
  session_options.threads = options.threads;
  Session session(engine, session_options);

  BenchReport report;
  report.threads = options.threads > 0 ? std::min(options.threads, ThreadPool::process().n_threads())
                                       : ThreadPool::process().n_threads();
  Clock::time_point start = Clock::now();
  (void)session.run(named);  // also checks names and shapes
  report.first_run_ms = ms_since(start);

  std::vector<Tensor> inputs, outputs;
  for (const TensorInfo& t : engine.inputs())
    inputs.push_back(std::find_if(named.begin(), named.end(), [&](const NamedTensor& n) {
                       return n.name == t.name;
                     })->tensor);
  start = Clock::now();
  while (ms_since(start) < options.warm_up_ms) session.run_into(inputs, outputs);

  std::vector<double> times;
  start = Clock::now();
  while (static_cast<int64_t>(times.size()) < std::max<int64_t>(1, options.iterations) ||
         ms_since(start) < options.duration_ms) {
    const Clock::time_point a = Clock::now();
    session.run_into(inputs, outputs);
    times.push_back(ms_since(a));
    if (times.size() >= 10'000'000) break;
  }
  const double elapsed_ms = ms_since(start);
  report.runs = static_cast<int64_t>(times.size());
  const stats::TimingSummary s = stats::summarize(times);
  report.min_ms = s.min;
  report.mean_ms = s.mean;
  report.max_ms = s.max;
  report.cv = s.cv;
  for (double p : {50.0, 90.0, 95.0, 99.0, 99.9}) {
    const stats::QuantileInterval q = stats::quantile_interval(times, p / 100.0, 0.95);
    report.percentiles.push_back({p, q.value, q.low, q.high});
  }
  const int64_t batch = inputs.empty() || inputs[0].rank() == 0 ? 1 : inputs[0].dim(0);
  report.throughput_per_s = static_cast<double>(batch * report.runs) / elapsed_ms * 1000.0;
  report.rss_bytes = status_bytes("VmRSS:");
  report.peak_rss_bytes = status_bytes("VmHWM:");
  report.memory = session.memory();
  for (const std::string& e : session.events()) report.warnings.push_back(e);
  if (report.cv > 0.025) {
    char text[120];
    std::snprintf(text, sizeof text,
                  "times vary (standard deviation %.1f %% of the mean): compare ratios measured together, "
                  "not single figures",
                  report.cv * 100);
    report.warnings.emplace_back(text);
  }

  if (options.per_layer) {
    std::vector<Shape> shapes;
    for (const Tensor& t : inputs) shapes.push_back(t.shape());
    const EngineInfo info = engine.info(shapes);
    session.profile(true);
    const int rounds = static_cast<int>(std::clamp<double>(2000.0 / std::max(report.mean_ms, 1e-3), 5, 200));
    std::vector<std::vector<double>> steps(info.layers.size());
    for (int r = 0; r < rounds; ++r) {
      session.run_into(inputs, outputs);
      for (size_t i = 0; i < steps.size(); ++i) steps[i].push_back(session.step_ns()[i] * 1e-6);
    }
    session.profile(false);
    double sum = 0;
    for (size_t i = 0; i < steps.size(); ++i) {
      LayerTime l;
      l.name = info.layers[i].name;
      l.tactic = info.layers[i].tactic.empty() ? info.layers[i].kind : info.layers[i].tactic;
      l.median_ms = stats::quantile_interval(steps[i], 0.5, 0.95).value;
      l.mean_ms =
          std::accumulate(steps[i].begin(), steps[i].end(), 0.0) / static_cast<double>(steps[i].size());
      l.runs = rounds;
      sum += l.median_ms;
      if (l.median_ms > 0) {
        l.gflops = info.layers[i].flops / l.median_ms * 1e-6;
        l.gbytes_per_s = static_cast<double>(info.layers[i].bytes_read + info.layers[i].bytes_written +
                                             info.layers[i].weight_bytes) /
                         l.median_ms * 1e-6;
      }
      report.layers.push_back(std::move(l));
    }
    for (LayerTime& l : report.layers) l.share = sum > 0 ? l.median_ms / sum : 0;
  }
  if (options.keep_times) report.times_ms = std::move(times);
  return report;
}

}  // namespace hone
