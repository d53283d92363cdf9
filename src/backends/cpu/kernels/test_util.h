// Helpers of the kernel tests: buffers with guards, seeded values, tolerances from depth and epsilon.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace hone::cpu::testing {

/// `size` floats, 64-byte aligned, between guard words; check() fails the test when one was overwritten.
/// `shift` moves the start off alignment by so many floats.
class Guarded {
 public:
  explicit Guarded(int64_t size, int shift = 0) : size_(size), shift_(shift) {
    const int64_t all = size + 2 * kGuard + shift;
    bytes_.reset(static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>((all * 4 + 63) / 64 * 64))));
    for (int64_t i = 0; i < all; ++i) set_guard(i);
  }
  float* data() { return bytes_.get() + kGuard + shift_; }
  const float* data() const { return bytes_.get() + kGuard + shift_; }
  float& operator[](int64_t i) { return data()[i]; }
  int64_t size() const { return size_; }
  void check(const char* what) const {
    for (int64_t i = 0; i < kGuard + shift_; ++i)
      ASSERT_TRUE(is_guard(i)) << what << ": written before the start";
    for (int64_t i = 0; i < kGuard; ++i)
      ASSERT_TRUE(is_guard(kGuard + shift_ + size_ + i)) << what << ": written past the end, at +" << i;
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr uint32_t kWord = 0x7FC0DEAD;  // a NaN, so that reading it shows in the results too
  void set_guard(int64_t i) { std::memcpy(bytes_.get() + i, &kWord, 4); }
  bool is_guard(int64_t i) const { return std::memcmp(bytes_.get() + i, &kWord, 4) == 0; }
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float[], Free> bytes_;
  int64_t size_;
  int shift_;
};

/// Values in [-1, 1) from a small generator: the same on every machine.
inline void fill(float* x, int64_t n, uint32_t seed) {
  uint32_t s = seed * 2654435761U + 12345U;
  for (int64_t i = 0; i < n; ++i) {
    s = s * 1664525U + 1013904223U;
    x[i] = static_cast<float>(static_cast<int32_t>(s >> 8)) / 8388608.0F - 1.0F;
  }
}

/// Bound on |f32 chain - exact| for a sum of k products whose magnitudes add up to `magnitude`.
inline double sum_tolerance(int64_t k, double magnitude) {
  return (static_cast<double>(k) + 4) * std::numeric_limits<float>::epsilon() * magnitude * 0.5 + 1e-30;
}

inline bool same_bits(const float* a, const float* b, int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<size_t>(n) * 4) == 0;
}

/// Both NaN, or the same infinity, or within tolerance.
inline ::testing::AssertionResult close(float got, double want, double tolerance) {
  if (std::isnan(want)) {
    if (std::isnan(got)) return ::testing::AssertionSuccess();
  } else if (std::isinf(want)) {
    if (got == want) return ::testing::AssertionSuccess();
  } else if (std::fabs(got - want) <= tolerance) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "got " << got << ", want " << want << " +- " << tolerance;
}

}  // namespace hone::cpu::testing
