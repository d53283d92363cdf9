// The process's worker threads: parallel_for over chunks whose number never depends on how many threads run
// them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

namespace hone {

/// The size of the process's pool for a value of HONE_THREADS: that number within [1, available]; available
/// for text that is no positive number.
int choose_threads(std::string_view request, int available);

/// A pool of n_threads() - 1 workers; the thread that calls parallel_for is the remaining one.
///
/// Determinism. parallel_for(n, fn) calls fn once for each chunk in [0, n). Which thread runs a chunk, and in
/// what order, is open; so results are the same for every thread count when each chunk writes its own data
/// and n is a function of sizes alone.
///
/// Threads. Any number of threads may call parallel_for at once. One gets the workers; a caller that finds
/// them taken, or that is itself inside a chunk, does all its chunks on its own thread. A forked child has no
/// workers and does the same. Idle workers spin at most 50 us for the next call, then sleep.
class ThreadPool {
 public:
  /// Time a thread spins for work or for the end of others' chunks before it sleeps.
  static constexpr int64_t kSpinNs = 50'000;
  static constexpr int kMaxThreads = 1024;

  /// Starts n_threads - 1 workers (n_threads is clamped to [1, kMaxThreads]).
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// The process's pool: as many threads as its affinity mask had processors at first use, or as HONE_THREADS
  /// asks for within it. Never destroyed.
  static ThreadPool& process();

  /// The largest worker number a chunk may see, plus one.
  int n_threads() const { return n_threads_.load(std::memory_order_relaxed); }
  /// Changes the number of threads after the parallel_for in progress, if any, has ended. The process pool is
  /// clamped to the affinity mask. REQUIRES: not called from a chunk; workspaces sized by n_threads() are
  /// sized anew.
  void set_n_threads(int n_threads);

  /// Calls fn(chunk, worker) for every chunk in [0, n_chunks), worker in [0, min(n_threads(), max_workers)):
  /// no two chunks with the same worker run at the same time, so per-worker scratch needs no lock.
  /// max_workers <= 0 means no cap. Returns when all are done. Each worker starts on its own contiguous run
  /// of chunks, in rising order, and helps others afterwards: neighbouring chunks should be neighbours in
  /// memory. Errors: the first exception of a chunk is rethrown here; chunks not yet started are then
  /// skipped.
  template <typename F>
  void parallel_for(int64_t n_chunks, F&& fn, int max_workers = 0) {
    using Fn = std::remove_reference_t<F>;
    run(
        n_chunks, [](void* f, int64_t chunk, int worker) { (*static_cast<Fn*>(f))(chunk, worker); },
        const_cast<void*>(static_cast<const void*>(&fn)), max_workers);
  }

 private:
  using Call = void (*)(void* fn, int64_t chunk, int worker);
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void run(int64_t n_chunks, Call call, void* fn, int max_workers);
  void run_chunks(int worker);
  void worker_loop(int worker, uint64_t seen);
  void start_workers(int n_threads);
  void stop_workers();
  void acquire();
  void release();

  std::atomic<int> n_threads_{1};
  bool clamp_to_affinity_ = false;
  std::vector<std::thread> workers_;

  // The job. Written by the caller that owns busy_, while no worker has joined.
  std::unique_ptr<Range[]> ranges_;
  Call call_ = nullptr;
  void* fn_ = nullptr;
  int n_ranges_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};

  std::atomic<bool> busy_{false};
  // [epoch:32][open:1][cap:15][joined:16]. Workers below cap may join while open; the caller closes the job
  // when no chunk is left and waits for joined to fall to 0, so that it never waits for a worker that slept
  // through the job.
  alignas(64) std::atomic<uint64_t> state_{0};
  std::atomic<bool> stop_{false};

  alignas(64) std::mutex mutex_;
  std::condition_variable wake_;  // workers
  std::condition_variable done_;  // the caller
  std::atomic<int> sleepers_{0};  // workers inside wake_
  std::atomic<bool> caller_sleeps_{false};
};

}  // namespace hone
