#include "base/thread_pool.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hone {
namespace {

constexpr uint64_t kJoined = 0xFFFF;
constexpr int kCapShift = 16;
constexpr uint64_t kOpen = uint64_t{1} << 31;
constexpr int kEpochShift = 32;

int cap_of(uint64_t state) { return static_cast<int>((state >> kCapShift) & 0x7FFF); }
uint64_t epoch_of(uint64_t state) { return state >> kEpochShift; }

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// True as soon as ready() is, false after kSpinNs of asking. The clock is read rarely: it costs as much as a
// pause.
template <typename F>
bool spin_until(F&& ready) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end{};
  for (int i = 0;; ++i) {
    if (ready()) return true;
    pause();
    if (i % 16 == 15) {
      const Clock::time_point now = Clock::now();
      if (end == Clock::time_point{})
        end = now + std::chrono::nanoseconds(ThreadPool::kSpinNs);
      else if (now >= end)
        return false;
    }
  }
}

}  // namespace

ThreadPool::ThreadPool(int n_threads) { start_workers(std::clamp(n_threads, 1, kMaxThreads)); }

ThreadPool::~ThreadPool() {
  acquire();
  stop_workers();
}

int choose_threads(std::string_view request, int available) {
  int wanted = 0;
  const char* end = request.data() + request.size();
  const auto [stopped, error] = std::from_chars(request.data(), end, wanted);
  if (error != std::errc() || stopped != end || wanted < 1) return available;
  return std::min(wanted, available);
}

ThreadPool& ThreadPool::process() {
  // Leaked on purpose: a thread may still be inside parallel_for while static objects are destroyed.
  static ThreadPool* const pool = [] {
    const char* request = std::getenv("HONE_THREADS");
    auto* p = new ThreadPool(choose_threads(request == nullptr ? "" : request, affinity_cpu_count()));
    p->clamp_to_affinity_ = true;
    return p;
  }();
  return *pool;
}

void ThreadPool::set_n_threads(int n_threads) {
  const int most = clamp_to_affinity_ ? affinity_cpu_count() : kMaxThreads;
  const int wanted = std::clamp(n_threads, 1, std::min(most, kMaxThreads));
  acquire();
  if (wanted != this->n_threads()) {
    stop_workers();
    start_workers(wanted);
  }
  release();
}

void ThreadPool::acquire() {
  while (busy_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
}

void ThreadPool::release() { busy_.store(false, std::memory_order_release); }

void ThreadPool::start_workers(int n_threads) {
  ranges_ = std::make_unique<Range[]>(static_cast<size_t>(n_threads));
  stop_.store(false);
  const uint64_t seen = epoch_of(state_.load());
  workers_.reserve(static_cast<size_t>(n_threads - 1));
  int started = 1;
  try {
    for (; started < n_threads; ++started)
      workers_.emplace_back([this, started, seen] { worker_loop(started, seen); });
  } catch (const std::system_error&) {
    // The system grants fewer threads: the pool works with those it got.
  }
  n_threads_.store(started);
}

void ThreadPool::stop_workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  n_threads_.store(1);
}

void ThreadPool::run(int64_t n_chunks, Call call, void* fn, int max_workers) {
  if (n_chunks <= 0) return;
  const bool alone = n_chunks == 1 || max_workers == 1 || n_threads() == 1;
  if (alone || busy_.exchange(true, std::memory_order_acquire)) {
    for (int64_t chunk = 0; chunk < n_chunks; ++chunk) call(fn, chunk, 0);
    return;
  }

  // Read again: set_n_threads may have run before this call got the workers.
  int64_t cap = n_threads();
  if (max_workers > 0) cap = std::min<int64_t>(cap, max_workers);
  cap = std::min(cap, n_chunks);
  for (int64_t w = 0; w < cap; ++w) {
    ranges_[w].next.store(n_chunks * w / cap, std::memory_order_relaxed);
    ranges_[w].end = n_chunks * (w + 1) / cap;
  }
  call_ = call;
  fn_ = fn;
  n_ranges_ = static_cast<int>(cap);
  failed_.store(false, std::memory_order_relaxed);

  const uint64_t epoch = (epoch_of(state_.load(std::memory_order_relaxed)) + 1) & 0xFFFFFFFFU;
  // seq_cst pairs with the worker that registers in sleepers_ and then reads state_: one of the two sees the
  // other.
  state_.store((epoch << kEpochShift) | kOpen | (static_cast<uint64_t>(cap) << kCapShift));
  if (sleepers_.load() > 0) {
    {
      const std::lock_guard lock(mutex_);
    }
    wake_.notify_all();
  }

  run_chunks(0);

  state_.fetch_and(~kOpen);
  const auto idle = [this] { return (state_.load(std::memory_order_acquire) & kJoined) == 0; };
  if (!spin_until(idle)) {
    std::unique_lock lock(mutex_);
    caller_sleeps_.store(true);
    done_.wait(lock, [this] { return (state_.load() & kJoined) == 0; });
    caller_sleeps_.store(false);
  }
  std::exception_ptr error;
  if (failed_.load(std::memory_order_relaxed)) error = std::exchange(error_, nullptr);
  release();
  if (error) std::rethrow_exception(error);
}

void ThreadPool::run_chunks(int worker) {
  try {
    // Own range first, then the others', so that each thread walks memory forwards.
    for (int i = 0; i < n_ranges_; ++i) {
      int at = worker + i;
      if (at >= n_ranges_) at -= n_ranges_;
      Range& range = ranges_[at];
      for (;;) {
        if (range.next.load(std::memory_order_relaxed) >= range.end) break;
        const int64_t chunk = range.next.fetch_add(1, std::memory_order_relaxed);
        if (chunk >= range.end) break;
        if (failed_.load(std::memory_order_relaxed)) return;
        call_(fn_, chunk, worker);
      }
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
}

void ThreadPool::worker_loop(int worker, uint64_t seen) {
  const auto has_news = [&] { return stop_.load() || epoch_of(state_.load()) != seen; };
  for (;;) {
    if (!spin_until(has_news)) {
      std::unique_lock lock(mutex_);
      sleepers_.fetch_add(1);
      wake_.wait(lock, has_news);
      sleepers_.fetch_sub(1);
    }
    if (stop_.load()) return;
    uint64_t state = state_.load(std::memory_order_acquire);
    seen = epoch_of(state);
    bool joined = false;
    while ((state & kOpen) != 0 && epoch_of(state) == seen && worker < cap_of(state) && !joined)
      joined = state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel);
    if (!joined) continue;
    run_chunks(worker);
    // seq_cst pairs with the caller that sets caller_sleeps_ and then reads state_.
    if ((state_.fetch_sub(1) & kJoined) == 1 && caller_sleeps_.load()) {
      {
        const std::lock_guard lock(mutex_);
      }
      done_.notify_one();
    }
  }
}

}  // namespace hone
