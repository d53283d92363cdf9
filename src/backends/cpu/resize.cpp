// Resize in either layout. In memory order the dimensions are: those before the last one that changes size
// (`rows`, each output row a weighted sum of input rows), that one (`across`), and the rest (`inner`, kept as
// it is: the channels of channels-last).
//
// Scales and crops are floats, which a problem does not carry: tables of indices and weights are made at the
// first run and kept while those inputs stay the same, which constants do.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/resize.h"
#include "backends/cpu/parallel.h"
#include "hone/error.h"
#include "ops/interpreter.h"
#include "ops/resize_taps.h"

namespace hone::backends::cpu {
namespace {

using ops::ResizeAxis;
using ops::ResizeCoordinates;
using ops::ResizeMode;
using ops::ResizeOptions;
using ops::ResizeTaps;

enum Input : size_t { kX, kRoi, kScales, kSizes };

/// An empty tensor means absent.
bool given(const Problem& p, size_t i) {
  return i < p.num_anchor_srcs && p.srcs[i].present() && numel(p.srcs[i].dims) > 0;
}

std::optional<ResizeOptions> read_options(const Problem& p) {
  const auto text = [&](const char* name, const char* fallback) {
    return ir::attr_string(p.attrs, name, fallback);
  };
  const auto mode = ops::parse_resize_mode(text("mode", "nearest"));
  const auto nearest = ops::parse_resize_nearest(text("nearest_mode", "round_prefer_floor"));
  const auto coordinates =
      ops::parse_resize_coordinates(text("coordinate_transformation_mode", "half_pixel"));
  if (!mode || !nearest || !coordinates) return std::nullopt;
  ResizeOptions o;
  o.mode = *mode;
  o.nearest = *nearest;
  o.coordinates = *coordinates;
  o.cubic_a = ir::attr_float(p.attrs, "cubic_coeff_a", -0.75F);
  o.exclude_outside = ir::attr_int(p.attrs, "exclude_outside", 0) != 0;
  o.antialias = ir::attr_int(p.attrs, "antialias", 0) != 0;
  return o;
}

/// The dimensions that scales and sizes speak of; nullopt when they are no dimensions of x.
std::optional<std::vector<size_t>> read_axes(const Problem& p) {
  const auto rank = static_cast<int64_t>(p.srcs[kX].dims.size());
  std::vector<int64_t> named = ir::attr_ints(p.attrs, "axes");
  if (!p.attrs.contains("axes"))
    for (int64_t d = 0; d < rank; ++d) named.push_back(d);
  std::vector<size_t> axes;
  for (const int64_t a : named) {
    if (a < -rank || a >= rank) return std::nullopt;
    axes.push_back(static_cast<size_t>(a < 0 ? a + rank : a));
    if (std::count(axes.begin(), axes.end(), axes.back()) > 1) return std::nullopt;
  }
  return axes;
}

[[noreturn]] void bad_data(const std::string& message) {
  throw Error(ErrorCode::kInvalidData, "Resize: " + message);
}

/// What an input says at run time.
struct Parameters {
  std::vector<float> roi, scales;
  std::vector<int64_t> sizes;
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

template <class T>
std::vector<T> read_input(const Problem& p, const RunArgs& args, size_t i) {
  if (!given(p, i)) return {};
  const auto* data = static_cast<const T*>(args.srcs[i]);
  return std::vector<T>(data, data + numel(p.srcs[i].dims));
}

/// Extents, scales and crops of every dimension, as ops/resize.cpp has them.
std::vector<ResizeAxis> bind_axes(const Problem& p, const ResizeOptions& o, const Parameters& in) {
  std::vector<ResizeAxis> all;
  for (const int64_t d : p.srcs[kX].dims) all.push_back({.in = d, .out = d, .scale = 1, .from_sizes = true});
  const std::vector<size_t> at = *read_axes(p);
  const bool crop = o.coordinates == ResizeCoordinates::kTfCropAndResize;
  const std::string policy = ir::attr_string(p.attrs, "keep_aspect_ratio_policy", "stretch");
  double common = 1;
  if (!in.sizes.empty() && policy != "stretch") {
    for (size_t i = 0; i < at.size(); ++i) {
      const double s = static_cast<double>(in.sizes[i]) / static_cast<double>(all[at[i]].in);
      common = i == 0 ? s : policy == "not_larger" ? std::min(common, s) : std::max(common, s);
    }
  }
  for (size_t i = 0; i < at.size(); ++i) {
    ResizeAxis& a = all[at[i]];
    if (crop) {
      a.roi_start = static_cast<double>(in.roi[i]);
      a.roi_end = static_cast<double>(in.roi[i + at.size()]);
    }
    if (!in.sizes.empty()) {
      a.from_sizes = policy == "stretch";
      a.scale = common;
      a.out = a.from_sizes ? in.sizes[i]
                           : static_cast<int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
    } else {
      a.from_sizes = false;
      a.scale = static_cast<double>(in.scales[i]);
      const double extent = a.scale * (crop ? a.roi_end - a.roi_start : 1.0);
      if (!(a.scale > 0) || !(std::fabs(extent) < 1e12))
        bad_data("scale " + std::to_string(a.scale) + " of dimension " + std::to_string(at[i]) +
                 " is out of range");
      a.out = static_cast<int64_t>(std::floor(
          static_cast<float>(a.in) * static_cast<float>(extent)));  // in f32, as every runtime has it
    }
  }
  for (size_t d = 0; d < all.size(); ++d)
    if (all[d].out != p.dsts[0].dims[d])
      bad_data("dimension " + std::to_string(d) + " becomes " + std::to_string(all[d].out) +
               ", the plan has " + std::to_string(p.dsts[0].dims[d]));
  return all;
}

/// Sampling tables in memory order.
struct Tables {
  std::vector<ResizeTaps> rows;      ///< of the dimensions before `across`; neighbours that are kept are one
  std::vector<int64_t> row_extents;  ///< of the output
  std::vector<int64_t> row_strides;  ///< of the input, in elements
  int64_t n_rows = 1, in = 1, out = 1, inner = 1;
  ResizeTaps across;
  int taps = 1;                  ///< most taps of an output of `across`
  std::vector<int32_t> index;    ///< [taps][out]
  std::vector<float> weight;     ///< [taps][out]; 0 fills up
  std::vector<int64_t> outside;  ///< outputs of `across` without taps
  int64_t repeat = 0;            ///< nearest: output i takes input i / repeat, or 0

  Tables(const Problem& p, const ResizeOptions& options, const Parameters& in_values) {
    const std::vector<ResizeAxis> axes = bind_axes(p, options, in_values);
    const std::vector<int> order = ops::layout_order(p.srcs[kX].layout, static_cast<int>(axes.size()));
    std::vector<ResizeTaps> all;
    size_t last = 0;
    for (size_t k = 0; k < order.size(); ++k) {
      const ResizeAxis& a = axes[static_cast<size_t>(order[k])];
      ResizeOptions o = options;
      if (a.in == a.out && a.from_sizes && a.roi_start == 0 && a.roi_end == 1) {  // not resized
        o.coordinates = ResizeCoordinates::kAsymmetric;
        o.mode = ResizeMode::kNearest;
      }
      all.push_back(ops::resize_taps(a, o));
      if (!all.back().identity) last = k;
    }
    for (size_t k = order.size(); k-- > 0;) {
      const ResizeAxis& a = axes[static_cast<size_t>(order[k])];
      if (k > last) {
        inner *= a.in;
      } else if (k == last) {
        in = a.in;
        out = a.out;
      } else {
        n_rows *= a.out;
        if (!rows.empty() && rows.front().identity && all[k].identity) {  // kept dimensions are one
          row_extents.front() *= a.out;
          continue;
        }
        row_strides.insert(row_strides.begin(), stride(axes, order, k));
        row_extents.insert(row_extents.begin(), a.out);
        rows.insert(rows.begin(), std::move(all[k]));
      }
    }
    across = std::move(all[last]);
    spread_taps(options.mode == ResizeMode::kNearest);
  }

  /// Nearest: the offset of the one input row that output row `row` takes, -1 outside the crop.
  int64_t source_row(int64_t row) const {
    int64_t at = 0;
    for (size_t d = rows.size(); d-- > 0;) {
      const int64_t rest = row / row_extents[d], o = row - rest * row_extents[d];
      row = rest;
      if (rows[d].identity) {
        at += o * row_strides[d];
        continue;
      }
      const int64_t begin = rows[d].begin[static_cast<size_t>(o)];
      if (begin == rows[d].begin[static_cast<size_t>(o) + 1]) return -1;
      at += rows[d].index[static_cast<size_t>(begin)] * row_strides[d];
    }
    return at;
  }

 private:
  static int64_t stride(const std::vector<ResizeAxis>& axes, const std::vector<int>& order, size_t k) {
    int64_t s = 1;
    for (size_t j = k + 1; j < order.size(); ++j) s *= axes[static_cast<size_t>(order[j])].in;
    return s;
  }

  void spread_taps(bool nearest) {
    for (int64_t o = 0; o < out; ++o) {
      const auto count =
          static_cast<int>(across.begin[static_cast<size_t>(o) + 1] - across.begin[static_cast<size_t>(o)]);
      taps = std::max(taps, count);
      if (count == 0) outside.push_back(o);
    }
    index.assign(static_cast<size_t>(taps * out), 0);
    weight.assign(static_cast<size_t>(taps * out), 0.0F);
    for (int64_t o = 0; o < out; ++o) {
      const int64_t begin = across.begin[static_cast<size_t>(o)],
                    end = across.begin[static_cast<size_t>(o) + 1];
      for (int64_t t = begin; t < end; ++t) {
        const auto at = static_cast<size_t>((t - begin) * out + o);
        index[at] = static_cast<int32_t>(across.index[static_cast<size_t>(t)]);
        weight[at] = static_cast<float>(across.weight[static_cast<size_t>(t)]);
      }
    }
    if (!nearest || !outside.empty() || in == 0 || out % in != 0) return;
    const int64_t times = out / in;
    for (int64_t o = 0; o < out; ++o)
      if (index[static_cast<size_t>(o)] != o / times) return;
    repeat = times;
  }
};

/// The input rows that make one output row.
struct RowTaps {
  std::vector<int64_t> offsets;
  std::vector<double> weights;

  /// False when the row lies outside the crop.
  bool collect(const Tables& t, int64_t row) {
    offsets.assign(1, 0);
    weights.assign(1, 1.0);
    for (size_t d = t.rows.size(); d-- > 0;) {
      const auto o = static_cast<size_t>(row % t.row_extents[d]);
      row /= t.row_extents[d];
      const ResizeTaps& taps = t.rows[d];
      if (taps.identity) {
        for (int64_t& at : offsets) at += static_cast<int64_t>(o) * t.row_strides[d];
        continue;
      }
      const auto begin = static_cast<size_t>(taps.begin[o]), end = static_cast<size_t>(taps.begin[o + 1]);
      if (begin == end) return false;
      const size_t have = offsets.size();
      for (size_t k = end; k-- > begin;)  // the first tap last, since it replaces what the others copy
        for (size_t i = 0; i < have; ++i) {
          const int64_t at = offsets[i] + taps.index[k] * t.row_strides[d];
          const double w = weights[i] * taps.weight[k];
          if (k == begin) {
            offsets[i] = at;
            weights[i] = w;
          } else {
            offsets.push_back(at);
            weights.push_back(w);
          }
        }
    }
    return true;
  }
};

/// Every element twice: a pair is one wider element, and blocks of constant length become vectors.
template <class T>
void double_row(const T* row, T* dst, int64_t n) {
  int64_t i = 0;
  if constexpr (sizeof(T) < 8) {
    using Pair =
        std::conditional_t<sizeof(T) == 1, uint16_t, std::conditional_t<sizeof(T) == 2, uint32_t, uint64_t>>;
    constexpr int64_t kBlock = 16;
    for (; i + kBlock <= n; i += kBlock) {
      Pair pairs[kBlock];
      for (int64_t j = 0; j < kBlock; ++j) {
        const Pair x = row[i + j];
        pairs[j] = static_cast<Pair>(x | static_cast<Pair>(x << (8 * sizeof(T))));
      }
      std::memcpy(dst + 2 * i, pairs, sizeof pairs);
    }
  }
  for (; i < n; ++i) dst[2 * i] = dst[2 * i + 1] = row[i];
}

template <class T>
void gather_row(const T* row, T* dst, const Tables& t) {
  if (t.repeat == 2) {
    double_row(row, dst, t.in);
  } else {
    const int32_t* index = t.index.data();
    for (int64_t o = 0; o < t.out; ++o) dst[o] = row[index[o]];
  }
}

class ResizePrepared final : public Prepared {
 public:
  ResizePrepared(const Problem& p, Isa isa)
      : p_(p),
        options_(*read_options(p)),
        width_(dtype_bits(p.srcs[kX].dtype) / 8),
        total_(numel(p.dsts[0].dims)),
        workers_(ThreadPool::process().n_threads()),
        blend_(HONE_PICK_ISA(isa, blend_rows)),
        sample_(HONE_PICK_ISA(isa, sample_row)) {
    value_ = ops::convert(Tensor::f32_scalar(ir::attr_float(p.attrs, "extrapolation_value", 0.0F)),
                          p.srcs[kX].dtype);
    for (const int64_t d : p.srcs[kX].dims) longest_ = std::max(longest_, d);
  }

  int64_t workspace_bytes() const override {
    return options_.mode == ResizeMode::kNearest ? 0 : workers_ * scratch_bytes();
  }

  void run(const RunArgs& args) const override {
    if (total_ == 0) return;
    const std::shared_ptr<const Tables> tables = bind(args);
    const Tables& t = *tables;
    const int64_t row = t.out * t.inner,
                  grain = row_grain(row * (options_.mode == ResizeMode::kNearest ? 1 : 2 * t.taps), 32768);
    args.pool->parallel_for((t.n_rows + grain - 1) / grain,
                            [&](int64_t chunk, int worker) {
                              const int64_t begin = chunk * grain, end = std::min(t.n_rows, begin + grain);
                              if (options_.mode == ResizeMode::kNearest)
                                move_rows(args, t, begin, end);
                              else
                                filter_rows(args, t, begin, end,
                                            reinterpret_cast<float*>(static_cast<char*>(args.workspace) +
                                                                     worker * scratch_bytes()));
                            },
                            std::min(args.max_threads, workers_));
  }

 private:
  int64_t scratch_bytes() const { return (longest_ * 4 + 63) / 64 * 64; }

  std::shared_ptr<const Tables> bind(const RunArgs& args) const {
    Parameters now;
    if (options_.coordinates == ResizeCoordinates::kTfCropAndResize)
      now.roi = read_input<float>(p_, args, kRoi);
    now.sizes = read_input<int64_t>(p_, args, kSizes);
    if (now.sizes.empty()) now.scales = read_input<float>(p_, args, kScales);
    const std::lock_guard lock(mutex_);
    if (tables_ == nullptr || !(now == bound_)) {
      tables_ = std::make_shared<const Tables>(p_, options_, now);
      bound_ = std::move(now);
    }
    return tables_;
  }

  /// Nearest: bytes move.
  void move_rows(const RunArgs& args, const Tables& t, int64_t begin, int64_t end) const {
    const auto* src = static_cast<const char*>(args.srcs[kX]);
    const int64_t row_bytes = t.out * t.inner * width_;
    char* dst = static_cast<char*>(args.dsts[0]) + begin * row_bytes;
    int64_t before = -1;
    for (int64_t r = begin; r < end; ++r, dst += row_bytes) {
      const int64_t at = t.source_row(r);
      if (at >= 0 && at == before) {
        std::memcpy(dst, dst - row_bytes, static_cast<size_t>(row_bytes));
        continue;
      }
      before = at;
      if (at < 0) {
        fill(dst, t.out * t.inner);
        continue;
      }
      move_row(src + at * width_, dst, t);
      for (const int64_t o : t.outside) fill(dst + o * t.inner * width_, t.inner);
    }
  }

  void move_row(const char* row, char* dst, const Tables& t) const {
    const auto as = [&]<class T>(T*) {
      gather_row(reinterpret_cast<const T*>(row), reinterpret_cast<T*>(dst), t);
    };
    const int64_t bytes = t.inner * width_;
    switch (bytes) {
      case 1: return as(static_cast<uint8_t*>(nullptr));
      case 2:
        if (width_ == 2) return as(static_cast<uint16_t*>(nullptr));
        break;
      case 4:
        if (width_ == 4) return as(static_cast<uint32_t*>(nullptr));
        break;
      case 8:
        if (width_ == 8) return as(static_cast<uint64_t*>(nullptr));
        break;
      default: break;
    }
    for (int64_t o = 0; o < t.out; ++o)
      std::memcpy(dst + o * bytes, row + t.index[static_cast<size_t>(o)] * bytes, static_cast<size_t>(bytes));
  }

  void fill(char* dst, int64_t count) const {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(dst + i * width_, value_.raw(), static_cast<size_t>(width_));
  }

  /// Linear and cubic.
  void filter_rows(const RunArgs& args, const Tables& t, int64_t begin, int64_t end, float* blended) const {
    const auto* src = static_cast<const float*>(args.srcs[kX]);
    float* dst = static_cast<float*>(args.dsts[0]) + begin * t.out * t.inner;
    const float value = *value_.data<float>();
    RowTaps taps;
    std::vector<const float*> rows;
    std::vector<float> weights;
    for (int64_t r = begin; r < end; ++r, dst += t.out * t.inner) {
      if (!taps.collect(t, r)) {
        std::fill_n(dst, t.out * t.inner, value);
        continue;
      }
      if (t.inner > 1) {
        for (int64_t o = 0; o < t.out; ++o) blend_pixel(src, t, taps, o, dst + o * t.inner, &rows, &weights);
      } else {
        const float* row = src + taps.offsets[0];
        if (taps.offsets.size() > 1 || taps.weights[0] != 1) {
          rows.clear();
          for (const int64_t at : taps.offsets) rows.push_back(src + at);
          weights.assign(taps.weights.begin(), taps.weights.end());
          blend_(blended, rows.data(), weights.data(), static_cast<int>(rows.size()), t.in);
          row = blended;
        }
        if (t.across.identity)
          std::copy_n(row, t.out, dst);
        else
          sample_(dst, row, t.index.data(), t.weight.data(), t.taps, t.out);
      }
      for (const int64_t o : t.outside) std::fill_n(dst + o * t.inner, t.inner, value);
    }
  }

  /// Every tap of rows and across at once: inner values stay together.
  void blend_pixel(const float* src, const Tables& t, const RowTaps& taps, int64_t o, float* dst,
                   std::vector<const float*>* rows, std::vector<float>* weights) const {
    const auto begin = static_cast<size_t>(t.across.begin[static_cast<size_t>(o)]),
               end = static_cast<size_t>(t.across.begin[static_cast<size_t>(o) + 1]);
    if (begin == end) return;  // outside
    rows->clear();
    weights->clear();
    for (size_t i = 0; i < taps.offsets.size(); ++i)
      for (size_t k = begin; k < end; ++k) {
        rows->push_back(src + taps.offsets[i] + t.across.index[k] * t.inner);
        weights->push_back(static_cast<float>(taps.weights[i] * t.across.weight[k]));
      }
    if (rows->size() == 1 && weights->front() == 1)
      std::copy_n(rows->front(), t.inner, dst);
    else
      blend_(dst, rows->data(), weights->data(), static_cast<int>(rows->size()), t.inner);
  }

  Problem p_;
  ResizeOptions options_;
  int64_t width_, total_, longest_ = 1;
  int workers_;
  decltype(&hone::cpu::portable::blend_rows) blend_;
  decltype(&hone::cpu::portable::sample_row) sample_;
  Tensor value_;  ///< one element outside the crop
  mutable std::mutex mutex_;
  mutable Parameters bound_;
  mutable std::shared_ptr<const Tables> tables_;
};

class Resize final : public CpuTactic {
 public:
  explicit Resize(Isa isa) : CpuTactic("resize_taps", isa, Numerics::kReassociates) {}
  void choose_layouts(Problem& p) const override {
    follow_layout(p);
    for (size_t i = 1; i < p.srcs.size(); ++i) p.srcs[i].layout = Layout::kPlain;
  }
  Support supports(const Problem& p) const override {
    if (p.srcs.empty() || !p.srcs[kX].present() || p.dsts.empty()) return Support::no("sources: none");
    const Operand& x = p.srcs[kX];
    if (!p.post.empty()) return Support::no("post-op: Resize takes none");
    if (x.dims.empty() || x.dims.size() != p.dsts[0].dims.size())
      return Support::no("rank: a scalar, or source and result differ");
    if (x.dtype != p.dsts[0].dtype) return Support::no("dtype: source and result differ");
    if (x.layout != p.dsts[0].layout) return Support::no("layout: source and result differ");
    const auto options = read_options(p);
    if (!options) return Support::no("mode: mode, nearest_mode or coordinate_transformation_mode is unknown");
    if (options->mode == ResizeMode::kNearest
            ? dtype_bits(x.dtype) % 8 != 0 || dtype_bits(x.dtype) > 64 || dtype_bits(x.dtype) == 0
            : x.dtype != DType::kF32)
      return Support::no(std::string("dtype: ") + dtype_name(x.dtype) + " in this mode");
    const std::string policy = ir::attr_string(p.attrs, "keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
      return Support::no("keep_aspect_ratio_policy: '" + policy + "'");
    const auto axes = read_axes(p);
    if (!axes) return Support::no("axes: out of range or named twice");
    const auto n = static_cast<int64_t>(axes->size());
    if (given(p, kSizes)) {
      if (p.srcs[kSizes].dtype != DType::kI64 || numel(p.srcs[kSizes].dims) != n)
        return Support::no("sizes: not one i64 an axis");
    } else if (!given(p, kScales)) {
      return Support::no("scales: neither scales nor sizes");
    } else if (p.srcs[kScales].dtype != DType::kF32 || numel(p.srcs[kScales].dims) != n) {
      return Support::no("scales: not one f32 an axis");
    }
    if (options->coordinates == ResizeCoordinates::kTfCropAndResize &&
        (!given(p, kRoi) || p.srcs[kRoi].dtype != DType::kF32 || numel(p.srcs[kRoi].dims) != 2 * n))
      return Support::no("roi: not two f32 an axis");
    for (const int64_t d : x.dims) {
      if (d == 0 && numel(p.dsts[0].dims) > 0) return Support::no("shape: nothing to resize from");
      if (d > INT32_MAX) return Support::no("shape: a dimension of 2^31 or more");
    }
    return Support::yes();
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<ResizePrepared>(p, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_resize(Isa isa) { return std::make_unique<Resize>(isa); }

}  // namespace hone::backends::cpu
