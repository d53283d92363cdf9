// From a request to something that runs: a file told apart, a model built in memory, inputs read or made.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hone/builder.h"
#include "hone/engine.h"
#include "hone/session.h"
#include "request.h"

namespace hone::cli {

using Clock = std::chrono::steady_clock;
double ms_since(Clock::time_point start);

/// Errors: kInvalidArgument when the request names no file (`what` says which it needs).
void need_path(const Request& request, const char* what);
int64_t file_size(const std::string& path);
/// Most memory that this process had resident so far.
int64_t peak_rss_bytes();
/// Errors: kUnsupported for precision flags, naming each and what this version builds.
void refuse_precision(const Request& request);

/// The request's build options with wildcards in shapes resolved against the model's inputs.
BuildOptions options_for(const Request& request, bool tune);

/// Inputs of a file as the request's --shapes and --batch make them.
std::vector<TensorInfo> interface_for(const Request& request, bool is_engine, const Engine& engine);

/// A model built in memory, or an engine loaded.
struct Opened {
  Engine engine;
  bool from_model = false;
  double ms = 0;
  BuildReport report;
};
/// `hints`: shapes to be fast at where the request gives none (those of the data). Flags that only make sense
/// for a model are refused on an engine.
Opened open_engine(const Request& request, const std::map<std::string, Shape>& hints = {});

/// Shapes of an engine's inputs: --shapes, else --batch with the opt shapes of the first profile, else those.
std::vector<std::pair<std::string, Shape>> shapes_for(const Request& request, const Engine& engine);

}  // namespace hone::cli
