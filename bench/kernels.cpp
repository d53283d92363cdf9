// Speed of the CPU kernels alone, next to the multiply-add peak measured on the spot.
//
//     kernels [--isa avx512|avx2|portable] [--threads N] [--seconds S] [WORD...]
//
// Prints a line per shape: median time, GFLOP/s, share of the peak of that ISA at that many threads. A WORD
// keeps only sections whose name contains it (resnet50, mobilenetv2, bert, gemv). Weights rotate through
// copies of 32 MiB or more, as in a network whose weights do not stay in cache; activations rotate through
// three buffers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <time.h>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/depthwise.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/tile.h"
#include "base/cpu.h"
#include "base/thread_pool.h"

using namespace hone;
using namespace hone::cpu;

namespace {

struct Options {
  Isa isa = current_isa();
  int threads = 1;
  double seconds = 0.15;
  std::vector<std::string> words;
} options;

/// Memory as the runtime gives it: huge pages where the system grants them, and no two tensors at the same
/// place in a page (a load would wait for an earlier store to the other one).
struct Buffer {
  explicit Buffer(int64_t floats) {
    constexpr size_t kPage = size_t{2} << 20;
    static int made = 0;
    const size_t shift = static_cast<size_t>(++made % 8) * 1472 / 64 * 64;
    const size_t bytes = (static_cast<size_t>(floats) * 4 + shift + kPage - 1) / kPage * kPage;
    data.reset(static_cast<char*>(std::aligned_alloc(kPage, bytes)));
    madvise(data.get(), bytes, MADV_HUGEPAGE);
    first = reinterpret_cast<float*>(data.get() + shift);
    for (int64_t i = 0; i < floats; ++i) first[i] = static_cast<float>(i % 17 - 8) * 0.01F;
  }
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  std::unique_ptr<char, Free> data;
  float* first = nullptr;
  float* get() const { return first; }
};

struct Times {
  double median, best;
};

/// Seconds now: of this thread's processor time when it works alone, so that other processes count less, else
/// of the clock on the wall.
double now() {
  timespec t{};
  clock_gettime(options.threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Of repeated calls, at least 5 and for options.seconds. The best one tells what the kernel can do on a busy
/// machine.
Times time_of(const std::function<void(int)>& call) {
  for (int i = 0; i < 2; ++i) call(i);
  std::vector<double> times;
  const double start = now();
  for (int i = 0; times.size() < 5 || now() - start < options.seconds; ++i) {
    const double t = now();
    call(i);
    times.push_back(now() - t);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size()) / 2, times.end());
  return {times[times.size() / 2], *std::min_element(times.begin(), times.end())};
}

/// Multiply-adds of the largest tile on data in L1: what the arithmetic units give at best, in GFLOP/s.
double peak(ThreadPool& pool) {
  const TileKernels& k = tile_kernels(options.isa);
  const int depth = 128;
  double best = 0;
  for (int repeat = 0; repeat < 80; ++repeat) {
    const double t = now();
    const int calls = 3000;
    pool.parallel_for(options.threads, [&](int64_t, int) {
      alignas(64) static thread_local float a[kMaxTileRows * 160], b[160 * 64], c[kMaxTileRows * 64];
      const float* rows[kMaxTileRows];
      float* dst[kMaxTileRows];
      const int mr = k.mr == 12 ? 11 : k.mr;
      for (int r = 0; r < mr; ++r) {
        rows[r] = a + r * 144;
        dst[r] = c + r * 64;
      }
      Tile tile;
      tile.rows = rows;
      tile.run = depth;
      tile.b = b;
      tile.dst = dst;
      tile.n = k.nr;
      tile.prefetch = b;
      for (int i = 0; i < calls; ++i) k.fn[1][mr](tile);
    });
    const int mr = k.mr == 12 ? 11 : k.mr;
    best = std::max(best, 2e-9 * depth * mr * k.nr * calls * options.threads / (now() - t));
  }
  return best;
}

class Section {
 public:
  Section(const char* name, double peak) : name_(name), peak_(peak) {}
  bool wanted() const {
    if (options.words.empty()) return true;
    return std::any_of(options.words.begin(), options.words.end(),
                       [&](const std::string& w) { return std::string(name_).find(w) != std::string::npos; });
  }
  void add(const std::string& shape, Times t, double flops, int count) {
    print(shape, count, t, flops);
    sum_.median += t.median * count;
    sum_.best += t.best * count;
    flops_ += flops * count;
  }
  ~Section() {
    if (flops_ > 0) print("sum", 1, sum_, flops_);
    if (flops_ > 0) std::printf("\n");
  }

 private:
  void print(const std::string& shape, int count, Times t, double flops) const {
    std::printf("%-12s %-36s x%-2d median %9.1f us %6.1f GFLOP/s %5.1f %%   best %9.1f us %5.1f %%\n", name_,
                shape.c_str(), count, t.median * 1e6, flops / t.median * 1e-9,
                100 * flops / t.median * 1e-9 / peak_, t.best * 1e6, 100 * flops / t.best * 1e-9 / peak_);
    std::fflush(stdout);
  }

  const char* name_;
  double peak_, flops_ = 0;
  Times sum_{0, 0};
};

int64_t copies_of(int64_t floats) {
  return std::clamp<int64_t>((int64_t{8} << 20) / std::max<int64_t>(1, floats), 1, 64);
}

void bench_gemm(Section& section, ThreadPool& pool, int64_t m, int64_t n, int64_t k, int count,
                std::vector<EpilogueOp> ops = {}) {
  GemmShape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  const Gemm gemm(options.isa, shape);
  const int64_t weights = packed_b_floats(options.isa, k, n), copies = copies_of(weights);
  const Buffer a(m * k), b(weights * copies), c(m * n), bias(n),
      ws(gemm.workspace_bytes(options.threads) / 4 + 16);
  ops.insert(ops.begin(), EpilogueOp::add(EpilogueOperand::per_column(bias.get())));
  const Times t = time_of([&](int i) {
    GemmArgs args;
    args.a = a.get();
    args.lda = k;
    args.b = b.get() + i % copies * weights;
    args.c = c.get();
    args.ldc = n;
    args.epilogue = Epilogue(ops);
    args.workspace = ws.get();
    gemm.run(args, pool);
  });
  section.add("m" + std::to_string(m) + " n" + std::to_string(n) + " k" + std::to_string(k), t,
              2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k), count);
}

void bench_conv(Section& section, ThreadPool& pool, int64_t hw, int64_t ic, int64_t oc, int64_t k,
                int64_t stride, int count, bool residual = false) {
  ConvShape s;
  s.ic = ic;
  s.oc = oc;
  s.in = {1, hw, hw};
  s.kernel = {1, k, k};
  s.stride = {1, stride, stride};
  s.pad = {0, k / 2, k / 2};
  s.out = {1, (hw + 2 * (k / 2) - k) / stride + 1, (hw + 2 * (k / 2) - k) / stride + 1};
  const Conv conv(options.isa, s);
  const int64_t weights = packed_conv_floats(options.isa, s), copies = copies_of(weights);
  const Buffer x(s.in_pixels() * ic), w(weights * copies), y(s.out_pixels() * oc), z(s.out_pixels() * oc),
      bias(oc), ws(conv.workspace_bytes(options.threads) / 4 + 16);
  std::vector<EpilogueOp> ops = {EpilogueOp::add(EpilogueOperand::per_column(bias.get()))};
  if (residual) ops.push_back(EpilogueOp::add(EpilogueOperand::full(z.get(), oc)));
  ops.push_back(EpilogueOp::activation(ActKind::kRelu));
  const Times t = time_of([&](int i) {
    ConvArgs args;
    args.src = x.get();
    args.weights = w.get() + i % copies * weights;
    args.dst = y.get();
    args.epilogue = Epilogue(ops);
    args.workspace = ws.get();
    conv.run(args, pool);
  });
  section.add(std::to_string(hw) + "x" + std::to_string(hw) + " " + std::to_string(ic) + "->" +
                  std::to_string(oc) + " k" + std::to_string(k) + " s" + std::to_string(stride) +
                  (residual ? " +add" : "") + " relu",
              t,
              2.0 * static_cast<double>(s.out_pixels()) * static_cast<double>(oc) * static_cast<double>(ic) *
                  static_cast<double>(k * k),
              count);
}

void resnet50(Section& s, ThreadPool& pool) {
  bench_conv(s, pool, 224, 3, 64, 7, 2, 1);
  const struct {
    int64_t hw, in, mid, out;
    int blocks;
  } stages[] = {
      {56, 64, 64, 256, 3}, {56, 256, 128, 512, 4}, {28, 512, 256, 1024, 6}, {14, 1024, 512, 2048, 3}};
  for (const auto& g : stages) {
    const int64_t stride = g.in == 64 ? 1 : 2, hw = g.hw / stride;
    bench_conv(s, pool, g.hw, g.in, g.mid, 1, 1, 1);
    bench_conv(s, pool, g.hw, g.mid, g.mid, 3, stride, 1);
    bench_conv(s, pool, g.hw, g.in, g.out, 1, stride, 1);
    bench_conv(s, pool, hw, g.mid, g.out, 1, 1, g.blocks, true);
    bench_conv(s, pool, hw, g.out, g.mid, 1, 1, g.blocks - 1);
    bench_conv(s, pool, hw, g.mid, g.mid, 3, 1, g.blocks - 1);
  }
  bench_gemm(s, pool, 1, 1000, 2048, 1);
}

void bench_depthwise(Section& section, ThreadPool& pool, int64_t hw, int64_t c, int64_t k, int64_t stride,
                     int count, int64_t group = 1) {
  ConvShape s;
  s.ic = s.oc = c;
  s.groups = c / group;
  s.in = {1, hw, hw};
  s.kernel = {1, k, k};
  s.stride = {1, stride, stride};
  s.pad = {0, k / 2, k / 2};
  s.out = {1, (hw + 2 * (k / 2) - k) / stride + 1, (hw + 2 * (k / 2) - k) / stride + 1};
  const Depthwise conv(options.isa, s);
  const Buffer x(s.in_pixels() * c), w(s.taps() * c * group), y(s.out_pixels() * c), bias(c);
  const std::vector<EpilogueOp> ops = {EpilogueOp::add(EpilogueOperand::per_column(bias.get())),
                                       EpilogueOp::activation(ActKind::kClip, 0, 6)};
  const Times t = time_of([&](int) {
    ConvArgs args;
    args.src = x.get();
    args.weights = w.get();
    args.dst = y.get();
    args.epilogue = Epilogue(ops);
    conv.run(args, pool);
  });
  section.add(std::to_string(hw) + "x" + std::to_string(hw) + " groups of " + std::to_string(group) + ": " +
                  std::to_string(c) + " k" + std::to_string(k) + " s" + std::to_string(stride) + " relu6",
              t, 2.0 * static_cast<double>(s.out_pixels() * c * k * k * group), count);
}

void resnext50(Section& s, ThreadPool& pool) {
  bench_depthwise(s, pool, 56, 128, 3, 1, 3, 4);
  bench_depthwise(s, pool, 56, 256, 3, 2, 1, 8);
  bench_depthwise(s, pool, 28, 256, 3, 1, 3, 8);
}

void mobilenetv2(Section& s, ThreadPool& pool) {
  bench_conv(s, pool, 224, 3, 32, 3, 2, 1);
  const struct {
    int64_t hw, in, expand, out, stride;
    int count;
  } blocks[] = {{112, 32, 1, 16, 1, 1}, {112, 16, 6, 24, 2, 1}, {56, 24, 6, 24, 1, 1},
                {56, 24, 6, 32, 2, 1},  {28, 32, 6, 32, 1, 2},  {28, 32, 6, 64, 2, 1},
                {14, 64, 6, 64, 1, 3},  {14, 64, 6, 96, 1, 1},  {14, 96, 6, 96, 1, 2},
                {14, 96, 6, 160, 2, 1}, {7, 160, 6, 160, 1, 2}, {7, 160, 6, 320, 1, 1}};
  for (const auto& b : blocks) {
    const int64_t mid = b.in * b.expand;
    if (b.expand > 1) bench_conv(s, pool, b.hw, b.in, mid, 1, 1, b.count);
    bench_depthwise(s, pool, b.hw, mid, 3, b.stride, b.count);
    bench_conv(s, pool, b.hw / b.stride, mid, b.out, 1, 1, b.count, b.in == b.out && b.stride == 1);
  }
  bench_conv(s, pool, 7, 320, 1280, 1, 1, 1);
  bench_gemm(s, pool, 1, 1000, 1280, 1);
}

void bert(Section& s, ThreadPool& pool) {
  bench_gemm(s, pool, 128, 2304, 768, 12);
  bench_gemm(s, pool, 128, 768, 768, 12);
  bench_gemm(s, pool, 128, 3072, 768, 12, {EpilogueOp::activation(ActKind::kGeluErf)});
  bench_gemm(s, pool, 128, 768, 3072, 12);
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (arg == "--isa") {
      options.isa = choose_isa(value, detected_isa());
      ++i;
    } else if (arg == "--threads") {
      options.threads = std::max(1, std::atoi(value));
      ++i;
    } else if (arg == "--seconds") {
      options.seconds = std::atof(value);
      ++i;
    } else {
      options.words.push_back(arg);
    }
  }
  ThreadPool pool(options.threads);
  const double most = peak(pool);
  std::printf("%s, %s, %d thread(s): multiply-add peak %.1f GFLOP/s\n\n",
              std::string(cpu_model_name()).c_str(), std::string(isa_name(options.isa)).c_str(),
              options.threads, most);
  if (Section s("resnet50", most); s.wanted()) resnet50(s, pool);
  if (Section s("mobilenetv2", most); s.wanted()) mobilenetv2(s, pool);
  if (Section s("resnext50 grouped", most); s.wanted()) resnext50(s, pool);
  if (Section s("bert", most); s.wanted()) bert(s, pool);
  if (Section s("gemv", most); s.wanted())
    for (int64_t m : {1, 2, 4, 8}) bench_gemm(s, pool, m, 4096, 1024, 1);
  return 0;
}
