// Pad in every mode, either layout, elements of 1 to 8 bytes: an index map a dimension, rows copied where the
// map is a run.
#include <algorithm>
#include <cstring>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/parallel.h"

namespace hone::backends::cpu {
namespace {

using Map = std::vector<int64_t>;  ///< source coordinate of each output coordinate, -1: the constant

/// One dimension's map; empty when the pads do not fit.
Map pad_map(const std::string& mode, int64_t extent, int64_t begin, int64_t end) {
  const int64_t low = std::max<int64_t>(0, -begin), n = extent - std::max<int64_t>(0, -end) - low;
  const int64_t before = std::max<int64_t>(0, begin), after = std::max<int64_t>(0, end);
  if (n < 0 || (n == 0 && mode != "constant")) return {};
  Map map;
  for (int64_t o = -before; o < n + after; ++o) {
    int64_t c = o;
    if (c < 0 || c >= n) {
      if (mode == "edge") {
        c = c < 0 ? 0 : n - 1;
      } else if (mode == "wrap") {
        c = (c % n + n) % n;
      } else if (mode == "reflect") {
        const int64_t period = n == 1 ? 1 : 2 * (n - 1);
        c = (c % period + period) % period;
        if (c >= n) c = period - c;
      } else {
        c = -1;
      }
    }
    map.push_back(c < 0 ? -1 : c + low);
  }
  return map;
}

/// Maps of all logical dimensions, or why not.
std::string pad_maps(const Problem& p, std::vector<Map>& maps) {
  const Shape& x = p.srcs[0].dims;
  const std::string mode = ir::attr_string(p.attrs, "mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "wrap" && mode != "reflect") return "mode: unknown";
  std::vector<int64_t> pads = ir::attr_ints(p.attrs, "pads"), axes;
  if (p.srcs.size() > 1 && p.srcs[1].present()) {
    if (!p.srcs[1].contents) return "pads: not constant";
    pads = *p.srcs[1].contents;
  }
  for (size_t d = 0; d < x.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  if (p.srcs.size() > 3 && p.srcs[3].present()) {
    if (!p.srcs[3].contents) return "axes: not constant";
    axes = *p.srcs[3].contents;
  }
  if (pads.size() != 2 * axes.size()) return "pads: wrong length";
  std::vector<int64_t> begin(x.size(), 0), end(x.size(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axis_in_range(axes[i], x)) return "axes: out of range";
    const auto a = static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(x.size()) : axes[i]);
    begin[a] = pads[i];
    end[a] = pads[i + axes.size()];
  }
  for (size_t d = 0; d < x.size(); ++d) {
    maps.push_back(pad_map(mode, x[d], begin[d], end[d]));
    if (static_cast<int64_t>(maps.back().size()) != p.dsts[0].dims[d] || maps.back().empty())
      return "pads: do not give the result's shape";
  }
  return "";
}

class PadPrepared final : public Prepared {
 public:
  explicit PadPrepared(const Problem& p)
      : bytes_(dtype_bits(p.dsts[0].dtype) / 8), has_value_(p.srcs.size() > 2 && p.srcs[2].present()) {
    std::vector<Map> logical;
    pad_maps(p, logical);
    const std::vector<int64_t> strides = ops::layout_strides(p.srcs[0].layout, p.srcs[0].dims);
    // Trailing dimensions that pass unchanged are one block of bytes.
    block_ = bytes_;
    bool whole = true;
    std::vector<int> order = ops::layout_order(p.srcs[0].layout, static_cast<int>(logical.size()));
    std::reverse(order.begin(), order.end());
    for (const int od : order) {
      const auto d = static_cast<size_t>(od);
      const Map& m = logical[d];
      whole = whole && static_cast<int64_t>(m.size()) == p.srcs[0].dims[d];
      for (size_t i = 0; whole && i < m.size(); ++i) whole = m[i] == static_cast<int64_t>(i);
      if (whole) {
        block_ *= p.srcs[0].dims[d];
        continue;
      }
      Map offsets;
      for (const int64_t c : m) offsets.push_back(c < 0 ? -1 : c * strides[d] * bytes_);
      maps_.insert(maps_.begin(), std::move(offsets));
    }
    if (maps_.empty()) maps_.push_back({0});
    for (size_t d = 0; d + 1 < maps_.size(); ++d) rows_ *= static_cast<int64_t>(maps_[d].size());
    find_run();
  }

  void run(const RunArgs& args) const override {
    const auto* src = static_cast<const char*>(args.srcs[0]);
    auto* dst = static_cast<char*>(args.dsts[0]);
    uint64_t value = 0;
    if (has_value_) std::memcpy(&value, args.srcs[2], static_cast<size_t>(bytes_));
    const Map& inner = maps_.back();
    const auto width = static_cast<int64_t>(inner.size());
    parallel_ranges(args, rows_, row_grain(width * block_, 65536), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t base = 0, rest = r;
        bool outside = false;
        for (size_t d = maps_.size() - 1; d-- > 0;) {
          const auto n = static_cast<int64_t>(maps_[d].size());
          const int64_t at = maps_[d][static_cast<size_t>(rest % n)];
          rest /= n;
          outside = outside || at < 0;
          base += at;
        }
        char* row = dst + r * width * block_;
        if (outside) {
          fill(row, value, width * block_);
          continue;
        }
        const auto one = [&](int64_t j) {
          const int64_t at = inner[static_cast<size_t>(j)];
          if (at < 0)
            fill(row + j * block_, value, block_);
          else
            std::memcpy(row + j * block_, src + base + at, static_cast<size_t>(block_));
        };
        for (int64_t j = 0; j < run_begin_; ++j) one(j);
        if (run_ > 0)
          std::memcpy(row + run_begin_ * block_, src + base + inner[static_cast<size_t>(run_begin_)],
                      static_cast<size_t>(run_ * block_));
        for (int64_t j = run_begin_ + run_; j < width; ++j) one(j);
      }
    });
  }

 private:
  /// The longest stretch of the innermost map that is one piece of the source.
  void find_run() {
    const Map& m = maps_.back();
    for (size_t j = 0; j < m.size();) {
      size_t k = j + 1;
      while (m[j] >= 0 && k < m.size() && m[k] == m[k - 1] + block_) ++k;
      if (m[j] >= 0 && static_cast<int64_t>(k - j) > run_) {
        run_ = static_cast<int64_t>(k - j);
        run_begin_ = static_cast<int64_t>(j);
      }
      j = k;
    }
  }

  void fill(char* to, uint64_t value, int64_t bytes) const {
    switch (bytes_) {
      case 1: std::memset(to, static_cast<int>(value & 0xFF), static_cast<size_t>(bytes)); break;
      case 2: std::fill_n(reinterpret_cast<uint16_t*>(to), bytes / 2, static_cast<uint16_t>(value)); break;
      case 4: std::fill_n(reinterpret_cast<uint32_t*>(to), bytes / 4, static_cast<uint32_t>(value)); break;
      default: std::fill_n(reinterpret_cast<uint64_t*>(to), bytes / 8, value); break;
    }
  }

  int bytes_;
  bool has_value_;
  int64_t block_ = 1, rows_ = 1, run_ = 0, run_begin_ = 0;
  std::vector<Map> maps_;  ///< byte offsets in the source, memory order
};

class Pad final : public CpuTactic {
 public:
  explicit Pad(Isa isa) : CpuTactic("pad_any_rows", isa, Numerics::kExact) {}
  void choose_layouts(Problem& p) const override {
    follow_layout(p);
    for (size_t i = 1; i < p.srcs.size(); ++i) p.srcs[i].layout = Layout::kPlain;
  }
  Support supports(const Problem& p) const override {
    if (!p.post.empty()) return Support::no("post-op: bytes are moved, not computed with");
    const int bits = dtype_bits(p.dsts[0].dtype);
    if (p.srcs[0].dtype != p.dsts[0].dtype || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
      return Support::no("dtype: elements of 1, 2, 4 or 8 bytes");
    if (p.srcs[0].dims.size() != p.dsts[0].dims.size() || numel(p.srcs[0].dims) == 0)
      return Support::no("shape: empty, or ranks differ");
    if (p.srcs[0].layout != p.dsts[0].layout) return Support::no("layout: source and result differ");
    std::vector<Map> maps;
    const std::string why = pad_maps(p, maps);
    return why.empty() ? Support::yes() : Support::no(why);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<PadPrepared>(p);
  }
};

}  // namespace

std::unique_ptr<Tactic> make_pad(Isa isa) {
  if (isa != Isa::kPortable) return nullptr;
  return std::make_unique<Pad>(isa);
}

}  // namespace hone::backends::cpu
