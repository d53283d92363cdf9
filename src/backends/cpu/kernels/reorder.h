// Copies that change the order of elements: layout changes, transpositions, slices, broadcasts. Any rank,
// elements of 1, 2, 4 or 8 bytes. Exact: bytes are moved, never computed with.
#pragma once

#include <cstdint>
#include <vector>

#include "base/cpu.h"

namespace hone {
class ThreadPool;
}

namespace hone::cpu {

/// dst[sum of i_d * dst_stride_d] = src[sum of i_d * src_stride_d] for every index i < dims. Strides in
/// elements; those of src may be 0 (broadcast) or negative (slices backwards). REQUIRES: no two indices share
/// a place in dst. Threads: run() is const and may be called concurrently.
class StridedCopy {
 public:
  struct Axis {
    int64_t extent, src, dst;
  };

  StridedCopy(Isa isa, int element_bytes, const std::vector<int64_t>& dims,
              const std::vector<int64_t>& src_strides, const std::vector<int64_t>& dst_strides);

  void run(const void* src, void* dst, ThreadPool& pool, int max_workers = 0) const;
  int64_t n_chunks() const { return parts_; }
  void run_chunk(const void* src, void* dst, int64_t chunk) const;
  /// How the innermost loops run: "memcpy", "fill", "transpose", "strided" or "empty". For tests and verbose
  /// lines.
  const char* kind() const;

 private:
  enum class Kind { kEmpty, kRuns, kFill, kTranspose, kStrided };
  void copy(const char* src, char* dst, const std::vector<Axis>& axes) const;

  Isa isa_;
  int bytes_;
  Kind kind_ = Kind::kEmpty;
  std::vector<Axis> axes_;  ///< merged; the innermost last, for kTranspose the two innermost last
  size_t split_axis_ = 0;
  int64_t parts_ = 1;
};

/// Permutation of a dense row-major tensor: dst axis d is src axis perm[d], as ONNX Transpose.
StridedCopy make_transpose(Isa isa, int element_bytes, const std::vector<int64_t>& src_dims,
                           const std::vector<int64_t>& perm);
/// [n][c][spatial] to [n][spatial][c], and back.
StridedCopy make_to_channels_last(Isa isa, int element_bytes, int64_t n, int64_t c, int64_t spatial);
StridedCopy make_from_channels_last(Isa isa, int element_bytes, int64_t n, int64_t c, int64_t spatial);

}  // namespace hone::cpu
