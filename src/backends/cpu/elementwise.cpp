// Elementwise operators that no pointwise program of floats covers: integer and f64 arithmetic, comparisons,
// logic. Broadcast sources, any mix of layouts. Integers wrap, division truncates, division by zero is an
// error; NaN wins in Min and Max.
#include <cmath>
#include <cstring>
#include <string_view>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/strided_loop.h"
#include "hone/error.h"
#include "ops/dispatch.h"

namespace hone::backends::cpu {
namespace {

// --- functions of two elements; those of one ignore the second ---

struct AddOp {
  template <class T>
  T operator()(T a, T b) const {
    return ops::wrap_add(a, b);
  }
};
struct SubOp {
  template <class T>
  T operator()(T a, T b) const {
    return ops::wrap_sub(a, b);
  }
};
struct MulOp {
  template <class T>
  T operator()(T a, T b) const {
    return ops::wrap_mul(a, b);
  }
};
struct DivOp {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) throw Error(ErrorCode::kInvalidData, "integer division by zero");
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return ops::wrap_sub<T>(0, a);  // the lowest value has no opposite
    }
    return static_cast<T>(a / b);
  }
};
template <bool kFmod>
struct ModOp {
  template <class T>
  T operator()(T a, T b) const {
    static_assert(std::is_integral_v<T>);
    if (b == 0) throw Error(ErrorCode::kInvalidData, "integer modulo by zero");
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    const T r = static_cast<T>(a % b);
    if constexpr (std::is_signed_v<T> && !kFmod)
      if (r != 0 && (r < 0) != (b < 0)) return static_cast<T>(r + b);  // the divisor's sign, as Python has it
    return r;
  }
};
struct MaxOp {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct MinOp {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};
struct NegOp {
  template <class T>
  T operator()(T a, T) const {
    if constexpr (std::is_integral_v<T>)
      return ops::wrap_sub<T>(0, a);
    else
      return -a;
  }
};
struct AbsOp {
  template <class T>
  T operator()(T a, T) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::fabs(a);
    else if constexpr (std::is_signed_v<T>)
      return a < 0 ? ops::wrap_sub<T>(0, a) : a;
    else
      return a;
  }
};
struct SignOp {
  template <class T>
  T operator()(T a, T) const {
    if constexpr (std::is_floating_point_v<T>)
      if (a != a) return a;
    return static_cast<T>((a > 0) - (a < T{0}));
  }
};

struct EqualOp {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a == b;
  }
};
struct LessOp {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqualOp {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a <= b;
  }
};
struct GreaterOp {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterOrEqualOp {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a >= b;
  }
};
struct IsNaNOp {
  template <class T>
  uint8_t operator()(T a, T) const {
    return a != a;
  }
};
struct AndOp {
  uint8_t operator()(uint8_t a, uint8_t b) const { return static_cast<uint8_t>((a != 0) & (b != 0)); }
};
struct OrOp {
  uint8_t operator()(uint8_t a, uint8_t b) const { return static_cast<uint8_t>((a != 0) | (b != 0)); }
};
struct XorOp {
  uint8_t operator()(uint8_t a, uint8_t b) const { return static_cast<uint8_t>((a != 0) != (b != 0)); }
};
struct NotOp {
  uint8_t operator()(uint8_t a, uint8_t) const { return a == 0; }
};

// --- rows ---

/// n elements; sources advance by sa and sb. dst may be a source that advances by 1.
using RowFn = void (*)(const void* a, int64_t sa, const void* b, int64_t sb, void* dst, int64_t n);

/// Blocks of constant length without aliases are what the compiler makes vectors of.
template <class T, class Out, class GetA, class GetB>
void fill_row(Out* dst, int64_t n, auto fn, GetA a, GetB b) {
  constexpr int64_t kBlock = 64;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    Out y[kBlock];
    for (int64_t j = 0; j < kBlock; ++j) y[j] = fn(a(i + j), b(i + j));
    std::memcpy(dst + i, y, sizeof y);
  }
  for (; i < n; ++i) dst[i] = fn(a(i), b(i));
}

template <class F, class T, class Out>
void row(const void* pa, int64_t sa, const void* pb, int64_t sb, void* pd, int64_t n) {
  const T* a = static_cast<const T*>(pa);
  const T* b = static_cast<const T*>(pb);
  Out* dst = static_cast<Out*>(pd);
  const F fn;
  if (sa == 1 && sb == 1) {
    fill_row<T>(
        dst, n, fn, [a](int64_t i) { return a[i]; }, [b](int64_t i) { return b[i]; });
  } else if (sa == 1 && sb == 0) {
    fill_row<T>(
        dst, n, fn, [a](int64_t i) { return a[i]; }, [v = *b](int64_t) { return v; });
  } else if (sa == 0 && sb == 1) {
    fill_row<T>(
        dst, n, fn, [v = *a](int64_t) { return v; }, [b](int64_t i) { return b[i]; });
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = fn(a[i * sa], b[i * sb]);
  }
}

/// Element type in, same out.
template <class F, bool kFloats = true>
RowFn numbers(DType t) {
  switch (t) {
    case DType::kI8: return row<F, int8_t, int8_t>;
    case DType::kU8: return row<F, uint8_t, uint8_t>;
    case DType::kI32: return row<F, int32_t, int32_t>;
    case DType::kI64: return row<F, int64_t, int64_t>;
    case DType::kF32:
      if constexpr (kFloats) return row<F, float, float>;
      return nullptr;
    case DType::kF64:
      if constexpr (kFloats) return row<F, double, double>;
      return nullptr;
    default: return nullptr;
  }
}

template <class F>
RowFn compares(DType t) {
  switch (t) {
    case DType::kI8: return row<F, int8_t, uint8_t>;
    case DType::kU8: return row<F, uint8_t, uint8_t>;
    case DType::kI32: return row<F, int32_t, uint8_t>;
    case DType::kI64: return row<F, int64_t, uint8_t>;
    case DType::kF32: return row<F, float, uint8_t>;
    case DType::kF64: return row<F, double, uint8_t>;
    case DType::kBool: return row<F, uint8_t, uint8_t>;
    default: return nullptr;
  }
}

template <class F>
RowFn logic(DType t) {
  return t == DType::kBool ? row<F, uint8_t, uint8_t> : nullptr;
}

RowFn is_nan(DType t) {
  return t == DType::kF32   ? row<IsNaNOp, float, uint8_t>
         : t == DType::kF64 ? row<IsNaNOp, double, uint8_t>
                            : nullptr;
}

enum class Form : uint8_t { kUnary, kBinary, kVariadic };

struct Entry {
  std::string_view op;
  Form form;
  bool gives_bool;
  RowFn (*pick)(DType);
};
constexpr Entry kEntries[] = {
    {"Add", Form::kBinary, false, numbers<AddOp>},
    {"Sub", Form::kBinary, false, numbers<SubOp>},
    {"Mul", Form::kBinary, false, numbers<MulOp>},
    {"Div", Form::kBinary, false, numbers<DivOp>},
    {"Max", Form::kVariadic, false, numbers<MaxOp>},
    {"Min", Form::kVariadic, false, numbers<MinOp>},
    {"Neg", Form::kUnary, false, numbers<NegOp>},
    {"Abs", Form::kUnary, false, numbers<AbsOp>},
    {"Sign", Form::kUnary, false, numbers<SignOp>},
    {"Equal", Form::kBinary, true, compares<EqualOp>},
    {"Less", Form::kBinary, true, compares<LessOp>},
    {"LessOrEqual", Form::kBinary, true, compares<LessOrEqualOp>},
    {"Greater", Form::kBinary, true, compares<GreaterOp>},
    {"GreaterOrEqual", Form::kBinary, true, compares<GreaterOrEqualOp>},
    {"IsNaN", Form::kUnary, true, is_nan},
    {"And", Form::kBinary, true, logic<AndOp>},
    {"Or", Form::kBinary, true, logic<OrOp>},
    {"Xor", Form::kBinary, true, logic<XorOp>},
    {"Not", Form::kUnary, true, logic<NotOp>},
};
constexpr Entry kMod = {"Mod", Form::kBinary, false, numbers<ModOp<false>, false>};
constexpr Entry kFmod = {"Mod", Form::kBinary, false, numbers<ModOp<true>, false>};

const Entry* find_entry(const Problem& p) {
  if (p.op == "Mod") return ir::attr_int(p.attrs, "fmod", 0) != 0 ? &kFmod : &kMod;
  for (const Entry& e : kEntries)
    if (p.op == e.op) return &e;
  return nullptr;
}

class ElementwisePrepared final : public Prepared {
 public:
  explicit ElementwisePrepared(const Problem& p)
      : row_(find_entry(p)->pick(p.srcs[0].dtype)),
        in_(dtype_bits(p.srcs[0].dtype) / 8),
        out_(dtype_bits(p.dsts[0].dtype) / 8),
        single_(p.srcs.size() == 1) {
    if (single_) loops_.emplace_back(p.dsts[0], std::array{&p.srcs[0], &p.srcs[0]});
    for (size_t i = 1; i < p.srcs.size(); ++i)
      loops_.emplace_back(p.dsts[0], std::array{i == 1 ? &p.srcs[0] : &p.dsts[0], &p.srcs[i]});
  }

  /// y = f(x0, x1), then y = f(y, xi): in the order of the sources.
  void run(const RunArgs& args) const override {
    for (size_t i = 0; i < loops_.size(); ++i) {
      const StridedLoop<2>& loop = loops_[i];
      auto* dst = static_cast<char*>(args.dsts[0]);
      const auto* a = static_cast<const char*>(i == 0 ? args.srcs[0] : args.dsts[0]);
      const auto* b = static_cast<const char*>(args.srcs[single_ ? 0 : i + 1]);
      loop.run(args, [&](int64_t at, const std::array<int64_t, 2>& off, int64_t n) {
        row_(a + off[0] * in_, loop.step(0), b + off[1] * in_, loop.step(1), dst + at * out_, n);
      });
    }
  }

 private:
  RowFn row_;
  int in_, out_;
  bool single_;  ///< of one source, which stands in for the second
  std::vector<StridedLoop<2>> loops_;
};

class Elementwise final : public CpuTactic {
 public:
  explicit Elementwise(Isa isa) : CpuTactic("elementwise_any_rows", isa, Numerics::kExact) {}

  /// The result lies as the largest of its sources does; broadcast sources are read as they lie.
  void choose_layouts(Problem& p) const override {
    const Shape& dims = p.dsts[0].dims;
    const Operand* lead = nullptr;
    for (const Operand& o : p.srcs)
      if (o.present() && !o.constant && o.dims.size() == dims.size() &&
          (lead == nullptr || numel(o.dims) > numel(lead->dims)))
        lead = &o;
    const Layout layout = lead != nullptr && dims.size() >= 3 ? lead->layout : Layout::kPlain;
    for (Operand& o : p.srcs)
      if (o.constant)
        o.layout = Layout::kPlain;
      else if (o.dims == dims)
        o.layout = layout;
    p.dsts[0].layout = layout;
  }

  Support supports(const Problem& p) const override {
    const Entry* e = find_entry(p);
    if (e == nullptr) return Support::no("operator: not elementwise");
    if (!p.post.empty()) return Support::no("post-op: none here");
    const size_t n = p.srcs.size();
    if (p.dsts.size() != 1 || (e->form == Form::kUnary && n != 1) || (e->form == Form::kBinary && n != 2) ||
        n == 0)
      return Support::no("sources: wrong number");
    if (e->form == Form::kVariadic && n == 1) return Support::no("sources: one alone is a copy");
    for (size_t i = 0; i < n; ++i) {
      if (!p.srcs[i].present()) return Support::no("sources: one is absent");
      if (p.srcs[i].dtype != p.srcs[0].dtype) return Support::no("dtype: sources differ");
      if (!pw_strides(p.srcs[i], p.dsts[0].dims))
        return Support::no("shape: source " + std::to_string(i) + " does not broadcast to the result");
    }
    if (p.dsts[0].dtype != (e->gives_bool ? DType::kBool : p.srcs[0].dtype))
      return Support::no("dtype: of the result");
    if (e->pick(p.srcs[0].dtype) == nullptr)
      return Support::no(std::string("dtype: ") + dtype_name(p.srcs[0].dtype));
    return Support::yes();
  }

  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<ElementwisePrepared>(p);
  }

  /// Later sources of Min and Max are read after the result was written.
  bool in_place(const Problem& p, size_t src) const override {
    const Operand &x = p.srcs[src], &y = p.dsts[0];
    return src < 2 && x.dims == y.dims && x.layout == y.layout && dtype_bits(x.dtype) == dtype_bits(y.dtype);
  }
};

}  // namespace

/// Code without instruction-set levels of its own: one row, for every machine.
std::unique_ptr<Tactic> make_elementwise(Isa isa) {
  return isa == Isa::kPortable ? std::make_unique<Elementwise>(isa) : nullptr;
}

}  // namespace hone::backends::cpu
