// What the processor offers: the instruction set our kernels may use, its caches, the cores we may run on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace hone {

/// Instruction-set level of a CPU kernel, in rising order; each level includes the lower ones. Values are
/// written to engine files: do not change them.
enum class Isa : uint8_t {
  kPortable = 0,  ///< The compiler's baseline (SSE2 on x86-64); no fused multiply-add.
  kAvx2 = 1,      ///< AVX2 and FMA.
  kAvx512 = 2,    ///< AVX-512 F, BW, DQ and VL, besides AVX2 and FMA.
};
inline constexpr int kIsaCount = 3;

/// "portable", "avx2", "avx512".
std::string_view isa_name(Isa isa);
/// The inverse of isa_name; nullopt for any other text.
std::optional<Isa> parse_isa(std::string_view name);

/// The highest level this processor AND operating system support (XCR0 checked), whatever HONE_ISA says.
Isa detected_isa();
/// True when kernels of this level can run here: isa <= detected_isa().
bool isa_supported(Isa isa);
/// Every level that can run here, lowest first. Tests loop over it.
std::vector<Isa> supported_isas();
/// The level kernels use by default: detected_isa(), or the level named by the environment variable HONE_ISA
/// clamped to it. An unknown name in HONE_ISA is ignored (unknown_isa_request() tells). Read once per
/// process. Threads: safe.
Isa current_isa();
/// The value of HONE_ISA when it names no level, else empty: for a warning by whoever prints.
std::string_view unknown_isa_request();
/// What choose_isa decides for a request: the rule behind current_isa(), without the environment.
Isa choose_isa(std::string_view request, Isa detected);

/// Data cache sizes in bytes as seen by one core; a level that cannot be read gets a cautious default
/// (32 KiB, 1 MiB, 8 MiB). Only for choosing block sizes that do not change results.
struct CacheSizes {
  size_t l1d_bytes;
  size_t l2_bytes;
  size_t l3_bytes;
};
const CacheSizes& cache_sizes();

/// Number of processors in this process's affinity mask (at least 1). Read anew each call.
int affinity_cpu_count();

/// Vendor and model text from CPUID, "unknown" elsewhere. For reports.
std::string_view cpu_model_name();

}  // namespace hone
