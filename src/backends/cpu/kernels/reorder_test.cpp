#include "backends/cpu/kernels/reorder.h"

#include <cstring>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

// Copies bytes that number their place and compares each with the definition; the rest of dst stays as it
// was.
void check(int bytes, const std::vector<int64_t>& dims, const std::vector<int64_t>& src_strides,
           const std::vector<int64_t>& dst_strides, int64_t src_floor = 0, const char* kind = nullptr) {
  int64_t elements = 1, src_top = 0, dst_top = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    elements *= dims[d];
    if (src_strides[d] > 0) src_top += (dims[d] - 1) * src_strides[d];
    dst_top += (dims[d] - 1) * dst_strides[d];
  }
  const int64_t src_size = elements == 0 ? 0 : src_floor + src_top + 1;
  const int64_t dst_size = elements == 0 ? 0 : dst_top + 1;
  std::vector<uint8_t> src(static_cast<size_t>(src_size * bytes)),
      want(static_cast<size_t>((dst_size + 2) * bytes), 0xAB);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint8_t>(i * 2654435761U >> 13);
  std::vector<int64_t> at(dims.size(), 0);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t rest = i, from = src_floor, to = 1;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) {
      from += rest % dims[d] * src_strides[d];
      to += rest % dims[d] * dst_strides[d];
    }
    std::memcpy(&want[static_cast<size_t>(to * bytes)], &src[static_cast<size_t>(from * bytes)],
                static_cast<size_t>(bytes));
  }
  ThreadPool pool(3);
  for (Isa isa : supported_isas()) {
    const StridedCopy copy(isa, bytes, dims, src_strides, dst_strides);
    if (kind != nullptr) {
      EXPECT_STREQ(copy.kind(), kind);
    }
    std::vector<uint8_t> got(want.size(), 0xAB);
    copy.run(src.data() + src_floor * bytes, got.data() + bytes, pool);
    EXPECT_EQ(got, want) << isa_name(isa) << " " << copy.kind() << ", " << bytes << " bytes";
  }
}

void check_transpose(int bytes, const std::vector<int64_t>& dims, const std::vector<int64_t>& perm,
                     const char* kind = nullptr) {
  std::vector<int64_t> dense(dims.size()), out(dims.size()), src(dims.size()), dst(dims.size());
  int64_t s = 1;
  for (size_t d = dims.size(); d-- > 0; s *= dims[d]) dense[d] = s;
  s = 1;
  for (size_t d = dims.size(); d-- > 0; s *= out[d]) {
    out[d] = dims[static_cast<size_t>(perm[d])];
    src[d] = dense[static_cast<size_t>(perm[d])];
    dst[d] = s;
  }
  check(bytes, out, src, dst, 0, kind);
}

TEST(Reorder, channels_last_there_and_back) {
  for (int bytes : {1, 2, 4, 8})
    for (int64_t c : {1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64})
      for (int64_t spatial : {1, 3, 7, 16, 49, 130}) {
        check_transpose(bytes, {2, c, spatial}, {0, 2, 1});
        check_transpose(bytes, {2, spatial, c}, {0, 2, 1});
      }
  check_transpose(4, {1, 3, 224 * 24}, {0, 2, 1}, "transpose");
  check_transpose(4, {1, 256, 56 * 56}, {0, 2, 1}, "transpose");
}

TEST(Reorder, every_permutation_of_four_axes) {
  std::vector<int64_t> perm = {0, 1, 2, 3};
  do
    for (int bytes : {1, 4, 8}) check_transpose(bytes, {3, 5, 9, 17}, perm);
  while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Reorder, identity_is_one_memcpy) { check_transpose(4, {8, 9, 10}, {0, 1, 2}, "memcpy"); }

TEST(Reorder, attention_heads) { check_transpose(4, {1, 128, 12, 64}, {0, 2, 1, 3}, "memcpy"); }

TEST(Reorder, broadcast_slice_and_reversal) {
  check(4, {5, 7}, {0, 1}, {7, 1}, 0, "memcpy");
  check(4, {5, 7}, {1, 0}, {7, 1}, 0, "fill");
  check(2, {4, 6}, {20, 3}, {6, 1}, 0, "strided");
  check(4, {6, 10}, {10, -1}, {10, 1}, 9, "strided");
  check(8, {6, 10}, {-10, 1}, {10, 1}, 50, "memcpy");
  check(4, {3, 4, 5}, {20, 5, 1}, {80, 10, 1}, 0);  // into a larger tensor
  check(4, {9, 40}, {1, 9}, {50, 1}, 0, "transpose");
}

TEST(Reorder, empty_and_scalar) {
  check(4, {}, {}, {}, 0, "memcpy");
  check(4, {3, 0, 2}, {0, 2, 1}, {0, 2, 1}, 0, "empty");
  check(4, {1, 1}, {1, 1}, {1, 1});
}

}  // namespace
}  // namespace hone::cpu
