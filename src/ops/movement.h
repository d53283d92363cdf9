// What data-movement kernels share: copies between strided views by element size, sub-byte types, size
// budgets.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op.h"

namespace hone::ops {

/// No operator makes a tensor above this from run-time data.
inline constexpr int64_t kMaxTensorBytes = int64_t{16} << 30;

/// Bytes of one element, 1 to 16. Errors: kUnsupported for strings. REQUIRES a dtype of at least 8 bits (see
/// run_unpacked).
int64_t element_bytes(const Tensor& t);

/// Copies an element block of `shape` between two views; strides count elements and may be negative or 0. The
/// views must not overlap.
void copy_strided(void* dst, const std::vector<int64_t>& dst_strides, const void* src,
                  const std::vector<int64_t>& src_strides, const Shape& shape, int64_t bytes);

/// Repeats one element `count` times.
void fill_elements(void* dst, const void* value, int64_t count, int64_t bytes);

/// Throws kOutOfMemory when a tensor of this shape would exceed kMaxTensorBytes or overflow; kInvalidData
/// when a dimension is negative.
void check_budget(const KernelContext& ctx, DType t, const Shape& shape);

/// True when an input has elements of less than a byte.
bool has_subbyte_input(const KernelContext& ctx);
/// One element a byte, the value zero-extended (kU8). Other dtypes come back as they are.
Tensor unpack_subbyte(const Tensor& t);
/// The inverse, keeping the low bits of every byte.
Tensor pack_subbyte(const Tensor& bytes, DType t);
/// Runs a kernel that moves bytes on unpacked copies of sub-byte inputs and packs those outputs whose
/// declared dtype is sub-byte.
void run_unpacked(KernelContext& ctx, void (*kernel)(KernelContext&));

/// Elements of a 1-D or scalar integer input.
std::vector<int64_t> input_ints(const KernelContext& ctx, size_t i);
/// An integer scalar input (one element), or the fallback when absent.
int64_t input_int(const KernelContext& ctx, size_t i, int64_t fallback);

}  // namespace hone::ops
