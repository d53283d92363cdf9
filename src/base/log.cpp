#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/str.h"

namespace hone {
namespace {

constexpr const char* kNames[] = {"onnx", "pass", "dispatch", "tune", "exec"};
constexpr uint32_t kAll = (1u << std::size(kNames)) - 1;

uint32_t parse_categories(std::string_view list) {
  uint32_t mask = 0;
  for (const std::string_view part : split(list, ',')) {
    const std::string_view name = trim(part);
    if (name == "all") mask |= kAll;
    for (size_t i = 0; i < std::size(kNames); ++i) {
      if (name == kNames[i]) mask |= 1u << i;
    }
  }
  return mask;
}

struct State {
  std::atomic<uint32_t> mask;
  std::mutex mutex;
  std::function<void(Log, std::string_view)> sink;
  State() {
    const char* list = std::getenv("HONE_VERBOSE");
    mask = list == nullptr ? 0 : parse_categories(list);
  }
};

State& state() {
  static State* s = new State;  // never destroyed: threads may log while the process exits
  return *s;
}

}  // namespace

const char* log_name(Log category) { return kNames[static_cast<size_t>(category)]; }

bool log_enabled(Log category) {
  return (state().mask.load(std::memory_order_relaxed) >> static_cast<unsigned>(category) & 1u) != 0;
}

void log(Log category, std::string_view line) {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (s.sink) {
    s.sink(category, line);
  } else {
    std::fprintf(stderr, "hone[%s]: %.*s\n", log_name(category), static_cast<int>(line.size()), line.data());
  }
}

void set_log_sink(std::function<void(Log, std::string_view)> sink) { state().sink = std::move(sink); }
void set_log_categories(std::string_view list) { state().mask = parse_categories(list); }

}  // namespace hone
