// Cast CastLike BitCast Identity. Source: ONNX, opsets up to 28.
//
// Rules of a conversion: float to integer truncates toward zero and saturates, NaN gives 0, except that 2-
// and 4-bit integers keep the low bits of the truncated number (the ONNX text leaves both open, node tests
// settle the latter); integer to narrower integer keeps the low bits; to a narrow float rounds once, to
// nearest even; to f8 overflow follows `saturate`; to f8e8m0 the rounding follows `round_mode`; f4e2m1
// saturates and gives -0 for NaN, as the node tests have it; to bool is != 0.
#include <cstring>
#include <type_traits>

#include "base/float16.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

Tensor to_f4(const Tensor& x) {
  Tensor bytes(DType::kU8, x.shape());
  for (int64_t i = 0, n = x.numel(); i < n; ++i) {
    const double v = x.at(i);
    bytes.data<uint8_t>()[i] = v == v ? to_f4e2m1(v) : uint8_t{8};
  }
  return pack_subbyte(bytes, DType::kF4E2M1);
}

template <class From, class To>
To cast_element(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return to_integer<To>(static_cast<double>(v));
  } else {
    return static_cast<To>(v);  // integers keep the low bits
  }
}

/// The same rules as convert(), without a dispatch an element, between numbers of 8 bits and more; false for
/// other types.
bool cast_numbers(KernelContext& ctx, const Tensor& x, DType to) {
  const DType from = x.dtype() == DType::kBool ? DType::kU8 : x.dtype();
  bool done = false;
  dispatch_number(from, [&](auto from_tag) {
    using From = typename decltype(from_tag)::type;
    const From* src = x.data<From>();
    const int64_t n = x.numel();
    if (to == DType::kBool) {
      auto* dst = ctx.out(0, to, x.shape()).template data<uint8_t>();
      for (int64_t i = 0; i < n; ++i) dst[i] = src[i] != From{0} ? 1 : 0;
      done = true;
      return;
    }
    done = dispatch_number(to, [&](auto to_tag) {
      using To = typename decltype(to_tag)::type;
      To* dst = ctx.out(0, to, x.shape()).template data<To>();
      for (int64_t i = 0; i < n; ++i) dst[i] = cast_element<From, To>(src[i]);
    });
  });
  return done;
}

/// Conversions whose result depends on the attributes; everything else is convert().
void cast_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const DType to = ctx.out_dtypes[0];
  const bool saturate = ctx.get_int("saturate", 1) != 0;
  const std::string mode = ctx.get_string("round_mode", "up");
  uint8_t (*encode)(double, bool) = nullptr;
  switch (to) {
    case DType::kF8E4M3FN: encode = to_f8e4m3fn; break;
    case DType::kF8E4M3FNUZ: encode = to_f8e4m3fnuz; break;
    case DType::kF8E5M2: encode = to_f8e5m2; break;
    case DType::kF8E5M2FNUZ: encode = to_f8e5m2fnuz; break;
    case DType::kF8E8M0:
      if (mode != "up" && mode != "down" && mode != "nearest")
        ctx.fail("round_mode must be up, down or nearest, not '" + mode + "'");
      encode = mode == "up"     ? +[](double v, bool s) { return to_f8e8m0(v, E8M0Round::kUp, s); }
               : mode == "down" ? +[](double v, bool s) { return to_f8e8m0(v, E8M0Round::kDown, s); }
                                : +[](double v, bool s) { return to_f8e8m0(v, E8M0Round::kNearest, s); };
      break;
    default: break;
  }
  if (x.dtype() == DType::kString || to == DType::kString) unsupported_type(ctx, DType::kString);
  if (encode == nullptr || x.dtype() == to) {
    if (is_integer(to) && dtype_bits(to) < 8 && is_float(x.dtype())) {
      ctx.set_out(0, convert(convert(x, DType::kI64), to));
    } else if (to == DType::kF4E2M1 && is_float(x.dtype()) && x.dtype() != to) {
      ctx.set_out(0, to_f4(x));
    } else if (x.dtype() == to || !cast_numbers(ctx, x, to)) {
      ctx.set_out(0, convert(x, to));
    }
    return;
  }
  Tensor& y = ctx.out(0, to, x.shape());
  auto* dst = y.data<uint8_t>();
  for (int64_t i = 0, n = x.numel(); i < n; ++i) dst[i] = encode(x.at(i), saturate);
}

/// Integer contents survive a cast between integer types and from bool; to bool they become 0 and 1 where
/// that can be said.
void keep_contents(InferContext& ctx, DType to) {
  if (!follows_contents(to)) return;
  auto known = known_contents(ctx, 0);
  if (!known) return;
  for (Dim& d : *known) {
    if (to == DType::kBool) {
      const auto zero = decide_equal(d, Dim(0));
      if (!zero) return;
      d = *zero ? 0 : 1;
    } else if (to == DType::kI32 && d.is_const() && (d.value() < INT32_MIN || d.value() > INT32_MAX)) {
      return;
    }
  }
  ctx.set_contents(0, std::move(*known));
}

void cast_infer(InferContext& ctx) {
  if (!ctx.node().has("to")) ctx.fail("attribute 'to' is missing");
  const DType to = checked_dtype(ctx, ctx.node().get_int("to", 0));
  ctx.set_output(0, to, ctx.input(0).shape);
  keep_contents(ctx, to);
}

/// Cast-1 spelled the type as a string.
void cast_adapt(AdaptContext& ctx) {
  if (ctx.since >= 6) return;
  const auto it = ctx.node.attrs.find("to");
  if (it == ctx.node.attrs.end() || !std::holds_alternative<std::string>(it->second)) return;
  static constexpr const char* kNames[] = {
      "UNDEFINED", "FLOAT", "UINT8",   "INT8",   "UINT16", "INT16",  "INT32",     "INT64",
      "STRING",    "BOOL",  "FLOAT16", "DOUBLE", "UINT32", "UINT64", "COMPLEX64", "COMPLEX128"};
  const std::string name = std::get<std::string>(it->second);
  for (int64_t i = 1; i < static_cast<int64_t>(std::size(kNames)); ++i) {
    if (name == kNames[i]) {
      it->second = i;
      return;
    }
  }
  ctx.fail("attribute to = '" + name + "' names no element type");
}

void cast_like_infer(InferContext& ctx) {
  ctx.set_output(0, ctx.dtype(1), ctx.input(0).shape);
  keep_contents(ctx, ctx.dtype(1));
}

void bitcast_infer(InferContext& ctx) {
  const DType t = checked_dtype(ctx, ctx.node().get_int("to", 0));
  if (ctx.dtype(0) != DType::kUndefined && dtype_bits(ctx.dtype(0)) != dtype_bits(t)) {
    ctx.fail(std::string("elements of ") + dtype_name(ctx.dtype(0)) + " and " + dtype_name(t) +
             " differ in width");
  }
  ctx.set_output(0, t, ctx.input(0).shape);
}

/// In the oracle a float arrives as f64 whatever its declared type; the bits asked for are those of the type
/// of the other side's width.
void bitcast_kernel(KernelContext& ctx) {
  Tensor x = ctx.in(0);
  DType to = static_cast<DType>(ctx.get_int("to", 0));
  if (ctx.oracle && is_float(x.dtype()) && dtype_bits(to) != 64) {
    if (dtype_bits(to) != 32) ctx.fail("the oracle knows the bits of f32 and f64 only");
    x = convert(x, DType::kF32);
  }
  if (dtype_bits(x.dtype()) != dtype_bits(to)) ctx.fail("element widths differ");
  if (x.nbytes() == 0) {
    ctx.out(0, x.shape());
    return;
  }
  Tensor bits(to, x.shape());
  std::memcpy(bits.raw(), x.raw(), static_cast<size_t>(x.nbytes()));
  ctx.set_out(0, convert(bits, ctx.out_dtypes[0]));
}

void identity_infer(InferContext& ctx) {
  infer_same(ctx);
  if (auto known = known_contents(ctx, 0)) ctx.set_contents(0, std::move(*known));
}

}  // namespace

const OpDef& op_Cast() {
  static const OpDef def{.name = "Cast",
                         .infer = cast_infer,
                         .kernel = cast_kernel,
                         .adapt = cast_adapt,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative,
                         .elementwise = true};
  return def;
}

const OpDef& op_CastLike() {
  static const OpDef def{.name = "CastLike",
                         .infer = cast_like_infer,
                         .kernel = cast_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_BitCast() {
  static const OpDef def{.name = "BitCast",
                         .infer = bitcast_infer,
                         .kernel = bitcast_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

const OpDef& op_Identity() {
  static const OpDef def{.name = "Identity",
                         .infer = identity_infer,
                         .kernel = [](KernelContext& ctx) { ctx.set_out(0, ctx.in(0)); },
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative,
                         .elementwise = true};
  return def;
}

}  // namespace hone::ops
