// Operators that only move elements to computable places: Concat, Split, Slice, Transpose, Identity, Expand,
// Tile, DepthToSpace, SpaceToDepth. Each is a list of strided copies; any element type of whole bytes, any
// mix of layouts.
#include <algorithm>
#include <numeric>

#include "backends/cpu/axis_view.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/reorder.h"
#include "base/thread_pool.h"

namespace hone::backends::cpu {
namespace {

using Dims = std::vector<int64_t>;

/// One strided copy between a source and a destination; offsets and strides in elements.
struct Move {
  size_t src = 0, dst = 0;
  int64_t src_at = 0, dst_at = 0;
  Dims dims, src_strides, dst_strides;
};

Dims strides_of(const Operand& o) { return ops::layout_strides(o.layout, o.dims); }

int64_t wrap_axis(const Problem& p, int64_t fallback, size_t rank) {
  const int64_t axis = ir::attr_int(p.attrs, "axis", fallback);
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

std::string concat(const Problem& p, std::vector<Move>& moves) {
  const Operand& y = p.dsts[0];
  const int64_t axis = wrap_axis(p, 0, y.dims.size());
  if (axis < 0 || axis >= static_cast<int64_t>(y.dims.size())) return "axis: out of range";
  const Dims to = strides_of(y);
  int64_t at = 0;
  for (size_t i = 0; i < p.srcs.size(); ++i) {
    const Operand& x = p.srcs[i];
    if (!x.present() || x.dims.size() != y.dims.size()) return "shape: sources differ in rank";
    moves.push_back({i, 0, 0, at * to[static_cast<size_t>(axis)], x.dims, strides_of(x), to});
    at += x.dims[static_cast<size_t>(axis)];
  }
  return at == y.dims[static_cast<size_t>(axis)] ? "" : "shape: extents do not add up";
}

std::string split(const Problem& p, std::vector<Move>& moves) {
  const Operand& x = p.srcs[0];
  const int64_t axis = wrap_axis(p, 0, x.dims.size());
  if (axis < 0 || axis >= static_cast<int64_t>(x.dims.size())) return "axis: out of range";
  const Dims from = strides_of(x);
  int64_t at = 0;
  for (size_t i = 0; i < p.dsts.size(); ++i) {
    const Operand& y = p.dsts[i];
    if (!y.present()) return "outputs: one is not wanted";
    if (y.dims.size() != x.dims.size()) return "shape: results differ in rank";
    moves.push_back({0, i, at * from[static_cast<size_t>(axis)], 0, y.dims, from, strides_of(y)});
    at += y.dims[static_cast<size_t>(axis)];
  }
  return at == x.dims[static_cast<size_t>(axis)] ? "" : "shape: extents do not add up";
}

std::string slice(const Problem& p, std::vector<Move>& moves) {
  const Operand &x = p.srcs[0], &y = p.dsts[0];
  const auto ints = [&](size_t i) {
    return i < p.srcs.size() && p.srcs[i].present() ? p.srcs[i].contents : std::nullopt;
  };
  const auto given = [&](size_t i) { return i < p.srcs.size() && p.srcs[i].present(); };
  for (size_t i = 1; i < 5; ++i)
    if ((i < 3 || given(i)) && !ints(i)) return "starts, ends, axes or steps: not constant";
  const Dims starts = *ints(1);
  Dims axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (given(3)) axes = *ints(3);
  if (given(4)) steps = *ints(4);
  if (axes.size() != starts.size() || steps.size() != starts.size() || y.dims.size() != x.dims.size())
    return "starts: lengths differ";
  Move m{0, 0, 0, 0, y.dims, strides_of(x), strides_of(y)};
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axis_in_range(axes[i], x.dims) || steps[i] == 0) return "axes or steps: out of range";
    const auto a = static_cast<size_t>(axes[i] < 0 ? axes[i] + static_cast<int64_t>(x.dims.size()) : axes[i]);
    const int64_t n = x.dims[a];
    int64_t start = starts[i] < 0 ? starts[i] + n : starts[i];
    start = std::clamp<int64_t>(start, 0, std::max<int64_t>(0, steps[i] > 0 ? n : n - 1));
    if (y.dims[a] == 0) continue;
    if (start + (y.dims[a] - 1) * steps[i] < 0 || start + (y.dims[a] - 1) * steps[i] >= n)
      return "shape: the result reaches outside";
    m.src_at += start * m.src_strides[a];
    m.src_strides[a] *= steps[i];
  }
  moves.push_back(std::move(m));
  return "";
}

std::string transpose(const Problem& p, std::vector<Move>& moves) {
  const Operand &x = p.srcs[0], &y = p.dsts[0];
  Dims reversed(x.dims.size());
  for (size_t d = 0; d < reversed.size(); ++d) reversed[d] = static_cast<int64_t>(reversed.size() - 1 - d);
  const Dims perm = ir::attr_ints(p.attrs, "perm", reversed);
  if (perm.size() != x.dims.size() || y.dims.size() != x.dims.size()) return "perm: wrong length";
  const Dims from = strides_of(x);
  Move m{0, 0, 0, 0, y.dims, Dims(perm.size()), strides_of(y)};
  for (size_t d = 0; d < perm.size(); ++d) {
    if (perm[d] < 0 || perm[d] >= static_cast<int64_t>(perm.size())) return "perm: out of range";
    if (x.dims[static_cast<size_t>(perm[d])] != y.dims[d])
      return "shape: the result is not the permuted source";
    m.src_strides[d] = from[static_cast<size_t>(perm[d])];
  }
  moves.push_back(std::move(m));
  return "";
}

std::string identity(const Problem& p, std::vector<Move>& moves) {
  const Operand &x = p.srcs[0], &y = p.dsts[0];
  if (x.dims != y.dims) return "shape: source and result differ";
  moves.push_back({0, 0, 0, 0, y.dims, strides_of(x), strides_of(y)});
  return "";
}

std::string expand(const Problem& p, std::vector<Move>& moves) {
  const Operand &x = p.srcs[0], &y = p.dsts[0];
  if (x.dims.size() > y.dims.size()) return "shape: the source has more dimensions";
  const Dims from = strides_of(x);
  const size_t lead = y.dims.size() - x.dims.size();
  Move m{0, 0, 0, 0, y.dims, Dims(y.dims.size(), 0), strides_of(y)};
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (x.dims[d] == y.dims[lead + d])
      m.src_strides[lead + d] = from[d];
    else if (x.dims[d] != 1)
      return "shape: does not broadcast";
  }
  moves.push_back(std::move(m));
  return "";
}

std::string tile(const Problem& p, std::vector<Move>& moves) {
  const Operand &x = p.srcs[0], &y = p.dsts[0];
  if (x.dims.size() != y.dims.size()) return "shape: ranks differ";
  const Dims from = strides_of(x), to = strides_of(y);
  Move m;
  for (size_t d = 0; d < x.dims.size(); ++d) {
    if (x.dims[d] == 0 ? y.dims[d] != 0 : y.dims[d] % x.dims[d] != 0) return "shape: not a multiple";
    const int64_t repeats = x.dims[d] == 0 ? 0 : y.dims[d] / x.dims[d];
    m.dims.insert(m.dims.end(), {repeats, x.dims[d]});
    m.src_strides.insert(m.src_strides.end(), {0, from[d]});
    m.dst_strides.insert(m.dst_strides.end(), {to[d] * x.dims[d], to[d]});
  }
  moves.push_back(std::move(m));
  return "";
}

/// Both directions are one copy over n, c, block row, block column, h, w; `deep` has the blocks in its
/// channels.
std::string depth_space(const Problem& p, std::vector<Move>& moves) {
  const bool to_space = p.op == "DepthToSpace";
  const Operand &deep = to_space ? p.srcs[0] : p.dsts[0], &wide = to_space ? p.dsts[0] : p.srcs[0];
  const int64_t b = ir::attr_int(p.attrs, "blocksize", 0);
  if (deep.dims.size() != 4 || wide.dims.size() != 4 || b < 1)
    return "shape: rank 4 and a block size are needed";
  const int64_t c = wide.dims[1];
  if (deep.dims[1] != c * b * b || wide.dims[2] != deep.dims[2] * b || wide.dims[3] != deep.dims[3] * b)
    return "shape: blocks do not fit";
  const Dims ds = strides_of(deep), ws = strides_of(wide);
  const bool crd = ir::attr_string(p.attrs, "mode", "DCR") == "CRD";  // SpaceToDepth has it since 28
  Move m;
  m.dims = {deep.dims[0], c, b, b, deep.dims[2], deep.dims[3]};
  const Dims d = crd ? Dims{ds[0], ds[1] * b * b, ds[1] * b, ds[1], ds[2], ds[3]}
                     : Dims{ds[0], ds[1], ds[1] * b * c, ds[1] * c, ds[2], ds[3]};
  const Dims w{ws[0], ws[1], ws[2], ws[3], ws[2] * b, ws[3] * b};
  m.src_strides = to_space ? d : w;
  m.dst_strides = to_space ? w : d;
  moves.push_back(std::move(m));
  return "";
}

struct Mover {
  const char* op;
  std::string (*make)(const Problem&, std::vector<Move>&);
};
constexpr Mover kMovers[] = {
    {"Concat", concat},           {"Split", split},   {"Slice", slice}, {"Transpose", transpose},
    {"Identity", identity},       {"Expand", expand}, {"Tile", tile},   {"DepthToSpace", depth_space},
    {"SpaceToDepth", depth_space}};

std::string make_moves(const Problem& p, std::vector<Move>& moves) {
  for (const Mover& m : kMovers)
    if (p.op == m.op) return m.make(p, moves);
  return "operator: no copy";
}

class CopyPrepared final : public Prepared {
 public:
  CopyPrepared(const Problem& p, Isa isa) : bytes_(dtype_bits(p.dsts[0].dtype) / 8) {
    make_moves(p, moves_);
    for (const Move& m : moves_) copies_.emplace_back(isa, bytes_, m.dims, m.src_strides, m.dst_strides);
    first_chunk_.push_back(0);
    for (const auto& c : copies_) first_chunk_.push_back(first_chunk_.back() + c.n_chunks());
  }

  /// All copies in one parallel loop: a Concat of many small sources pays one barrier.
  void run(const RunArgs& args) const override {
    const auto piece = [&](int64_t chunk, int) {
      const auto i = static_cast<size_t>(std::upper_bound(first_chunk_.begin(), first_chunk_.end(), chunk) -
                                         first_chunk_.begin() - 1);
      const Move& m = moves_[i];
      copies_[i].run_chunk(static_cast<const char*>(args.srcs[m.src]) + m.src_at * bytes_,
                           static_cast<char*>(args.dsts[m.dst]) + m.dst_at * bytes_, chunk - first_chunk_[i]);
    };
    const int64_t chunks = first_chunk_.back();
    if (chunks <= static_cast<int64_t>(copies_.size()) || args.max_threads <= 1)
      for (int64_t c = 0; c < chunks; ++c) piece(c, 0);
    else
      args.pool->parallel_for(chunks, piece, args.max_threads);
  }

 private:
  int bytes_;
  std::vector<Move> moves_;
  std::vector<hone::cpu::StridedCopy> copies_;
  std::vector<int64_t> first_chunk_;
};

bool is_last(const Operand& o) { return o.layout == Layout::kChannelsLast && o.dims.size() >= 3; }

class Copy final : public CpuTactic {
 public:
  explicit Copy(Isa isa) : CpuTactic("copy_any_strided", isa, Numerics::kExact) {}

  /// Sources are read as they lie. The result takes the layout that most of its bytes have already.
  void choose_layouts(Problem& p) const override {
    for (size_t i = 0; i < p.srcs.size(); ++i)
      if (!p.srcs[i].present() || p.srcs[i].constant || (i > 0 && p.op != "Concat"))
        p.srcs[i].layout = Layout::kPlain;
    for (Operand& o : p.dsts) o.layout = Layout::kPlain;
    if (p.op == "Transpose") {
      // A permutation that channels-last already performs is a plain copy.
      p.dsts[0].layout = p.dsts[0].dims.size() >= 3 ? Layout::kChannelsLast : Layout::kPlain;
      std::vector<Move> moves;
      if (make_moves(p, moves).empty() && moves[0].src_strides == moves[0].dst_strides) return;
      p.dsts[0].layout = Layout::kPlain;
      return;
    }
    const size_t rank = p.dsts[0].dims.size();
    if (rank < 3) return;
    int64_t last = 0, plain = 0;
    for (const Operand& o : p.srcs)
      if (o.present() && !o.constant && o.dims.size() == rank) (is_last(o) ? last : plain) += numel(o.dims);
    if (last > plain)
      for (Operand& o : p.dsts) o.layout = Layout::kChannelsLast;
  }

  Support supports(const Problem& p) const override {
    if (p.srcs.empty() || p.dsts.empty()) return Support::no("sources: none");
    if (!p.post.empty()) return Support::no("post-op: bytes are moved, not computed with");
    const DType t = p.dsts[0].dtype;
    const int bits = dtype_bits(t);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
      return Support::no("dtype: elements of 1, 2, 4 or 8 bytes");
    if (p.srcs[0].dtype != t) return Support::no("dtype: source and result differ");
    std::vector<Move> moves;
    const std::string why = make_moves(p, moves);
    return why.empty() ? Support::yes() : Support::no(why);
  }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<CopyPrepared>(p, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_copy(Isa isa) { return std::make_unique<Copy>(isa); }

}  // namespace hone::backends::cpu
