// Micro-kernel of ref_gemm, compiled once per ISA: acc[4][16] += A panel (kc x 4) * B panel (kc x 16).
namespace hone::ops::HONE_ISA_NS {

#if HONE_ISA_LEVEL == 2
constexpr int kLanes = 8;
#elif HONE_ISA_LEVEL == 1
constexpr int kLanes = 4;
#else
constexpr int kLanes = 2;
#endif
typedef double Vec __attribute__((vector_size(kLanes * sizeof(double)), aligned(sizeof(double))));

static void micro(int64_t kc, const double* a, const double* b, double* acc, int64_t ld) {
  for (int j = 0; j < kPanelCols; j += 2 * kLanes) {
    Vec c[kPanelRows][2];
    HONE_UNROLL
    for (int r = 0; r < kPanelRows; ++r) {
      c[r][0] = *reinterpret_cast<const Vec*>(acc + r * ld + j);
      c[r][1] = *reinterpret_cast<const Vec*>(acc + r * ld + j + kLanes);
    }
    const double* pa = a;
    const double* pb = b + j;
    for (int64_t p = 0; p < kc; ++p, pa += kPanelRows, pb += kPanelCols) {
      const Vec b0 = *reinterpret_cast<const Vec*>(pb);
      const Vec b1 = *reinterpret_cast<const Vec*>(pb + kLanes);
      HONE_UNROLL
      for (int r = 0; r < kPanelRows; ++r) {
        c[r][0] += b0 * pa[r];
        c[r][1] += b1 * pa[r];
      }
    }
    HONE_UNROLL
    for (int r = 0; r < kPanelRows; ++r) {
      *reinterpret_cast<Vec*>(acc + r * ld + j) = c[r][0];
      *reinterpret_cast<Vec*>(acc + r * ld + j + kLanes) = c[r][1];
    }
  }
}

}  // namespace hone::ops::HONE_ISA_NS
