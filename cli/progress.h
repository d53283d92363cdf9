// A progress bar on stderr, only when that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace hone::cli {

/// Draws at most ten times a second and clears its line when destroyed.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// For BuildOptions::progress; null when stderr is no terminal.
  std::function<void(const std::string&, int64_t, int64_t)> callback();
  void update(const std::string& phase, int64_t done, int64_t total);

 private:
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace hone::cli
