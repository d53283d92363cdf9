// Indices at run time: i32 or i64, each checked before it is used.
#pragma once

#include <cstdint>
#include <string>

#include "backends/tactic.h"
#include "hone/error.h"

namespace hone::backends::cpu {

class IndexReader {
 public:
  IndexReader(const void* data, bool wide, const std::string& op) : data_(data), wide_(wide), op_(op) {}

  /// Element i of the indices, in [-extent, extent), made non-negative. Errors: kInvalidData with the
  /// position.
  int64_t at(int64_t i, int64_t extent) const {
    const int64_t v = wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
    if (v < -extent || v >= extent) refuse(v, i, extent);
    return v < 0 ? v + extent : v;
  }

  static bool readable(DType t) { return t == DType::kI64 || t == DType::kI32; }

 private:
  [[noreturn]] void refuse(int64_t v, int64_t i, int64_t extent) const {
    throw Error(ErrorCode::kInvalidData, op_ + ": index " + std::to_string(v) + " (element " +
                                             std::to_string(i) + " of the indices) is outside [" +
                                             std::to_string(-extent) + ", " + std::to_string(extent - 1) +
                                             "]");
  }

  const void* data_;
  bool wide_;
  const std::string& op_;
};

/// What gathers and scatters ask of their operands: elements of whole bytes, plain layouts, nothing behind
/// them.
inline Support index_supports(const Problem& p, size_t num_srcs) {
  if (p.srcs.size() != num_srcs || p.dsts.size() != 1) return Support::no("sources: wrong number");
  for (const Operand& o : p.srcs) {
    if (!o.present()) return Support::no("sources: one is absent");
    if (!ops::same_order(o.layout, Layout::kPlain, o.dims)) return Support::no("layout: plain only");
  }
  if (!ops::same_order(p.dsts[0].layout, Layout::kPlain, p.dsts[0].dims))
    return Support::no("layout: plain only");
  if (!p.post.empty()) return Support::no("post-op: bytes are moved, not computed with");
  const int bits = dtype_bits(p.dsts[0].dtype);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
    return Support::no("dtype: elements of 1, 2, 4 or 8 bytes");
  if (p.srcs[0].dtype != p.dsts[0].dtype || (num_srcs > 2 && p.srcs[2].dtype != p.dsts[0].dtype))
    return Support::no("dtype: data, updates and result differ");
  if (!IndexReader::readable(p.srcs[1].dtype)) return Support::no("dtype: indices are neither i32 nor i64");
  if (p.srcs[0].dims.empty() || p.srcs[1].dims.empty())
    return Support::no("rank: data and indices are no scalars");
  return Support::yes();
}

/// Product of dims[from, to).
inline int64_t product(const Shape& dims, size_t from, size_t to) {
  int64_t n = 1;
  for (size_t d = from; d < to; ++d) n *= dims[d];
  return n;
}

}  // namespace hone::backends::cpu
