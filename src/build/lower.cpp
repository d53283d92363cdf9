#include "build/lower.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "hone/error.h"
#include "ir/text.h"
#include "ops/op.h"

namespace hone::builder {

using backends::Backend;
using backends::Tactic;
using engine::kNone;
using engine::Place;
using engine::PlanId;
using engine::PlanStep;
using engine::PlanValue;
using engine::StepKind;
using ir::Graph;
using ir::Node;
using ir::ValueId;
using ops::Layout;
using ops::Operand;
using ops::Problem;

ir::SymbolValues bind_symbols(const Graph& graph, const std::map<std::string, Shape>& shapes) {
  ir::SymbolValues symbols;
  for (ValueId id : graph.inputs()) {
    const ir::Value& v = graph.value(id);
    const auto it = shapes.find(v.name);
    if (it == shapes.end() || !v.type.shape) continue;
    const ir::Dims& dims = *v.type.shape;
    if (dims.size() != it->second.size())
      throw Error(ErrorCode::kInvalidArgument,
                  "input '" + v.name + "' has rank " + std::to_string(dims.size()) +
                      ", the shape given has rank " + std::to_string(it->second.size()),
                  {.stage = "bind", .tensor = v.name + " " + v.type.text()});
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t want = it->second[i];
      if (!dims[i].is_const()) {
        const std::string text = dims[i].text();
        const auto [at, inserted] = symbols.emplace(text, want);
        if (!inserted && at->second != want)
          throw Error(ErrorCode::kInvalidArgument,
                      "dimension " + std::to_string(i) + " of input '" + v.name + "' is " +
                          std::to_string(want) + ", but '" + text + "' is already " +
                          std::to_string(at->second) + " from another input: equal symbols must be equal",
                      {.stage = "bind", .tensor = v.name + " " + v.type.text()});
      } else if (dims[i].value() != want) {
        throw Error(ErrorCode::kInvalidArgument,
                    "dimension " + std::to_string(i) + " of input '" + v.name + "' is fixed at " +
                        std::to_string(dims[i].value()) + ", the shape given has " + std::to_string(want),
                    {.stage = "bind", .tensor = v.name + " " + v.type.text()});
      }
    }
  }
  return symbols;
}

namespace {

/// Operators whose output has its input's elements in the same logical row-major order.
bool keeps_order(const Node& n) {
  static const std::set<std::string, std::less<>> kNames = {"Reshape", "Flatten", "Squeeze", "Unsqueeze",
                                                            "Identity"};
  return n.domain.empty() && kNames.count(n.op) > 0;
}

Operand make_operand(DType dtype, Shape dims, Layout layout, bool constant = false) {
  Operand o;
  o.dtype = dtype;
  o.dims = std::move(dims);
  o.layout = layout;
  o.constant = constant;
  return o;
}

/// A bare f32 elementwise node as a layer whose body is that node: a pointwise program of one instruction.
/// Nullopt when programs do not know it.
std::optional<Node> as_program(const Graph& graph, const Node& n) {
  const ops::OpDef* op = ops::find_op(n.domain, n.op);
  if (n.body || op == nullptr || !op->elementwise || n.outputs.size() != 1) return std::nullopt;
  for (const auto& list : {n.inputs, n.outputs})
    for (ValueId id : list)
      if (id != ir::kNoValue && graph.value(id).type.dtype != DType::kF32) return std::nullopt;
  Node layer;
  layer.domain = ir::kHoneDomain;
  layer.op = "Fused";
  layer.name = n.name;
  layer.outputs = n.outputs;
  layer.body = std::make_shared<Graph>();
  Node inner;
  inner.name = n.name;
  inner.domain = n.domain;
  inner.op = n.op;
  inner.attrs = n.attrs;
  for (ValueId id : n.inputs) {
    if (id == ir::kNoValue) {
      inner.inputs.push_back(id);
    } else if (const ir::Value& v = graph.value(id); v.is_const() && v.data->numel() == 1) {
      inner.inputs.push_back(layer.body->add_constant(v.name, *v.data));
    } else {
      layer.inputs.push_back(id);
      inner.inputs.push_back(layer.body->add_input(v.name, v.type));
    }
  }
  const ir::Value& out = graph.value(n.outputs[0]);
  inner.outputs = {layer.body->add_value(out.name, out.type)};
  layer.body->add_output(inner.outputs[0]);
  layer.body->add_node(std::move(inner));
  if (layer.inputs.empty() || !ops::check_body(graph, layer).empty()) return std::nullopt;
  return layer;
}

constexpr size_t kPlanCandidates = 3;  // a layer's best three go to the whole-plan timing ...
constexpr double kPlanSlack = 1.25;    // ... unless they are far slower alone
constexpr int64_t kMaxContents = 16;   // as ops::Operand::contents says

/// A precision's name in the requested/actual table.
std::string precision_of(const Problem& p) {
  for (const Operand& o : p.dsts)
    if (o.present()) return dtype_name(o.dtype);
  return "";
}

class Lowering {
 public:
  Lowering(const Graph& graph, const LowerOptions& options) : graph_(graph), options_(options) {
    backend_ = backends::find_backend(options.target.backend);
    if (backend_ == nullptr)
      throw Error(ErrorCode::kInvalidArgument, "this build has no backend '" + options.target.backend + "'",
                  {.stage = "plan"});
    for (const engine::Profile& p : options.profiles) {
      std::map<std::string, Shape> shapes;
      for (const engine::ProfileRange& r : p) shapes[r.input] = r.opt;
      symbols_.push_back(bind_symbols(graph, shapes));
    }
  }

  engine::Engine run() {
    e_.target = options_.target.text();
    for (ValueId id : graph_.inputs()) {
      const PlanId p = add_value(graph_.value(id).name, graph_.value(id).type, Layout::kPlain, Place::kInput);
      by_layout_[{id, Layout::kPlain}] = p;
      e_.plan.inputs.push_back(p);
    }
    int32_t index = 0;
    for (const auto& node : graph_.nodes()) lower_node(*node, index++);
    lower_outputs();
    name_outputs();
    e_.plan.profiles = options_.profiles;
    e_.graph_text = graph_text();
    return std::move(e_);
  }

 private:
  // --- values ---

  /// Concrete shape under a profile's opt symbols; nullopt when it depends on data.
  std::optional<Shape> shape_of(const ir::TypeInfo& type, size_t profile = 0) const {
    if (!type.shape) return std::nullopt;
    Shape s;
    for (const ir::Dim& d : *type.shape) {
      const auto v = d.eval(symbols_[profile]);
      if (!v) return std::nullopt;
      s.push_back(*v);
    }
    return s;
  }

  PlanId add_value(const std::string& name, const ir::TypeInfo& type, Layout layout, Place place) {
    PlanValue v;
    v.name = name;
    v.dtype = type.dtype;
    v.dims = type.shape.value_or(ir::Dims());
    v.layout = layout;
    v.place = place;
    e_.plan.values.push_back(std::move(v));
    return static_cast<PlanId>(e_.plan.values.size()) - 1;
  }
  PlanValue& value(PlanId id) { return e_.plan.values[static_cast<size_t>(id)]; }

  /// Constant `id` in the given packing; written once.
  PlanId constant(ValueId id, const std::string& packing) {
    const auto key = std::make_pair(id, packing);
    if (const auto it = constants_.find(key); it != constants_.end()) return it->second;
    return constants_[key] = add_constant(graph_.value(id), packing);
  }

  PlanId add_constant(const ir::Value& v, const std::string& packing) {
    engine::Constant c;
    c.name = v.name;
    c.dtype = v.data->dtype();
    c.dims = v.data->shape();
    c.packing = packing;
    c.bytes = packing.empty() ? *v.data : backend_->pack(packing, *v.data);
    ir::TypeInfo type{c.dtype, ir::to_dims(c.dims)};
    const PlanId p = add_value(v.name, type, Layout::kPlain, Place::kConstant);
    value(p).constant = static_cast<int32_t>(e_.constants.size());
    e_.constants.push_back(std::move(c));
    return p;
  }

  /// Any layout in which the value exists already; plain first when it is asked for.
  std::pair<PlanId, Layout> existing(ValueId id) const {
    for (Layout l : {Layout::kChannelsLast, Layout::kPlain})
      if (const auto it = by_layout_.find({id, l}); it != by_layout_.end()) return {it->second, l};
    throw Error(ErrorCode::kInternal, "value '" + graph_.value(id).name + "' was not lowered");
  }

  bool dynamic(ValueId id) const { return !shape_of(graph_.value(id).type).has_value(); }

  Operand operand(ValueId id) const {
    Operand o;
    if (id == ir::kNoValue) return o;
    const ir::Value& v = graph_.value(id);
    if (v.is_const()) {
      o = make_operand(v.data->dtype(), v.data->shape(), Layout::kPlain, true);
      if ((is_integer(o.dtype) || o.dtype == DType::kBool) && v.data->numel() <= kMaxContents)
        o.contents = v.data->to_i64();
      return o;
    }
    o.dtype = v.type.dtype;
    if (const auto s = shape_of(v.type)) o.dims = *s;
    const auto it = by_layout_.lower_bound({id, Layout::kPlain});
    if (it != by_layout_.end() && it->first.first == id) o.layout = existing(id).second;
    return o;
  }

  // --- steps ---

  std::vector<Candidate> candidates(const Problem& wanted, std::string* reasons) const {
    std::vector<Candidate> out;
    for (const Tactic* t : backend_->tactics(wanted, options_.target)) {
      Candidate c{t, wanted};
      t->choose_layouts(c.problem);
      const backends::Support s = t->supports(c.problem);
      if (!s) {
        *reasons += "\n  " + t->name() + ": " + s.reason;
        continue;
      }
      if (options_.strict_f32 && t->numerics() >= ops::Numerics::kTransforms) {
        *reasons += "\n  " + t->name() + ": transforms operands, refused under --strict-f32";
        continue;
      }
      if (options_.max_workspace > 0) {
        const int64_t bytes = t->prepare(c.problem)->workspace_bytes();
        if (bytes > options_.max_workspace) {
          *reasons += "\n  " + t->name() + ": needs " + std::to_string(bytes) + " bytes of workspace, " +
                      std::to_string(options_.max_workspace) + " are allowed";
          continue;
        }
      }
      out.push_back(std::move(c));
    }
    return out;
  }

  Candidate choose(const Problem& wanted, const std::string& node, engine::TacticChoice* choice) {
    std::string reasons;
    const std::vector<Candidate> all = candidates(wanted, &reasons);
    if (all.empty())
      throw Error(ErrorCode::kNoTactic, "no tactic runs " + wanted.text() + reasons,
                  {.stage = "plan", .node = node, .op = wanted.op});
    if (log_enabled(Log::kDispatch) && !reasons.empty()) log(Log::kDispatch, wanted.text() + reasons);
    const std::vector<tune::Ranked> ranked = rank(all);
    const Candidate& best = all[ranked.front().index];
    *choice = as_choice(all, ranked.front());
    if (log_enabled(Log::kDispatch)) log(Log::kDispatch, best.tactic->name() + " <- " + best.problem.text());
    if (options_.alternatives != nullptr) {
      Alternatives alternatives;
      for (size_t k = 1; k < ranked.size() && alternatives.choices.size() + 1 < kPlanCandidates; ++k)
        if (interchangeable(all[ranked[k].index], best) &&
            ranked[k].timing.time_ns < kPlanSlack * ranked.front().timing.time_ns)
          alternatives.choices.push_back(as_choice(all, ranked[k]));
      pending_ = std::move(alternatives);
    }
    return best;
  }

  std::vector<tune::Ranked> rank(const std::vector<Candidate>& all) const {
    return options_.choose ? options_.choose(all) : std::vector<tune::Ranked>{{0, {}}};
  }

  static engine::TacticChoice as_choice(const std::vector<Candidate>& all, const tune::Ranked& r) {
    return {all[r.index].tactic->name(), r.timing.time_ns, r.timing.error};
  }

  /// Same layouts on every edge and same packings of every constant.
  static bool interchangeable(const Candidate& a, const Candidate& b) {
    for (size_t k = 0; k < a.problem.srcs.size(); ++k)
      if (a.problem.srcs[k].layout != b.problem.srcs[k].layout ||
          (a.problem.srcs[k].constant && a.tactic->packing(a.problem, k) != b.tactic->packing(b.problem, k)))
        return false;
    for (size_t k = 0; k < a.problem.dsts.size(); ++k)
      if (a.problem.dsts[k].layout != b.problem.dsts[k].layout) return false;
    return true;
  }

  /// The tactic of a further profile bucket: among those with the first bucket's layouts and packings, since
  /// edges and weights exist once.
  engine::TacticChoice choose_for_bucket(const Node& n, const Candidate& first,
                                         const engine::TacticChoice& first_choice, size_t bucket) {
    Problem p = first.problem;
    const auto resize = [&](Operand& o, ValueId id) {
      if (id != ir::kNoValue && !graph_.value(id).is_const())
        o.dims = *shape_of(graph_.value(id).type, bucket);
    };
    for (size_t k = 0; k < p.srcs.size(); ++k) resize(p.srcs[k], n.inputs[k]);
    for (size_t k = 0; k < p.dsts.size(); ++k) resize(p.dsts[k], n.outputs[k]);
    std::string reasons;
    std::vector<Candidate> same;
    for (Candidate& c : candidates(p, &reasons))
      if (interchangeable(c, {first.tactic, p})) same.push_back(std::move(c));
    if (same.empty()) return first_choice;
    return as_choice(same, rank(same).front());
  }

  /// The value in a layout; a reorder step is added when it does not exist so.
  PlanId in_layout(ValueId id, Layout layout) {
    if (const auto it = by_layout_.find({id, layout}); it != by_layout_.end()) return it->second;
    const auto [from, have] = existing(id);
    const ir::TypeInfo& type = graph_.value(id).type;
    const Shape shape = *shape_of(type);
    const PlanValue src = value(from);
    const PlanId to = add_value(src.name + "@" + ops::layout_name(layout), type, layout, Place::kArena);
    by_layout_[{id, layout}] = to;
    PlanStep s;
    s.name = src.name + "@" + ops::layout_name(layout);
    Problem& p = s.problem;
    p.domain = ir::kHoneDomain;
    p.op = "Reorder";
    p.srcs = {make_operand(type.dtype, shape, have)};
    p.num_anchor_srcs = 1;
    p.dsts = {make_operand(type.dtype, shape, layout)};
    s.srcs = {from};
    s.dsts = {to};
    if (symbol_free_same_order(type, have, layout)) {
      s.kind = StepKind::kAlias;
      value(to).alias_of = root(from);
    } else {
      s.kind = StepKind::kReorder;
      engine::TacticChoice choice;
      choose_exact(p, s.name, &choice);
      s.choices.assign(symbols_.size(), choice);
      s.requested = s.actual = precision_of(p);
    }
    e_.plan.steps.push_back(std::move(s));
    return to;
  }

  /// Like choose(), for problems whose layouts are given and must stay.
  Candidate choose_exact(const Problem& p, const std::string& node, engine::TacticChoice* choice) {
    std::string reasons;
    for (const Tactic* t : backend_->tactics(p, options_.target)) {
      const backends::Support s = t->supports(p);
      if (s) {
        choice->tactic = t->name();
        return {t, p};
      }
      reasons += "\n  " + t->name() + ": " + s.reason;
    }
    throw Error(ErrorCode::kNoTactic, "no tactic runs " + p.text() + reasons,
                {.stage = "plan", .node = node, .op = p.op});
  }

  /// Both layouts put every element at the same place, whatever the symbols turn out to be.
  static bool symbol_free_same_order(const ir::TypeInfo& type, Layout a, Layout b) {
    Shape probe;  // a symbolic extent counts as larger than 1
    for (const ir::Dim& d : *type.shape) probe.push_back(d.is_const() ? d.value() : 1'000'003);
    return ops::same_order(a, b, probe);
  }

  PlanId root(PlanId id) { return value(id).alias_of == kNone ? id : value(id).alias_of; }

  /// Shapes that the model does not accept (a window longer than its input) show as negative dimensions.
  void check_sizes(const Node& n) const {
    for (ValueId id : n.outputs) {
      if (id == ir::kNoValue || !graph_.value(id).type.shape) continue;
      const ir::Value& v = graph_.value(id);
      for (const ir::Dim& d : *v.type.shape)
        if (const auto size = d.eval(symbols_[0]); size && *size < 0)
          throw Error(
              ErrorCode::kInvalidArgument,
              "at the opt shapes '" + v.name + "' would have the dimension " + d.text() + " = " +
                  std::to_string(*size) + "; give shapes that the model accepts with --shapes",
              {.stage = "plan", .node = n.name, .op = n.op_text(), .tensor = v.name + " " + v.type.text()});
    }
  }

  void lower_node(const Node& n, int32_t index) {
    check_sizes(n);
    bool host = n.num_captures > 0;
    for (const auto& [name, attr] : n.attrs)
      host |= std::holds_alternative<std::shared_ptr<Graph>>(attr) ||
              std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(attr);
    for (ValueId id : n.outputs)
      if (id != ir::kNoValue) host |= dynamic(id);
    for (ValueId id : n.inputs)
      if (id != ir::kNoValue && !graph_.value(id).is_const()) host |= dynamic(id);
    if (host) return lower_host(n, index);
    if (lower_alias(n)) return;
    lower_tactic(n);
  }

  void describe(PlanStep& s, const Node& n) {
    s.name = n.name;
    s.sources = n.sources.empty() ? std::vector<std::string>{n.name} : n.sources;
    s.passes = n.passes;
  }

  void lower_host(const Node& n, int32_t index) {
    PlanStep s;
    s.kind = StepKind::kHostOp;
    describe(s, n);
    s.host_node = index;
    s.reason = n.num_captures > 0 || has_subgraph(n) ? "control-flow" : "data-dependent-shape";
    s.problem.domain = n.domain;
    s.problem.op = n.op;
    for (const auto& [name, attr] : n.attrs)
      if (!std::holds_alternative<std::shared_ptr<Graph>>(attr) &&
          !std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(attr))
        s.problem.attrs.emplace(name, attr);
    for (ValueId id : n.inputs) {
      if (id == ir::kNoValue) {
        s.problem.srcs.push_back({});
        s.srcs.push_back(kNone);
        continue;
      }
      const PlanId p = graph_.value(id).is_const() ? constant(id, "") : in_layout(id, Layout::kPlain);
      s.srcs.push_back(p);
      Operand o = operand(id);
      o.layout = Layout::kPlain;
      o.dims.resize(value(p).dims.size());
      s.problem.srcs.push_back(o);
    }
    s.problem.num_anchor_srcs = s.problem.srcs.size();
    for (ValueId id : n.outputs) {
      if (id == ir::kNoValue) {
        s.problem.dsts.push_back({});
        s.dsts.push_back(kNone);
        continue;
      }
      const ir::Value& v = graph_.value(id);
      const PlanId p =
          add_value(v.name, v.type, Layout::kPlain, dynamic(id) ? Place::kDynamic : Place::kArena);
      by_layout_[{id, Layout::kPlain}] = p;
      s.dsts.push_back(p);
      Operand o;
      o.dtype = v.type.dtype;
      s.problem.dsts.push_back(o);
    }
    s.requested = s.actual = precision_of(s.problem);
    e_.plan.steps.push_back(std::move(s));
  }

  static bool has_subgraph(const Node& n) {
    for (const auto& [name, attr] : n.attrs)
      if (std::holds_alternative<std::shared_ptr<Graph>>(attr)) return true;
    return false;
  }

  /// Reshape-like nodes, and transposes that only rename a layout, move no bytes.
  bool lower_alias(const Node& n) {
    if (n.inputs.empty() || n.outputs.size() != 1 || n.inputs[0] == ir::kNoValue) return false;
    const ValueId in = n.inputs[0], out = n.outputs[0];
    if (graph_.value(in).is_const()) return false;
    const ir::TypeInfo& in_type = graph_.value(in).type;
    const ir::TypeInfo& out_type = graph_.value(out).type;
    PlanId src = kNone;
    Layout out_layout = Layout::kPlain;
    if (keeps_order(n)) {
      const auto [p, have] = existing(in);
      if (n.op == "Identity") {
        src = p;
        out_layout = have;
      } else {
        src = in_layout(in, Layout::kPlain);
      }
    } else if (n.is("Transpose")) {
      const auto [p, have] = existing(in);
      const int rank = in_type.rank();
      std::vector<int64_t> perm = n.get_ints("perm");
      if (perm.empty())
        for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
      for (Layout l : {Layout::kPlain, Layout::kChannelsLast}) {
        if (l == Layout::kChannelsLast && (rank < 3 || options_.target.backend == "ref")) continue;
        if (moves_nothing(in_type, have, perm, l)) {
          src = p;
          out_layout = l;
          break;
        }
      }
      if (src == kNone) return false;
    } else {
      return false;
    }
    PlanStep s;
    s.kind = StepKind::kAlias;
    describe(s, n);
    s.problem.op = n.op;
    s.problem.srcs = {make_operand(in_type.dtype, *shape_of(in_type), value(src).layout)};
    s.problem.num_anchor_srcs = 1;
    s.problem.dsts = {make_operand(out_type.dtype, *shape_of(out_type), out_layout)};
    const PlanId dst = add_value(graph_.value(out).name, out_type, out_layout, Place::kArena);
    value(dst).alias_of = root(src);
    by_layout_[{out, out_layout}] = dst;
    s.srcs = {src};
    s.dsts = {dst};
    e_.plan.steps.push_back(std::move(s));
    return true;
  }

  /// Does transposing by `perm` from layout `from` into layout `to` leave every byte where it is? Dimensions
  /// of extent 1 do not count.
  static bool moves_nothing(const ir::TypeInfo& in, Layout from, const std::vector<int64_t>& perm,
                            Layout to) {
    const int rank = in.rank();
    const auto extent_one = [&](int d) { return (*in.shape)[static_cast<size_t>(d)] == ir::Dim(1); };
    std::vector<int> a, b;  // source dimensions in memory order
    for (int d : ops::layout_order(from, rank))
      if (!extent_one(d)) a.push_back(d);
    for (int d : ops::layout_order(to, rank)) {
      const int source = static_cast<int>(perm[static_cast<size_t>(d)]);
      if (!extent_one(source)) b.push_back(source);
    }
    return a == b;
  }

  void lower_tactic(const Node& given) {
    PlanStep s;
    describe(s, given);
    const std::optional<Node> program =
        options_.target.backend == "ref" ? std::nullopt : as_program(graph_, given);
    const Node& n = program ? *program : given;
    const Problem wanted =
        ops::derive_problem(graph_, n, [this](const Graph&, ValueId id) { return operand(id); });
    engine::TacticChoice choice;
    const Candidate c = choose(wanted, n.name, &choice);
    s.problem = c.problem;
    s.choices = {choice};
    for (size_t b = 1; b < symbols_.size(); ++b) s.choices.push_back(choose_for_bucket(n, c, choice, b));
    s.requested = s.actual = precision_of(s.problem);
    if (choice.tactic == "ref" && options_.target.backend != "ref") s.reason = "no-tactic";
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const ValueId id = n.inputs[i];
      if (id == ir::kNoValue)
        s.srcs.push_back(kNone);
      else if (graph_.value(id).is_const())
        s.srcs.push_back(constant(id, c.tactic->packing(s.problem, i)));
      else
        s.srcs.push_back(in_layout(id, s.problem.srcs[i].layout));
    }
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const ValueId id = n.outputs[i];
      if (id == ir::kNoValue || !s.problem.dsts[i].present()) {
        s.dsts.push_back(kNone);
        continue;
      }
      const Layout layout = s.problem.dsts[i].layout;
      const PlanId p = add_value(graph_.value(id).name, graph_.value(id).type, layout, Place::kArena);
      by_layout_[{id, layout}] = p;
      s.dsts.push_back(p);
    }
    if (options_.alternatives != nullptr && !pending_.choices.empty()) {
      pending_.step = e_.plan.steps.size();
      options_.alternatives->push_back(std::move(pending_));
    }
    pending_ = {};
    e_.plan.steps.push_back(std::move(s));
  }

  void lower_outputs() {
    std::set<PlanId> taken;
    for (ValueId id : graph_.outputs()) {
      PlanId p = kNone;
      if (graph_.value(id).is_const()) {
        p = constant(id, "");
      } else if (dynamic(id)) {
        e_.plan.outputs.push_back(in_layout(id, Layout::kPlain));
        continue;
      } else {
        p = in_layout(id, Layout::kPlain);
      }
      PlanValue& v = value(p);
      if (v.place == Place::kArena && v.alias_of == kNone && !aliased(p) && taken.insert(p).second) {
        v.place = Place::kOutput;
        e_.plan.outputs.push_back(p);
      } else {
        e_.plan.outputs.push_back(copy_to_output(id, p));
      }
    }
  }

  /// Outputs bear the model's names; the same tensor in another layout gives its name up.
  void name_outputs() {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const std::string& name = graph_.value(graph_.outputs()[i]).name;
      const PlanId output = e_.plan.outputs[i];
      if (value(output).name == name) continue;
      for (PlanValue& v : e_.plan.values)
        if (v.name == name && v.place == Place::kArena) v.name = name + "@" + ops::layout_name(v.layout);
      value(output).name = name;
    }
  }

  bool aliased(PlanId id) const {
    return std::any_of(e_.plan.values.begin(), e_.plan.values.end(),
                       [id](const PlanValue& v) { return v.alias_of == id; });
  }

  /// Inputs, constants, aliases and repeated outputs reach the caller by a copy step.
  PlanId copy_to_output(ValueId id, PlanId from) {
    const ir::Value& v = graph_.value(id);
    ir::TypeInfo type = v.type;
    if (v.is_const()) type = {v.data->dtype(), ir::to_dims(v.data->shape())};
    const PlanId to = add_value(v.name, type, Layout::kPlain, Place::kOutput);
    PlanStep s;
    s.kind = StepKind::kTactic;
    s.name = v.name + "@output";
    Problem& p = s.problem;
    p.op = "Identity";
    p.srcs = {make_operand(type.dtype, *shape_of(type), Layout::kPlain, v.is_const())};
    p.num_anchor_srcs = 1;
    p.dsts = {make_operand(type.dtype, *shape_of(type), Layout::kPlain)};
    s.srcs = {from};
    s.dsts = {to};
    engine::TacticChoice choice;
    choose_exact(p, s.name, &choice);
    s.choices.assign(symbols_.size(), choice);
    s.requested = s.actual = precision_of(p);
    e_.plan.steps.push_back(std::move(s));
    return to;
  }

  /// The graph with large constants by number; one that no step uses is added.
  std::string graph_text() {
    ir::PrintOptions print;
    print.external = [this](const ir::Value& v) {
      // Ids are a graph's own: a subgraph's value is another one than ours of the same id.
      if (static_cast<size_t>(v.id) >= graph_.num_values() || &graph_.value(v.id) != &v)
        return static_cast<int>(value(add_constant(v, "")).constant);
      const auto it = constants_.lower_bound({v.id, std::string()});
      PlanId p = kNone;
      if (it != constants_.end() && it->first.first == v.id)
        p = it->second;
      else
        p = constant(v.id, "");
      return static_cast<int>(value(p).constant);
    };
    return ir::print(graph_, print);
  }

  const Graph& graph_;
  const LowerOptions& options_;
  const Backend* backend_ = nullptr;
  std::vector<ir::SymbolValues> symbols_;  ///< of each profile's opt shapes
  engine::Engine e_;
  std::map<std::pair<ValueId, Layout>, PlanId> by_layout_;
  std::map<std::pair<ValueId, std::string>, PlanId> constants_;
  Alternatives pending_;  ///< of the step being lowered; reorders may come before it
};

}  // namespace

engine::Engine lower(const Graph& graph, const LowerOptions& options) {
  return Lowering(graph, options).run();
}

}  // namespace hone::builder
