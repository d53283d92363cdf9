// What an f32 GEMM or convolution does to its result while the tile is still in registers or in L1: a short
// list of operations in the stated order. Plain data, so that a plan can hold it.
//
// Rows and columns. The result is a matrix: a row is an output pixel (or a row of a matrix product, batches
// stacked: row = batch * m + i), a column an output channel. Every operand says how it is addressed by (row,
// column).
#pragma once

#include <cstdint>
#include <vector>

#include "base/cpu.h"
#include "ops/problem.h"  // Act

namespace hone::cpu {

using ActKind = ops::Act;
/// False for the kinds without a vector form (sin, cos).
bool act_supported(ActKind act);

/// One value per (row, column), at
///   data[(row / rows_per_outer) * outer_stride + (row % rows_per_outer) * row_stride + column *
///   column_stride]
/// in elements; column_stride is 0 or 1. Helpers below make the usual ones.
struct EpilogueOperand {
  const float* data = nullptr;
  int64_t rows_per_outer = INT64_MAX;
  int64_t outer_stride = 0;
  int64_t row_stride = 0;
  int64_t column_stride = 1;

  /// One value per column (bias, scale): data[column].
  static EpilogueOperand per_column(const float* data) { return {data, INT64_MAX, 0, 0, 1}; }
  /// A full matrix: data[row * row_stride + column].
  static EpilogueOperand full(const float* data, int64_t row_stride) {
    return {data, INT64_MAX, 0, row_stride, 1};
  }
  /// One vector of columns per image of rows_per_outer rows (squeeze-excite): data[(row / rows_per_outer) *
  /// stride + column].
  static EpilogueOperand per_outer(const float* data, int64_t rows_per_outer, int64_t stride) {
    return {data, rows_per_outer, stride, 0, 1};
  }
  static EpilogueOperand scalar(const float* data) { return {data, INT64_MAX, 0, 0, 0}; }

  const float* at(int64_t row, int64_t column) const {
    const float* p = data + column * column_stride;
    if (outer_stride == 0 && rows_per_outer == INT64_MAX) return p + row * row_stride;
    return p + (row / rows_per_outer) * outer_stride + (row % rows_per_outer) * row_stride;
  }
};

/// Called with n values of one row, x[0] being column `column`; changes them in place. May be called from any
/// thread.
using EpilogueCallback = void (*)(const void* context, float* x, int64_t row, int64_t column, int64_t n);

struct EpilogueOp {
  enum class Kind : uint8_t {
    kAdd,       ///< x + operand
    kMul,       ///< x * operand
    kAct,       ///< activation
    kCallback,  ///< callback(context, ...)
  };
  Kind kind = Kind::kAct;
  ActKind act = ActKind::kIdentity;
  float alpha = 0;
  float beta = 0;
  EpilogueOperand operand;
  EpilogueCallback callback = nullptr;
  const void* context = nullptr;

  static EpilogueOp add(EpilogueOperand x) {
    return {Kind::kAdd, ActKind::kIdentity, 0, 0, x, nullptr, nullptr};
  }
  static EpilogueOp mul(EpilogueOperand x) {
    return {Kind::kMul, ActKind::kIdentity, 0, 0, x, nullptr, nullptr};
  }
  static EpilogueOp activation(ActKind act, float alpha = 0, float beta = 0) {
    return {Kind::kAct, act, alpha, beta, {}, nullptr, nullptr};
  }
  static EpilogueOp call(EpilogueCallback callback, const void* context) {
    return {Kind::kCallback, ActKind::kIdentity, 0, 0, {}, callback, context};
  }
};

/// The list as the kernels run it: a prefix of the form [bias] [full add] [relu or clip], each optional, is
/// done in registers, the rest in L1 after the tile is stored. A bias that leads the list starts the sum
/// instead of ending it.
struct Epilogue {
  const float* bias = nullptr;  ///< per column
  bool has_add = false;
  EpilogueOperand add;
  bool clamp = false;
  float lo = 0;
  float hi = 0;
  const EpilogueOp* rest = nullptr;
  int n_rest = 0;

  Epilogue() = default;
  /// Keeps a pointer into `ops`, which must outlive it.
  Epilogue(const EpilogueOp* ops, int n_ops);
  explicit Epilogue(const std::vector<EpilogueOp>& ops)
      : Epilogue(ops.data(), static_cast<int>(ops.size())) {}
};

/// Applies ops in order to a tile of n_rows x n values from column `column` on: x[r] points to column 0 of
/// row rows[r].
using EpilogueTileFn = void (*)(const EpilogueOp* ops, int n_ops, float* const* x, const int64_t* rows,
                                int n_rows, int64_t column, int64_t n);
EpilogueTileFn epilogue_tile_fn(Isa isa);

}  // namespace hone::cpu
