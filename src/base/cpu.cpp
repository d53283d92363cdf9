#include "base/cpu.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sched.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#define HONE_CPU_X86 1
#else
#define HONE_CPU_X86 0
#endif

namespace hone {
namespace {

#if HONE_CPU_X86
uint64_t read_xcr0() {
  uint32_t lo = 0;
  uint32_t hi = 0;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t{hi} << 32) | lo;
}

bool has_bit(uint32_t word, int bit) { return ((word >> bit) & 1U) != 0; }

Isa detect() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return Isa::kPortable;
  const bool fma = has_bit(c, 12);
  const bool osxsave = has_bit(c, 27);
  const bool avx = has_bit(c, 28);
  if (!osxsave || !avx || !fma) return Isa::kPortable;
  const uint64_t xcr0 = read_xcr0();
  if ((xcr0 & 0x6) != 0x6) return Isa::kPortable;  // XMM and YMM state saved by the OS
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return Isa::kPortable;
  if (!has_bit(b, 5)) return Isa::kPortable;
  const bool f = has_bit(b, 16), dq = has_bit(b, 17), bw = has_bit(b, 30), vl = has_bit(b, 31);
  const bool zmm_state = (xcr0 & 0xE0) == 0xE0;  // opmask, upper ZMM0-15, ZMM16-31
  return f && dq && bw && vl && zmm_state ? Isa::kAvx512 : Isa::kAvx2;
}

// Intel describes caches in leaf 4, AMD in 0x8000001D with the same register layout.
void read_caches(uint32_t leaf, CacheSizes& sizes) {
  for (uint32_t i = 0; i < 16; ++i) {
    uint32_t a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(leaf, i, &a, &b, &c, &d) == 0) return;
    const uint32_t type = a & 0x1F;
    if (type == 0) return;
    if (type == 2) continue;  // instruction cache
    const size_t bytes =
        size_t{(b >> 22) + 1} * (((b >> 12) & 0x3FF) + 1) * ((b & 0xFFF) + 1) * (size_t{c} + 1);
    switch ((a >> 5) & 7) {
      case 1: sizes.l1d_bytes = bytes; break;
      case 2: sizes.l2_bytes = bytes; break;
      case 3: sizes.l3_bytes = bytes; break;
      default: break;
    }
  }
}
#else
Isa detect() { return Isa::kPortable; }
#endif

CacheSizes detect_caches() {
  CacheSizes sizes{32U << 10, 1U << 20, 8U << 20};
#if HONE_CPU_X86
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) != 0 && a >= 4) read_caches(4, sizes);
  if (__get_cpuid(0x80000000U, &a, &b, &c, &d) != 0 && a >= 0x8000001DU) read_caches(0x8000001DU, sizes);
#endif
  sizes.l1d_bytes = std::clamp<size_t>(sizes.l1d_bytes, 16U << 10, 1U << 20);
  sizes.l2_bytes = std::clamp<size_t>(sizes.l2_bytes, 128U << 10, 64U << 20);
  sizes.l3_bytes = std::max(sizes.l3_bytes, sizes.l2_bytes);
  return sizes;
}

std::string read_model_name() {
#if HONE_CPU_X86
  uint32_t regs[12] = {};
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000000U, &a, &b, &c, &d) == 0 || a < 0x80000004U) return "unknown";
  for (uint32_t i = 0; i < 3; ++i)
    __get_cpuid(0x80000002U + i, &regs[4 * i], &regs[4 * i + 1], &regs[4 * i + 2], &regs[4 * i + 3]);
  char text[49] = {};
  std::memcpy(text, regs, 48);
  std::string name(text);
  const size_t first = name.find_first_not_of(' ');
  const size_t last = name.find_last_not_of(' ');
  return first == std::string::npos ? "unknown" : name.substr(first, last - first + 1);
#else
  return "unknown";
#endif
}

const std::string& isa_request() {
  static const std::string request = [] {
    const char* text = std::getenv("HONE_ISA");
    return std::string(text != nullptr ? text : "");
  }();
  return request;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kPortable: return "portable";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
  }
  return "unknown";
}

std::optional<Isa> parse_isa(std::string_view name) {
  for (int i = 0; i < kIsaCount; ++i)
    if (isa_name(static_cast<Isa>(i)) == name) return static_cast<Isa>(i);
  return std::nullopt;
}

Isa detected_isa() {
  static const Isa isa = detect();
  return isa;
}

bool isa_supported(Isa isa) { return isa <= detected_isa(); }

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (int i = 0; i < kIsaCount; ++i)
    if (isa_supported(static_cast<Isa>(i))) isas.push_back(static_cast<Isa>(i));
  return isas;
}

Isa choose_isa(std::string_view request, Isa detected) {
  const std::optional<Isa> wanted = parse_isa(request);
  return wanted ? std::min(*wanted, detected) : detected;
}

Isa current_isa() {
  static const Isa isa = choose_isa(isa_request(), detected_isa());
  return isa;
}

std::string_view unknown_isa_request() {
  const std::string& request = isa_request();
  return parse_isa(request) ? std::string_view() : std::string_view(request);
}

const CacheSizes& cache_sizes() {
  static const CacheSizes sizes = detect_caches();
  return sizes;
}

int affinity_cpu_count() {
  // A fixed cpu_set_t holds 1024 processors; larger machines need a larger set, which the kernel asks for by
  // EINVAL.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int rc = sched_getaffinity(0, bytes, set);
    const int count = rc == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (rc == 0) return std::max(count, 1);
  }
  return 1;
}

std::string_view cpu_model_name() {
  static const std::string name = read_model_name();
  return name;
}

}  // namespace hone
