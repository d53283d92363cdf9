#include "engine/engine.h"

namespace hone::engine {

std::string check_plan(const Engine& e) {
  const Plan& p = e.plan;
  const auto n = static_cast<PlanId>(p.values.size());
  const auto in_range = [n](PlanId id) { return id >= 0 && id < n; };
  const auto name = [&](PlanId id) { return "value '" + p.values[static_cast<size_t>(id)].name + "'"; };
  std::vector<char> defined(p.values.size(), 0);
  for (PlanId i = 0; i < n; ++i) {
    const PlanValue& v = p.values[static_cast<size_t>(i)];
    if (v.dtype == DType::kUndefined || v.dtype == DType::kString) return name(i) + " has no usable dtype";
    if (v.alias_of != kNone) {
      if (!in_range(v.alias_of) || v.alias_of == i) return name(i) + " aliases an unknown value";
      const PlanValue& root = p.values[static_cast<size_t>(v.alias_of)];
      if (root.alias_of != kNone) return name(i) + " aliases an alias";
      if (root.dtype != v.dtype) return name(i) + " aliases a value of another dtype";
    }
    if (v.place == Place::kConstant) {
      if (v.constant < 0 || static_cast<size_t>(v.constant) >= e.constants.size())
        return name(i) + " names an unknown constant";
      const Constant& c = e.constants[static_cast<size_t>(v.constant)];
      if (c.dtype != v.dtype) return name(i) + " and its constant differ in dtype";
      const auto dims = ir::const_dims(v.dims);
      if (!dims || *dims != c.dims) return name(i) + " and its constant differ in shape";
      if (c.packing.empty() && (c.bytes.dtype() != c.dtype || c.bytes.shape() != c.dims))
        return name(i) + " is plain but stored otherwise";
      defined[static_cast<size_t>(i)] = 1;
    }
  }
  for (PlanId id : p.inputs) {
    if (!in_range(id) || p.values[static_cast<size_t>(id)].place != Place::kInput)
      return "an input is no input value";
    if (p.values[static_cast<size_t>(id)].layout != ops::Layout::kPlain)
      return name(id) + " is an input with a layout";
    defined[static_cast<size_t>(id)] = 1;
  }
  for (size_t i = 0; i < p.steps.size(); ++i) {
    const PlanStep& s = p.steps[i];
    const std::string where = "step " + std::to_string(i) + " '" + s.name + "'";
    if (s.srcs.size() != s.problem.srcs.size() || s.dsts.size() != s.problem.dsts.size())
      return where + ": operands and problem differ in number";
    if (s.kind == StepKind::kAlias && (s.srcs.empty() || s.dsts.size() != 1))
      return where + ": an alias has one result";
    if ((s.kind == StepKind::kTactic || s.kind == StepKind::kReorder) &&
        s.choices.size() != p.profiles.size())
      return where + ": one tactic a profile is needed";
    for (size_t k = 0; k < s.srcs.size(); ++k) {
      const PlanId id = s.srcs[k];
      if (id == kNone) {
        if (s.problem.srcs[k].present()) return where + ": a present operand has no value";
        continue;
      }
      if (!in_range(id)) return where + ": a source is out of range";
      if (!defined[static_cast<size_t>(id)]) return where + ": " + name(id) + " is used before it is defined";
      const PlanValue& v = p.values[static_cast<size_t>(id)];
      const ops::Operand& o = s.problem.srcs[k];
      if (o.dtype != v.dtype || o.dims.size() != v.dims.size() || o.layout != v.layout)
        return where + ": " + name(id) + " does not match the problem";
    }
    for (size_t k = 0; k < s.dsts.size(); ++k) {
      const PlanId id = s.dsts[k];
      if (id == kNone) continue;
      if (!in_range(id)) return where + ": a result is out of range";
      const PlanValue& v = p.values[static_cast<size_t>(id)];
      if (v.place == Place::kConstant || v.place == Place::kInput || defined[static_cast<size_t>(id)])
        return where + ": " + name(id) + " is defined twice";
      const ops::Operand& o = s.problem.dsts[k];
      if (o.dtype != v.dtype || o.layout != v.layout)
        return where + ": " + name(id) + " does not match the problem";
      if (s.kind == StepKind::kAlias && v.alias_of == kNone) return where + ": its result aliases nothing";
      defined[static_cast<size_t>(id)] = 1;
    }
  }
  for (PlanId id : p.outputs)
    if (!in_range(id) || !defined[static_cast<size_t>(id)]) return "an output is never defined";
  if (p.profiles.empty()) return "no optimization profile";
  for (const Profile& profile : p.profiles)
    for (const ProfileRange& r : profile)
      if (r.min.size() != r.opt.size() || r.min.size() != r.max.size())
        return "profile of input '" + r.input + "' mixes ranks";
  return "";
}

}  // namespace hone::engine
