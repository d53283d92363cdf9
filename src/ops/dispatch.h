// From a dtype to the C++ type that holds it in a kernel.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "ops/op.h"

namespace hone::ops {

template <class T>
struct Tag {
  using type = T;
};

/// Calls fn(Tag<T>) for f32 and f64; false for any other dtype. Narrow floats never reach a kernel that
/// widens.
template <class F>
bool dispatch_float(DType t, F&& fn) {
  switch (t) {
    case DType::kF32: fn(Tag<float>{}); return true;
    case DType::kF64: fn(Tag<double>{}); return true;
    default: return false;
  }
}

/// Calls fn(Tag<T>) for integers of 8 to 64 bits.
template <class F>
bool dispatch_integer(DType t, F&& fn) {
  switch (t) {
    case DType::kU8: fn(Tag<uint8_t>{}); return true;
    case DType::kI8: fn(Tag<int8_t>{}); return true;
    case DType::kU16: fn(Tag<uint16_t>{}); return true;
    case DType::kI16: fn(Tag<int16_t>{}); return true;
    case DType::kU32: fn(Tag<uint32_t>{}); return true;
    case DType::kI32: fn(Tag<int32_t>{}); return true;
    case DType::kU64: fn(Tag<uint64_t>{}); return true;
    case DType::kI64: fn(Tag<int64_t>{}); return true;
    default: return false;
  }
}

template <class F>
bool dispatch_number(DType t, F&& fn) {
  return dispatch_float(t, fn) || dispatch_integer(t, fn);
}

/// Throws kUnsupported: the kernel has no code for this element type.
[[noreturn]] void unsupported_type(const KernelContext& ctx, DType t);

/// Numbers, or unsupported_type.
template <class F>
void number_or_throw(const KernelContext& ctx, DType t, F&& fn) {
  if (!dispatch_number(t, fn)) unsupported_type(ctx, t);
}
template <class F>
void float_or_throw(const KernelContext& ctx, DType t, F&& fn) {
  if (!dispatch_float(t, fn)) unsupported_type(ctx, t);
}
template <class F>
void integer_or_throw(const KernelContext& ctx, DType t, F&& fn) {
  if (!dispatch_integer(t, fn)) unsupported_type(ctx, t);
}

/// Two's-complement arithmetic for integers, the plain operator for floats: overflow wraps instead of being
/// undefined.
template <class T>
T wrap_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}
template <class T>
T wrap_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else {
    return a - b;
  }
}
template <class T>
T wrap_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

/// Float to integer: truncates toward zero, out-of-range values saturate, NaN gives 0. The one rule of the
/// project.
template <class To>
To to_integer(double x) {
  static_assert(std::is_integral_v<To>);
  if (!(x == x)) return 0;
  constexpr double kLow = static_cast<double>(std::numeric_limits<To>::min());
  constexpr double kHigh =
      static_cast<double>(std::numeric_limits<To>::max());  // 2^63 and 2^64 when rounded up
  if (x <= kLow) return std::numeric_limits<To>::min();
  if (x >= kHigh) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

/// A double as T: rounded for floats, to_integer for integers.
template <class T>
T from_double(double x) {
  if constexpr (std::is_integral_v<T>) {
    return to_integer<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

}  // namespace hone::ops
