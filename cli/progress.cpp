#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace hone::cli {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
}

std::function<void(const std::string&, int64_t, int64_t)> Progress::callback() {
  if (!terminal_) return nullptr;
  return [this](const std::string& phase, int64_t done, int64_t total) { update(phase, done, total); };
}

void Progress::update(const std::string& phase, int64_t done, int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
  last_ = now;
  drawn_ = true;
  constexpr int kWidth = 30;
  if (total > 0) {
    const int full = static_cast<int>(std::clamp<int64_t>(done * kWidth / total, 0, kWidth));
    std::fprintf(stderr, "\r\033[K%s [%s%s] %lld of %lld", phase.c_str(),
                 std::string(static_cast<size_t>(full), '#').c_str(),
                 std::string(static_cast<size_t>(kWidth - full), '.').c_str(), static_cast<long long>(done),
                 static_cast<long long>(total));
  } else {
    std::fprintf(stderr, "\r\033[K%s %lld", phase.c_str(), static_cast<long long>(done));
  }
  std::fflush(stderr);
}

}  // namespace hone::cli
