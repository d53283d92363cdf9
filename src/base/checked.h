// Checked 64-bit arithmetic: what every size, offset and shape formula uses.
#pragma once

#include <cstdint>
#include <limits>

#include "hone/error.h"

namespace hone {

/// True when the exact result fits; then *out holds it.
inline bool try_add(int64_t a, int64_t b, int64_t* out) { return !__builtin_add_overflow(a, b, out); }
inline bool try_sub(int64_t a, int64_t b, int64_t* out) { return !__builtin_sub_overflow(a, b, out); }
inline bool try_mul(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }

/// Errors: kInvalidModel when the exact result does not fit in 64 bits.
inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r = 0;
  if (!try_add(a, b, &r)) throw Error(ErrorCode::kInvalidModel, "64-bit overflow in an addition");
  return r;
}
inline int64_t checked_sub(int64_t a, int64_t b) {
  int64_t r = 0;
  if (!try_sub(a, b, &r)) throw Error(ErrorCode::kInvalidModel, "64-bit overflow in a subtraction");
  return r;
}
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r = 0;
  if (!try_mul(a, b, &r)) throw Error(ErrorCode::kInvalidModel, "64-bit overflow in a product");
  return r;
}

/// Floor of the exact quotient. Errors: kInvalidModel for division by zero and INT64_MIN / -1.
inline int64_t checked_floordiv(int64_t a, int64_t b) {
  if (b == 0) throw Error(ErrorCode::kInvalidModel, "division by zero");
  if (b == -1) return checked_sub(0, a);
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
inline int64_t checked_ceildiv(int64_t a, int64_t b) {
  if (b == 0) throw Error(ErrorCode::kInvalidModel, "division by zero");
  if (b == -1) return checked_sub(0, a);
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) == (b < 0))) ? q + 1 : q;
}

}  // namespace hone
