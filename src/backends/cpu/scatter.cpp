// ScatterND and ScatterElements: a copy of the data, then updates in the order of the indices, so that among
// equal indices the last wins and sums have one order. Work is split where updates cannot meet: over the
// columns of ScatterND's blocks, over what lies before the axis of ScatterElements.
#include <cstring>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/index_reader.h"
#include "backends/cpu/parallel.h"
#include "ops/dispatch.h"

namespace hone::backends::cpu {
namespace {

enum class Reduction : uint8_t { kNone, kAdd, kMul, kMax, kMin };

std::optional<Reduction> reduction_of(const Problem& p) {
  const std::string name = ir::attr_string(p.attrs, "reduction", "none");
  if (name == "none") return Reduction::kNone;
  if (name == "add") return Reduction::kAdd;
  if (name == "mul") return Reduction::kMul;
  if (name == "max") return Reduction::kMax;
  if (name == "min") return Reduction::kMin;
  return std::nullopt;
}

/// to[i] = to[i] combined with from[i].
using CombineFn = void (*)(void* to, const void* from, int64_t n);

template <class T, Reduction kReduction>
void combine(void* to, const void* from, int64_t n) {
  T* a = static_cast<T*>(to);
  const T* b = static_cast<const T*>(from);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (kReduction == Reduction::kAdd) a[i] = ops::wrap_add(a[i], b[i]);
    if constexpr (kReduction == Reduction::kMul) a[i] = ops::wrap_mul(a[i], b[i]);
    if constexpr (kReduction == Reduction::kMax) a[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i];
    if constexpr (kReduction == Reduction::kMin) a[i] = a[i] < b[i] || a[i] != a[i] ? a[i] : b[i];
  }
}

template <class T>
CombineFn combine_of(Reduction r) {
  switch (r) {
    case Reduction::kAdd: return combine<T, Reduction::kAdd>;
    case Reduction::kMul: return combine<T, Reduction::kMul>;
    case Reduction::kMax: return combine<T, Reduction::kMax>;
    case Reduction::kMin: return combine<T, Reduction::kMin>;
    case Reduction::kNone:
      return [](void* to, const void* from, int64_t n) {
        std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
      };
  }
  return nullptr;
}

/// nullptr for a type that the reduction does not take here.
CombineFn pick_combine(Reduction r, DType t) {
  if (r == Reduction::kNone) {
    switch (dtype_bits(t)) {
      case 8: return combine_of<uint8_t>(r);
      case 16: return combine_of<uint16_t>(r);
      case 32: return combine_of<uint32_t>(r);
      default: return combine_of<uint64_t>(r);
    }
  }
  CombineFn fn = nullptr;
  ops::dispatch_number(t, [&](auto tag) { fn = combine_of<typename decltype(tag)::type>(r); });
  return fn;
}

class ScatterPrepared : public Prepared {
 public:
  explicit ScatterPrepared(const Problem& p)
      : op_(p.op),
        wide_(p.srcs[1].dtype == DType::kI64),
        width_(dtype_bits(p.dsts[0].dtype) / 8),
        data_bytes_(numel(p.dsts[0].dims) * width_),
        combine_(pick_combine(*reduction_of(p), p.dsts[0].dtype)) {}

 protected:
  void copy_data(const RunArgs& args) const {
    if (args.dsts[0] == args.srcs[0]) return;
    parallel_ranges(args, data_bytes_, 256 * 1024, [&](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char*>(args.dsts[0]) + begin, static_cast<const char*>(args.srcs[0]) + begin,
                  static_cast<size_t>(end - begin));
    });
  }

  std::string op_;
  bool wide_;
  int64_t width_, data_bytes_;
  CombineFn combine_;
};

class ScatterNdPrepared final : public ScatterPrepared {
 public:
  explicit ScatterNdPrepared(const Problem& p) : ScatterPrepared(p) {
    const Shape &x = p.srcs[0].dims, &at = p.srcs[1].dims;
    depth_ = at.back();
    count_ = product(at, 0, at.size() - 1);
    block_ = product(x, static_cast<size_t>(depth_), x.size());
    for (size_t d = 0; d < static_cast<size_t>(depth_); ++d) {
      extents_.push_back(x[d]);
      strides_.push_back(product(x, d + 1, x.size()));
    }
  }

  void run(const RunArgs& args) const override {
    copy_data(args);
    const IndexReader index(args.srcs[1], wide_, op_);
    const auto* updates = static_cast<const char*>(args.srcs[2]);
    auto* dst = static_cast<char*>(args.dsts[0]);
    parallel_ranges(args, block_, kColumns, [&](int64_t begin, int64_t end) {
      for (int64_t k = 0; k < count_; ++k) {
        int64_t to = begin;
        for (int64_t d = 0; d < depth_; ++d)
          to += index.at(k * depth_ + d, extents_[static_cast<size_t>(d)]) * strides_[static_cast<size_t>(d)];
        combine_(dst + to * width_, updates + (k * block_ + begin) * width_, end - begin);
      }
    });
  }

 private:
  static constexpr int64_t kColumns = 4096;
  int64_t depth_, count_, block_;
  std::vector<int64_t> extents_, strides_;
};

class ScatterElementsPrepared final : public ScatterPrepared {
 public:
  explicit ScatterElementsPrepared(const Problem& p) : ScatterPrepared(p), dims_(p.srcs[1].dims) {
    const Shape& x = p.srcs[0].dims;
    const int64_t axis = ir::attr_int(p.attrs, "axis", 0);
    axis_ = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis);
    extent_ = x[axis_];
    for (size_t d = 0; d < x.size(); ++d) strides_.push_back(product(x, d + 1, x.size()));
  }

  void run(const RunArgs& args) const override {
    copy_data(args);
    const int64_t outer = product(dims_, 0, axis_), per_outer = product(dims_, axis_, dims_.size()),
                  inner = dims_.back();
    if (outer * per_outer == 0) return;
    const IndexReader index(args.srcs[1], wide_, op_);
    const auto* updates = static_cast<const char*>(args.srcs[2]);
    auto* dst = static_cast<char*>(args.dsts[0]);
    const int64_t stride = strides_[axis_], step = axis_ + 1 == dims_.size() ? 0 : 1;
    parallel_ranges(args, outer, row_grain(per_outer, 16384), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin * per_outer / inner; r < end * per_outer / inner; ++r) {
        int64_t base = 0, rest = r;
        for (size_t d = dims_.size() - 1; d-- > 0; rest /= dims_[d])
          if (d != axis_) base += rest % dims_[d] * strides_[d];
        for (int64_t j = 0; j < inner; ++j) {
          const int64_t from = r * inner + j;
          combine_(dst + (base + j * step + index.at(from, extent_) * stride) * width_,
                   updates + from * width_, 1);
        }
      }
    });
  }

 private:
  Shape dims_;
  size_t axis_;
  int64_t extent_;
  std::vector<int64_t> strides_;
};

class Scatter : public CpuTactic {
 public:
  using CpuTactic::CpuTactic;
  bool in_place(const Problem&, size_t src) const override { return src == 0; }

 protected:
  static Support common(const Problem& p) {
    if (const Support s = index_supports(p, 3); !s) return s;
    if (p.srcs[0].dims != p.dsts[0].dims) return Support::no("shape: data and result differ");
    const auto r = reduction_of(p);
    if (!r) return Support::no("reduction: '" + ir::attr_string(p.attrs, "reduction", "") + "'");
    if (pick_combine(*r, p.dsts[0].dtype) == nullptr)
      return Support::no(std::string("dtype: a reduction of ") + dtype_name(p.dsts[0].dtype));
    return Support::yes();
  }
};

class ScatterNd final : public Scatter {
 public:
  explicit ScatterNd(Isa isa) : Scatter("scatter_nd_any_rows", isa, Numerics::kExact) {}
  Support supports(const Problem& p) const override {
    if (const Support s = common(p); !s) return s;
    const Shape &x = p.srcs[0].dims, &at = p.srcs[1].dims;
    if (at.back() < 0 || at.back() > static_cast<int64_t>(x.size()))
      return Support::no("shape: indices do not address the data");
    Shape want(at.begin(), at.end() - 1);
    want.insert(want.end(), x.begin() + at.back(), x.end());
    return p.srcs[2].dims == want ? Support::yes()
                                  : Support::no("shape: updates do not fit indices and data");
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<ScatterNdPrepared>(p);
  }
};

class ScatterElements final : public Scatter {
 public:
  explicit ScatterElements(Isa isa) : Scatter("scatter_elements_any_rows", isa, Numerics::kExact) {}
  Support supports(const Problem& p) const override {
    if (const Support s = common(p); !s) return s;
    const Shape &x = p.srcs[0].dims, &at = p.srcs[1].dims;
    const int64_t axis = ir::attr_int(p.attrs, "axis", 0);
    if (x.size() != at.size() || p.srcs[2].dims != at)
      return Support::no("shape: indices do not fit data and updates");
    if (!axis_in_range(axis, x)) return Support::no("axis: out of range");
    for (size_t d = 0; d < x.size(); ++d)
      if (static_cast<int64_t>(d) != (axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis) &&
          at[d] > x[d])
        return Support::no("shape: indices reach beyond the data");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<ScatterElementsPrepared>(p);
  }
};

}  // namespace

// Code without instruction-set levels of its own: one row each, for every machine.
std::unique_ptr<Tactic> make_scatter_nd(Isa isa) {
  return isa == Isa::kPortable ? std::make_unique<ScatterNd>(isa) : nullptr;
}
std::unique_ptr<Tactic> make_scatter_elements(Isa isa) {
  return isa == Isa::kPortable ? std::make_unique<ScatterElements>(isa) : nullptr;
}

}  // namespace hone::backends::cpu
