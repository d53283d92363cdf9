#include "backends/cpu/vmath.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu.h"

namespace hone::cpu {
namespace {
enum class VmathFn {
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kTanh,
  kErf,
  kSigmoid,
  kSoftplus,
  kSilu,
  kGeluErf,
  kGeluTanh
};
}  // namespace
}  // namespace hone::cpu

#define HONE_ISA_INL "backends/cpu/vmath_test.inl"
#include "base/isa_foreach.h"

namespace hone::cpu {
namespace {

void eval(Isa isa, VmathFn fn, const float* x, float* y, int n) {
  switch (isa) {
    case Isa::kPortable: portable::vmath_eval(fn, x, y, n); break;
#if HONE_ISA_X86
    case Isa::kAvx2: avx2::vmath_eval(fn, x, y, n); break;
    case Isa::kAvx512: avx512::vmath_eval(fn, x, y, n); break;
#else
    default: break;
#endif
  }
}

double truth(VmathFn fn, double x) {
  switch (fn) {
    case VmathFn::kExp: return std::exp(x);
    case VmathFn::kExpm1: return std::expm1(x);
    case VmathFn::kLog: return std::log(x);
    case VmathFn::kLog1p: return std::log1p(x);
    case VmathFn::kTanh: return std::tanh(x);
    case VmathFn::kErf: return std::erf(x);
    case VmathFn::kSigmoid: return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
    case VmathFn::kSoftplus: return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case VmathFn::kSilu: return x * truth(VmathFn::kSigmoid, x);
    case VmathFn::kGeluErf: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case VmathFn::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return 0;
}

// Distance in units in the last place of the f32 nearest to `want`, counted in the subnormal spacing below
// the normals.
double ulps(float got, double want) {
  const float near = static_cast<float>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(near) || std::isinf(got)) return near == got ? 0 : INFINITY;
  if (std::isnan(got)) return INFINITY;
  int e = 0;
  std::frexp(near, &e);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(e - 24, -149));
}

struct Case {
  VmathFn fn;
  const char* name;
  double max_ulps;
};

// Every 10007th float: 0.4 million arguments a function, all exponents, both signs, NaNs and infinities.
std::vector<float> sweep() {
  std::vector<float> x;
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 10007) {
    const auto w = static_cast<uint32_t>(u);
    float f = 0;
    std::memcpy(&f, &w, 4);
    x.push_back(f);
  }
  // The range where all the action is, finely; and around the bounds of each branch.
  for (int i = -400000; i <= 400000; ++i) x.push_back(static_cast<float>(i) * 2.7e-4F);
  for (float at : {-104.0F,         -103.97208F, -103.27893F, -87.33655F,  -87.0F,      88.72283F,
                   88.72284F,       89.0F,       0.625F,      1.0F,        4.0F,        3.92F,
                   0.29F,           -0.29F,      0.34657359F, 0.70710678F, 1.41421356F, 9.01F,
                   1.17549435e-38F, 20.0F,       -20.0F,      8388608.0F})
    for (int d = -64; d <= 64; ++d) {
      float f = at;
      for (int i = 0; i < std::abs(d); ++i) f = std::nextafter(f, d < 0 ? -INFINITY : INFINITY);
      x.push_back(f);
    }
  return x;
}

TEST(Vmath, within_the_stated_distance_of_the_true_value) {
  const Case cases[] = {{VmathFn::kExp, "exp", 2},         {VmathFn::kExpm1, "expm1", 3},
                        {VmathFn::kLog, "log", 2},         {VmathFn::kLog1p, "log1p", 3},
                        {VmathFn::kTanh, "tanh", 3},       {VmathFn::kErf, "erf", 3},
                        {VmathFn::kSigmoid, "sigmoid", 3}, {VmathFn::kSoftplus, "softplus", 4}};
  const std::vector<float> x = sweep();
  std::vector<float> y(x.size());
  for (const Case& c : cases) {
    std::vector<double> want(x.size());
    for (size_t i = 0; i < x.size(); ++i) want[i] = truth(c.fn, x[i]);
    for (Isa isa : supported_isas()) {
      eval(isa, c.fn, x.data(), y.data(), static_cast<int>(x.size()));
      double worst = 0;
      float at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double d = ulps(y[i], want[i]);
        if (!(d <= worst)) {
          worst = d;
          at = x[i];
        }
      }
      EXPECT_LE(worst, c.max_ulps) << c.name << " on " << isa_name(isa) << " at " << at;
      RecordProperty(std::string(c.name) + "_" + std::string(isa_name(isa)), std::to_string(worst));
    }
  }
}

TEST(Vmath, activations_are_close_in_absolute_terms) {
  const std::vector<float> x = sweep();
  std::vector<float> y(x.size());
  for (VmathFn fn : {VmathFn::kSilu, VmathFn::kGeluErf, VmathFn::kGeluTanh})
    for (Isa isa : supported_isas()) {
      eval(isa, fn, x.data(), y.data(), static_cast<int>(x.size()));
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::fabs(x[i]) > 1e12F || std::isnan(x[i])) continue;  // x^3 overflows on the way to tanh
        const double want = truth(fn, x[i]);
        // Cancellation in 1 + erf leaves an error relative to x, not to the result.
        ASSERT_LE(std::fabs(y[i] - want), 4e-7 * std::fabs(x[i]) + 1e-44)
            << static_cast<int>(fn) << " " << isa_name(isa) << " " << x[i];
      }
    }
}

TEST(Vmath, signs_of_zero_infinities_and_nan) {
  const float inf = INFINITY;
  const float x[] = {0.0F, -0.0F, inf, -inf, NAN};
  float y[5];
  for (Isa isa : supported_isas()) {
    SCOPED_TRACE(std::string(isa_name(isa)));
    const auto run = [&](VmathFn fn) { eval(isa, fn, x, y, 5); };
    for (VmathFn fn :
         {VmathFn::kExp, VmathFn::kExpm1, VmathFn::kLog, VmathFn::kLog1p, VmathFn::kTanh, VmathFn::kErf,
          VmathFn::kSigmoid, VmathFn::kSoftplus, VmathFn::kSilu, VmathFn::kGeluErf, VmathFn::kGeluTanh}) {
      run(fn);
      EXPECT_TRUE(std::isnan(y[4])) << static_cast<int>(fn);
    }
    for (VmathFn fn : {VmathFn::kExpm1, VmathFn::kLog1p, VmathFn::kTanh, VmathFn::kErf, VmathFn::kSilu,
                       VmathFn::kGeluErf, VmathFn::kGeluTanh}) {
      run(fn);
      EXPECT_TRUE(y[0] == 0 && !std::signbit(y[0])) << static_cast<int>(fn);
      EXPECT_TRUE(y[1] == 0 && std::signbit(y[1])) << static_cast<int>(fn);
    }
    run(VmathFn::kExp);
    EXPECT_EQ(y[2], inf);
    EXPECT_TRUE(y[3] == 0 && !std::signbit(y[3]));
    run(VmathFn::kLog);
    EXPECT_EQ(y[0], -inf);
    EXPECT_EQ(y[1], -inf);
    EXPECT_EQ(y[2], inf);
    EXPECT_TRUE(std::isnan(y[3]));
    run(VmathFn::kSigmoid);
    EXPECT_EQ(y[2], 1.0F);
    EXPECT_EQ(y[3], 0.0F);
    run(VmathFn::kGeluErf);
    EXPECT_EQ(y[2], inf);
    EXPECT_TRUE(std::isnan(y[3]));  // -inf * 0, as the formula has it
  }
}

#if HONE_ISA_X86
TEST(Vmath, avx2_and_avx512_agree_bit_for_bit) {
  if (!isa_supported(Isa::kAvx512)) GTEST_SKIP() << "no AVX-512 on this machine";
  const std::vector<float> x = sweep();
  std::vector<float> a(x.size()), b(x.size());
  for (VmathFn fn :
       {VmathFn::kExp, VmathFn::kExpm1, VmathFn::kLog, VmathFn::kLog1p, VmathFn::kTanh, VmathFn::kErf,
        VmathFn::kSigmoid, VmathFn::kSoftplus, VmathFn::kSilu, VmathFn::kGeluErf, VmathFn::kGeluTanh}) {
    eval(Isa::kAvx2, fn, x.data(), a.data(), static_cast<int>(x.size()));
    eval(Isa::kAvx512, fn, x.data(), b.data(), static_cast<int>(x.size()));
    size_t differ = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (std::memcmp(&a[i], &b[i], 4) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) {
        ++differ;
        at = x[i];
      }
    EXPECT_EQ(differ, 0U) << static_cast<int>(fn) << " at " << at;
  }
}
#endif

}  // namespace
}  // namespace hone::cpu
