#include "base/cpu.h"

#include <gtest/gtest.h>

namespace hone {
namespace {

TEST(Cpu, names_round_trip) {
  for (int i = 0; i < kIsaCount; ++i) {
    const Isa isa = static_cast<Isa>(i);
    EXPECT_EQ(parse_isa(isa_name(isa)), isa);
  }
  EXPECT_EQ(parse_isa("avx"), std::nullopt);
  EXPECT_EQ(parse_isa(""), std::nullopt);
}

TEST(Cpu, request_is_clamped_to_the_machine) {
  EXPECT_EQ(choose_isa("", Isa::kAvx2), Isa::kAvx2);
  EXPECT_EQ(choose_isa("avx512", Isa::kAvx2), Isa::kAvx2);
  EXPECT_EQ(choose_isa("portable", Isa::kAvx512), Isa::kPortable);
  EXPECT_EQ(choose_isa("nonsense", Isa::kAvx512), Isa::kAvx512);
}

TEST(Cpu, portable_always_runs_and_levels_nest) {
  const std::vector<Isa> isas = supported_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::kPortable);
  EXPECT_EQ(isas.back(), detected_isa());
  EXPECT_LE(current_isa(), detected_isa());
#if defined(__x86_64__) && defined(__GNUC__)
  if (detected_isa() >= Isa::kAvx2) {
    EXPECT_TRUE(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  }
  EXPECT_EQ(detected_isa() == Isa::kAvx512,
            __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
#endif
}

TEST(Cpu, caches_and_affinity_are_plausible) {
  const CacheSizes& sizes = cache_sizes();
  EXPECT_GE(sizes.l1d_bytes, 16U << 10);
  EXPECT_GE(sizes.l2_bytes, sizes.l1d_bytes);
  EXPECT_GE(sizes.l3_bytes, sizes.l2_bytes);
  EXPECT_GE(affinity_cpu_count(), 1);
  EXPECT_FALSE(cpu_model_name().empty());
}

}  // namespace
}  // namespace hone
