#include "backends/cpu/pw_runner.h"

#include <algorithm>
#include <numeric>

#include "hone/error.h"

namespace hone::backends::cpu {

using hone::cpu::PwForm;
using hone::cpu::PwTail;
using ops::Act;
using ops::PostOp;
using ops::PwInstr;
using ops::PwOp;
using ops::PwProgram;

namespace {

/// Rows shorter than this are walked several at a time, with their broadcast operands written out.
constexpr int64_t kShortRow = 128;

/// An instruction after peepholes: up to three operands and a tail.
struct PwNode {
  enum class Kind : uint8_t { kAct, kBinary, kMulAdd, kConst, kDead } kind = Kind::kDead;
  PwOp op = PwOp::kAdd;
  Act act = Act::kIdentity;
  int a = -1, b = -1, c = -1;
  float alpha = 0, beta = 0;
  PwTail tail = PwTail::kNoTail;
  bool one = false;
};

bool is_binary(PwOp op) { return op != PwOp::kAct && op != PwOp::kConst; }

int binary_index(PwOp op) { return static_cast<int>(op) - static_cast<int>(PwOp::kAdd); }

std::vector<PwNode> plain_nodes(const PwProgram& program) {
  std::vector<PwNode> nodes;
  for (const PwInstr& in : program.instrs) {
    PwNode n;
    n.kind = in.op == PwOp::kAct     ? PwNode::Kind::kAct
             : in.op == PwOp::kConst ? PwNode::Kind::kConst
                                     : PwNode::Kind::kBinary;
    n.op = in.op;
    n.act = in.act;
    n.a = in.op == PwOp::kConst ? -1 : in.a;
    n.b = is_binary(in.op) ? in.b : -1;
    n.alpha = in.alpha;
    n.beta = in.beta;
    nodes.push_back(n);
  }
  return nodes;
}

/// x * sigmoid(x) -> swish; a * b + c -> one step; a binary step followed by relu or clip -> one step.
/// `one[r]`: register r is one value.
void peephole(std::vector<PwNode>& nodes, int num_srcs, const std::vector<bool>& one) {
  using Kind = PwNode::Kind;
  std::vector<int> uses(one.size(), 0);
  for (const PwNode& n : nodes)
    for (const int r : {n.a, n.b})
      if (r >= 0) ++uses[static_cast<size_t>(r)];
  const auto made_once = [&](int r, Kind kind) -> PwNode* {
    if (r < num_srcs || uses[static_cast<size_t>(r)] != 1) return nullptr;
    PwNode& n = nodes[static_cast<size_t>(r - num_srcs)];
    return n.kind == kind && n.tail == PwTail::kNoTail ? &n : nullptr;
  };
  for (PwNode& n : nodes) {
    if (n.kind == Kind::kBinary && n.op == PwOp::kMul && n.a != n.b) {
      for (const auto& [x, s] : {std::pair{n.a, n.b}, std::pair{n.b, n.a}}) {
        PwNode* sig = made_once(s, Kind::kAct);
        if (sig == nullptr || sig->act != Act::kSigmoid || sig->a != x) continue;
        sig->kind = Kind::kDead;
        n = PwNode{.kind = Kind::kAct, .act = Act::kSwish, .a = x, .alpha = 1.0F};
        break;
      }
    }
    if (n.kind == Kind::kBinary && n.op == PwOp::kAdd && n.a != n.b) {
      for (const auto& [m, other] : {std::pair{n.a, n.b}, std::pair{n.b, n.a}}) {
        PwNode* mul = made_once(m, Kind::kBinary);
        if (mul == nullptr || mul->op != PwOp::kMul || one[static_cast<size_t>(m)]) continue;
        int x = mul->a, y = mul->b;
        if (one[static_cast<size_t>(x)]) std::swap(x, y);
        mul->kind = Kind::kDead;
        n = PwNode{.kind = Kind::kMulAdd, .a = x, .b = y, .c = other};
        break;
      }
    }
    if (n.kind == Kind::kAct && (n.act == Act::kRelu || n.act == Act::kClip)) {
      PwNode* from = made_once(n.a, Kind::kBinary);
      if (from != nullptr && from->op == PwOp::kPow) from = nullptr;
      if (from == nullptr) from = made_once(n.a, Kind::kMulAdd);
      if (from == nullptr) continue;
      const PwTail tail = n.act == Act::kRelu ? PwTail::kReluTail : PwTail::kClipTail;
      const float alpha = n.alpha, beta = n.beta;
      n = *from;
      from->kind = Kind::kDead;
      n.tail = tail;
      n.alpha = alpha;
      n.beta = beta;
    }
  }
}

/// Linear scan: the slot of every register that needs one; the last node writes the destination. Returns the
/// number of slots.
int assign_slots(const std::vector<PwNode>& nodes, int num_srcs, int first_slot, std::vector<int>& slot_of) {
  const int regs = num_srcs + static_cast<int>(nodes.size());
  std::vector<int> last(static_cast<size_t>(regs), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].kind == PwNode::Kind::kDead) continue;
    for (const int r : {nodes[i].a, nodes[i].b, nodes[i].c})
      if (r >= 0) last[static_cast<size_t>(r)] = static_cast<int>(i);
  }
  slot_of.assign(static_cast<size_t>(regs), -1);
  std::vector<int> free;
  int slots = first_slot;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const PwNode& n = nodes[i];
    if (n.kind == PwNode::Kind::kDead || n.kind == PwNode::Kind::kConst) continue;
    // An operand read here for the last time gives its slot to the result: the loops allow dst to equal an
    // operand.
    for (const int r : {n.a, n.b, n.c}) {
      if (r < num_srcs || last[static_cast<size_t>(r)] != static_cast<int>(i)) continue;
      int& s = slot_of[static_cast<size_t>(r)];
      if (s >= 0 && std::find(free.begin(), free.end(), s) == free.end()) free.push_back(s);
    }
    if (i + 1 == nodes.size()) break;
    if (free.empty()) free.push_back(slots++);
    slot_of[static_cast<size_t>(num_srcs) + i] = free.back();
    free.pop_back();
  }
  return slots;
}

}  // namespace

std::optional<std::vector<int64_t>> pw_strides(const Operand& operand, const Shape& dst, int axis) {
  std::vector<int64_t> strides(dst.size(), 0);
  const std::vector<int64_t> own = ops::layout_strides(operand.layout, operand.dims);
  const bool placed = axis >= 0 && operand.dims.size() == 1 && static_cast<size_t>(axis) < dst.size();
  if (!placed && operand.dims.size() > dst.size()) return std::nullopt;
  for (size_t d = 0; d < operand.dims.size(); ++d) {
    const size_t at = placed ? static_cast<size_t>(axis) : dst.size() - operand.dims.size() + d;
    if (operand.dims[d] == dst[at]) {
      strides[at] = dst[at] == 1 ? 0 : own[d];
    } else if (operand.dims[d] != 1) {
      return std::nullopt;
    }
  }
  return strides;
}

std::string PwRunner::unsupported(const PwProgram& program) {
  if (program.num_srcs < 1 && program.instrs.empty()) return "program: it is empty";
  for (size_t i = 0; i < program.instrs.size(); ++i) {
    const PwInstr& in = program.instrs[i];
    const int limit = program.num_srcs + static_cast<int>(i);
    if (in.op != PwOp::kConst && (in.a < 0 || in.a >= limit))
      return "program: a register is read before it is written";
    if (is_binary(in.op) && (in.b < 0 || in.b >= limit))
      return "program: a register is read before it is written";
  }
  std::vector<int> slots;
  if (assign_slots(plain_nodes(program), program.num_srcs, program.num_srcs, slots) > kMaxSlots)
    return "program: more than " + std::to_string(kMaxSlots) + " values live at once";
  return "";
}

PwRunner::PwRunner(const PwProgram& program, const Shape& dst, Layout layout, std::vector<PwSource> sources,
                   Isa isa)
    : active_(true), isa_(isa), sources_(std::move(sources)) {
  const std::string bad = unsupported(program);
  if (!bad.empty() || sources_.size() != static_cast<size_t>(program.num_srcs))
    throw Error(ErrorCode::kInternal, "pointwise program does not fit its sources: " + bad);
  classify(dst, layout);
  compile(program);
}

void PwRunner::classify(const Shape& dst, Layout layout) {
  // Dimensions in memory order, neighbours merged where every source walks them as one.
  std::vector<int64_t> dense;  // the destination's own strides
  strides_.assign(sources_.size(), {});
  std::vector<int64_t> own = ops::layout_strides(layout, dst);
  for (const int od : ops::layout_order(layout, static_cast<int>(dst.size()))) {
    const auto d = static_cast<size_t>(od);
    if (dst[d] == 1) continue;
    bool merge = !extents_.empty();
    for (size_t k = 0; merge && k < sources_.size(); ++k)
      merge = strides_[k].back() == (sources_[k].arg < 0 ? own[d] : sources_[k].strides[d]) * dst[d];
    if (merge) {
      extents_.back() *= dst[d];
      dense.back() = own[d];
    } else {
      extents_.push_back(dst[d]);
      dense.push_back(own[d]);
    }
    for (size_t k = 0; k < sources_.size(); ++k) {
      const int64_t s = sources_[k].arg < 0 ? own[d] : sources_[k].strides[d];
      if (merge)
        strides_[k].back() = s;
      else
        strides_[k].push_back(s);
    }
  }
  if (extents_.empty()) {
    extents_.push_back(1);
    dense.push_back(1);
    for (auto& s : strides_) s.push_back(0);
  }
  inner_ = extents_.back();
  rows_ = extents_.size() == 1 || inner_ >= kShortRow;

  const size_t last = extents_.size() - 1;
  int64_t largest_period = 1;
  for (size_t k = 0; k < sources_.size(); ++k) {
    const std::vector<int64_t>& s = strides_[k];
    if (rows_) {
      kinds_.push_back(s[last] == 0 ? Kind::kOne : s[last] == 1 ? Kind::kDense : Kind::kFill);
      continue;
    }
    if (std::all_of(s.begin(), s.end(), [](int64_t x) { return x == 0; })) {
      kinds_.push_back(Kind::kOne);
    } else if (s == dense) {
      kinds_.push_back(Kind::kDense);
    } else {
      size_t d = 0;
      while (s[d] == 0) ++d;
      int64_t period = 1;
      for (; d < extents_.size() && period <= kChunk; ++d) period *= extents_[d];
      kinds_.push_back(period <= kChunk ? Kind::kPeriodic : Kind::kFill);
      if (period <= kChunk) largest_period = std::max(largest_period, period);
    }
  }
  if (!rows_) chunk_ = kChunk / largest_period * largest_period;
}

void PwRunner::compile(const PwProgram& program) {
  const int num_srcs = program.num_srcs;
  std::vector<PwNode> nodes = plain_nodes(program);
  if (nodes.empty())
    nodes.push_back(PwNode{.kind = PwNode::Kind::kAct, .act = Act::kIdentity, .a = num_srcs - 1});
  num_regs_ = num_srcs + static_cast<int>(nodes.size());
  std::vector<bool> one(static_cast<size_t>(num_regs_));
  for (int k = 0; k < num_srcs; ++k)
    one[static_cast<size_t>(k)] = kinds_[static_cast<size_t>(k)] == Kind::kOne;
  for (size_t i = 0; i < nodes.size(); ++i) {
    bool all = true;
    for (const int r : {nodes[i].a, nodes[i].b}) all = all && (r < 0 || one[static_cast<size_t>(r)]);
    one[static_cast<size_t>(num_srcs) + i] = all;
  }
  peephole(nodes, num_srcs, one);

  source_slot_.assign(static_cast<size_t>(num_srcs), -1);
  for (size_t k = 0; k < source_slot_.size(); ++k)
    if (kinds_[k] == Kind::kFill || kinds_[k] == Kind::kPeriodic) source_slot_[k] = slots_++;
  slots_ = assign_slots(nodes, num_srcs, slots_, reg_slot_);
  reg_const_.assign(static_cast<size_t>(num_regs_), -1);

  const hone::cpu::PwTable& table = hone::cpu::pw_table(isa_);
  bool costly = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    PwNode& n = nodes[i];
    const auto is_one = [&](int r) { return one[static_cast<size_t>(r)]; };
    const int reg = num_srcs + static_cast<int>(i);
    Step step{.fn = nullptr,
              .dst = reg,
              .a = n.a,
              .b = n.b,
              .c = n.c,
              .one = is_one(reg),
              .alpha = n.alpha,
              .beta = n.beta};
    switch (n.kind) {
      case PwNode::Kind::kDead: continue;
      case PwNode::Kind::kConst:
        reg_const_[static_cast<size_t>(reg)] = static_cast<int>(consts_.size());
        consts_.push_back(n.alpha);
        if (i + 1 < nodes.size()) continue;
        step.fn = table.fill;  // the program's result is a constant
        step.a = reg;
        step.one = false;
        break;
      case PwNode::Kind::kAct:
        step.fn = table.act[static_cast<int>(n.act)];
        costly = costly || n.act >= Act::kSigmoid;
        break;
      case PwNode::Kind::kBinary: {
        const PwForm form = step.one || is_one(n.a) == is_one(n.b) ? PwForm::kVecVec
                            : is_one(n.b)                          ? PwForm::kVecOne
                                                                   : PwForm::kOneVec;
        step.fn = table.binary[binary_index(n.op)][form][n.tail];
        costly = costly || n.op == PwOp::kPow;
        break;
      }
      case PwNode::Kind::kMulAdd: step.fn = table.mul_add[is_one(n.b)][is_one(n.c)][n.tail]; break;
    }
    steps_.push_back(step);
  }
  grain_ = costly ? 4096 : 16384;
  const int64_t unit = rows_ ? inner_ : chunk_;
  if (unit > 0 && unit <= grain_) grain_ = grain_ / unit * unit;
}

void PwRunner::execute(const float** regs, float* out, int64_t n) const {
  const hone::cpu::PwTable& table = hone::cpu::pw_table(isa_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& s = steps_[i];
    const bool last = i + 1 == steps_.size();
    float* dst =
        last ? out : const_cast<float*>(regs[s.dst]);  // registers with a slot point into this call's scratch
    const auto reg = [&](int r) { return r < 0 ? nullptr : regs[r]; };
    s.fn(dst, reg(s.a), reg(s.b), reg(s.c), s.one ? 1 : n, s.alpha, s.beta);
    if (last && s.one && n > 1) table.fill(out + 1, out, nullptr, nullptr, n - 1, 0, 0);
  }
}

void PwRunner::gather(const float* src, size_t k, int64_t begin, int64_t n, float* out) const {
  const std::vector<int64_t>& stride = strides_[k];
  const size_t last = extents_.size() - 1;
  std::vector<int64_t> index(extents_.size());
  int64_t rest = begin, offset = 0;
  for (size_t d = extents_.size(); d-- > 0;) {
    index[d] = rest % extents_[d];
    rest /= extents_[d];
    offset += index[d] * stride[d];
  }
  const int64_t step = stride[last];
  while (n > 0) {
    const int64_t count = std::min(n, inner_ - index[last]);
    const float* p = src + offset;
    for (int64_t i = 0; i < count; ++i) out[i] = p[i * step];
    out += count;
    n -= count;
    offset -= index[last] * step;
    index[last] = 0;
    for (size_t d = last; d-- > 0;) {
      offset += stride[d];
      if (++index[d] < extents_[d]) break;
      offset -= stride[d] * extents_[d];
      index[d] = 0;
    }
  }
}

void PwRunner::run(float* dst, const void* const* srcs, int64_t begin, int64_t end) const {
  run_at(dst + begin, srcs, begin, end);
}

void PwRunner::run_at(float* buf, const void* const* srcs, int64_t begin, int64_t end) const {
  if (!active_ || begin >= end) return;
  if (rows_)
    run_rows(buf, srcs, begin, end);
  else
    run_spans(buf, srcs, begin, end);
}

void PwRunner::run_rows(float* buf, const void* const* srcs, int64_t begin, int64_t end) const {
  alignas(64) float scratch[kMaxSlots * kChunk];
  const size_t n_srcs = sources_.size(), last = extents_.size() - 1;
  std::vector<const float*> regs(static_cast<size_t>(num_regs_), nullptr);
  for (size_t r = 0; r < regs.size(); ++r) {
    if (reg_slot_[r] >= 0) regs[r] = scratch + reg_slot_[r] * kChunk;
    if (reg_const_[r] >= 0) regs[r] = &consts_[static_cast<size_t>(reg_const_[r])];
  }
  std::vector<int64_t> index(last), offset(n_srcs, 0);
  int64_t rest = begin / inner_, col = begin % inner_;
  for (size_t d = last; d-- > 0;) {
    index[d] = rest % extents_[d];
    rest /= extents_[d];
    for (size_t k = 0; k < n_srcs; ++k) offset[k] += index[d] * strides_[k][d];
  }
  for (int64_t at = begin; at < end;) {
    const int64_t row_end = std::min(end, at + inner_ - col);
    for (; at < row_end;) {
      const int64_t n = std::min(kChunk, row_end - at);
      float* out = buf + (at - begin);
      for (size_t k = 0; k < n_srcs; ++k) {
        if (sources_[k].arg < 0) {
          regs[k] = out;
          continue;
        }
        const float* p = static_cast<const float*>(srcs[sources_[k].arg]) + offset[k];
        const int64_t step = strides_[k][last];
        if (kinds_[k] == Kind::kFill) {
          float* slot = scratch + source_slot_[k] * kChunk;
          for (int64_t i = 0; i < n; ++i) slot[i] = p[(col + i) * step];
          regs[k] = slot;
        } else {
          regs[k] = p + col * step;
        }
      }
      execute(regs.data(), out, n);
      at += n;
      col += n;
    }
    if (col < inner_) break;
    col = 0;
    for (size_t d = last; d-- > 0;) {
      for (size_t k = 0; k < n_srcs; ++k) offset[k] += strides_[k][d];
      if (++index[d] < extents_[d]) break;
      for (size_t k = 0; k < n_srcs; ++k) offset[k] -= strides_[k][d] * extents_[d];
      index[d] = 0;
    }
  }
}

void PwRunner::run_spans(float* buf, const void* const* srcs, int64_t begin, int64_t end) const {
  alignas(64) float scratch[kMaxSlots * kChunk];
  std::vector<const float*> regs(static_cast<size_t>(num_regs_), nullptr);
  for (size_t r = 0; r < regs.size(); ++r) {
    if (reg_slot_[r] >= 0) regs[r] = scratch + reg_slot_[r] * kChunk;
    if (reg_const_[r] >= 0) regs[r] = &consts_[static_cast<size_t>(reg_const_[r])];
  }
  for (size_t k = 0; k < sources_.size(); ++k) {
    if (source_slot_[k] >= 0) regs[k] = scratch + source_slot_[k] * kChunk;
    if (kinds_[k] == Kind::kOne) regs[k] = static_cast<const float*>(srcs[sources_[k].arg]);
    // Chunks are a whole number of periods, so that every chunk of this call meets the same pattern.
    if (kinds_[k] == Kind::kPeriodic)
      gather(static_cast<const float*>(srcs[sources_[k].arg]), k, begin, std::min(chunk_, end - begin),
             scratch + source_slot_[k] * kChunk);
  }
  for (int64_t at = begin; at < end; at += chunk_) {
    const int64_t n = std::min(chunk_, end - at);
    float* out = buf + (at - begin);
    for (size_t k = 0; k < sources_.size(); ++k) {
      if (kinds_[k] == Kind::kDense)
        regs[k] = sources_[k].arg < 0 ? out : static_cast<const float*>(srcs[sources_[k].arg]) + at;
      else if (kinds_[k] == Kind::kFill)
        gather(static_cast<const float*>(srcs[sources_[k].arg]), k, at, n,
               scratch + source_slot_[k] * kChunk);
    }
    execute(regs.data(), out, n);
  }
}

// --- post-ops ---

namespace {

bool is_channel_kind(PostOp::Kind k) { return k == PostOp::Kind::kBias || k == PostOp::Kind::kScale; }

int post_axis(const PostOp& post, int channel_axis) { return is_channel_kind(post.kind) ? channel_axis : -1; }

/// Appends a post-op to the program; `current` is the register of the running value. `extra` gives the
/// register of source i of the post.
void append_post(const PostOp& post, PwProgram& program, int& current, const std::vector<int>& extra) {
  const auto emit = [&](PwInstr in) {
    program.instrs.push_back(in);
    current = program.num_srcs + static_cast<int>(program.instrs.size()) - 1;
  };
  switch (post.kind) {
    case PostOp::Kind::kBias:
    case PostOp::Kind::kAdd: emit({.op = PwOp::kAdd, .a = current, .b = extra[0]}); break;
    case PostOp::Kind::kScale:
    case PostOp::Kind::kMul: emit({.op = PwOp::kMul, .a = current, .b = extra[0]}); break;
    case PostOp::Kind::kAct:
      emit({.op = PwOp::kAct, .act = post.act, .a = current, .alpha = post.alpha, .beta = post.beta});
      break;
    case PostOp::Kind::kProgram: {
      std::vector<int> map{current};
      map.insert(map.end(), extra.begin(), extra.end());
      for (const PwInstr& in : post.program.instrs) {
        PwInstr copy = in;
        if (in.op != PwOp::kConst) copy.a = map[static_cast<size_t>(in.a)];
        if (is_binary(in.op)) copy.b = map[static_cast<size_t>(in.b)];
        emit(copy);
        map.push_back(current);
      }
      break;
    }
    case PostOp::Kind::kConvert: break;  // refused by post_supports
  }
}

PwProgram post_program(const Problem& p) {
  PwProgram program;
  program.num_srcs = 1;
  for (const PostOp& post : p.post) program.num_srcs += static_cast<int>(post.srcs.size());
  int current = 0, next = 1;
  for (const PostOp& post : p.post) {
    std::vector<int> extra;
    for (size_t i = 0; i < post.srcs.size(); ++i) extra.push_back(next++);
    append_post(post, program, current, extra);
  }
  return program;
}

}  // namespace

Support post_supports(const Problem& p, int channel_axis) {
  if (p.post.empty()) return Support::yes();
  if (p.dsts.empty() || p.dsts[0].dtype != DType::kF32) return Support::no("post-op: the result is not f32");
  for (const PostOp& post : p.post) {
    if (post.kind == PostOp::Kind::kConvert) return Support::no("post-op: convert");
    const size_t want = post.kind == PostOp::Kind::kAct ? 0
                        : post.kind == PostOp::Kind::kProgram
                            ? static_cast<size_t>(std::max(post.program.num_srcs - 1, 0))
                            : 1;
    if (post.srcs.size() != want)
      return Support::no("post-op: " + std::to_string(post.srcs.size()) + " sources");
    if (post.kind == PostOp::Kind::kProgram) {
      const std::string bad = PwRunner::unsupported(post.program);
      if (!bad.empty()) return Support::no(bad);
    }
    for (const int s : post.srcs) {
      const Operand& o = p.srcs[static_cast<size_t>(s)];
      if (o.dtype != DType::kF32) return Support::no("post-op: source " + std::to_string(s) + " is not f32");
      if (!pw_strides(o, p.dsts[0].dims, post_axis(post, channel_axis)))
        return Support::no("post-op: source " + std::to_string(s) + " does not broadcast to the result");
    }
  }
  const std::string bad = PwRunner::unsupported(post_program(p));
  return bad.empty() ? Support::yes() : Support::no(bad);
}

PwRunner make_post(const Problem& p, int channel_axis, Isa isa) {
  if (p.post.empty()) return {};
  std::vector<PwSource> sources(1);
  for (const PostOp& post : p.post)
    for (const int s : post.srcs)
      sources.push_back(
          {s, *pw_strides(p.srcs[static_cast<size_t>(s)], p.dsts[0].dims, post_axis(post, channel_axis))});
  return PwRunner(post_program(p), p.dsts[0].dims, p.dsts[0].layout, std::move(sources), isa);
}

}  // namespace hone::backends::cpu
