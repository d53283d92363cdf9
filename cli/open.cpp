#include "open.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "errors.h"
#include "flags.h"
#include "progress.h"

namespace hone::cli {

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void need_path(const Request& request, const char* what) {
  if (request.path.empty()) usage(std::string("no ") + what + " is given");
}

int64_t file_size(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<int64_t>(size);
}

int64_t peak_rss_bytes() {
  std::ifstream in("/proc/self/status");
  std::string line;
  while (std::getline(in, line))
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

void refuse_precision(const Request& request) {
  if (request.precision.empty() || request.permits_only) return;
  std::string flags;
  for (const std::string& f : request.precision) flags += (flags.empty() ? "" : " ") + f;
  throw Error(ErrorCode::kUnsupported,
              flags + ": this version of hone builds f32 engines only; leave the flag" +
                  (request.precision.size() > 1 ? "s" : "") + " out to build in f32");
}

BuildOptions options_for(const Request& request, bool tune) {
  refuse_precision(request);
  BuildOptions options = request.build;
  options.tune = tune;
  bool wild = has_wildcard(options.shapes);
  for (const ProfileSpec& p : options.profiles)
    wild |= has_wildcard(p.min) || has_wildcard(p.opt) || has_wildcard(p.max);
  if (wild) {
    std::vector<TensorInfo> inputs;
    model_interface(request.path, &inputs, nullptr);
    options.shapes = expand_shapes(options.shapes, inputs);
    for (ProfileSpec& p : options.profiles)
      for (auto* shapes : {&p.min, &p.opt, &p.max}) *shapes = expand_shapes(*shapes, inputs);
  }
  return options;
}

std::vector<TensorInfo> interface_for(const Request& request, bool is_engine, const Engine& engine) {
  std::vector<TensorInfo> inputs;
  if (is_engine) return engine.inputs();
  model_interface(request.path, &inputs, nullptr);
  const auto fixed = [](const std::string& d) {
    return d.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::map<std::string, Shape> shapes = expand_shapes(request.build.shapes, inputs);
  for (TensorInfo& t : inputs) {
    const auto it = shapes.find(t.name);
    if (it != shapes.end()) {
      if (!t.ranked) t.dims.assign(it->second.size(), "?");
      t.ranked = true;
      for (size_t d = 0; d < std::min(t.dims.size(), it->second.size()); ++d)
        if (fixed(t.dims[d])) t.dims[d] = std::to_string(it->second[d]);
    } else if (request.build.batch > 0 && !t.dims.empty() && fixed(t.dims[0])) {
      t.dims[0] = std::to_string(request.build.batch);
    }
  }
  return inputs;
}

Opened open_engine(const Request& request, const std::map<std::string, Shape>& hints) {
  const Clock::time_point start = Clock::now();
  Opened opened;
  if (Engine::is_engine(request.path)) {
    refuse_precision(request);
    if (request.tune.value_or(false))
      usage("--tune chooses tactics while building; '" + request.path + "' is built already");
    if (!request.build.profiles.empty())
      usage("optimization profiles are part of the build; '" + request.path + "' is built already");
    opened.engine = Engine::load(request.path, request.verify_file);
  } else {
    opened.from_model = true;
    BuildOptions options = options_for(request, request.tune.value_or(false));
    if (options.profiles.empty())
      for (const auto& [name, shape] : hints) options.shapes.emplace(name, shape);
    Progress progress;
    options.progress = progress.callback();
    opened.engine = build(request.path, options, &opened.report);
  }
  opened.ms = ms_since(start);
  return opened;
}

std::vector<std::pair<std::string, Shape>> shapes_for(const Request& request, const Engine& engine) {
  const std::vector<TensorInfo> inputs = engine.inputs();
  const std::map<std::string, Shape> given = expand_shapes(request.build.shapes, inputs);
  for (const auto& [name, shape] : given)
    if (std::none_of(inputs.begin(), inputs.end(),
                     [&n = name](const TensorInfo& t) { return t.name == n; })) {
      std::vector<std::string> known;
      std::string list;
      for (const TensorInfo& t : inputs) {
        known.push_back(t.name);
        list += (list.empty() ? "" : ", ") + t.name;
      }
      const std::string near = nearest(name, known);
      usage("--shapes names the input '" + name + "'; " +
            (near.empty() ? "the inputs are: " + list : "did you mean '" + near + "'?"));
    }
  std::vector<std::pair<std::string, Shape>> shapes;
  const EngineInfo info = engine.info();
  for (const ProfileInfo& p : info.profiles.front()) {
    Shape shape = p.opt;
    if (const auto it = given.find(p.input); it != given.end())
      shape = it->second;
    else if (request.build.batch > 0 && !shape.empty())
      shape[0] = request.build.batch;
    shapes.emplace_back(p.input, std::move(shape));
  }
  return shapes;
}

}  // namespace hone::cli
