// Test support: runs a tactic the way a plan does, hostile to mistakes. Buffers are 64-byte aligned between
// guard bytes, destinations and workspace start as garbage, the layouts are those the tactic chose, and the
// bits must be the same for one and for several threads.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "backends/cpu/packing.h"
#include "backends/tactic.h"
#include "base/cpu.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu::check {

#if defined(__SANITIZE_ADDRESS__)
/// An aligned block that ends at its last byte: AddressSanitizer sees every access outside it.
class Buffer {
 public:
  explicit Buffer(int64_t bytes, uint8_t fill = 0xA5) : bytes_(bytes) {
    void* p = nullptr;
    if (posix_memalign(&p, 64, static_cast<size_t>(bytes)) != 0) std::abort();
    store_.reset(static_cast<uint8_t*>(p));
    std::memset(data(), fill, static_cast<size_t>(bytes));
  }
  uint8_t* data() { return store_.get(); }
  const uint8_t* data() const { return store_.get(); }
  int64_t bytes() const { return bytes_; }
  bool guards_whole() const { return true; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  int64_t bytes_;
  std::unique_ptr<uint8_t, Free> store_;
};
#else
/// An aligned buffer with guards of 64 bytes on both sides.
class Buffer {
 public:
  explicit Buffer(int64_t bytes, uint8_t fill = 0xA5)
      : bytes_(bytes), store_(static_cast<size_t>(bytes) + 3 * 64, 0xC3) {
    const auto at = reinterpret_cast<uintptr_t>(store_.data()) + 64;
    offset_ = static_cast<size_t>(((at + 63) & ~uintptr_t{63}) - reinterpret_cast<uintptr_t>(store_.data()));
    std::memset(data(), fill, static_cast<size_t>(bytes));
  }
  uint8_t* data() { return store_.data() + offset_; }
  const uint8_t* data() const { return store_.data() + offset_; }
  int64_t bytes() const { return bytes_; }
  bool guards_whole() const {
    for (size_t i = 0; i < store_.size(); ++i)
      if ((i < offset_ || i >= offset_ + static_cast<size_t>(bytes_)) && store_[i] != 0xC3) return false;
    return true;
  }

 private:
  int64_t bytes_;
  std::vector<uint8_t> store_;
  size_t offset_ = 0;
};
#endif

/// Calls fn(offset in plain order, offset in the operand's layout) for every element.
inline void each_element(const Operand& o, const std::function<void(int64_t, int64_t)>& fn) {
  const std::vector<int64_t> strides = ops::layout_strides(o.layout, o.dims);
  const int64_t n = numel(o.dims);
  std::vector<int64_t> index(o.dims.size(), 0);
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    fn(i, at);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < o.dims[d]) break;
      index[d] = 0;
    }
  }
}

inline void to_layout(const Operand& o, const uint8_t* plain, uint8_t* out) {
  const int64_t size = dtype_bits(o.dtype) / 8;
  each_element(o, [&](int64_t i, int64_t at) {
    std::memcpy(out + at * size, plain + i * size, static_cast<size_t>(size));
  });
}
inline void from_layout(const Operand& o, const uint8_t* in, uint8_t* plain) {
  const int64_t size = dtype_bits(o.dtype) / 8;
  each_element(o, [&](int64_t i, int64_t at) {
    std::memcpy(plain + i * size, in + at * size, static_cast<size_t>(size));
  });
}

/// A source as the tactic reads it: packed when it is a constant with a packing, else in its layout.
inline Tensor source_bytes(const Tactic& tactic, const Problem& p, size_t i, const Tensor* plain) {
  const Operand& o = p.srcs[i];
  if (!o.present()) return {};
  if (o.constant)
    if (const std::string packing = tactic.packing(p, i); !packing.empty())
      return pack_constant(packing, *plain);
  Tensor t(o.dtype, o.dims);
  to_layout(o, static_cast<const uint8_t*>(plain->raw()), static_cast<uint8_t*>(t.raw()));
  return t;
}

/// Runs the tactic once with `threads`; sources in plain layout, results too. share >= 0: dsts[0] uses that
/// source's memory.
inline std::vector<Tensor> execute(const Tactic& tactic, const Problem& p,
                                   const std::vector<const Tensor*>& srcs, int threads, int share = -1) {
  std::vector<Buffer> in, out;
  std::vector<const void*> src_ptrs;
  std::vector<void*> dst_ptrs;
  in.reserve(p.srcs.size());
  for (size_t i = 0; i < p.srcs.size(); ++i) {
    const Operand& o = p.srcs[i];
    const Tensor stored = source_bytes(tactic, p, i, srcs[i]);
    in.emplace_back(stored.defined() ? stored.nbytes() : 0);
    if (in.back().bytes() > 0)
      std::memcpy(in.back().data(), stored.raw(), static_cast<size_t>(stored.nbytes()));
    src_ptrs.push_back(o.present() ? in.back().data() : nullptr);
  }
  out.reserve(p.dsts.size());
  for (size_t i = 0; i < p.dsts.size(); ++i) {
    const Operand& o = p.dsts[i];
    out.emplace_back(o.present() ? dtype_bytes(o.dtype, numel(o.dims)) : 0, 0xFF);
    dst_ptrs.push_back(!o.present()           ? nullptr
                       : i == 0 && share >= 0 ? in[static_cast<size_t>(share)].data()
                                              : out.back().data());
  }
  const std::unique_ptr<Prepared> prepared = tactic.prepare(p);
  Buffer workspace(prepared->workspace_bytes(), 0xFF);
  ThreadPool pool(threads);
  prepared->run({src_ptrs.data(), dst_ptrs.data(), workspace.data(), &pool, threads});
  EXPECT_TRUE(workspace.guards_whole()) << tactic.name() << " wrote outside its workspace";
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_TRUE(in[i].guards_whole()) << tactic.name() << " wrote around source " << i;
    if (static_cast<int>(i) == share || !p.srcs[i].present()) continue;
    const Tensor again = source_bytes(tactic, p, i, srcs[i]);
    EXPECT_TRUE(in[i].bytes() == 0 ||
                std::memcmp(again.raw(), in[i].data(), static_cast<size_t>(in[i].bytes())) == 0)
        << tactic.name() << " changed source " << i;
  }
  std::vector<Tensor> results(p.dsts.size());
  for (size_t i = 0; i < out.size(); ++i) {
    EXPECT_TRUE(out[i].guards_whole()) << tactic.name() << " wrote around destination " << i;
    if (!p.dsts[i].present()) continue;
    results[i] = Tensor(p.dsts[i].dtype, p.dsts[i].dims);
    from_layout(p.dsts[i], static_cast<const uint8_t*>(dst_ptrs[i]), static_cast<uint8_t*>(results[i].raw()));
  }
  return results;
}

/// |got - want| <= tolerance * max(1, |want|); NaN and infinities alike.
inline void expect_close(const Tensor& got, const Tensor& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.shape(), want.shape()) << what;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = got.at(i), w = want.at(i);
    bool ok = std::fabs(g - w) <= tolerance * std::max(1.0, std::fabs(w));
    if (std::isnan(w) || std::isnan(g)) ok = std::isnan(w) && std::isnan(g);
    if (std::isinf(w) || std::isinf(g)) ok = g == w || (std::isinf(g) && std::fabs(w) > 3.3e38);
    ASSERT_TRUE(ok) << what << ": element " << i << " is " << g << ", should be " << w;
  }
}

using Reference = std::function<std::vector<Tensor>(const Problem& plain, const std::vector<const Tensor*>&)>;

/// Chooses layouts from those in `p`, then compares with the reference on every ISA that runs here. Returns
/// how many ran.
inline int check_tactic(std::unique_ptr<Tactic> (*maker)(Isa), Problem p,
                        const std::vector<const Tensor*>& srcs, const Reference& reference,
                        double tolerance = 1e-6) {
  Problem plain = p;
  for (auto* list : {&plain.srcs, &plain.dsts})
    for (Operand& o : *list) o.layout = Layout::kPlain;
  const std::vector<Tensor> want = reference(plain, srcs);
  int ran = 0;
  for (const Isa isa : supported_isas()) {
    const std::unique_ptr<Tactic> tactic = maker(isa);
    if (!tactic) continue;
    Problem mine = p;
    tactic->choose_layouts(mine);
    const Support ok = tactic->supports(mine);
    EXPECT_TRUE(ok.ok) << tactic->name() << ": " << ok.reason;
    if (!ok) continue;
    ++ran;
    const std::vector<Tensor> one = execute(*tactic, mine, srcs, 1);
    const std::vector<Tensor> two = execute(*tactic, mine, srcs, 2);
    for (size_t i = 0; i < one.size(); ++i) {
      if (!mine.dsts[i].present()) continue;
      const std::string what = tactic->name() + " output " + std::to_string(i);
      EXPECT_EQ(std::memcmp(one[i].raw(), two[i].raw(), static_cast<size_t>(one[i].nbytes())), 0)
          << what << ": threads change the bits";
      expect_close(one[i], want[i], tolerance, what);
    }
    for (size_t s = 0; s < mine.srcs.size(); ++s) {
      if (!mine.srcs[s].present() || mine.srcs[s].constant || !tactic->in_place(mine, s)) continue;
      if (mine.srcs[s].dims != mine.dsts[0].dims || mine.srcs[s].layout != mine.dsts[0].layout) continue;
      const std::vector<Tensor> shared = execute(*tactic, mine, srcs, 2, static_cast<int>(s));
      EXPECT_EQ(std::memcmp(one[0].raw(), shared[0].raw(), static_cast<size_t>(one[0].nbytes())), 0)
          << tactic->name() << ": in place over source " << s;
    }
  }
  return ran;
}

/// The operator's reference kernel and post-ops, in f64 without rounding.
inline std::vector<Tensor> oracle(const Problem& plain, const std::vector<const Tensor*>& srcs) {
  return ops::run_problem(plain, srcs, true);
}

inline Tensor random_f32(const Shape& dims, uint32_t seed, float low = -2, float high = 2) {
  Tensor t(DType::kF32, dims);
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(low, high);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = d(rng);
  return t;
}
/// Sprinkles NaN, infinities, zeros of both signs, subnormals and the largest finite values.
inline void add_specials(Tensor& t, uint32_t seed) {
  const float kSpecials[] = {NAN,    INFINITY, -INFINITY,     0.0F,          -0.0F,
                             1e-41F, -1e-41F,  3.4028235e38F, -3.4028235e38F};
  std::mt19937 rng(seed);
  for (int64_t i = 0; i < t.numel(); i += 1 + static_cast<int64_t>(rng() % 7))
    t.data<float>()[i] = kSpecials[rng() % 9];
}

inline Operand f32_operand(Shape dims, Layout layout = Layout::kPlain, bool constant = false) {
  return {DType::kF32, std::move(dims), layout, constant};
}

}  // namespace hone::backends::cpu::check
