// Body of vmath_test.cpp, compiled per ISA.
namespace hone::cpu::HONE_ISA_NS {

HONE_NOINLINE void vmath_eval(VmathFn fn, const float* x, float* y, int n) {
  for (int i = 0; i < n; i += kWidth) {
    const int left = n - i < kWidth ? n - i : kWidth;
    const Vec v = load_n(x + i, left);
    Vec r = v;
    switch (fn) {
      case VmathFn::kExp: r = exp(v); break;
      case VmathFn::kExpm1: r = expm1(v); break;
      case VmathFn::kLog: r = log(v); break;
      case VmathFn::kLog1p: r = log1p(v); break;
      case VmathFn::kTanh: r = tanh(v); break;
      case VmathFn::kErf: r = erf(v); break;
      case VmathFn::kSigmoid: r = sigmoid(v); break;
      case VmathFn::kSoftplus: r = softplus(v); break;
      case VmathFn::kSilu: r = silu(v); break;
      case VmathFn::kGeluErf: r = gelu_erf(v); break;
      case VmathFn::kGeluTanh: r = gelu_tanh(v); break;
    }
    store_n(y + i, r, left);
  }
}

}  // namespace hone::cpu::HONE_ISA_NS
