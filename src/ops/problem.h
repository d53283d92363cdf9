// Problem: one layer as tactics see it, and its string, which is verbose line, test name, benchmark input and
// timing-cache key at once.
//
//   Conv(f32[1,64,56,56]:nhwc, f32[64,64,3,3]*) {pads=[1,1,1,1] strides=[1,1]} +bias(f32[64]*)
//   +add(f32[1,64,56,56]:nhwc) +relu -> f32[1,64,56,56]:nhwc
//
// Operand: dtype, dimensions, `:layout` unless plain, `*` when constant with the values in braces where they
// are kept, `_` when absent. A source that was printed before is `%index`, one out of order `%index=operand`.
// Attributes in alphabetical order: `a=1 b=1.0 c="text" d=[1,2] e=[1.0] f=f[] g=s[] h=i64[2]#hex`. Each
// post-op that takes a tensor names it. parse(text(p)) == p for every problem.
//   +clip(0.0,6.0)   +gelu   +program(%0, f32[64]; mul(0,1); sigmoid(2); const(0.5); mul(3,4))
//   +convert(f32[]*, u8[]*)
//
// What a fused layer's body may be (check_body says which rule is broken):
//   - the anchor comes first, and its inputs are the layer's first inputs, in order; further inputs are
//   sources of post-ops;
//   - srcs[i] of the derived problem is input i of the node;
//   - after it come Add/Mul/Sub/Div/Min/Max/Pow/Sum, activations and Identity on floats. The running value is
//   what the SSA chain says it is; a stretch
//     in which it is used more than once becomes one program;
//   - scalars that are parameters (bounds of Clip, 0.5 of x*0.5) are constants of the body, tensors are
//   inputs of the layer;
//   - each post-op keeps the anchor's shape; the last running value is output 0, other outputs are the
//   anchor's own further ones;
//   - with no anchor the whole body is one program over the layer's inputs: op "Pointwise", num_anchor_srcs
//   0, post[0].srcs its inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/layout.h"

namespace hone::ops {

struct Operand {
  DType dtype = DType::kUndefined;  ///< kUndefined: absent optional input
  Shape dims;
  Layout layout = Layout::kPlain;
  bool constant = false;  ///< a weight: known at build, may be packed
  /// Values of a constant integer operand of at most 16 elements (axes, pads, sizes): they decide what the
  /// operator does.
  std::optional<std::vector<int64_t>> contents;
  bool present() const { return dtype != DType::kUndefined; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// Activation kinds of post-ops and pointwise programs. Math, x the input, a = alpha, b = beta:
enum class Act : uint8_t {
  kRelu,         ///< max(x, 0), NaN stays NaN
  kLeakyRelu,    ///< x < 0 ? a*x : x
  kClip,         ///< min(max(x, a), b), NaN stays NaN
  kSigmoid,      ///< 1 / (1 + exp(-x))
  kHardSigmoid,  ///< clip(a*x + b, 0, 1)
  kHardSwish,    ///< x * clip(x/6 + 1/2, 0, 1)
  kSwish,        ///< x * sigmoid(a*x); a = 1 is SiLU
  kTanh,
  kGeluErf,   ///< x/2 * (1 + erf(x / sqrt 2))
  kGeluTanh,  ///< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  kElu,       ///< x < 0 ? a*(exp(x) - 1) : x
  kSelu,      ///< b * (x <= 0 ? a*(exp(x) - 1) : x)
  kCelu,      ///< max(0,x) + min(0, a*(exp(x/a) - 1))
  kSoftplus,  ///< log(1 + exp(x))
  kMish,      ///< x * tanh(softplus(x))
  kAbs,
  kNeg,
  kExp,
  kLog,
  kSqrt,
  kReciprocal,
  kErf,
  kFloor,
  kCeil,
  kRound,
  kSign,
  kSoftsign,
  kThresholdedRelu,
  kSin,
  kCos,
  kIdentity,
};
const char* act_name(Act act);
std::optional<Act> parse_act(std::string_view name);

/// One instruction of a pointwise program. Operands are registers: 0 .. n_srcs-1 are the layer's sources,
/// then one per instruction.
enum class PwOp : uint8_t { kAct, kAdd, kSub, kMul, kDiv, kMin, kMax, kPow, kConst };
const char* pw_op_name(PwOp op);

struct PwInstr {
  PwOp op = PwOp::kAct;
  Act act = Act::kIdentity;   ///< kAct only
  int a = -1, b = -1;         ///< registers; b only for binary ops
  float alpha = 0, beta = 0;  ///< of the activation; alpha is the value of kConst
  friend bool operator==(const PwInstr&, const PwInstr&) = default;
};

/// A small SSA list over f32 values; the last instruction is the result. Sources broadcast (NumPy rules)
/// against the destination.
struct PwProgram {
  int num_srcs = 0;
  std::vector<PwInstr> instrs;
  friend bool operator==(const PwProgram&, const PwProgram&) = default;
};

/// What an anchor's result goes through, in order, before it is stored. The list is closed.
struct PostOp {
  enum class Kind : uint8_t {
    kBias,     ///< + src, broadcast: extent C along the channel axis (dim 1 of conv-like, last dim of
               ///< matmul-like), 1 elsewhere; [C,1,1] and [C] are both read so behind a Conv
    kScale,    ///< * src, broadcast the same way
    kAdd,      ///< + src, any shape that broadcasts to the result
    kMul,      ///< * src, likewise
    kAct,      ///< activation (kClip included)
    kProgram,  ///< pointwise program; register 0 is the running value (after an anchor), the others are
               ///< sources
    kConvert,  ///< to the destination's dtype; with sources scale, zero_point (one element each): round(x /
               ///< scale) + zero_point, saturating
  };
  Kind kind = Kind::kAct;
  Act act = Act::kIdentity;
  float alpha = 0, beta = 0;
  std::vector<int> srcs;  ///< indices into Problem::srcs
  PwProgram program;
  friend bool operator==(const PostOp&, const PostOp&) = default;
};

/// The executable description of one layer: anchor operator with attributes and concrete operands, then
/// post-ops. A problem with an empty `post` and any operator name can be run by the reference kernel of that
/// operator.
struct Problem {
  std::string domain;  ///< "" is ai.onnx
  std::string op;  ///< anchor's operator; "Pointwise" (domain hone) for a pure pointwise program in post[0]
  ir::AttrMap attrs;  ///< no graph attributes
  std::vector<Operand> srcs;
  size_t num_anchor_srcs = 0;  ///< the first so many belong to the anchor
  std::vector<PostOp> post;
  std::vector<Operand> dsts;

  std::string text() const;
  /// Errors: kInvalidArgument with the column.
  static Problem parse(std::string_view text);
  friend bool operator==(const Problem& a, const Problem& b);
};

/// Problem of a node under concrete shapes and layouts. `operand(value)` gives dtype, dims, layout and
/// constness of a value; a fused layer is reduced through its body. Errors: kInternal when a body does not
/// reduce to anchor + post-ops (such bodies must not be formed).
Problem derive_problem(const ir::Graph& graph, const ir::Node& node,
                       const std::function<Operand(const ir::Graph&, ir::ValueId)>& operand);

/// Why a body would not reduce, or empty when it does: what the fusion rules ask before they form one.
std::string check_body(const ir::Graph& graph, const ir::Node& node);

/// Runs a problem on reference kernels: the anchor, then each post-op as its ONNX operator (f64 inside, one
/// rounding at the end of each ONNX node of the body; with `oracle` none). Inputs in plain layout.
std::vector<Tensor> run_problem(const Problem& problem, const std::vector<const Tensor*>& srcs,
                                bool oracle = false);

/// Applies one activation to a double, as the comments of Act say.
double apply_act(Act act, double x, double alpha, double beta);

}  // namespace hone::ops
