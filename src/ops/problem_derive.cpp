// From a node, or a fused layer's body, to the Problem that tactics see.
#include <algorithm>
#include <limits>
#include <map>

#include "hone/error.h"
#include "ops/problem.h"

namespace hone::ops {
namespace {

/// Activation of a unary node; nullopt when the operator is none. `why` says what keeps a known one from
/// being taken.
std::optional<PwInstr> activation(const ir::Graph& g, const ir::Node& n, std::string* why) {
  PwInstr i;
  const auto make = [&](Act act, float alpha = 0, float beta = 0) {
    i.act = act;
    i.alpha = alpha;
    i.beta = beta;
    return i;
  };
  struct Plain {
    const char* op;
    Act act;
  };
  constexpr Plain kPlain[] = {
      {"Relu", Act::kRelu},   {"Sigmoid", Act::kSigmoid},   {"HardSwish", Act::kHardSwish},
      {"Tanh", Act::kTanh},   {"Softplus", Act::kSoftplus}, {"Mish", Act::kMish},
      {"Abs", Act::kAbs},     {"Neg", Act::kNeg},           {"Exp", Act::kExp},
      {"Log", Act::kLog},     {"Sqrt", Act::kSqrt},         {"Reciprocal", Act::kReciprocal},
      {"Erf", Act::kErf},     {"Floor", Act::kFloor},       {"Ceil", Act::kCeil},
      {"Round", Act::kRound}, {"Sign", Act::kSign},         {"Softsign", Act::kSoftsign},
      {"Sin", Act::kSin},     {"Cos", Act::kCos},           {"Identity", Act::kIdentity}};
  if (!n.domain.empty()) return std::nullopt;
  for (const Plain& p : kPlain) {
    if (n.op == p.op) return make(p.act);
  }
  if (n.op == "LeakyRelu") return make(Act::kLeakyRelu, n.get_float("alpha", 0.01F));
  if (n.op == "HardSigmoid")
    return make(Act::kHardSigmoid, n.get_float("alpha", 0.2F), n.get_float("beta", 0.5F));
  if (n.op == "Swish") return make(Act::kSwish, n.get_float("alpha", 1.0F));
  if (n.op == "Gelu")
    return make(n.get_string("approximate", "none") == "tanh" ? Act::kGeluTanh : Act::kGeluErf);
  if (n.op == "Elu") return make(Act::kElu, n.get_float("alpha", 1.0F));
  if (n.op == "Selu")
    return make(Act::kSelu, n.get_float("alpha", 1.67326319217681884765625F),
                n.get_float("gamma", 1.05070102214813232421875F));
  if (n.op == "Celu") return make(Act::kCelu, n.get_float("alpha", 1.0F));
  if (n.op == "ThresholdedRelu") return make(Act::kThresholdedRelu, n.get_float("alpha", 1.0F));
  if (n.op != "Clip") return std::nullopt;
  float bounds[2] = {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  for (size_t k = 1; k <= 2; ++k) {
    if (!n.has_input(k)) continue;
    const ir::Value& v = g.value(n.inputs[k]);
    if (!v.is_const() || v.data->numel() != 1) {
      *why = "a bound of Clip '" + n.name + "' is not a scalar constant of the body";
      return std::nullopt;
    }
    bounds[k - 1] = static_cast<float>(v.data->at(0));
    if (bounds[k - 1] != bounds[k - 1]) {
      *why = "a bound of Clip '" + n.name + "' is NaN";
      return std::nullopt;
    }
  }
  return make(Act::kClip, bounds[0], bounds[1]);
}

std::optional<PwOp> binary(const ir::Node& n) {
  constexpr std::pair<const char*, PwOp> kOps[] = {
      {"Add", PwOp::kAdd}, {"Sub", PwOp::kSub}, {"Mul", PwOp::kMul}, {"Div", PwOp::kDiv},
      {"Min", PwOp::kMin}, {"Max", PwOp::kMax}, {"Pow", PwOp::kPow}, {"Sum", PwOp::kAdd}};
  if (!n.domain.empty()) return std::nullopt;
  for (const auto& [op, pw] : kOps) {
    if (n.op == op) return pw;
  }
  return std::nullopt;
}

enum class ChannelAxis { kNone, kDim1, kLast };
ChannelAxis channel_axis(const ir::Node& n) {
  if (!n.domain.empty()) return ChannelAxis::kNone;
  if (n.op == "Conv" || n.op == "ConvTranspose") return ChannelAxis::kDim1;
  if (n.op == "MatMul" || n.op == "Gemm") return ChannelAxis::kLast;
  return ChannelAxis::kNone;
}

/// Reduces one body. After run(), `why` is empty or says what is wrong.
class Reducer {
 public:
  Reducer(const ir::Graph& outer, const ir::Node& layer) : outer_(outer), layer_(layer), body_(*layer.body) {}

  std::string why;
  const ir::Node* anchor = nullptr;
  std::vector<PostOp> post;

  bool run() {
    for (size_t i = 0; i < body_.inputs().size(); ++i) source_of_[body_.inputs()[i]] = static_cast<int>(i);
    std::vector<const ir::Node*> nodes;
    for (const auto& n : body_.nodes()) nodes.push_back(n.get());
    if (body_.inputs().size() != layer_.inputs.size() || body_.outputs().size() != layer_.outputs.size()) {
      return no("the body's interface differs from the node's");
    }
    size_t first = 0;
    ir::ValueId running = ir::kNoValue;
    if (layer_.anchor >= 0) {
      if (layer_.anchor != 0 || nodes.empty()) return no("the anchor is not the first node of the body");
      anchor = nodes[0];
      first = 1;
      if (!check_anchor()) return false;
      running = anchor->outputs[0];
    } else if (body_.outputs().size() != 1) {
      return no("a pointwise body has one output");
    }
    if (!check_types(nodes, first)) return false;
    while (first < nodes.size()) {
      const size_t end = stretch(nodes, first, running);
      if (end == 0) return no("no single value is left at the end of the body");
      if (!take(nodes, first, end, running)) return false;
      running = nodes[end - 1]->outputs[0];
      if (anchor != nullptr && !same_shape(running, anchor->outputs[0])) {
        return no("'" + nodes[end - 1]->name + "' changes the anchor's shape " +
                  body_.value(anchor->outputs[0]).type.text());
      }
      first = end;
    }
    if (body_.outputs().empty() || body_.outputs()[0] != running)
      return no("output 0 of the body is not its last value");
    for (size_t i = 1; i < body_.outputs().size(); ++i) {
      const ir::ValueId id = body_.outputs()[i];
      if (i >= anchor->outputs.size() || anchor->outputs[i] != id)
        return no("output " + std::to_string(i) + " of the body is not the anchor's");
    }
    for (size_t i = anchor != nullptr ? anchor->inputs.size() : 0; i < layer_.inputs.size(); ++i) {
      const bool used = std::any_of(post.begin(), post.end(), [&](const PostOp& p) {
        return std::find(p.srcs.begin(), p.srcs.end(), static_cast<int>(i)) != p.srcs.end();
      });
      if (!used) return no("input " + std::to_string(i) + " of the layer is not used");
    }
    return true;
  }

 private:
  bool no(std::string reason) {
    why = std::move(reason);
    return false;
  }

  bool check_anchor() {
    if (anchor->inputs.size() > layer_.inputs.size())
      return no("an input of the anchor is not an input of the layer");
    for (size_t i = 0; i < anchor->inputs.size(); ++i) {
      if (anchor->inputs[i] == ir::kNoValue && layer_.inputs[i] == ir::kNoValue) continue;
      if (anchor->inputs[i] != body_.inputs()[i] || layer_.inputs[i] == ir::kNoValue) {
        return no("input " + std::to_string(i) + " of the anchor is not input " + std::to_string(i) +
                  " of the layer");
      }
    }
    if (anchor->body != nullptr || anchor->num_captures > 0) return no("the anchor has a body or captures");
    return true;
  }

  /// Everything behind the anchor computes on floats.
  bool check_types(const std::vector<const ir::Node*>& nodes, size_t first) {
    for (size_t i = first; i < nodes.size(); ++i) {
      const ir::Node& n = *nodes[i];
      if (n.outputs.size() != 1) return no("'" + n.name + "' has several outputs");
      if (!is_float(body_.value(n.outputs[0]).type.dtype)) return no("'" + n.name + "' does not give floats");
      for (const ir::ValueId id : n.inputs) {
        if (id != ir::kNoValue && !is_float(body_.value(id).type.dtype))
          return no("an input of '" + n.name + "' is not a float");
      }
    }
    return true;
  }

  bool same_shape(ir::ValueId a, ir::ValueId b) const {
    const auto& sa = body_.value(a).type.shape;
    const auto& sb = body_.value(b).type.shape;
    return sa && sb && *sa == *sb;
  }

  bool is_output(ir::ValueId id) const {
    return std::find(body_.outputs().begin(), body_.outputs().end(), id) != body_.outputs().end();
  }

  /// One past the last node of the shortest stretch from `first` after which only its last value is still
  /// needed; 0 when there is none.
  size_t stretch(const std::vector<const ir::Node*>& nodes, size_t first, ir::ValueId running) const {
    if (anchor == nullptr) return nodes.size();
    std::vector<ir::ValueId> open = {running};
    for (size_t end = first + 1; end <= nodes.size(); ++end) {
      open.push_back(nodes[end - 1]->outputs[0]);
      bool closed = true;
      for (const ir::ValueId id : open) {
        if (id == open.back()) continue;
        closed = closed && !is_output(id) &&
                 std::none_of(nodes.begin() + static_cast<std::ptrdiff_t>(end), nodes.end(),
                              [&](const ir::Node* n) {
                                return std::find(n->inputs.begin(), n->inputs.end(), id) != n->inputs.end();
                              });
      }
      if (closed) return end;
    }
    return 0;
  }

  /// Turns nodes [first, end) into post-ops.
  bool take(const std::vector<const ir::Node*>& nodes, size_t first, size_t end, ir::ValueId running) {
    if (end == first + 1 && anchor != nullptr) {
      const ir::Node& n = *nodes[first];
      if (const auto act = activation(body_, n, &why); act && n.inputs[0] == running) {
        PostOp p;
        p.act = act->act;
        p.alpha = act->alpha;
        p.beta = act->beta;
        if (p.act != Act::kIdentity) post.push_back(std::move(p));
        return true;
      }
      if (!why.empty()) return false;
      if (single(n, running)) return true;
    }
    return program(nodes, first, end, running);
  }

  /// Add or Mul of the running value and one source.
  bool single(const ir::Node& n, ir::ValueId running) {
    const auto op = binary(n);
    if ((op != PwOp::kAdd && op != PwOp::kMul) || n.inputs.size() != 2) return false;
    const ir::ValueId other = n.inputs[0] == running ? n.inputs[1] : n.inputs[0];
    if ((n.inputs[0] != running && n.inputs[1] != running) || other == running) return false;
    const auto it = source_of_.find(other);
    if (it == source_of_.end()) return false;
    PostOp p;
    const bool channel = per_channel(other, it->second);
    p.kind = *op == PwOp::kAdd ? (channel ? PostOp::Kind::kBias : PostOp::Kind::kAdd)
                               : (channel ? PostOp::Kind::kScale : PostOp::Kind::kMul);
    p.srcs = {it->second};
    post.push_back(std::move(p));
    return true;
  }

  /// A constant of extent C along the anchor's channel axis and 1 elsewhere.
  bool per_channel(ir::ValueId id, int source) const {
    const ChannelAxis axis = channel_axis(*anchor);
    const auto& shape = body_.value(id).type.shape;
    const auto& result = body_.value(anchor->outputs[0]).type.shape;
    const ir::ValueId outside = layer_.inputs[static_cast<size_t>(source)];
    if (axis == ChannelAxis::kNone || !shape || !result || outside == ir::kNoValue ||
        !outer_.value(outside).is_const())
      return false;
    if (shape->size() > result->size() || result->size() < 2) return false;
    const size_t skip = result->size() - shape->size(),
                 at = axis == ChannelAxis::kDim1 ? 1 : result->size() - 1;
    if (at < skip) return false;
    for (size_t d = 0; d < shape->size(); ++d) {
      const Dim want = d + skip == at ? (*result)[at] : Dim(1);
      if (!((*shape)[d] == want)) return false;
    }
    return true;
  }
  using Dim = ir::Dim;

  bool program(const std::vector<const ir::Node*>& nodes, size_t first, size_t end, ir::ValueId running) {
    PostOp p;
    p.kind = PostOp::Kind::kProgram;
    std::map<ir::ValueId, int> regs;
    // Sources get the first registers, hence they are collected before any instruction is numbered.
    if (anchor != nullptr) regs[running] = 0;
    for (size_t i = first; i < end; ++i) {
      for (const ir::ValueId id : nodes[i]->inputs) {
        const auto it = source_of_.find(id);
        if (it == source_of_.end() || regs.contains(id)) continue;
        regs[id] = static_cast<int>(p.srcs.size()) + (anchor != nullptr ? 1 : 0);
        p.srcs.push_back(it->second);
      }
    }
    p.program.num_srcs = static_cast<int>(p.srcs.size()) + (anchor != nullptr ? 1 : 0);
    const auto emit = [&](const PwInstr& i) {
      p.program.instrs.push_back(i);
      return p.program.num_srcs + static_cast<int>(p.program.instrs.size()) - 1;
    };
    for (size_t i = first; i < end; ++i) {
      const ir::Node& n = *nodes[i];
      int result = -1;
      if (auto act = activation(body_, n, &why)) {
        act->a = reg(n.inputs[0], &regs, emit);
        if (act->a < 0) return operand_missing(n);
        result = act->act == Act::kIdentity && i + 1 != end ? act->a : emit(*act);
      } else if (!why.empty()) {
        return false;
      } else if (const auto op = binary(n)) {
        result = reg(n.inputs[0], &regs, emit);
        if (result < 0) return operand_missing(n);
        for (size_t k = 1; k < n.inputs.size(); ++k) {
          PwInstr two;
          two.op = *op;
          two.a = result;
          two.b = reg(n.inputs[k], &regs, emit);
          if (two.b < 0) return operand_missing(n);
          result = emit(two);
        }
        if (n.inputs.size() == 1) {  // Sum, Min or Max of one input
          PwInstr copy;
          copy.a = result;
          result = emit(copy);
        }
      } else {
        return no("'" + n.name + "' (" + n.op_text() + ") is not a post-op");
      }
      regs[n.outputs[0]] = result;
    }
    if (p.program.instrs.empty() || regs[nodes[end - 1]->outputs[0]] !=
                                        p.program.num_srcs + static_cast<int>(p.program.instrs.size()) - 1) {
      return no("the last instruction of the program is not its result");
    }
    merge_or_push(std::move(p));
    return true;
  }

  template <class Emit>
  int reg(ir::ValueId id, std::map<ir::ValueId, int>* regs, const Emit& emit) {
    if (const auto it = regs->find(id); it != regs->end()) return it->second;
    if (id == ir::kNoValue) return -1;
    const ir::Value& v = body_.value(id);
    if (!v.is_const() || v.data->numel() != 1) return -1;
    PwInstr c;
    c.op = PwOp::kConst;
    c.alpha = static_cast<float>(v.data->at(0));
    if (c.alpha != c.alpha) return -1;
    return (*regs)[id] = emit(c);
  }
  bool operand_missing(const ir::Node& n) {
    return no("an operand of '" + n.name +
              "' is neither an input of the layer, a scalar constant of the body, nor computed before");
  }

  /// Two programs in a row are one.
  void merge_or_push(PostOp p) {
    if (post.empty() || post.back().kind != PostOp::Kind::kProgram) {
      post.push_back(std::move(p));
      return;
    }
    PostOp& into = post.back();
    PwProgram& a = into.program;
    // New sources of the second program come behind the first one's; its instructions move up by that many
    // registers.
    std::vector<int> map(static_cast<size_t>(p.program.num_srcs));
    std::vector<int> added;
    for (size_t k = 0; k < p.srcs.size(); ++k) {
      const auto at = std::find(into.srcs.begin(), into.srcs.end(), p.srcs[k]);
      if (at != into.srcs.end()) {
        map[k + 1] = static_cast<int>(at - into.srcs.begin()) + 1;
      } else {
        map[k + 1] = a.num_srcs + static_cast<int>(added.size());
        added.push_back(p.srcs[k]);
      }
    }
    const int shift = static_cast<int>(added.size());
    for (PwInstr& i : a.instrs) {
      if (i.a >= a.num_srcs) i.a += shift;
      if (i.b >= a.num_srcs) i.b += shift;
    }
    into.srcs.insert(into.srcs.end(), added.begin(), added.end());
    a.num_srcs += shift;
    map[0] = a.num_srcs + static_cast<int>(a.instrs.size()) - 1;
    const int base = a.num_srcs + static_cast<int>(a.instrs.size()) - p.program.num_srcs;
    for (PwInstr i : p.program.instrs) {
      const auto moved = [&](int r) {
        return r < 0 ? r : r < p.program.num_srcs ? map[static_cast<size_t>(r)] : r + base;
      };
      i.a = moved(i.a);
      i.b = moved(i.b);
      a.instrs.push_back(i);
    }
  }

  const ir::Graph& outer_;
  const ir::Node& layer_;
  const ir::Graph& body_;
  std::map<ir::ValueId, int> source_of_;  ///< body input -> its number
};

constexpr int64_t kMaxOperandContents = 16;

}  // namespace

std::string check_body(const ir::Graph& graph, const ir::Node& node) {
  if (node.body == nullptr) return "the node has no body";
  Reducer r(graph, node);
  r.run();
  return r.why;
}

Problem derive_problem(const ir::Graph& graph, const ir::Node& node,
                       const std::function<Operand(const ir::Graph&, ir::ValueId)>& operand) {
  Problem p;
  const auto fill = [&](ir::ValueId id, bool source) {
    if (id == ir::kNoValue) return Operand{};
    Operand o = operand(graph, id);
    const ir::Value& v = graph.value(id);
    if (source && v.is_const() && is_integer(v.data->dtype()) && v.data->numel() <= kMaxOperandContents)
      o.contents = v.data->to_i64();
    return o;
  };
  for (const ir::ValueId id : node.inputs) p.srcs.push_back(fill(id, true));
  for (const ir::ValueId id : node.outputs) p.dsts.push_back(fill(id, false));
  const ir::Node* anchor = &node;
  if (node.body != nullptr) {
    Reducer r(graph, node);
    if (!r.run()) {
      ErrorContext c;
      c.stage = "plan";
      c.node = node.name;
      c.op = node.op_text();
      throw Error(ErrorCode::kInternal, "body does not reduce to an anchor and post-ops: " + r.why, c);
    }
    p.post = std::move(r.post);
    anchor = r.anchor;
  }
  if (anchor == nullptr) {
    p.domain = ir::kHoneDomain;
    p.op = "Pointwise";
    return p;
  }
  p.domain = anchor->domain;
  p.op = anchor->op;
  p.num_anchor_srcs = anchor->inputs.size();
  p.attrs = anchor->attrs;
  return p;
}

}  // namespace hone::ops
