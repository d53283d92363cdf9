// Verbose lines for developers. Off unless the environment variable HONE_VERBOSE names a category (comma
// separated, or `all`): onnx, pass, dispatch, tune, exec. Lines go to stderr as `hone[pass]: text`. This is
// the only place where the library prints.
//
//   if (log_enabled(Log::kPass)) log(Log::kPass, "fold: 12 nodes");
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace hone {

enum class Log : uint8_t { kOnnx, kPass, kDispatch, kTune, kExec };

const char* log_name(Log category);
/// Threads: safe. The environment is read once per process.
bool log_enabled(Log category);
/// One line; several threads do not interleave within it. Prints whether or not the category is enabled: ask
/// first.
void log(Log category, std::string_view line);

/// For tests and embedders: where lines go instead of stderr (empty function: back to stderr), and which
/// categories are on (the syntax of HONE_VERBOSE). Unknown names are ignored. Not safe while other threads
/// log.
void set_log_sink(std::function<void(Log, std::string_view)> sink);
void set_log_categories(std::string_view list);

}  // namespace hone
