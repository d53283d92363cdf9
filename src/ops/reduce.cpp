// ReduceSum, -Mean, -Max, -Min, -Prod, -L1, -L2, -LogSum, -LogSumExp, -SumSquare.
// Math: floats accumulate in f64 in row-major order of the reduced dimensions. Integers wrap; the mean of
// integers is truncated. Empty sets: sum, norms 0; product 1; max and min the type's lowest and highest
// (-inf, inf); logs -inf; mean NaN. NaN makes ReduceMax and ReduceMin NaN, as it does Max and Min. Axes are
// an input since 18 (ReduceSum: 13), an attribute before.
#include <cmath>
#include <limits>

#include "ops/axis_view.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

enum class Kind { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };

struct Row {
  const char* name;
  Kind kind;
};
constexpr Row kRows[] = {{"ReduceSum", Kind::kSum},
                         {"ReduceMean", Kind::kMean},
                         {"ReduceMax", Kind::kMax},
                         {"ReduceMin", Kind::kMin},
                         {"ReduceProd", Kind::kProd},
                         {"ReduceL1", Kind::kL1},
                         {"ReduceL2", Kind::kL2},
                         {"ReduceLogSum", Kind::kLogSum},
                         {"ReduceLogSumExp", Kind::kLogSumExp},
                         {"ReduceSumSquare", Kind::kSumSquare}};

// --- inference ---

/// Which dimensions go; nullopt when the axes are not known.
std::optional<std::vector<bool>> reduced_dims(const InferContext& ctx, int rank) {
  const bool noop = ctx.node().get_int("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> axes;
  if (ctx.has_input(1)) {
    const auto known = ctx.const_ints(1);
    if (!known) return std::nullopt;
    axes = *known;
  }
  if (axes.empty()) return std::vector<bool>(static_cast<size_t>(rank), !noop);
  std::vector<bool> out(static_cast<size_t>(rank), false);
  for (const int a : ctx.axes(axes, rank)) out[static_cast<size_t>(a)] = true;
  return out;
}

/// Contents of a 1-D integer tensor reduced to one value: shape arithmetic such as the product of a shape.
void fold_contents(InferContext& ctx, const std::vector<bool>& reduced) {
  const auto contents = ctx.contents(0);
  if (!contents || !follows_contents(ctx.dtype(0)) || reduced.size() != 1 || !reduced[0]) return;
  const std::string& op = ctx.node().op;
  if (op != "ReduceSum" && op != "ReduceProd" && op != "ReduceMax" && op != "ReduceMin") return;
  if (contents->empty() && op != "ReduceSum" && op != "ReduceProd") return;
  Dim value = op == "ReduceProd" ? Dim(1) : op == "ReduceSum" ? Dim(0) : contents->front();
  for (const Dim& d : *contents) {
    value = op == "ReduceProd"  ? value * d
            : op == "ReduceSum" ? value + d
            : op == "ReduceMax" ? Dim::max(value, d)
                                : Dim::min(value, d);
  }
  ctx.set_contents(0, {value});
}

void infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) return ctx.set_output(0, ctx.dtype(0), std::nullopt);
  const Dims& x = ctx.shape(0);
  const bool keep = ctx.node().get_int("keepdims", 1) != 0;
  const auto reduced = reduced_dims(ctx, static_cast<int>(x.size()));
  if (!reduced) {
    if (keep) return ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, x.size()));
    const auto count = vector_length(ctx, 1);
    if (!count || *count == 0 || *count > static_cast<int64_t>(x.size()))
      return ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, x.size() - static_cast<size_t>(*count)));
  }
  Dims out;
  for (size_t d = 0; d < x.size(); ++d) {
    if (!(*reduced)[d])
      out.push_back(x[d]);
    else if (keep)
      out.emplace_back(1);
  }
  ctx.set_output(0, ctx.dtype(0), out);
  fold_contents(ctx, *reduced);
}

// --- kernel ---

template <class T>
double reduce_float(Kind kind, const T* x, const ReduceView& v) {
  const int64_t n = v.count();
  const auto at = [&](int64_t j) { return static_cast<double>(x[v.offset(j)]); };
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double acc = 0;
  switch (kind) {
    case Kind::kSum:
    case Kind::kMean:
    case Kind::kLogSum:
      for (int64_t j = 0; j < n; ++j) acc += at(j);
      return kind == Kind::kSum ? acc : kind == Kind::kMean ? acc / static_cast<double>(n) : std::log(acc);
    case Kind::kProd:
      acc = 1;
      for (int64_t j = 0; j < n; ++j) acc *= at(j);
      return acc;
    case Kind::kL1:
      for (int64_t j = 0; j < n; ++j) acc += std::fabs(at(j));
      return acc;
    case Kind::kL2:
    case Kind::kSumSquare:
      for (int64_t j = 0; j < n; ++j) acc += at(j) * at(j);
      return kind == Kind::kL2 ? std::sqrt(acc) : acc;
    case Kind::kMax:
    case Kind::kMin: {
      const double sign = kind == Kind::kMax ? 1 : -1;
      double best = -kInf;
      for (int64_t j = 0; j < n; ++j) {
        const double e = sign * at(j);
        if (e != e) return e;
        if (e > best) best = e;
      }
      return sign * best;
    }
    case Kind::kLogSumExp: {
      double max = -kInf;
      for (int64_t j = 0; j < n; ++j) {
        if (at(j) != at(j)) return at(j);
        if (at(j) > max) max = at(j);
      }
      if (max == kInf || max == -kInf) return max;  // exp(inf - inf) would be NaN
      for (int64_t j = 0; j < n; ++j) acc += std::exp(at(j) - max);
      return max + std::log(acc);
    }
  }
  return acc;
}

template <class T>
T reduce_integer(Kind kind, const T* x, const ReduceView& v) {
  const int64_t n = v.count();
  T acc = kind == Kind::kProd  ? T{1}
          : kind == Kind::kMax ? std::numeric_limits<T>::min()
          : kind == Kind::kMin ? std::numeric_limits<T>::max()
                               : T{0};
  double wide = 0;
  for (int64_t j = 0; j < n; ++j) {
    const T e = x[v.offset(j)];
    switch (kind) {
      case Kind::kSum: acc = wrap_add<T>(acc, e); break;
      case Kind::kProd: acc = wrap_mul<T>(acc, e); break;
      case Kind::kMax: acc = e > acc ? e : acc; break;
      case Kind::kMin: acc = e < acc ? e : acc; break;
      case Kind::kL1: acc = wrap_add<T>(acc, e < T{0} ? wrap_sub<T>(T{0}, e) : e); break;
      case Kind::kSumSquare: acc = wrap_add<T>(acc, wrap_mul<T>(e, e)); break;
      case Kind::kL2: wide += static_cast<double>(e) * static_cast<double>(e); break;
      case Kind::kMean:
      case Kind::kLogSum: wide += static_cast<double>(e); break;
      case Kind::kLogSumExp: wide += std::exp(static_cast<double>(e)); break;
    }
  }
  switch (kind) {
    case Kind::kL2: return to_integer<T>(std::sqrt(wide));
    case Kind::kMean: return to_integer<T>(wide / static_cast<double>(n));
    case Kind::kLogSum:
    case Kind::kLogSumExp: return to_integer<T>(std::log(wide));
    default: return acc;
  }
}

void run(KernelContext& ctx, Kind kind) {
  const Tensor& x = ctx.in(0);
  const bool keep = ctx.get_int("keepdims", 1) != 0, noop = ctx.get_int("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> axes;
  if (ctx.has_input(1)) axes = ctx.in(1).to_i64();
  std::vector<bool> reduced(x.shape().size(), axes.empty() && !noop);
  for (const int64_t a : axes) {
    const auto d = static_cast<size_t>(ctx.axis(a, x.rank()));
    if (reduced[d]) ctx.fail("axes name dimension " + std::to_string(d) + " twice");
    reduced[d] = true;
  }
  Shape shape;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (!reduced[d])
      shape.push_back(x.shape()[d]);
    else if (keep)
      shape.push_back(1);
  }
  Tensor& out = ctx.out(0, shape);
  const ReduceView v(x.shape(), reduced);
  const double work = static_cast<double>(v.count());
  if (dispatch_float(x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        ref_parallel(v.outputs(), work, [&](int64_t i) {
          out.data<T>()[i] = static_cast<T>(reduce_float(kind, x.data<T>() + v.base(i), v));
        });
      })) {
    return;
  }
  if (x.dtype() == DType::kBool) {  // false < true: max is or, min is and
    if (kind != Kind::kMax && kind != Kind::kMin) unsupported_type(ctx, x.dtype());
    for (int64_t i = 0; i < v.outputs(); ++i) {
      bool acc = kind == Kind::kMin;
      for (int64_t j = 0; j < v.count(); ++j) {
        const bool e = x.data<uint8_t>()[v.base(i) + v.offset(j)] != 0;
        acc = kind == Kind::kMin ? acc && e : acc || e;
      }
      out.data<uint8_t>()[i] = acc ? 1 : 0;
    }
    return;
  }
  integer_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ref_parallel(v.outputs(), work,
                 [&](int64_t i) { out.data<T>()[i] = reduce_integer(kind, x.data<T>() + v.base(i), v); });
  });
}

template <Kind kKind>
void kernel(KernelContext& ctx) {
  run(ctx, kKind);
}

void adapt(AdaptContext& ctx) {
  const int with_input = ctx.node.op == "ReduceSum" ? 13 : 18;
  if (ctx.since >= with_input) return;
  const std::vector<int64_t> axes = ctx.node.get_ints("axes");
  ctx.node.attrs.erase("axes");
  if (!axes.empty()) ctx.graph.append_input(&ctx.node, ctx.ints("axes", axes));
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (!inputs.empty()) c.flops = static_cast<double>(numel(inputs[0]));
  return c;
}

OpDef make(Kind kind, void (*run_kernel)(KernelContext&)) {
  OpDef d;
  d.name = kRows[static_cast<size_t>(kind)].name;
  d.infer = infer;
  d.kernel = run_kernel;
  d.adapt = adapt;
  d.cost = cost;
  return d;
}

}  // namespace

#define HONE_REDUCE(Name, kKind)                         \
  const OpDef& op_##Name() {                             \
    static const OpDef def = make(kKind, kernel<kKind>); \
    return def;                                          \
  }
HONE_REDUCE(ReduceSum, Kind::kSum)
HONE_REDUCE(ReduceMean, Kind::kMean)
HONE_REDUCE(ReduceMax, Kind::kMax)
HONE_REDUCE(ReduceMin, Kind::kMin)
HONE_REDUCE(ReduceProd, Kind::kProd)
HONE_REDUCE(ReduceL1, Kind::kL1)
HONE_REDUCE(ReduceL2, Kind::kL2)
HONE_REDUCE(ReduceLogSum, Kind::kLogSum)
HONE_REDUCE(ReduceLogSumExp, Kind::kLogSumExp)
HONE_REDUCE(ReduceSumSquare, Kind::kSumSquare)
#undef HONE_REDUCE

}  // namespace hone::ops
