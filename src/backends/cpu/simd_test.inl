// Body of simd_test.cpp, compiled per ISA: fills a table of results that the test (baseline code) compares.
namespace hone::cpu::HONE_ISA_NS {

HONE_NOINLINE void simd_probe(const float* a, const float* b, int n, SimdProbe& out) {
  out.width = kWidth;
  for (int i = 0; i < n; i += kWidth) {
    const int left = n - i < kWidth ? n - i : kWidth;
    const Vec x = load_n(a + i, left);
    const Vec y = load_n(b + i, left);
    const Vec one = set(1.0F);
    const Vec nil = zero();
    const auto put = [&](int row, Vec v) { store_n(out.row[row] + i, v, left); };
    put(0, x + y);
    put(1, x - y);
    put(2, x * y);
    put(3, x / y);
    put(4, min(x, y));
    put(5, max(x, y));
    put(6, round(x));
    put(7, floor(x));
    put(8, ceil(x));
    put(9, trunc(x));
    put(10, abs(x));
    put(11, -x);
    put(12, copysign(x, y));
    put(13, select(lt(x, y), one, nil));
    put(14, select(le(x, y), one, nil));
    put(15, select(eq(x, y), one, nil));
    put(16, select(ne(x, y), one, nil));
    put(17, select(gt(x, y), one, nil));
    put(18, select(ge(x, y), one, nil));
    put(19, select(is_nan(x) | ~(lt(y, nil)), one, nil));
    put(20, sqrt(x));
    {
      int32_t reversed[kWidth];
      for (int l = 0; l < kWidth; ++l) reversed[l] = kWidth - 1 - l;
      const Vec twice = permute(permute(x, load_i(reversed)), load_i(reversed));
      put(21, twice);
      put(22, keep(permute(x, set_i(1))));
    }
    store_i_n(out.irow[0] + i, to_int(x), left);
    store_i_n(out.irow[1] + i, trunc_to_int(x), left);
    store_i_n(out.irow[2] + i, shl<3>(bits(x)) ^ shr<5>(bits(y)), left);
    store_i_n(out.irow[3] + i, sar<7>(bits(x)) + bits(y), left);
    store_i_n(out.irow[4] + i, select_i(gt_i(bits(x), bits(y)), bits(x), bits(y)) - set_i(1), left);
  }
  Vec ramp = load_n(a, 0);
  alignas(64) float lanes[kWidth];
  for (int i = 0; i < kWidth; ++i) lanes[i] = static_cast<float>(i + 1);
  ramp = load(lanes);
  out.sum = reduce_add(ramp);
  out.largest = reduce_max(ramp);
  out.smallest = reduce_min(ramp);
  out.fma = reduce_max(fma(set(2.0F), set(3.0F), set(4.0F)));
  out.fnma = reduce_max(fnma(set(2.0F), set(3.0F), set(4.0F)));
  out.any_all = any(gt(ramp, set(1.5F))) && !all(gt(ramp, set(1.5F))) && all(gt(ramp, set(0.5F))) &&
                !any(gt(ramp, set(99.0F)));
}

}  // namespace hone::cpu::HONE_ISA_NS
