// Gather along one axis, Where and Cast: elements of 1 to 8 bytes, plain layout.
#include <cstring>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/index_reader.h"
#include "backends/cpu/parallel.h"
#include "ops/broadcast.h"
#include "ops/dispatch.h"

namespace hone::backends::cpu {
namespace {

bool whole_bytes(DType t) {
  const int bits = dtype_bits(t);
  return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

Support plain_only(const Problem& p) {
  for (const auto* list : {&p.srcs, &p.dsts})
    for (const Operand& o : *list)
      if (!ops::same_order(o.layout, Layout::kPlain, o.dims)) return Support::no("layout: plain only");
  if (!p.post.empty()) return Support::no("post-op: none here");
  return Support::yes();
}

// --- Gather: dst[o, i.., :] = src[o, index[i..], :] ---

class GatherPrepared final : public Prepared {
 public:
  explicit GatherPrepared(const Problem& p)
      : op_(p.op), count_(numel(p.srcs[1].dims)), wide_(p.srcs[1].dtype == DType::kI64) {
    const MemoryAxis v = memory_axis({p.srcs[0].dtype, p.srcs[0].dims, Layout::kPlain, false, {}},
                                     ir::attr_int(p.attrs, "axis", 0));
    outer_ = v.outer;
    extent_ = v.n;
    bytes_ = v.inner * (dtype_bits(p.dsts[0].dtype) / 8);
  }

  void run(const RunArgs& args) const override {
    if (bytes_ == 0) return;
    const auto* src = static_cast<const char*>(args.srcs[0]);
    auto* dst = static_cast<char*>(args.dsts[0]);
    const IndexReader index(args.srcs[1], wide_, op_);
    parallel_ranges(args, outer_ * count_, row_grain(bytes_, 65536), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const char* from = src + (r / count_ * extent_ + index.at(r % count_, extent_)) * bytes_;
        char* to = dst + r * bytes_;
        switch (bytes_) {  // single elements need no call
          case 4: std::memcpy(to, from, 4); break;
          case 8: std::memcpy(to, from, 8); break;
          default: std::memcpy(to, from, static_cast<size_t>(bytes_));
        }
      }
    });
  }

 private:
  std::string op_;
  int64_t outer_ = 1, extent_ = 1, bytes_ = 0, count_;
  bool wide_;
};

class Gather final : public CpuTactic {
 public:
  explicit Gather(Isa isa) : CpuTactic("gather_any_rows", isa, Numerics::kExact) {}
  Support supports(const Problem& p) const override {
    if (const Support s = plain_only(p); !s) return s;
    if (p.srcs.size() != 2 || p.srcs[0].dtype != p.dsts[0].dtype || !whole_bytes(p.dsts[0].dtype))
      return Support::no("dtype: elements of 1, 2, 4 or 8 bytes");
    if (p.srcs[1].dtype != DType::kI64 && p.srcs[1].dtype != DType::kI32)
      return Support::no("dtype: indices are neither i32 nor i64");
    if (!axis_in_range(ir::attr_int(p.attrs, "axis", 0), p.srcs[0].dims))
      return Support::no("axis: out of range");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<GatherPrepared>(p);
  }
};

// --- Where ---

template <class T>
void where_row(const uint8_t* c, int64_t sc, const T* x, int64_t sx, const T* y, int64_t sy, T* dst,
               int64_t n) {
  if (sc == 0) {  // one condition: a copy or a fill
    const T* from = *c != 0 ? x : y;
    const int64_t step = *c != 0 ? sx : sy;
    if (step == 0)
      std::fill_n(dst, n, *from);
    else
      std::copy_n(from, n, dst);
    return;
  }
  if (sx == 0) {
    const T one = *x;
    for (int64_t i = 0; i < n; ++i) dst[i] = c[i] != 0 ? one : y[i * sy];
  } else if (sy == 0) {
    const T one = *y;
    for (int64_t i = 0; i < n; ++i) dst[i] = c[i] != 0 ? x[i] : one;
  } else {
    for (int64_t i = 0; i < n; ++i) dst[i] = c[i] != 0 ? x[i] : y[i];
  }
}

class WherePrepared final : public Prepared {
 public:
  explicit WherePrepared(const Problem& p)
      : loop_(p.dsts[0].dims, {&p.srcs[0].dims, &p.srcs[1].dims, &p.srcs[2].dims}),
        bytes_(dtype_bits(p.dsts[0].dtype) / 8) {}

  void run(const RunArgs& args) const override {
    switch (bytes_) {
      case 1: return run_as<uint8_t>(args);
      case 2: return run_as<uint16_t>(args);
      case 4: return run_as<uint32_t>(args);
      default: return run_as<uint64_t>(args);
    }
  }

 private:
  template <class T>
  void run_as(const RunArgs& args) const {
    const auto* c = static_cast<const uint8_t*>(args.srcs[0]);
    const auto* x = static_cast<const T*>(args.srcs[1]);
    const auto* y = static_cast<const T*>(args.srcs[2]);
    auto* dst = static_cast<T*>(args.dsts[0]);
    const int64_t n = loop_.inner(), sc = loop_.steps(0), sx = loop_.steps(1), sy = loop_.steps(2);
    loop_.each_row([&](int64_t at, const std::array<int64_t, 3>& off) {
      parallel_ranges(args, n, 65536, [&](int64_t b, int64_t e) {
        where_row(c + off[0] + b * sc, sc, x + off[1] + b * sx, sx, y + off[2] + b * sy, sy, dst + at + b,
                  e - b);
      });
    });
  }

  ops::BroadcastLoop<3> loop_;
  int bytes_;
};

class Where final : public CpuTactic {
 public:
  explicit Where(Isa isa) : CpuTactic("where_any_rows", isa, Numerics::kExact) {}
  Support supports(const Problem& p) const override {
    if (const Support s = plain_only(p); !s) return s;
    if (p.srcs.size() != 3 || p.srcs[0].dtype != DType::kBool || p.srcs[1].dtype != p.dsts[0].dtype ||
        p.srcs[2].dtype != p.dsts[0].dtype || !whole_bytes(p.dsts[0].dtype))
      return Support::no("dtype: a bool and two of one type of 1, 2, 4 or 8 bytes");
    for (const Operand& o : p.srcs) {
      const auto shape = ops::broadcast_shapes(o.dims, p.dsts[0].dims);
      if (!shape || *shape != p.dsts[0].dims) return Support::no("shape: does not broadcast to the result");
    }
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<WherePrepared>(p);
  }
};

// --- Cast between f32, f64, integers of 8 to 64 bits and bool; rules: ops/cast.cpp ---

template <class From, class To>
void cast_run(const void* src, void* dst, int64_t begin, int64_t end) {
  const auto* x = static_cast<const From*>(src);
  auto* y = static_cast<To*>(dst);
  for (int64_t i = begin; i < end; ++i) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
      y[i] = ops::to_integer<To>(static_cast<double>(x[i]));
    else
      y[i] = static_cast<To>(x[i]);
  }
}
template <class From>
void cast_to_bool(const void* src, void* dst, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<uint8_t*>(dst)[i] = static_cast<const From*>(src)[i] != From{0} ? 1 : 0;
}

using CastFn = void (*)(const void*, void*, int64_t, int64_t);

CastFn cast_fn(DType from, DType to) {
  CastFn fn = nullptr;
  const DType source = from == DType::kBool ? DType::kU8 : from;
  ops::dispatch_number(source, [&](auto a) {
    using From = typename decltype(a)::type;
    if (to == DType::kBool) {
      fn = cast_to_bool<From>;
      return;
    }
    ops::dispatch_number(to, [&](auto b) { fn = cast_run<From, typename decltype(b)::type>; });
  });
  return fn;
}

class CastPrepared final : public Prepared {
 public:
  explicit CastPrepared(const Problem& p)
      : fn_(cast_fn(p.srcs[0].dtype, p.dsts[0].dtype)), total_(numel(p.dsts[0].dims)) {}
  void run(const RunArgs& args) const override {
    parallel_ranges(args, total_, 32768,
                    [&](int64_t b, int64_t e) { fn_(args.srcs[0], args.dsts[0], b, e); });
  }

 private:
  CastFn fn_;
  int64_t total_;
};

class Cast final : public CpuTactic {
 public:
  explicit Cast(Isa isa) : CpuTactic("cast_any_runs", isa, Numerics::kExact) {}
  void choose_layouts(Problem& p) const override { follow_layout(p); }
  Support supports(const Problem& p) const override {
    if (!p.post.empty()) return Support::no("post-op: none here");
    if (const Support s = same_shape_unary(p); !s) return s;
    if (cast_fn(p.srcs[0].dtype, p.dsts[0].dtype) == nullptr)
      return Support::no("dtype: f32, f64, integers of whole bytes and bool");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<CastPrepared>(p);
  }
};

/// Nothing here gains from wider vectors: one object, at the lowest level.
template <class T>
std::unique_ptr<Tactic> portable_only(Isa isa) {
  if (isa != Isa::kPortable) return nullptr;
  return std::make_unique<T>(isa);
}

}  // namespace

std::unique_ptr<Tactic> make_gather(Isa isa) { return portable_only<Gather>(isa); }
std::unique_ptr<Tactic> make_where(Isa isa) { return portable_only<Where>(isa); }
std::unique_ptr<Tactic> make_cast(Isa isa) { return portable_only<Cast>(isa); }

}  // namespace hone::backends::cpu
