// GatherND and GatherElements: elements of 1 to 8 bytes, plain layout.
#include <cstring>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/index_reader.h"
#include "backends/cpu/parallel.h"

namespace hone::backends::cpu {
namespace {

// --- GatherND: dst[b.., k.., :] = src[b.., indices[b.., k..], :] ---

class GatherNdPrepared final : public Prepared {
 public:
  explicit GatherNdPrepared(const Problem& p) : op_(p.op), wide_(p.srcs[1].dtype == DType::kI64) {
    const Shape &x = p.srcs[0].dims, &at = p.srcs[1].dims;
    const auto batch = static_cast<size_t>(ir::attr_int(p.attrs, "batch_dims", 0)),
               depth = static_cast<size_t>(at.back());
    const int64_t width = dtype_bits(p.dsts[0].dtype) / 8;
    per_batch_ = product(at, batch, at.size() - 1);
    rows_ = product(at, 0, at.size() - 1);
    bytes_ = product(x, batch + depth, x.size()) * width;
    batch_bytes_ = product(x, batch, x.size()) * width;
    for (size_t d = 0; d < depth; ++d) {
      extents_.push_back(x[batch + d]);
      strides_.push_back(product(x, batch + d + 1, x.size()) * width);
    }
  }

  void run(const RunArgs& args) const override {
    if (bytes_ == 0) return;
    const IndexReader index(args.srcs[1], wide_, op_);
    const auto* src = static_cast<const char*>(args.srcs[0]);
    auto* dst = static_cast<char*>(args.dsts[0]);
    const auto depth = static_cast<int64_t>(extents_.size());
    parallel_ranges(args, rows_, row_grain(bytes_ + 16 * depth, 65536), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const char* from = src + r / per_batch_ * batch_bytes_;
        for (int64_t d = 0; d < depth; ++d)
          from +=
              index.at(r * depth + d, extents_[static_cast<size_t>(d)]) * strides_[static_cast<size_t>(d)];
        std::memcpy(dst + r * bytes_, from, static_cast<size_t>(bytes_));
      }
    });
  }

 private:
  std::string op_;
  bool wide_;
  int64_t per_batch_, rows_, bytes_, batch_bytes_;
  std::vector<int64_t> extents_, strides_;  ///< of the addressed dimensions; strides in bytes
};

class GatherNd final : public CpuTactic {
 public:
  explicit GatherNd(Isa isa) : CpuTactic("gather_nd_any_rows", isa, Numerics::kExact) {}
  Support supports(const Problem& p) const override {
    if (const Support s = index_supports(p, 2); !s) return s;
    const Shape &x = p.srcs[0].dims, &at = p.srcs[1].dims;
    const int64_t batch = ir::attr_int(p.attrs, "batch_dims", 0), depth = at.back();
    if (batch < 0 || batch >= static_cast<int64_t>(at.size()) || depth < 1 ||
        batch + depth > static_cast<int64_t>(x.size()))
      return Support::no("batch_dims: indices do not address the data");
    for (size_t d = 0; d < static_cast<size_t>(batch); ++d)
      if (at[d] != x[d]) return Support::no("batch_dims: data and indices differ");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<GatherNdPrepared>(p);
  }
};

// --- GatherElements: dst[i, k, j] = src[i, indices[i, k, j], j], the indices' shape inside the data's but
// for the axis ---

class GatherElementsPrepared final : public Prepared {
 public:
  explicit GatherElementsPrepared(const Problem& p)
      : op_(p.op),
        wide_(p.srcs[1].dtype == DType::kI64),
        width_(dtype_bits(p.dsts[0].dtype) / 8),
        dims_(p.dsts[0].dims) {
    const Shape& x = p.srcs[0].dims;
    const int64_t axis = ir::attr_int(p.attrs, "axis", 0);
    axis_ = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis);
    extent_ = x[axis_];
    for (size_t d = 0; d < x.size(); ++d) strides_.push_back(product(x, d + 1, x.size()));
  }

  void run(const RunArgs& args) const override {
    switch (width_) {
      case 1: return run_as<uint8_t>(args);
      case 2: return run_as<uint16_t>(args);
      case 4: return run_as<uint32_t>(args);
      default: return run_as<uint64_t>(args);
    }
  }

 private:
  template <class T>
  void run_as(const RunArgs& args) const {
    const IndexReader index(args.srcs[1], wide_, op_);
    const auto* src = static_cast<const T*>(args.srcs[0]);
    auto* dst = static_cast<T*>(args.dsts[0]);
    const int64_t inner = dims_.back(), stride = strides_[axis_], step = axis_ + 1 == dims_.size() ? 0 : 1;
    if (inner == 0) return;
    parallel_ranges(args, numel(dims_) / inner, row_grain(inner, 16384), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t base = 0, rest = r;
        for (size_t d = dims_.size() - 1; d-- > 0; rest /= dims_[d])
          if (d != axis_) base += rest % dims_[d] * strides_[d];
        for (int64_t j = 0; j < inner; ++j)
          dst[r * inner + j] = src[base + j * step + index.at(r * inner + j, extent_) * stride];
      }
    });
  }

  std::string op_;
  bool wide_;
  int width_;
  Shape dims_;
  size_t axis_;
  int64_t extent_;
  std::vector<int64_t> strides_;
};

class GatherElements final : public CpuTactic {
 public:
  explicit GatherElements(Isa isa) : CpuTactic("gather_elements_any_rows", isa, Numerics::kExact) {}
  Support supports(const Problem& p) const override {
    if (const Support s = index_supports(p, 2); !s) return s;
    const Shape &x = p.srcs[0].dims, &at = p.srcs[1].dims;
    const int64_t axis = ir::attr_int(p.attrs, "axis", 0);
    if (x.size() != at.size() || p.dsts[0].dims != at)
      return Support::no("shape: indices do not fit data and result");
    if (!axis_in_range(axis, x)) return Support::no("axis: out of range");
    for (size_t d = 0; d < x.size(); ++d)
      if (static_cast<int64_t>(d) != (axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis) &&
          at[d] > x[d])
        return Support::no("shape: indices reach beyond the data");
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<GatherElementsPrepared>(p);
  }
};

}  // namespace

// Code without instruction-set levels of its own: one row each, for every machine.
std::unique_ptr<Tactic> make_gather_nd(Isa isa) {
  return isa == Isa::kPortable ? std::make_unique<GatherNd>(isa) : nullptr;
}
std::unique_ptr<Tactic> make_gather_elements(Isa isa) {
  return isa == Isa::kPortable ? std::make_unique<GatherElements>(isa) : nullptr;
}

}  // namespace hone::backends::cpu
