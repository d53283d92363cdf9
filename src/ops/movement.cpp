#include "ops/movement.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "ops/dispatch.h"

namespace hone::ops {
namespace {

struct Axis {
  int64_t extent, dst, src;
};

struct Bytes16 {
  uint64_t lo, hi;
};

template <class T>
void copy_row(char* dst, int64_t ds, const char* src, int64_t ss, int64_t n) {
  auto* d = reinterpret_cast<T*>(dst);
  const auto* s = reinterpret_cast<const T*>(src);
  if (ss == 0) {
    const T v = *s;
    for (int64_t i = 0; i < n; ++i) d[i * ds] = v;
  } else {
    for (int64_t i = 0; i < n; ++i) d[i * ds] = s[i * ss];
  }
}

/// Two innermost axes where neither side is contiguous along both: walks tiles so that both sides stay in
/// cache.
template <class T>
void copy_plane(char* dst, const char* src, const Axis& a, const Axis& b) {
  constexpr int64_t kTile = 16;
  auto* d = reinterpret_cast<T*>(dst);
  const auto* s = reinterpret_cast<const T*>(src);
  for (int64_t i0 = 0; i0 < a.extent; i0 += kTile) {
    const int64_t i1 = std::min(a.extent, i0 + kTile);
    for (int64_t j0 = 0; j0 < b.extent; j0 += kTile) {
      const int64_t j1 = std::min(b.extent, j0 + kTile);
      for (int64_t i = i0; i < i1; ++i) {
        for (int64_t j = j0; j < j1; ++j) d[i * a.dst + j * b.dst] = s[i * a.src + j * b.src];
      }
    }
  }
}

using RowFn = void (*)(char*, int64_t, const char*, int64_t, int64_t);
using PlaneFn = void (*)(char*, const char*, const Axis&, const Axis&);

RowFn row_fn(int64_t bytes) {
  switch (bytes) {
    case 1: return copy_row<uint8_t>;
    case 2: return copy_row<uint16_t>;
    case 4: return copy_row<uint32_t>;
    case 8: return copy_row<uint64_t>;
    default: return copy_row<Bytes16>;
  }
}
PlaneFn plane_fn(int64_t bytes) {
  switch (bytes) {
    case 1: return copy_plane<uint8_t>;
    case 2: return copy_plane<uint16_t>;
    case 4: return copy_plane<uint32_t>;
    case 8: return copy_plane<uint64_t>;
    default: return copy_plane<Bytes16>;
  }
}

}  // namespace

void unsupported_type(const KernelContext& ctx, DType t) {
  throw Error(ErrorCode::kUnsupported, std::string("no reference kernel for element type ") + dtype_name(t),
              ctx.where != nullptr ? *ctx.where : ErrorContext{});
}

int64_t element_bytes(const Tensor& t) {
  const int bits = dtype_bits(t.dtype());
  if (bits == 0)
    throw Error(ErrorCode::kUnsupported,
                std::string("elements of type ") + dtype_name(t.dtype()) + " are not moved");
  return bits / 8;
}

void copy_strided(void* dst, const std::vector<int64_t>& dst_strides, const void* src,
                  const std::vector<int64_t>& src_strides, const Shape& shape, int64_t bytes) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return;
    if (shape[d] == 1) continue;
    const Axis a{shape[d], dst_strides[d], src_strides[d]};
    if (!axes.empty() && axes.back().dst == a.dst * a.extent && axes.back().src == a.src * a.extent) {
      axes.back() = {axes.back().extent * a.extent, a.dst, a.src};
    } else {
      axes.push_back(a);
    }
  }
  auto* d = static_cast<char*>(dst);
  const auto* s = static_cast<const char*>(src);
  if (axes.empty()) {
    std::memcpy(d, s, static_cast<size_t>(bytes));
    return;
  }
  const Axis inner = axes.back();
  axes.pop_back();
  const bool contiguous = inner.dst == 1 && inner.src == 1;
  Axis second{1, 0, 0};
  if (!contiguous && inner.src != 0 && !axes.empty()) {
    second = axes.back();
    axes.pop_back();
  }
  const RowFn row = row_fn(bytes);
  const PlaneFn plane = plane_fn(bytes);
  std::vector<int64_t> index(axes.size(), 0);
  for (;;) {
    if (contiguous) {
      std::memcpy(d, s, static_cast<size_t>(inner.extent * bytes));
    } else if (second.extent > 1) {
      plane(d, s, second, inner);
    } else {
      row(d, inner.dst, s, inner.src, inner.extent);
    }
    size_t k = axes.size();
    for (;;) {
      if (k == 0) return;
      --k;
      d += axes[k].dst * bytes;
      s += axes[k].src * bytes;
      if (++index[k] < axes[k].extent) break;
      d -= axes[k].dst * axes[k].extent * bytes;
      s -= axes[k].src * axes[k].extent * bytes;
      index[k] = 0;
    }
  }
}

void fill_elements(void* dst, const void* value, int64_t count, int64_t bytes) {
  const auto* v = static_cast<const char*>(value);
  if (count <= 0) return;
  if (std::all_of(v, v + bytes, [&](char c) { return c == v[0]; })) {
    std::memset(dst, v[0], static_cast<size_t>(count * bytes));
    return;
  }
  row_fn(bytes)(static_cast<char*>(dst), 1, v, 0, count);
}

void check_budget(const KernelContext& ctx, DType t, const Shape& shape) {
  int64_t count = 1;
  bool fits = true, empty = false;
  for (int64_t d : shape) {
    if (d < 0) ctx.fail("negative dimension in result shape " + type_text(t, shape));
    empty = empty || d == 0;
    fits = fits && try_mul(count, d, &count);
  }
  if (empty) return;
  if (!fits || count > kMaxTensorBytes / std::max(1, dtype_bits(t) / 8)) {
    throw Error(ErrorCode::kOutOfMemory,
                "result " + type_text(t, shape) + " exceeds the budget of " +
                    std::to_string(kMaxTensorBytes >> 30) + " GiB a tensor",
                ctx.where != nullptr ? *ctx.where : ErrorContext{});
  }
}

bool has_subbyte_input(const KernelContext& ctx) {
  return std::any_of(ctx.inputs.begin(), ctx.inputs.end(), [](const Tensor* t) {
    const int bits = t == nullptr ? 0 : dtype_bits(t->dtype());
    return bits > 0 && bits < 8;
  });
}

Tensor unpack_subbyte(const Tensor& t) {
  const int bits = dtype_bits(t.dtype());
  if (bits == 0 || bits >= 8) return t;
  Tensor out(DType::kU8, t.shape());
  const auto* src = t.data<uint8_t>();
  auto* dst = out.data<uint8_t>();
  const int per_byte = 8 / bits;
  const int mask = (1 << bits) - 1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    dst[i] = static_cast<uint8_t>(src[i / per_byte] >> (bits * static_cast<int>(i % per_byte)) & mask);
  }
  return out;
}

Tensor pack_subbyte(const Tensor& bytes, DType t) {
  const int bits = dtype_bits(t);
  Tensor out = Tensor::zeros(t, bytes.shape());
  const auto* src = bytes.data<uint8_t>();
  auto* dst = out.data<uint8_t>();
  const int per_byte = 8 / bits;
  const int mask = (1 << bits) - 1;
  for (int64_t i = 0; i < bytes.numel(); ++i) {
    dst[i / per_byte] =
        static_cast<uint8_t>(dst[i / per_byte] | (src[i] & mask) << (bits * static_cast<int>(i % per_byte)));
  }
  return out;
}

void run_unpacked(KernelContext& ctx, void (*kernel)(KernelContext&)) {
  std::vector<Tensor> unpacked(ctx.inputs.size());
  std::vector<const Tensor*> inputs(ctx.inputs.size(), nullptr);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (ctx.inputs[i] == nullptr) continue;
    unpacked[i] = unpack_subbyte(*ctx.inputs[i]);
    inputs[i] = &unpacked[i];
  }
  std::vector<DType> dtypes(ctx.out_dtypes.begin(), ctx.out_dtypes.end());
  for (DType& t : dtypes) {
    if (dtype_bits(t) > 0 && dtype_bits(t) < 8) t = DType::kU8;
  }
  KernelContext inner{.attrs = ctx.attrs,
                      .inputs = inputs,
                      .out_dtypes = dtypes,
                      .oracle = ctx.oracle,
                      .allocate = {},
                      .outputs = {},
                      .run_subgraph = {},
                      .where = ctx.where};
  inner.outputs.resize(ctx.out_dtypes.size());
  kernel(inner);
  for (size_t i = 0; i < ctx.out_dtypes.size(); ++i) {
    if (!ctx.wants(i)) continue;
    const int bits = dtype_bits(ctx.out_dtypes[i]);
    ctx.set_out(i,
                bits > 0 && bits < 8 ? pack_subbyte(inner.outputs[i], ctx.out_dtypes[i]) : inner.outputs[i]);
  }
}

std::vector<int64_t> input_ints(const KernelContext& ctx, size_t i) {
  const Tensor& t = ctx.in(i);
  if (t.rank() > 1) ctx.fail("input " + std::to_string(i) + " must be a vector, not " + t.type_text());
  if (!is_integer(t.dtype()))
    ctx.fail("input " + std::to_string(i) + " must hold integers, not " + t.type_text());
  return t.to_i64();
}

int64_t input_int(const KernelContext& ctx, size_t i, int64_t fallback) {
  if (!ctx.has_input(i)) return fallback;
  const Tensor& t = ctx.in(i);
  if (t.numel() != 1 || !is_integer(t.dtype())) {
    ctx.fail("input " + std::to_string(i) + " must be one integer, not " + t.type_text());
  }
  return t.to_i64()[0];
}

}  // namespace hone::ops
