#include <algorithm>
#include <cmath>
#include <memory>

#include "commands.h"
#include "errors.h"
#include "hone/io.h"
#include "hone/session.h"
#include "json_reports.h"
#include "open.h"
#include "text.h"

namespace hone::cli {
namespace {

/// Range, sum (as `mean`) and counts of one tensor.
OutputSummary measure(const Tensor& t) {
  OutputSummary s;
  s.elements = t.numel();
  if (dtype_bits(t.dtype()) == 0 || t.dtype() == DType::kC64 || t.dtype() == DType::kC128) {
    s.numeric = false;
    return s;
  }
  bool seen = false;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double v = t.at(i);
    if (std::isnan(v)) {
      ++s.nan;
    } else if (std::isinf(v)) {
      ++s.infinite;
    } else {
      s.min = seen ? std::min(s.min, v) : v;
      s.max = seen ? std::max(s.max, v) : v;
      s.mean += v;
      seen = true;
    }
  }
  return s;
}

/// One line per output over all samples.
std::vector<OutputSummary> summarize(const std::vector<std::vector<NamedTensor>>& samples, size_t outputs) {
  std::vector<OutputSummary> all;
  for (size_t k = 0; k < samples.front().size(); ++k) {
    OutputSummary s;
    s.name = samples.front()[k].name;
    s.dtype = dtype_name(samples.front()[k].tensor.dtype());
    s.shape = samples.front()[k].tensor.shape();
    s.tap = k >= outputs;
    bool seen = false;
    double sum = 0;
    int64_t finite = 0;
    for (const auto& sample : samples) {
      const OutputSummary one = measure(sample[k].tensor);
      const int64_t n = one.elements - one.nan - one.infinite;
      s.numeric = s.numeric && one.numeric;
      s.elements += one.elements;
      s.nan += one.nan;
      s.infinite += one.infinite;
      if (n == 0 || !one.numeric) continue;
      s.min = seen ? std::min(s.min, one.min) : one.min;
      s.max = seen ? std::max(s.max, one.max) : one.max;
      sum += one.mean;
      finite += n;
      seen = true;
    }
    s.mean = finite > 0 ? sum / static_cast<double>(finite) : 0;
    all.push_back(s);
  }
  return all;
}

/// What runs samples: a session of an engine, or the reference on a graph.
struct Runner {
  std::unique_ptr<Session> session;
  std::unique_ptr<Reference> reference;
  bool oracle = false;
  std::vector<NamedTensor> tapped;

  std::vector<NamedTensor> run(const std::vector<NamedTensor>& inputs) {
    if (reference) return reference->run(inputs, oracle);
    tapped.clear();
    std::vector<NamedTensor> outputs = session->run(inputs);
    for (NamedTensor& t : tapped)
      if (std::none_of(outputs.begin(), outputs.end(),
                       [&](const NamedTensor& o) { return o.name == t.name; }))
        outputs.push_back(std::move(t));
    return outputs;
  }
};

}  // namespace

int run_command(const Request& request) {
  need_path(request, "MODEL or ENGINE");
  const bool reference = request.backend == "ref" || request.oracle;
  if (request.backend == "cuda")
    throw Error(ErrorCode::kUnsupported,
                "this hone was built without the CUDA backend; the backends are cpu and ref");
  if (request.backend != "cpu" && request.backend != "ref")
    usage("unknown backend '" + request.backend + "'; the backends are cpu and ref");
  if (reference && !request.taps.empty())
    usage("--tap reads tensors of an engine's plan; --backend ref has none");
  refuse_precision(request);
  const bool is_engine = Engine::is_engine(request.path);

  RunResult result;
  result.path = request.path;
  result.backend = request.oracle ? "oracle" : reference ? "ref" : "cpu";
  result.outputs = request.outputs;
  Opened opened;
  const Clock::time_point start = Clock::now();
  if (is_engine) opened = open_engine(request);
  const std::vector<TensorInfo> inputs = interface_for(request, is_engine, opened.engine);

  std::vector<std::vector<NamedTensor>> samples;
  bool stacked = false;
  if (!request.inputs.empty()) {
    samples = read_samples(request.inputs, inputs, &stacked);
  } else {
    std::vector<std::pair<std::string, Shape>> shapes;
    if (is_engine) {
      shapes = shapes_for(request, opened.engine);
    } else {
      for (const auto& [name, shape] : options_for(request, false).shapes) shapes.emplace_back(name, shape);
      for (const TensorInfo& t : inputs) {
        if (!t.ranked)
          usage("input '" + t.name + "' has no rank; give its shape with --shapes=" + t.name + ":AxBxC");
        if (request.build.batch <= 0 || t.dims.empty() ||
            std::any_of(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == t.name; }))
          continue;
        Shape shape;
        for (const std::string& d : t.dims)
          shape.push_back(d.find_first_not_of("0123456789") == std::string::npos ? std::stoll(d) : 1);
        shape[0] = request.build.batch;
        shapes.emplace_back(t.name, shape);
      }
    }
    samples.push_back(random_inputs(inputs, shapes, request.seed));
    result.random_inputs = true;
  }

  Runner runner;
  runner.oracle = request.oracle;
  if (reference) {
    runner.reference = std::make_unique<Reference>(request.path);
  } else {
    if (!is_engine) {
      std::map<std::string, Shape> hints;
      for (const NamedTensor& t : samples.front()) hints[t.name] = t.tensor.shape();
      opened = open_engine(request, hints);
    }
    SessionOptions options;
    options.threads = request.threads;
    options.max_memory = request.build.max_memory;
    runner.session = std::make_unique<Session>(opened.engine, options);
    if (!request.taps.empty())
      runner.session->tap(request.taps, [&](const std::string& name, const Tensor& t) {
        runner.tapped.push_back({name, t.clone()});
      });
  }
  result.load_ms = ms_since(start);

  std::vector<std::vector<NamedTensor>> outputs;
  const Clock::time_point run_start = Clock::now();
  for (std::vector<NamedTensor>& sample : samples) {
    outputs.push_back(runner.run(sample));
    sample.clear();  // its memory is free once every view of the array is gone
  }
  result.run_ms = ms_since(run_start);
  result.samples = static_cast<int64_t>(outputs.size());
  if (runner.session) result.events = runner.session->events();
  if (!request.outputs.empty()) write_outputs(request.outputs, outputs, stacked);

  for (const std::string& e : result.events) warn(e);
  size_t regular = outputs.front().size();
  if (is_engine || opened.engine)
    regular = std::min(regular, opened.engine ? opened.engine.outputs().size() : regular);
  result.peak_rss_bytes = peak_rss_bytes();
  result.values = summarize(outputs, regular);
  if (request.json) {
    print(run_json(result) + "\n");
    return 0;
  }
  std::string text = count_text(result.samples, "sample") +
                     (result.random_inputs ? " of seeded random inputs" : "") + " on " + result.backend +
                     " in " + ms_text(result.run_ms) + ", after " + ms_text(result.load_ms) +
                     (opened.from_model ? " to build" : " to load") + "\n";
  Table table({{"output", Table::Align::kLeft, true},
               {"type"},
               {"min", Table::Align::kRight},
               {"mean", Table::Align::kRight},
               {"max", Table::Align::kRight},
               {"NaN", Table::Align::kRight},
               {"inf", Table::Align::kRight}});
  for (const OutputSummary& s : result.values) {
    std::string type = s.dtype + "[";
    for (size_t i = 0; i < s.shape.size(); ++i) type += (i ? "," : "") + std::to_string(s.shape[i]);
    const bool range = s.numeric && s.elements > s.nan + s.infinite;
    table.row({s.name + (s.tap ? " (tap)" : ""), type + "]", range ? number_text(s.min, 5) : "-",
               range ? number_text(s.mean, 5) : "-", range ? number_text(s.max, 5) : "-",
               std::to_string(s.nan), std::to_string(s.infinite)});
  }
  text += table.text();
  if (!request.outputs.empty()) text += printable(request.outputs) + " is written\n";
  print(text);
  return 0;
}

}  // namespace hone::cli
