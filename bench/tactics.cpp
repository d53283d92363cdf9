// Times the CPU tactics of problems, as problem strings or files of them (bench/problems/*.txt).
//
//     tactics [--isa avx512|avx2|portable] [--threads N] [--seconds S] [--all] PROBLEM|FILE...
//
// A line per tactic: best and median time, GB/s of sources and destinations, then the problem. Without --all
// only the first tactic that accepts. Buffers rotate through three copies, so that a small problem finds its
// data in the second-level cache as behind a preceding layer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <time.h>

#include "backends/backend.h"
#include "base/thread_pool.h"
#include "hone/error.h"

using namespace hone;
using namespace hone::backends;

namespace {

struct Options {
  Target target = Target::here();
  int threads = 1;
  double seconds = 0.2;
  bool all = false;
  std::vector<std::string> problems;
} options;

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
/// One thread is timed by its processor time, which other processes do not lengthen.
double clock_us() {
  if (options.threads > 1) return now_us();
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

/// Bytes with 64-byte alignment, no two at the same place in a page.
class Block {
 public:
  explicit Block(int64_t bytes) : store_(static_cast<size_t>(bytes) + 4096 + 64) {
    static size_t made = 0;
    const size_t shift = ++made % 8 * 448 + 64;
    at_ = store_.data() + (64 - reinterpret_cast<uintptr_t>(store_.data()) % 64) % 64 + shift;
  }
  char* get() const { return at_; }

 private:
  mutable std::vector<char> store_;
  char* at_;
};

void fill(const Operand& o, char* to, uint32_t seed) {
  std::mt19937 rng(seed);
  const int64_t n = numel(o.dims);
  for (int64_t i = 0; i < n; ++i) {
    if (o.dtype == DType::kF32)
      reinterpret_cast<float*>(to)[i] = std::uniform_real_distribution<float>(-2, 2)(rng);
    if (o.dtype == DType::kBool) to[i] = static_cast<char>(rng() % 2);
    if (o.dtype == DType::kI64)
      reinterpret_cast<int64_t*>(to)[i] = o.contents ? (*o.contents)[static_cast<size_t>(i)] : 0;
  }
}

void time_tactic(const Tactic& tactic, const Problem& p, const std::string& text) {
  constexpr int kCopies = 3;
  int64_t bytes = 0;
  std::vector<Block> blocks;
  std::vector<std::vector<const void*>> srcs(kCopies);
  std::vector<std::vector<void*>> dsts(kCopies);
  blocks.reserve(kCopies * (p.srcs.size() + p.dsts.size()));
  for (int c = 0; c < kCopies; ++c) {
    for (size_t i = 0; i < p.srcs.size(); ++i) {
      const Operand& o = p.srcs[i];
      const int64_t size = o.present() ? dtype_bytes(o.dtype, numel(o.dims)) : 0;
      if (c == 0) bytes += size;
      blocks.emplace_back(size);
      if (o.present()) fill(o, blocks.back().get(), static_cast<uint32_t>(i));
      srcs[static_cast<size_t>(c)].push_back(o.present() ? blocks.back().get() : nullptr);
    }
    for (const Operand& o : p.dsts) {
      const int64_t size = o.present() ? dtype_bytes(o.dtype, numel(o.dims)) : 0;
      if (c == 0) bytes += size;
      blocks.emplace_back(size);
      dsts[static_cast<size_t>(c)].push_back(o.present() ? blocks.back().get() : nullptr);
    }
  }
  const auto prepared = tactic.prepare(p);
  const Block workspace(prepared->workspace_bytes());
  ThreadPool pool(options.threads);
  std::vector<double> times;
  size_t copy = 0;
  for (const double end = now_us() + options.seconds * 1e6; now_us() < end || times.size() < 5;) {
    const double begin = clock_us();
    prepared->run({srcs[copy].data(), dsts[copy].data(), workspace.get(), &pool, options.threads});
    times.push_back(clock_us() - begin);
    copy = (copy + 1) % kCopies;
  }
  times.erase(times.begin(), times.begin() + 3);
  std::sort(times.begin(), times.end());
  const double best = times.front();
  std::printf("%10.2f us %10.2f us %7.1f GB/s  %-36s %s\n", best, times[times.size() / 2],
              static_cast<double>(bytes) / best / 1e3, tactic.name().c_str(), text.c_str());
  std::fflush(stdout);
}

void time_problem(const std::string& text) {
  const Problem logical = Problem::parse(text);
  for (const Tactic* t : find_backend("cpu")->tactics(logical, options.target)) {
    Problem p = logical;
    t->choose_layouts(p);
    if (const Support s = t->supports(p); !s) {
      if (options.all) std::printf("%-60s %s\n", (t->name() + ": " + s.reason).c_str(), text.c_str());
      continue;
    }
    time_tactic(*t, p, text);
    if (!options.all) return;
  }
}

void read_arguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const bool more = i + 1 < argc;
    if (a == "--isa" && more) {
      options.target = Target::parse("cpu-" + std::string(argv[++i]));
    } else if (a == "--threads" && more) {
      options.threads = std::atoi(argv[++i]);
    } else if (a == "--seconds" && more) {
      options.seconds = std::atof(argv[++i]);
    } else if (a == "--all") {
      options.all = true;
    } else if (std::ifstream file(a); file) {
      for (std::string line; std::getline(file, line);)
        if (!line.empty() && line[0] != '#') options.problems.push_back(line);
    } else {
      options.problems.push_back(a);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    read_arguments(argc, argv);
    std::printf("%13s %13s %12s  %-36s problem, %s, %d threads\n", "best", "median", "", "tactic",
                options.target.text().c_str(), options.threads);
    for (const std::string& p : options.problems) time_problem(p);
  } catch (const Error& e) {
    std::fprintf(stderr, "tactics: %s\n", e.what());
    return 1;
  }
  return 0;
}
