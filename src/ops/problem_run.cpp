// Reference execution of a Problem: the anchor's kernel, then every post-op in f64, rounded once each.
#include <cmath>

#include "hone/error.h"
#include "ops/broadcast.h"
#include "ops/interpreter.h"
#include "ops/op.h"
#include "ops/problem.h"
#include "ops/scalar_math.h"

namespace hone::ops {
namespace {

double apply_pw(PwOp op, double a, double b) {
  switch (op) {
    case PwOp::kAdd: return a + b;
    case PwOp::kSub: return a - b;
    case PwOp::kMul: return a * b;
    case PwOp::kDiv: return a / b;
    case PwOp::kMin: return a != a ? a : b != b ? b : (b < a ? b : a);
    case PwOp::kMax: return a != a ? a : b != b ? b : (b > a ? b : a);
    case PwOp::kPow: return std::pow(a, b);
    case PwOp::kAct:
    case PwOp::kConst: break;
  }
  throw Error(ErrorCode::kInternal, "not a binary instruction");
}

using Values = std::vector<double>;

/// The elements of `t`, read as the shape `as`.
Values spread(const Tensor& t, const Shape& as) {
  Values flat(static_cast<size_t>(t.numel())), out(static_cast<size_t>(numel(as)));
  for (size_t i = 0; i < flat.size(); ++i) flat[i] = t.at(static_cast<int64_t>(i));
  if (t.shape() == as) return flat;
  if (!broadcast_shapes(t.shape(), as) || *broadcast_shapes(t.shape(), as) != as) {
    throw Error(ErrorCode::kInvalidArgument,
                "post-op source " + t.type_text() + " does not broadcast to " + type_text(t.dtype(), as));
  }
  const BroadcastLoop<1> loop(as, {&t.shape()});
  loop.each_row([&](int64_t at, const std::array<int64_t, 1>& off) {
    for (int64_t i = 0; i < loop.inner(); ++i)
      out[static_cast<size_t>(at + i)] = flat[static_cast<size_t>(off[0] + (loop.steps(0) ? i : 0))];
  });
  return out;
}

/// The source of a bias, scale, add or mul. A bias or scale of rank 1 behind a conv-like anchor lies along
/// dimension 1.
Values channel_source(const Problem& p, const PostOp& post, const Tensor& t, const Shape& as) {
  const bool channel = post.kind == PostOp::Kind::kBias || post.kind == PostOp::Kind::kScale;
  if (!channel || t.rank() != 1 || as.size() < 3 || (p.op != "Conv" && p.op != "ConvTranspose"))
    return spread(t, as);
  Shape shape(as.size() - 1, 1);
  shape[0] = t.dim(0);
  return spread(t.reshaped(shape), as);
}

/// Rounds every element to the type, as a tensor of that type between two nodes would.
void round_to(Values* v, DType t) {
  if (t == DType::kF64) return;
  const Shape shape = {static_cast<int64_t>(v->size())};
  const Tensor rounded = convert(Tensor::view(DType::kF64, shape, v->data()), t);
  for (size_t i = 0; i < v->size(); ++i) (*v)[i] = rounded.at(static_cast<int64_t>(i));
}

Values run_program(const PwProgram& program, std::vector<Values> regs, size_t count, DType round) {
  for (const PwInstr& i : program.instrs) {
    Values out(count);
    const Values* a = i.a >= 0 ? &regs.at(static_cast<size_t>(i.a)) : nullptr;
    const Values* b = i.b >= 0 ? &regs.at(static_cast<size_t>(i.b)) : nullptr;
    for (size_t e = 0; e < count; ++e) {
      if (i.op == PwOp::kConst)
        out[e] = i.alpha;
      else if (i.op == PwOp::kAct)
        out[e] = apply_act(i.act, (*a)[e], i.alpha, i.beta);
      else
        out[e] = apply_pw(i.op, (*a)[e], (*b)[e]);
    }
    round_to(&out, round);
    regs.push_back(std::move(out));
  }
  return std::move(regs.back());
}

Tensor requantised(const Values& v, const Shape& shape, const PostOp& p,
                   const std::vector<const Tensor*>& srcs, DType to) {
  Values q = v;
  if (!p.srcs.empty()) {
    const double scale = srcs[static_cast<size_t>(p.srcs[0])]->at(0);
    const double zero = p.srcs.size() > 1 ? srcs[static_cast<size_t>(p.srcs[1])]->at(0) : 0.0;
    for (double& x : q) x = fn_round(x / scale) + zero;
  }
  return convert(Tensor::view(DType::kF64, shape, q.data()), to).clone();
}

}  // namespace

double apply_act(Act act, double x, double a, double b) {
  switch (act) {
    case Act::kRelu: return fn_relu(x);
    case Act::kLeakyRelu: return fn_leaky_relu(x, a);
    case Act::kClip: return fn_clip(x, a, b);
    case Act::kSigmoid: return fn_sigmoid(x);
    case Act::kHardSigmoid: return fn_hard_sigmoid(x, a, b);
    case Act::kHardSwish: return fn_hard_swish(x);
    case Act::kSwish: return fn_swish(x, a);
    case Act::kTanh: return std::tanh(x);
    case Act::kGeluErf: return fn_gelu_erf(x);
    case Act::kGeluTanh: return fn_gelu_tanh(x);
    case Act::kElu: return fn_elu(x, a);
    case Act::kSelu: return fn_selu(x, a, b);
    case Act::kCelu: return fn_celu(x, a);
    case Act::kSoftplus: return fn_softplus(x);
    case Act::kMish: return fn_mish(x);
    case Act::kAbs: return std::fabs(x);
    case Act::kNeg: return -x;
    case Act::kExp: return std::exp(x);
    case Act::kLog: return std::log(x);
    case Act::kSqrt: return std::sqrt(x);
    case Act::kReciprocal: return 1.0 / x;
    case Act::kErf: return std::erf(x);
    case Act::kFloor: return std::floor(x);
    case Act::kCeil: return std::ceil(x);
    case Act::kRound: return fn_round(x);
    case Act::kSign: return fn_sign(x);
    case Act::kSoftsign: return fn_softsign(x);
    case Act::kThresholdedRelu: return fn_thresholded_relu(x, a);
    case Act::kSin: return std::sin(x);
    case Act::kCos: return std::cos(x);
    case Act::kIdentity: return x;
  }
  throw Error(ErrorCode::kInternal, "unknown activation");
}

std::vector<Tensor> run_problem(const Problem& p, const std::vector<const Tensor*>& srcs, bool oracle) {
  const bool pointwise = p.op == "Pointwise" && p.domain == ir::kHoneDomain;
  if (srcs.size() != p.srcs.size() || p.dsts.empty())
    throw Error(ErrorCode::kInvalidArgument, "wrong number of sources for " + p.text());
  const bool converts = !p.post.empty() && p.post.back().kind == PostOp::Kind::kConvert;

  std::vector<Tensor> outputs(p.dsts.size());
  Values running;
  Shape shape = p.dsts[0].dims;
  DType type = p.dsts[0].dtype;
  if (!pointwise) {
    const OpDef* op = find_op(p.domain, p.op);
    if (op == nullptr) throw Error(ErrorCode::kUnsupported, "unknown operator in " + p.text());
    std::vector<DType> types;
    for (const Operand& d : p.dsts) types.push_back(d.dtype);
    if (converts) types[0] = p.srcs[0].dtype;
    type = types[0];
    ErrorContext where;
    where.stage = "run";
    where.op = (p.domain.empty() ? "ai.onnx" : p.domain) + "::" + p.op;
    outputs = run_op(*op, p.attrs,
                     std::vector<const Tensor*>(
                         srcs.begin(), srcs.begin() + static_cast<std::ptrdiff_t>(p.num_anchor_srcs)),
                     types, oracle, &where);
    if (p.post.empty()) return outputs;
    shape = outputs[0].shape();
    running = spread(outputs[0], shape);
  }
  const DType round = oracle ? DType::kF64 : type;
  for (const PostOp& post : p.post) {
    const auto src = [&](size_t k) { return spread(*srcs[static_cast<size_t>(post.srcs[k])], shape); };
    switch (post.kind) {
      case PostOp::Kind::kAct:
        for (double& x : running) x = apply_act(post.act, x, post.alpha, post.beta);
        round_to(&running, round);
        break;
      case PostOp::Kind::kProgram: {
        std::vector<Values> regs;
        if (!pointwise) regs.push_back(std::move(running));
        for (size_t k = 0; k < post.srcs.size(); ++k) regs.push_back(src(k));
        running = run_program(post.program, std::move(regs), static_cast<size_t>(numel(shape)), round);
        break;
      }
      case PostOp::Kind::kConvert:
        outputs[0] = oracle ? Tensor() : requantised(running, shape, post, srcs, p.dsts[0].dtype);
        if (!oracle) return outputs;
        break;
      default: {
        const bool add = post.kind == PostOp::Kind::kBias || post.kind == PostOp::Kind::kAdd;
        const Values other = channel_source(p, post, *srcs[static_cast<size_t>(post.srcs[0])], shape);
        for (size_t e = 0; e < running.size(); ++e)
          running[e] = add ? running[e] + other[e] : running[e] * other[e];
        round_to(&running, round);
      }
    }
  }
  outputs[0] = convert(Tensor::view(DType::kF64, shape, running.data()), round);
  if (round == DType::kF64) outputs[0] = outputs[0].clone();  // a view of `running` must not leave
  return outputs;
}

}  // namespace hone::ops
