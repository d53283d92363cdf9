#include "build/builder.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "base/log.h"
#include "build/ledger.h"
#include "build/lower.h"
#include "build/plan_search.h"
#include "hone/error.h"
#include "ir/verify.h"
#include "onnx/import.h"
#include "ops/infer.h"
#include "ops/interpreter.h"
#include "optimize/pass.h"
#include "runtime/materialize.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"
#include "tune/tuner.h"

namespace hone::builder {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// XXH3-128 of a file, hex. External data is not part of it: its bytes reach the engine as weights.
std::string hash_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0)
    XXH3_128bits_update(state, buffer.data(), static_cast<size_t>(in.gcount()));
  const XXH128_hash_t h = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(h.high64),
                static_cast<unsigned long long>(h.low64));
  return text;
}

const Shape* find_shape(const std::map<std::string, Shape>& shapes, const std::string& name) {
  const auto it = shapes.find(name);
  return it == shapes.end() ? nullptr : &it->second;
}

/// Overrides static dimensions of the interface where the caller's shapes or batch say otherwise: the
/// dimension becomes what was asked.
void override_interface(ir::Graph& graph, const BuildOptions& options) {
  const auto apply = [&](const std::map<std::string, Shape>& shapes, const char* what) {
    for (const auto& [name, shape] : shapes) {
      const ir::ValueId id = graph.find(name);
      const bool is_input = id != ir::kNoValue && std::find(graph.inputs().begin(), graph.inputs().end(),
                                                            id) != graph.inputs().end();
      if (!is_input) {
        std::string known;
        for (ir::ValueId in : graph.inputs()) known += (known.empty() ? "" : ", ") + graph.value(in).name;
        throw Error(ErrorCode::kInvalidArgument,
                    std::string(what) + " names the input '" + name + "'; the model's inputs are: " + known,
                    {.stage = "import"});
      }
      ir::TypeInfo& type = graph.value(id).type;
      if (!type.shape) {
        type.shape = ir::to_dims(shape);
        continue;
      }
      if (type.shape->size() != shape.size())
        throw Error(ErrorCode::kInvalidArgument,
                    std::string(what) + " gives '" + name + "' rank " + std::to_string(shape.size()) +
                        ", the model has " + type.text(),
                    {.stage = "import", .tensor = name + " " + type.text()});
      for (size_t d = 0; d < shape.size(); ++d)
        if ((*type.shape)[d].is_const() && (*type.shape)[d].value() != shape[d])
          (*type.shape)[d] = ir::Dim(shape[d]);
    }
  };
  apply(options.shapes, "--shapes");
  for (const ProfileSpec& p : options.profiles) {
    apply(p.opt, "--optShapes");
    // A static dimension that min and max spread becomes symbolic.
    for (const auto& [name, low] : p.min) {
      const Shape* high = find_shape(p.max, name);
      const ir::ValueId id = graph.find(name);
      if (high == nullptr || id == ir::kNoValue || !graph.value(id).type.shape || low.size() != high->size())
        continue;
      ir::Dims& dims = *graph.value(id).type.shape;
      for (size_t d = 0; d < std::min(dims.size(), low.size()); ++d)
        if (dims[d].is_const() && low[d] != (*high)[d]) dims[d] = graph.fresh_symbol("profile");
    }
  }
  if (options.batch > 0)
    for (ir::ValueId id : graph.inputs())
      if (auto& shape = graph.value(id).type.shape; shape && !shape->empty() && (*shape)[0].is_const())
        (*shape)[0] = ir::Dim(options.batch);
}

std::string json_escape(const std::string& s) {
  std::string out;
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// Flags that shaped the build, canonical: keys sorted, defaults left out. Nothing here may name a machine,
/// path or time.
std::string options_json(const BuildOptions& o) {
  std::vector<std::string> parts;
  if (o.batch > 0) parts.push_back("\"batch\":" + std::to_string(o.batch));
  if (!o.disable.empty()) {
    std::vector<std::string> names = o.disable;
    std::sort(names.begin(), names.end());
    std::string list;
    for (const std::string& n : names) list += (list.empty() ? "\"" : ",\"") + json_escape(n) + "\"";
    parts.push_back("\"disable\":[" + list + "]");
  }
  if (o.max_memory > 0) parts.push_back("\"max_memory\":" + std::to_string(o.max_memory));
  if (o.max_workspace > 0) parts.push_back("\"max_workspace\":" + std::to_string(o.max_workspace));
  if (o.override_initializers) parts.push_back("\"override_initializers\":true");
  if (o.strict_f32) parts.push_back("\"strict_f32\":true");
  std::string out = "{";
  for (size_t i = 0; i < parts.size(); ++i) out += (i ? "," : "") + parts[i];
  return out + "}";
}

/// --verify: both graphs on the same seeded inputs, on reference kernels; the first rewrite that changes more
/// than its class allows stops the build.
void compare_graphs(const optimize::Pass& pass, const ir::Graph& before, const ir::Graph& after,
                    const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> a = ops::interpret(before, inputs, {.oracle = true}),
                            b = ops::interpret(after, inputs, {.oracle = true});
  // In exact arithmetic all classes but `narrows` agree; in f64 they agree to its rounding.
  const double limit = 1e-9;
  for (size_t i = 0; i < a.size(); ++i) {
    double num = 0, den = 0;
    bool mismatch = a[i].shape() != b[i].shape() || a[i].dtype() != b[i].dtype();
    for (int64_t k = 0; !mismatch && k < a[i].numel(); ++k) {
      const double x = a[i].at(k), y = b[i].at(k);
      if (std::isnan(x) != std::isnan(y)) mismatch = true;
      if (std::isnan(x) || x == y) continue;
      num += (x - y) * (x - y);
      den += x * x;
    }
    if (mismatch || num > limit * limit * std::max(den, 1e-300))
      throw Error(ErrorCode::kInternal,
                  std::string("the rewrite '") + pass.name + "' changes output '" +
                      before.value(before.outputs()[i]).name + "' by " +
                      std::to_string(std::sqrt(num / std::max(den, 1e-300))) +
                      " (relative L2), more than its class allows; build with --disable=" + pass.name +
                      " and report the model",
                  {.stage = "optimize"});
  }
}

std::vector<Tensor> seeded_inputs(const ir::Graph& graph, const engine::Profile& profile) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < profile.size(); ++i)
    out.push_back(
        runtime::random_input(graph.value(graph.inputs()[i]).type.dtype, profile[i].opt, /*seed=*/1, i));
  return out;
}

}  // namespace

std::vector<engine::Profile> make_profiles(const ir::Graph& graph, const BuildOptions& options) {
  constexpr int64_t kUnbounded = (int64_t{1} << 31) - 1;
  std::vector<ProfileSpec> specs = options.profiles;
  if (specs.empty()) specs.push_back({{}, options.shapes, {}});
  std::vector<engine::Profile> out;
  for (const ProfileSpec& spec : specs) {
    engine::Profile profile;
    for (ir::ValueId id : graph.inputs()) {
      const ir::Value& v = graph.value(id);
      if (!v.type.shape)
        throw Error(ErrorCode::kInvalidArgument,
                    "input '" + v.name + "' has no rank; give its shape with --shapes=" + v.name + ":AxBxC",
                    {.stage = "import"});
      engine::ProfileRange r;
      r.input = v.name;
      const Shape* opt = find_shape(spec.opt, v.name);
      const Shape* shapes = find_shape(options.shapes, v.name);
      const Shape* low = find_shape(spec.min, v.name);
      const Shape* high = find_shape(spec.max, v.name);
      if (opt == nullptr) opt = shapes;
      for (size_t d = 0; d < v.type.shape->size(); ++d) {
        const ir::Dim& dim = (*v.type.shape)[d];
        const auto pick = [&](const Shape* s, int64_t otherwise) {
          return s != nullptr && d < s->size() ? (*s)[d] : otherwise;
        };
        if (dim.is_const()) {
          for (auto* list : {&r.min, &r.opt, &r.max}) list->push_back(dim.value());
          continue;
        }
        r.min.push_back(pick(low, 0));  // zero-size dimensions are legal
        r.max.push_back(pick(high, kUnbounded));
        const int64_t guess =
            d == 0 && options.batch > 0 ? options.batch : std::clamp<int64_t>(1, r.min.back(), r.max.back());
        r.opt.push_back(pick(opt, guess));
        if (r.min.back() > r.opt.back() || r.opt.back() > r.max.back())
          throw Error(ErrorCode::kInvalidArgument,
                      "profile of input '" + v.name + "', dimension " + std::to_string(d) + ": min " +
                          std::to_string(r.min.back()) + ", opt " + std::to_string(r.opt.back()) + ", max " +
                          std::to_string(r.max.back()) + " are not in order",
                      {.stage = "import"});
      }
      profile.push_back(std::move(r));
    }
    out.push_back(std::move(profile));
  }
  return out;
}

ir::Model import_for_build(const std::string& model_path, const BuildOptions& options, BuildReport* report) {
  const Clock::time_point start = Clock::now();
  onnx::ImportOptions import;
  import.override_initializers = options.override_initializers;
  onnx::ImportReport import_report;
  ir::Model model = onnx::import_model(model_path, import, &import_report);
  override_interface(*model.graph, options);
  ops::infer_graph(*model.graph);
  if (report != nullptr) {
    report->issues.insert(report->issues.end(), import_report.issues.begin(), import_report.issues.end());
    report->nodes_imported = static_cast<int64_t>(model.graph->num_nodes());
    report->import_ms = ms_since(start);
  }
  return model;
}

ir::Model optimise(const std::string& model_path, const BuildOptions& options, BuildReport* report,
                   engine::Plan* plan) {
  ir::Model model = import_for_build(model_path, options, report);
  const Clock::time_point start = Clock::now();
  if (plan != nullptr) {
    plan->profiles = make_profiles(*model.graph, options);
    plan->unfused_traffic_bytes = activation_traffic(*model.graph);
  }
  optimize::PipelineOptions pipeline;
  pipeline.disable = options.disable;
  pipeline.verify_structure = options.verify;
  std::vector<Tensor> inputs;
  if (options.verify) {
    inputs = seeded_inputs(*model.graph, make_profiles(*model.graph, options).front());
    pipeline.check = [&](const optimize::Pass& pass, const ir::Graph& before, const ir::Graph& after) {
      compare_graphs(pass, before, after, inputs);
    };
  }
  pipeline.log = [&](const optimize::Pass& pass, int changes, double ms) {
    if (report != nullptr)
      report->passes.push_back({pass.name, pass.what, ops::numerics_name(pass.numerics), changes, ms});
    if (options.progress)
      options.progress("optimise", static_cast<int64_t>(report != nullptr ? report->passes.size() : 0), 0);
  };
  std::vector<optimize::LedgerRow> rows;
  optimize::run_pipeline(*model.graph, pipeline, &rows);
  if (plan != nullptr)
    for (optimize::LedgerRow& r : rows)
      plan->ledger.push_back({r.pass, r.node, std::move(r.sources), std::move(r.bytes_not_moved)});
  if (report != nullptr) {
    report->nodes_optimised = static_cast<int64_t>(model.graph->num_nodes());
    report->optimize_ms = ms_since(start);
  }
  return model;
}

namespace {

/// What a plan is made from, whether a model or an engine gave it.
struct Source {
  const ir::Graph& graph;  ///< optimised
  std::vector<engine::Profile> profiles;
  std::vector<engine::LedgerEntry> ledger;
  ir::Dim unfused_traffic_bytes;
  std::string options_json, model_hash;
};

/// Plan and tune.
std::shared_ptr<const engine::Engine> plan_engine(Source source, const BuildOptions& options,
                                                  BuildReport* report) {
  const ir::Graph& graph = source.graph;
  const backends::Target target = backends::Target::parse(options.target);
  tune::TunerOptions tuning;
  tuning.target = target;
  tuning.measure = options.tune;
  tuning.error_on_miss = options.error_on_timing_cache_miss;
  tune::Tuner tuner(tuning, options.timing_cache_file.empty()
                                ? tune::TimingCache()
                                : tune::TimingCache::load(options.timing_cache_file));
  const bool tunes = options.tune || !options.timing_cache_file.empty();
  double tune_ms = 0;

  LowerOptions lowering;
  lowering.target = target;
  lowering.profiles = std::move(source.profiles);
  lowering.strict_f32 = options.strict_f32;
  lowering.max_workspace = options.max_workspace;
  int64_t layers = 0;
  if (tunes)
    lowering.choose = [&](const std::vector<Candidate>& candidates) {
      const Clock::time_point start = Clock::now();
      std::vector<tune::Ranked> ranked = tuner.rank(candidates);
      tune_ms += ms_since(start);
      if (options.progress) options.progress("tune", ++layers, static_cast<int64_t>(graph.num_nodes()));
      return ranked;
    };
  std::vector<Alternatives> alternatives;
  if (tunes) lowering.alternatives = &alternatives;

  const Clock::time_point start = Clock::now();
  auto engine = std::make_shared<engine::Engine>(lower(graph, lowering));
  engine->plan.ledger = std::move(source.ledger);
  engine->plan.unfused_traffic_bytes = source.unfused_traffic_bytes;
  engine->options_json = std::move(source.options_json);
  engine->model_hash = std::move(source.model_hash);
  {
    const Clock::time_point search = Clock::now();
    search_plan(engine, alternatives, {.measure = options.tune}, &tuner.cache());
    tune_ms += ms_since(search);
  }
  engine->timed = tunes && (tuner.timed() > 0 || tuner.hits() > 0);
  if (const std::string wrong = engine::check_plan(*engine); !wrong.empty())
    throw Error(ErrorCode::kInternal, "the plan is inconsistent: " + wrong, {.stage = "plan"});
  if (options.tune && !options.timing_cache_file.empty() && tuner.timed() > 0) {
    // Another process may have added entries meanwhile.
    tune::TimingCache merged = tune::TimingCache::load(options.timing_cache_file);
    merged.merge(tuner.cache());
    merged.save(options.timing_cache_file);
  }
  if (report != nullptr) {
    report->plan_ms = ms_since(start) - tune_ms;
    report->tune_ms = tune_ms;
    report->tactics_timed = tuner.timed();
    report->cache_hits = tuner.hits();
    report->cache_misses = tuner.misses();
    for (const std::string& f : tuner.failures())
      report->issues.push_back({"warning", "tune", "", "", 0, "",
                                "a tactic failed its verification and is not used: " + f,
                                "report it with this problem string"});
  }
  if (options.max_memory > 0) {
    std::vector<Shape> shapes;
    for (const engine::ProfileRange& r : engine->plan.profiles.front()) shapes.push_back(r.opt);
    (void)runtime::bind(*engine, shapes, options.max_memory);
  }
  return engine;
}

}  // namespace

std::shared_ptr<const engine::Engine> build_engine(const std::string& model_path, const BuildOptions& options,
                                                   BuildReport* report) {
  engine::Plan head;
  const ir::Model model = optimise(model_path, options, report, &head);
  return plan_engine({*model.graph, std::move(head.profiles), std::move(head.ledger),
                      head.unfused_traffic_bytes, options_json(options), hash_file(model_path)},
                     options, report);
}

std::shared_ptr<const engine::Engine> retune_engine(const engine::Engine& engine, const BuildOptions& options,
                                                    BuildReport* report) {
  const std::unique_ptr<ir::Graph> graph = runtime::materialize_graph(engine);
  ops::infer_graph(*graph);
  BuildOptions same = options;
  same.target = engine.target;
  // The flags that the engine was built with still bind its plan.
  const auto flag = [&](const std::string& key) -> std::string_view {
    const size_t at = engine.options_json.find("\"" + key + "\":");
    return at == std::string::npos ? std::string_view()
                                   : std::string_view(engine.options_json).substr(at + key.size() + 3);
  };
  same.strict_f32 = flag("strict_f32").substr(0, 4) == "true";
  if (const std::string_view bytes = flag("max_workspace"); !bytes.empty())
    same.max_workspace = std::strtoll(bytes.data(), nullptr, 10);
  if (report != nullptr) report->nodes_optimised = static_cast<int64_t>(graph->num_nodes());
  return plan_engine({*graph, engine.plan.profiles, engine.plan.ledger, engine.plan.unfused_traffic_bytes,
                      engine.options_json, engine.model_hash},
                     same, report);
}

}  // namespace hone::builder
