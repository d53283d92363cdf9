#include "backends/cpu/fused_post.h"

#include "hone/error.h"

namespace hone::backends::cpu {

using hone::cpu::ActKind;
using hone::cpu::EpilogueOp;
using hone::cpu::EpilogueOperand;
using ops::PostOp;

std::optional<EpilogueOperand> FusedPost::as_rows(const Shape& extents, const std::vector<int64_t>& strides) {
  const size_t rank = extents.size();
  EpilogueOperand o;
  const int64_t column_stride = extents[rank - 1] == 1 ? 0 : strides[rank - 1];
  if (column_stride != 0 && column_stride != 1) return std::nullopt;
  o.column_stride = column_stride;
  // Leading dimensions, collapsed: neighbours that continue each other (or are both broadcast) become one.
  std::vector<int64_t> n, s;
  for (size_t d = 0; d + 1 < rank; ++d) {
    if (extents[d] == 1) continue;
    if (!n.empty() && s.back() == strides[d] * extents[d]) {
      n.back() *= extents[d];
      s.back() = strides[d];
    } else {
      n.push_back(extents[d]);
      s.push_back(strides[d]);
    }
  }
  if (n.size() > 2) return std::nullopt;
  if (n.size() == 2) {
    o.rows_per_outer = n[1];
    o.outer_stride = s[0];
    o.row_stride = s[1];
  } else if (n.size() == 1) {
    o.row_stride = s[0];
  }
  return o;
}

FusedPost::FusedPost(const Problem& p, int channel_axis, Isa isa) {
  const Operand& dst = p.dsts[0];
  const std::vector<int> order = ops::layout_order(dst.layout, static_cast<int>(dst.dims.size()));
  Shape extents;
  for (int d : order) extents.push_back(dst.dims[static_cast<size_t>(d)]);
  columns_ = extents.empty() ? 1 : extents.back();
  bool native = static_cast<int>(p.post.size()) <= kMaxOps - 3 && !extents.empty();
  for (const PostOp& post : p.post) {
    if (!native) break;
    Op op;
    switch (post.kind) {
      case PostOp::Kind::kAct:
        op.op = EpilogueOp::activation(static_cast<ActKind>(post.act), post.alpha, post.beta);
        native = hone::cpu::act_supported(op.op.act);
        break;
      case PostOp::Kind::kBias:
      case PostOp::Kind::kScale:
      case PostOp::Kind::kAdd:
      case PostOp::Kind::kMul: {
        op.src = post.srcs[0];
        const Operand& src = p.srcs[static_cast<size_t>(op.src)];
        const bool channel = post.kind == PostOp::Kind::kBias || post.kind == PostOp::Kind::kScale;
        const auto strides = pw_strides(src, dst.dims, channel && src.dims.size() == 1 ? channel_axis : -1);
        if (!strides) {
          native = false;
          break;
        }
        std::vector<int64_t> memory;
        for (int d : order) memory.push_back((*strides)[static_cast<size_t>(d)]);
        const auto rows = as_rows(extents, memory);
        if (!rows) {
          native = false;
          break;
        }
        const bool add = post.kind == PostOp::Kind::kBias || post.kind == PostOp::Kind::kAdd;
        op.op = add ? EpilogueOp::add(*rows) : EpilogueOp::mul(*rows);
        break;
      }
      case PostOp::Kind::kProgram:
      case PostOp::Kind::kConvert: native = false; break;
    }
    ops_.push_back(op);
  }
  if (!native) {
    ops_.clear();
    program_ = make_post(p, channel_axis, isa);
  }
}

void FusedPost::start(const RunArgs& args, Run* run) const {
  for (const Op& o : ops_) {
    EpilogueOp op = o.op;
    if (o.src >= 0) op.operand.data = static_cast<const float*>(args.srcs[o.src]);
    run->push(op);
  }
  if (program_.active()) {
    run->program = &program_;
    run->srcs = args.srcs;
    run->columns = columns_;
    run->push(EpilogueOp::call(
        [](const void* context, float* x, int64_t row, int64_t column, int64_t n) {
          const auto& r = *static_cast<const Run*>(context);
          const int64_t begin = row * r.columns + column;
          r.program->run_at(x, r.srcs, begin, begin + n);
        },
        run));
  }
}

}  // namespace hone::backends::cpu
