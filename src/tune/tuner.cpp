#include "tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "base/log.h"
#include "base/thread_pool.h"
#include "hone/error.h"

namespace hone::tune {
namespace {

using Clock = std::chrono::steady_clock;
using ops::Operand;
using ops::Problem;

constexpr int64_t kCacheBytes = 32 << 20;  // what weights must exceed to be cold
constexpr int kMaxCopies = 24;
constexpr int64_t kGuard = 64;
constexpr unsigned char kGuardByte = 0xA5;
constexpr double kFailed = std::numeric_limits<double>::infinity();

/// Can the tuner make up valid inputs? Free integer tensors (indices, shapes) would need to know the
/// operator.
bool can_fill(const Problem& p) {
  for (const Operand& o : p.srcs)
    if (o.present() && !is_float(o.dtype) && !o.contents) return false;
  return std::all_of(p.dsts.begin(), p.dsts.end(),
                     [](const Operand& o) { return !o.present() || o.dtype == DType::kF32; });
}

std::vector<Tensor> make_inputs(const Problem& p) {
  std::mt19937 rng(1);  // the same data for every candidate and build
  std::normal_distribution<float> normal;
  std::vector<Tensor> out;
  for (const Operand& o : p.srcs) {
    if (!o.present()) {
      out.emplace_back();
    } else if (o.contents) {
      Tensor t(o.dtype, o.dims);
      for (int64_t i = 0; i < t.numel(); ++i) {
        const int64_t v = (*o.contents)[static_cast<size_t>(i)];
        if (o.dtype == DType::kI64)
          t.data<int64_t>()[i] = v;
        else if (o.dtype == DType::kI32)
          t.data<int32_t>()[i] = static_cast<int32_t>(v);
        else
          t.data<uint8_t>()[i] = static_cast<uint8_t>(v);
      }
      out.push_back(t);
    } else {
      Tensor t(DType::kF32, o.dims);
      for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = normal(rng) * (o.constant ? 0.1F : 1.0F);
      out.push_back(t);
    }
  }
  return out;
}

/// Plain <-> layout copies for inputs and verification. Not timed.
Tensor relayout(const Tensor& t, ops::Layout from, ops::Layout to) {
  Tensor out(t.dtype(), t.shape());
  const auto a = ops::layout_strides(from, t.shape()), b = ops::layout_strides(to, t.shape());
  std::vector<int64_t> at(t.shape().size(), 0);
  for (int64_t i = 0, n = t.numel(); i < n; ++i) {
    int64_t x = 0, y = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      x += at[d] * a[d];
      y += at[d] * b[d];
    }
    out.data<float>()[y] = t.data<float>()[x];
    for (size_t d = at.size(); d-- > 0;) {
      if (++at[d] < t.dim(static_cast<int>(d))) break;
      at[d] = 0;
    }
  }
  return out;
}

struct Guarded {
  std::vector<unsigned char> bytes;
  int64_t size = 0;
  explicit Guarded(int64_t n) : bytes(static_cast<size_t>(n + 2 * kGuard + 64), kGuardByte), size(n) {}
  unsigned char* data() {
    auto p = reinterpret_cast<uintptr_t>(bytes.data()) + kGuard;
    return reinterpret_cast<unsigned char*>((p + 63) / 64 * 64);
  }
  bool intact() {
    for (int64_t i = 1; i <= kGuard / 2; ++i)
      if (data()[-i] != kGuardByte || data()[size + i - 1] != kGuardByte) return false;
    return true;
  }
};

/// One candidate bound and ready to run.
struct Trial {
  const Candidate* candidate = nullptr;
  std::unique_ptr<backends::Prepared> prepared;
  std::vector<Tensor> srcs;                 ///< in the candidate's layouts; constants packed
  std::vector<std::vector<Tensor>> copies;  ///< of the constants, for rotation
  std::vector<Guarded> dsts;
  std::unique_ptr<Guarded> workspace;
  double error = -1;
  std::string failure;
  std::vector<double> times;

  void run(int copy, int threads) {
    std::vector<const void*> s;
    std::vector<void*> d;
    for (size_t i = 0; i < srcs.size(); ++i)
      s.push_back(!srcs[i].defined()  ? nullptr
                  : copies[i].empty() ? srcs[i].raw()
                                      : copies[i][static_cast<size_t>(copy) % copies[i].size()].raw());
    for (Guarded& g : dsts) d.push_back(g.data());
    backends::RunArgs args;
    args.srcs = s.data();
    args.dsts = d.data();
    args.workspace = workspace->data();
    args.pool = &ThreadPool::process();
    args.max_threads = threads > 0 ? threads : args.pool->n_threads();
    prepared->run(args);
  }
};

}  // namespace

std::vector<Timing> Tuner::measure(const std::vector<Candidate>& candidates,
                                   const std::vector<size_t>& which) {
  const backends::Backend* backend = backends::find_backend(options_.target.backend);
  const Problem& logical = candidates.front().problem;
  const std::vector<Tensor> plain = make_inputs(logical);
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : plain) pointers.push_back(t.defined() ? &t : nullptr);
  Problem oracle_problem = logical;
  for (Operand& o : oracle_problem.srcs) o.layout = ops::Layout::kPlain;
  for (Operand& o : oracle_problem.dsts) o.layout = ops::Layout::kPlain;
  const std::vector<Tensor> expected = ops::run_problem(oracle_problem, pointers, /*oracle=*/true);

  std::vector<Trial> trials;
  for (size_t index : which) {
    const Candidate& c = candidates[index];
    Trial t;
    t.candidate = &c;
    const Problem& p = c.problem;
    t.prepared = c.tactic->prepare(p);
    int64_t weight_bytes = 0;
    for (size_t i = 0; i < p.srcs.size(); ++i) {
      t.copies.emplace_back();
      if (!plain[i].defined()) {
        t.srcs.emplace_back();
        continue;
      }
      if (p.srcs[i].constant) {
        const std::string packing = c.tactic->packing(p, i);
        t.srcs.push_back(packing.empty() ? plain[i] : backend->pack(packing, plain[i]));
        weight_bytes += t.srcs.back().nbytes();
      } else {
        t.srcs.push_back(p.srcs[i].layout == ops::Layout::kPlain
                             ? plain[i]
                             : relayout(plain[i], ops::Layout::kPlain, p.srcs[i].layout));
      }
    }
    const int n_copies =
        weight_bytes == 0
            ? 1
            : static_cast<int>(std::clamp<int64_t>(kCacheBytes / weight_bytes + 1, 2, kMaxCopies));
    for (size_t i = 0; i < p.srcs.size(); ++i)
      if (p.srcs[i].constant && t.srcs[i].nbytes() >= 4096)
        for (int k = 0; k < n_copies; ++k) t.copies[i].push_back(t.srcs[i].clone());
    for (const Operand& o : p.dsts)
      t.dsts.emplace_back(o.present() ? dtype_bytes(o.dtype, numel(o.dims)) : 0);
    t.workspace = std::make_unique<Guarded>(t.prepared->workspace_bytes());

    try {
      t.run(0, options_.threads);
      double num = 0, den = 0;
      for (size_t k = 0; k < p.dsts.size(); ++k) {
        if (!p.dsts[k].present()) continue;
        Tensor got = Tensor::view(DType::kF32, p.dsts[k].dims, t.dsts[k].data());
        if (p.dsts[k].layout != ops::Layout::kPlain)
          got = relayout(got, p.dsts[k].layout, ops::Layout::kPlain);
        for (int64_t i = 0; i < got.numel(); ++i) {
          const double e = expected[k].at(i), d = got.data<float>()[i] - e;
          num += d * d;
          den += e * e;
        }
        if (!t.dsts[k].intact()) t.failure = "wrote outside its output";
      }
      t.error = std::sqrt(num / std::max(den, 1e-300));
      if (!(t.error <= options_.max_error))
        t.failure = "error " + std::to_string(t.error) + " above the limit of its class";
      if (!t.workspace->intact()) t.failure = "wrote outside its workspace";
    } catch (const Error& e) {
      t.failure = e.what();
    }
    trials.push_back(std::move(t));
  }

  // Interleaved rounds until each candidate has had its time.
  const Clock::time_point start = Clock::now();
  const double budget_ms = options_.budget_ms * static_cast<double>(trials.size());
  for (int round = 0; round < 1000; ++round) {
    for (Trial& t : trials) {
      if (!t.failure.empty()) continue;
      const Clock::time_point a = Clock::now();
      t.run(round, options_.threads);
      const double ns = std::chrono::duration<double, std::nano>(Clock::now() - a).count();
      if (round > 0) t.times.push_back(ns);
    }
    if (round >= 4 && std::chrono::duration<double, std::milli>(Clock::now() - start).count() > budget_ms)
      break;
  }

  std::vector<Timing> out;
  for (Trial& t : trials) {
    ++timed_;
    if (!t.failure.empty()) {
      failures_.push_back(t.candidate->tactic->name() + ": " + t.candidate->problem.text() + ": " +
                          t.failure);
      out.push_back({kFailed, t.error});
      continue;
    }
    std::nth_element(t.times.begin(), t.times.begin() + static_cast<std::ptrdiff_t>(t.times.size() / 2),
                     t.times.end());
    // Rounded as the cache's text rounds, so that an engine built from these figures equals one built from
    // the saved cache.
    char error[32];
    std::snprintf(error, sizeof error, "%.3g", t.error);
    out.push_back({std::round(t.times[t.times.size() / 2]), std::strtod(error, nullptr)});
  }
  return out;
}

std::vector<Ranked> Tuner::rank(const std::vector<Candidate>& candidates) {
  // Lower ISA levels of a tactic that has a higher one, and the reference, are there for correctness and
  // other machines.
  std::vector<size_t> which;
  const Isa best = candidates.front().tactic->isa();
  for (size_t i = 0; i < candidates.size(); ++i) {
    const backends::Tactic* t = candidates[i].tactic;
    if (t->name() == "ref" ? which.empty()
                           : (t->isa() == best || (best == Isa::kAvx512 && t->isa() == Isa::kAvx2)))
      which.push_back(i);
  }
  const std::vector<Ranked> by_rule = {{which.front(), {}}};
  if (which.size() == 1 && !options_.measure) return by_rule;

  const std::string target = options_.target.text();
  std::vector<Timing> timings(which.size());
  std::vector<size_t> missing, missing_at;
  for (size_t k = 0; k < which.size(); ++k) {
    const Candidate& c = candidates[which[k]];
    if (const auto t = cache_.find(target, c.problem.text(), c.tactic->name())) {
      timings[k] = *t;
      ++hits_;
    } else {
      missing.push_back(which[k]);
      missing_at.push_back(k);
    }
  }
  if (!missing.empty()) {
    if (!can_fill(candidates.front().problem)) return by_rule;
    misses_ += static_cast<int64_t>(missing.size());
    if (options_.error_on_miss)
      throw Error(ErrorCode::kRejected,
                  "the timing cache has no entry for " + candidates[missing.front()].tactic->name() + " on " +
                      target + ": " + candidates[missing.front()].problem.text() +
                      "; tune with this model first, or drop --errorOnTimingCacheMiss",
                  {.stage = "tune"});
    if (!options_.measure) return by_rule;
    const std::vector<Timing> fresh = measure(candidates, missing);
    for (size_t k = 0; k < missing.size(); ++k) {
      timings[missing_at[k]] = fresh[k];
      if (std::isfinite(fresh[k].time_ns))
        cache_.put(target, candidates[missing[k]].problem.text(), candidates[missing[k]].tactic->name(),
                   fresh[k]);
    }
  }
  std::vector<Ranked> ranked;
  for (size_t k = 0; k < which.size(); ++k) {
    if (log_enabled(Log::kTune))
      log(Log::kTune, candidates[which[k]].tactic->name() + " " + std::to_string(timings[k].time_ns / 1000) +
                          " us, error " + std::to_string(timings[k].error) + ": " +
                          candidates[which[k]].problem.text());
    if (std::isfinite(timings[k].time_ns)) ranked.push_back({which[k], timings[k]});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return a.timing.time_ns < b.timing.time_ns; });
  if (ranked.empty())
    ranked.push_back(
        {candidates.size() - 1, {}});  // all failed verification: the reference is right by definition
  return ranked;
}

}  // namespace hone::tune
