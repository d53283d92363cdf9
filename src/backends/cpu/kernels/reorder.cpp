#include "backends/cpu/kernels/reorder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backends/cpu/kernels/blocked.h"
#include "backends/cpu/kernels/pack.h"
#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

template <typename T>
void fill_run(const char* src, char* dst, int64_t n) {
  T value;
  std::memcpy(&value, src, sizeof(T));
  std::fill_n(reinterpret_cast<T*>(dst), n, value);
}

template <typename T>
void strided_run(const char* src, int64_t src_stride, char* dst, int64_t dst_stride, int64_t n) {
  const T* from = reinterpret_cast<const T*>(src);
  T* to = reinterpret_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) to[i * dst_stride] = from[i * src_stride];
}

// dst[j * ld_dst + i] = src[i * ld_src + j], in squares whose lines stay in L1.
template <typename T>
void transpose_squares(const char* src, int64_t ld_src, int64_t rows, int64_t columns, char* dst,
                       int64_t ld_dst) {
  constexpr int64_t kSquare = 32;
  const T* from = reinterpret_cast<const T*>(src);
  T* to = reinterpret_cast<T*>(dst);
  for (int64_t i0 = 0; i0 < rows; i0 += kSquare)
    for (int64_t j0 = 0; j0 < columns; j0 += kSquare)
      for (int64_t j = j0; j < std::min(columns, j0 + kSquare); ++j)
        for (int64_t i = i0; i < std::min(rows, i0 + kSquare); ++i) to[j * ld_dst + i] = from[i * ld_src + j];
}

template <typename F>
void with_type(int bytes, F&& f) {
  switch (bytes) {
    case 1: f(uint8_t{}); break;
    case 2: f(uint16_t{}); break;
    case 4: f(uint32_t{}); break;
    default: f(uint64_t{}); break;
  }
}

// Calls f(src, dst) for each index of the first `n` axes.
template <typename F>
void for_each_outer(const char* src, char* dst, const std::vector<StridedCopy::Axis>& axes, size_t n,
                    int bytes, F&& f) {
  std::vector<int64_t> at(n, 0);
  for (;;) {
    f(src, dst);
    size_t d = n;
    for (; d > 0; --d) {
      const StridedCopy::Axis& axis = axes[d - 1];
      src += axis.src * bytes;
      dst += axis.dst * bytes;
      if (++at[d - 1] < axis.extent) break;
      src -= axis.src * axis.extent * bytes;
      dst -= axis.dst * axis.extent * bytes;
      at[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace

StridedCopy::StridedCopy(Isa isa, int element_bytes, const std::vector<int64_t>& dims,
                         const std::vector<int64_t>& src_strides, const std::vector<int64_t>& dst_strides)
    : isa_(isa), bytes_(element_bytes) {
  int64_t elements = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    elements *= dims[d];
    if (dims[d] != 1) axes_.push_back({dims[d], src_strides[d], dst_strides[d]});
  }
  if (elements == 0) return;
  // In the order of the destination, neighbours that are one axis in both tensors merged.
  std::stable_sort(axes_.begin(), axes_.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.dst) > std::abs(b.dst); });
  std::vector<Axis> merged;
  for (const Axis& axis : axes_) {
    if (!merged.empty() && merged.back().src == axis.src * axis.extent &&
        merged.back().dst == axis.dst * axis.extent) {
      merged.back() = {merged.back().extent * axis.extent, axis.src, axis.dst};
    } else {
      merged.push_back(axis);
    }
  }
  axes_ = std::move(merged);
  if (axes_.empty()) axes_.push_back({1, 1, 1});

  const Axis inner = axes_.back();
  if (inner.dst == 1 && inner.src == 1) {
    kind_ = Kind::kRuns;
  } else if (inner.dst == 1 && inner.src == 0) {
    kind_ = Kind::kFill;
  } else {
    kind_ = Kind::kStrided;
    if (inner.dst == 1 && inner.src > 0)
      for (size_t d = 0; d + 1 < axes_.size(); ++d)
        if (axes_[d].src == 1) {
          std::rotate(axes_.begin() + static_cast<int64_t>(d), axes_.begin() + static_cast<int64_t>(d) + 1,
                      axes_.end() - 1);
          kind_ = Kind::kTranspose;
          break;
        }
  }
  // Chunks of 64 KiB: a few microseconds. The longest axis is cut, multiples of a cache line when it is the
  // innermost.
  split_axis_ =
      static_cast<size_t>(std::max_element(axes_.begin(), axes_.end(),
                                           [](const Axis& a, const Axis& b) { return a.extent < b.extent; }) -
                          axes_.begin());
  parts_ = std::clamp<int64_t>(elements * bytes_ / (64 << 10), 1,
                               std::min<int64_t>(16, ceil_div(axes_[split_axis_].extent, 64)));
}

const char* StridedCopy::kind() const {
  switch (kind_) {
    case Kind::kEmpty: return "empty";
    case Kind::kRuns: return "memcpy";
    case Kind::kFill: return "fill";
    case Kind::kTranspose: return "transpose";
    case Kind::kStrided: return "strided";
  }
  return "";
}

void StridedCopy::copy(const char* src, char* dst, const std::vector<Axis>& axes) const {
  const size_t n = axes.size();
  const Axis inner = axes.back();
  switch (kind_) {
    case Kind::kEmpty: break;
    case Kind::kRuns:
      for_each_outer(src, dst, axes, n - 1, bytes_, [&](const char* from, char* to) {
        std::memcpy(to, from, static_cast<size_t>(inner.extent * bytes_));
      });
      break;
    case Kind::kFill:
      with_type(bytes_, [&](auto type) {
        for_each_outer(src, dst, axes, n - 1, bytes_,
                       [&](const char* from, char* to) { fill_run<decltype(type)>(from, to, inner.extent); });
      });
      break;
    case Kind::kStrided:
      with_type(bytes_, [&](auto type) {
        for_each_outer(src, dst, axes, n - 1, bytes_, [&](const char* from, char* to) {
          strided_run<decltype(type)>(from, inner.src, to, inner.dst, inner.extent);
        });
      });
      break;
    case Kind::kTranspose: {
      const Axis columns = axes[n - 2];  // contiguous in src
      const TransposeFn fast = transpose_fn(isa_);
      with_type(bytes_, [&](auto type) {
        for_each_outer(src, dst, axes, n - 2, bytes_, [&](const char* from, char* to) {
          if (sizeof(type) == 4)
            fast(reinterpret_cast<const float*>(from), inner.src, inner.extent, columns.extent,
                 reinterpret_cast<float*>(to), columns.dst);
          else
            transpose_squares<decltype(type)>(from, inner.src, inner.extent, columns.extent, to, columns.dst);
        });
      });
      break;
    }
  }
}

void StridedCopy::run_chunk(const void* src, void* dst, int64_t chunk) const {
  std::vector<Axis> axes = axes_;
  Axis& axis = axes[split_axis_];
  // Cuts fall on multiples of 16 elements: no cache line of a dense destination is written by two threads.
  const int64_t units = ceil_div(axis.extent, 16);
  const EvenSplit cut{units, parts_};
  const int64_t begin = std::min(axis.extent, cut.begin(chunk) * 16);
  const int64_t end = std::min(axis.extent, cut.begin(chunk + 1) * 16);
  if (begin == end) return;
  axis.extent = end - begin;
  copy(static_cast<const char*>(src) + begin * axis.src * bytes_,
       static_cast<char*>(dst) + begin * axis.dst * bytes_, axes);
}

void StridedCopy::run(const void* src, void* dst, ThreadPool& pool, int max_workers) const {
  if (kind_ == Kind::kEmpty) return;
  pool.parallel_for(
      parts_, [&](int64_t chunk, int) { run_chunk(src, dst, chunk); }, max_workers);
}

StridedCopy make_transpose(Isa isa, int element_bytes, const std::vector<int64_t>& src_dims,
                           const std::vector<int64_t>& perm) {
  const size_t rank = src_dims.size();
  std::vector<int64_t> dense(rank), dims(rank), src(rank), dst(rank);
  int64_t stride = 1;
  for (size_t d = rank; d-- > 0; stride *= src_dims[d]) dense[d] = stride;
  stride = 1;
  for (size_t d = rank; d-- > 0; stride *= dims[d]) {
    dims[d] = src_dims[static_cast<size_t>(perm[d])];
    src[d] = dense[static_cast<size_t>(perm[d])];
    dst[d] = stride;
  }
  return StridedCopy(isa, element_bytes, dims, src, dst);
}

StridedCopy make_to_channels_last(Isa isa, int element_bytes, int64_t n, int64_t c, int64_t spatial) {
  return make_transpose(isa, element_bytes, {n, c, spatial}, {0, 2, 1});
}

StridedCopy make_from_channels_last(Isa isa, int element_bytes, int64_t n, int64_t c, int64_t spatial) {
  return make_transpose(isa, element_bytes, {n, spatial, c}, {0, 2, 1});
}

}  // namespace hone::cpu
