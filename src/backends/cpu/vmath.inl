// Body of vmath.h, compiled once per ISA.
namespace hone::cpu::HONE_ISA_NS {

/// p * 2^n for integral n in [-252, 254], rounded once into the subnormals or to infinity. p in [0.5, 2].
HONE_INLINE Vec scale_pow2(Vec p, Vec n) {
#if HONE_ISA_LEVEL == 2
  return {_mm512_scalef_ps(p.v, n.v)};
#else
  // Two steps keep each factor a normal number.
  const IVec i = to_int(n);
  const IVec half = sar<1>(i);
  const IVec rest = i - half;
  const Vec s0 = from_bits(shl<23>(half + set_i(127)));
  const Vec s1 = from_bits(shl<23>(rest + set_i(127)));
  return (p * s0) * s1;
#endif
}

/// r in [-ln2/2, ln2/2] (1 % more is fine): (e^r - 1 - r) / r^2, relative error of e^r 3.4e-9.
HONE_INLINE Vec exp_tail(Vec r) {
  Vec q = fma(r, set(0.00139517174F), set(0.00836959854F));
  q = fma(q, r, set(0.0416661873F));
  q = fma(q, r, set(0.166665122F));
  return fma(q, r, set(0.5F));
}

/// Splits x into n * ln2 + r. The high part of ln2 has 10 bits, so n * hi is exact also without fused
/// multiply-add.
HONE_INLINE Vec exp_reduce(Vec x, Vec& r) {
  const Vec n = round(x * set(1.44269504F));
  r = fnma(n, set(0.693359375F), x);
  r = fnma(n, set(-2.12194440e-4F), r);
  return n;
}

HONE_INLINE Vec exp(Vec x) {
  // Past these bounds the result is 0 or infinity anyway. The bound is the first operand: NaN goes through.
  x = max(set(-104.5F), min(set(89.0F), x));
  Vec r;
  const Vec n = exp_reduce(x, r);
  const Vec p = fma(r * r, exp_tail(r), r) + set(1.0F);
  return scale_pow2(p, n);
}

HONE_INLINE Vec expm1(Vec x) {
  const Vec clamped = max(set(-20.0F), min(set(89.0F), x));
  Vec r;
  const Vec n = exp_reduce(clamped, r);
  const Vec p = fma(r * r, exp_tail(r), r);  // e^r - 1
  // 2^n (p + 1) - 1 = 2 (s p + (s - 1/2)) with s = 2^(n-1), which is still finite for the largest n.
  const Vec s = from_bits(shl<23>(to_int(n) + set_i(126)));
  const Vec y = fma(s, p, s - set(0.5F));
  return select(eq(x, zero()), x, y + y);
}

/// Splits positive, finite, normal x into 2^e * (1 + f), 1 + f in [sqrt(1/2), sqrt(2)).
HONE_INLINE Vec log_split(Vec x, Vec& f) {
  const IVec shifted = bits(x) - set_i(0x3F3504F3);  // bits of sqrt(1/2)
  const IVec e = sar<23>(shifted);
  f = from_bits(bits(x) - shl<23>(e)) - set(1.0F);
  return to_float(e);
}

/// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1], relative error of log(1 + f) 5.9e-9.
HONE_INLINE Vec log_tail(Vec f) {
  Vec p = fma(f, set(-0.0763442963F), set(0.127615497F));
  p = fma(p, f, set(-0.131601945F));
  p = fma(p, f, set(0.142017618F));
  p = fma(p, f, set(-0.166233569F));
  p = fma(p, f, set(0.200012267F));
  p = fma(p, f, set(-0.250008225F));
  p = fma(p, f, set(0.333333313F));
  const Vec f2 = f * f;
  return fma(f2 * f, p, f2 * set(-0.5F));
}

HONE_INLINE Vec log(Vec x) {
  const Mask tiny = lt(x, set(1.17549435e-38F));
  const Vec scaled = select(tiny, x * set(8388608.0F), x);
  Vec f;
  Vec e = log_split(scaled, f);
  e = select(tiny, e - set(23.0F), e);
  Vec y = fma(e, set(-2.12194440e-4F), log_tail(f));
  y = fma(e, set(0.693359375F), f + y);
  const Vec inf = set(__builtin_inff());
  y = select(lt(x, inf), y, x);  // +inf and NaN
  y = select(eq(x, zero()), -inf, y);
  return select(lt(x, zero()), set(__builtin_nanf("")), y);
}

HONE_INLINE Vec log1p(Vec x) {
  // u = 1 + x loses the low bits of x; c puts the first of them back: log(1 + x) = log(u) + (x - (u - 1)) /
  // u.
  const Vec u = set(1.0F) + x;
  const Vec c = select(lt(x, set(1e8F)), (x - (u - set(1.0F))) / u, zero());
  Vec f;
  const Vec e = log_split(u, f);
  Vec y = fma(e, set(-2.12194440e-4F), log_tail(f) + c);
  y = fma(e, set(0.693359375F), f + y);
  // Near 0 the formula above has f = u - 1, whose error c repairs only to first order in the tail.
  const Mask small = lt(abs(x), set(0.29F));
  y = select(small, x + log_tail(x), y);
  const Vec inf = set(__builtin_inff());
  y = select(lt(x, inf), y, x);
  y = select(eq(x, set(-1.0F)), -inf, y);
  y = select(lt(x, set(-1.0F)), set(__builtin_nanf("")), y);
  return select(eq(x, zero()), x, y);
}

HONE_INLINE Vec tanh(Vec x) {
  const Vec a = abs(x);
  // |x| < 0.625: x + x^3 P(x^2), relative error 4.4e-9.
  const Vec u = x * x;
  Vec p = fma(u, set(-0.00570497848F), set(0.0206390787F));
  p = fma(p, u, set(-0.0537397116F));
  p = fma(p, u, set(0.133314416F));
  p = fma(p, u, set(-0.333332807F));
  const Vec small = fma(u * x, p, x);
  // Else 1 - 2 / (e^(2|x|) + 1), which is 1 from 9.02 on; the bound comes first so that NaN goes through.
  const Vec z = exp(min(set(10.0F), a) * set(2.0F));
  const Vec large = set(1.0F) - set(2.0F) / (z + set(1.0F));
  return copysign(select(lt(a, set(0.625F)), small, select(is_nan(x), x, large)),
                  x);  // the sum lost the sign of -0
}

HONE_INLINE Vec erf(Vec x) {
  const Vec a = abs(x);
  // |x| < 1: x P(x^2), relative error 1.2e-9.
  const Vec u = x * x;
  Vec p = fma(u, set(7.85385782e-05F), set(-0.000801019254F));
  p = fma(p, u, set(0.00518832775F));
  p = fma(p, u, set(-0.026853811F));
  p = fma(p, u, set(0.112835854F));
  p = fma(p, u, set(-0.37612626F));
  p = fma(p, u, set(1.12837911F));
  const Vec small = x * p;
  // Else 1 - exp(Q(|x|)), Q = log(erfc): relative error 1.2e-9; 1 from 3.92 on.
  const Vec t = min(set(4.0F), a);
  Vec q = fma(t, set(0.000188823615F), set(-0.00297244196F));
  q = fma(q, t, set(0.0219404306F));
  q = fma(q, t, set(-0.103327349F));
  q = fma(q, t, set(-0.637883067F));
  q = fma(q, t, set(-1.12725151F));
  q = fma(q, t, set(-0.000300428335F));
  const Vec large = copysign(set(1.0F) - exp(q), x);
  return select(lt(a, set(1.0F)), small, select(is_nan(x), x, large));
}

HONE_INLINE Vec sigmoid(Vec x) {
  // With z = e^-|x| nothing overflows, and x < 0 gives z / (1 + z), small but exact to the last places.
  const Vec z = exp(-abs(x));
  const Vec num = select(lt(x, zero()), z, set(1.0F));
  return num / (set(1.0F) + z);
}

HONE_INLINE Vec softplus(Vec x) { return max(zero(), x) + log1p(exp(-abs(x))); }

HONE_INLINE Vec silu(Vec x) { return x * sigmoid(x); }

HONE_INLINE Vec gelu_erf(Vec x) {
  const Vec h = x * set(0.5F);
  return h * (set(1.0F) + erf(x * set(0.707106781F)));
}

HONE_INLINE Vec gelu_tanh(Vec x) {
  const Vec inner = set(0.797884561F) * fma(set(0.044715F) * (x * x), x, x);
  return (x * set(0.5F)) * (set(1.0F) + tanh(inner));
}

}  // namespace hone::cpu::HONE_ISA_NS
