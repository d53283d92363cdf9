#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu.h"

namespace hone {
namespace {

TEST(ThreadPool, every_chunk_runs_once) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.n_threads(), threads);
    for (int64_t n : {0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      pool.parallel_for(n, [&](int64_t chunk, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        hits[static_cast<size_t>(chunk)].fetch_add(1);
      });
      for (auto& h : hits) EXPECT_EQ(h.load(), 1);
    }
  }
}

TEST(ThreadPool, many_short_calls_lose_nothing) {
  ThreadPool pool(4);
  // Plain ints: a chunk's writes must be visible to the caller when parallel_for returns.
  std::vector<int> sum(5, 0);
  for (int i = 0; i < 20000; ++i)
    pool.parallel_for(5, [&](int64_t chunk, int) { sum[static_cast<size_t>(chunk)] += 1; });
  for (int s : sum) EXPECT_EQ(s, 20000);
}

TEST(ThreadPool, works_after_the_workers_slept) {
  ThreadPool pool(3);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> n{0};
    pool.parallel_for(9, [&](int64_t, int) { n.fetch_add(1); });
    EXPECT_EQ(n.load(), 9);
  }
}

TEST(ThreadPool, caller_sleeps_until_a_long_chunk_ends) {
  ThreadPool pool(2);
  for (int i = 0; i < 3; ++i) {
    std::vector<int> done(2, 0);
    pool.parallel_for(2, [&](int64_t chunk, int) {
      std::this_thread::sleep_for(std::chrono::milliseconds(chunk == 0 ? 1 : 5));
      done[static_cast<size_t>(chunk)] = 1;
    });
    EXPECT_EQ(done[0] + done[1], 2);
  }
}

TEST(ThreadPool, cap_limits_the_workers) {
  ThreadPool pool(8);
  for (int cap : {1, 2, 3}) {
    std::atomic<int> highest{0};
    pool.parallel_for(
        200,
        [&](int64_t, int worker) {
          int seen = highest.load();
          while (worker > seen && !highest.compare_exchange_weak(seen, worker)) {
          }
          std::this_thread::sleep_for(std::chrono::microseconds(20));
        },
        cap);
    EXPECT_LT(highest.load(), cap);
  }
}

TEST(ThreadPool, no_two_chunks_share_a_worker_at_once) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  pool.parallel_for(2000, [&](int64_t, int worker) {
    EXPECT_EQ(inside[static_cast<size_t>(worker)].fetch_add(1), 0);
    inside[static_cast<size_t>(worker)].fetch_sub(1);
  });
}

TEST(ThreadPool, nested_calls_run_on_their_own_thread) {
  ThreadPool pool(4);
  std::atomic<int> n{0};
  pool.parallel_for(8, [&](int64_t, int) {
    const std::thread::id self = std::this_thread::get_id();
    pool.parallel_for(8, [&](int64_t, int worker) {
      EXPECT_EQ(worker, 0);
      EXPECT_EQ(std::this_thread::get_id(), self);
      n.fetch_add(1);
    });
  });
  EXPECT_EQ(n.load(), 64);
}

TEST(ThreadPool, concurrent_callers_all_finish) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        pool.parallel_for(16, [&](int64_t chunk, int) { total.fetch_add(chunk); });
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(total.load(), 4 * 500 * 120);
}

TEST(ThreadPool, exceptions_reach_the_caller_and_the_pool_survives) {
  for (int threads : {1, 4}) {
    ThreadPool pool(threads);
    for (int i = 0; i < 50; ++i) {
      try {
        pool.parallel_for(100, [&](int64_t chunk, int) {
          if (chunk == 37) throw std::runtime_error("chunk 37");
        });
        FAIL() << "no exception";
      } catch (const std::runtime_error& e) {
        EXPECT_EQ(std::string(e.what()), "chunk 37");
      }
      std::atomic<int> n{0};
      pool.parallel_for(10, [&](int64_t, int) { n.fetch_add(1); });
      EXPECT_EQ(n.load(), 10);
    }
  }
}

TEST(ThreadPool, thread_count_can_change) {
  ThreadPool pool(2);
  for (int threads : {4, 1, 3, 2}) {
    pool.set_n_threads(threads);
    EXPECT_EQ(pool.n_threads(), threads);
    std::atomic<int> n{0};
    pool.parallel_for(33, [&](int64_t, int) { n.fetch_add(1); });
    EXPECT_EQ(n.load(), 33);
  }
}

TEST(ThreadPool, environment_asks_for_a_size_within_what_is_available) {
  EXPECT_EQ(choose_threads("1", 8), 1);
  EXPECT_EQ(choose_threads("3", 8), 3);
  EXPECT_EQ(choose_threads("9", 8), 8);
  for (const char* nonsense : {"", "0", "-2", "two", "2x", " 2", "99999999999999"})
    EXPECT_EQ(choose_threads(nonsense, 8), 8) << nonsense;
}

TEST(ThreadPool, process_pool_stays_inside_the_affinity_mask) {
  ThreadPool& pool = ThreadPool::process();
  EXPECT_LE(pool.n_threads(), affinity_cpu_count());
  pool.set_n_threads(4096);
  EXPECT_EQ(pool.n_threads(), affinity_cpu_count());
}

}  // namespace
}  // namespace hone
