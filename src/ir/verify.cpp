#include "ir/verify.h"

#include <unordered_map>
#include <utility>

#include "base/str.h"
#include "hone/error.h"

namespace hone::ir {
namespace {

constexpr size_t kMaxFindings = 100;

class Verifier {
 public:
  std::vector<std::string> findings;

  void graph(const Graph& top) {
    // A stack rather than recursion: bodies nest as deep as a caller builds them.
    std::vector<std::pair<const Graph*, std::string>> work{{&top, ""}};
    while (!work.empty() && findings.size() < kMaxFindings) {
      const auto [g, path] = std::move(work.back());
      work.pop_back();
      path_ = path;
      one(*g, &work);
    }
  }

 private:
  using Defined = std::vector<bool>;  // by value
  static bool define(Defined* defined, ValueId id) {
    const bool fresh = !(*defined)[static_cast<size_t>(id)];
    (*defined)[static_cast<size_t>(id)] = true;
    return fresh;
  }
  void report(std::string what) {
    if (findings.size() < kMaxFindings) findings.push_back(path_ + std::move(what));
  }
  static std::string who(const Node& n) { return "node '" + n.name + "' " + n.op_text(); }

  void one(const Graph& g, std::vector<std::pair<const Graph*, std::string>>* work) {
    values(g);
    Defined defined(g.num_values(), false);
    for (const ValueId id : g.inputs()) {
      if (!in_range(g, id)) return report("a graph input is not a value");
      const Value& v = g.value(id);
      if (v.producer != nullptr) report("graph input '" + v.name + "' has a producer");
      if (v.is_const()) report("graph input '" + v.name + "' is constant");
      if (!define(&defined, id)) report("graph input '" + v.name + "' is listed twice");
    }
    for (const ValueId id : g.captures) {
      if (!in_range(g, id)) return report("a capture is not a value");
      const Value& v = g.value(id);
      if (v.producer != nullptr || v.is_const()) report("capture '" + v.name + "' is defined inside");
      if (!define(&defined, id)) report("capture '" + v.name + "' is an input or captured twice");
    }
    for (const auto& n : g.nodes()) node(g, *n, &defined, work);
    if (uses_ != 0) report("values and nodes disagree on the number of uses");
    std::unordered_map<ValueId, int> listed;
    for (const ValueId id : g.outputs()) {
      if (!in_range(g, id)) return report("a graph output is not a value");
      ++listed[id];
      const Value& v = g.value(id);
      if (!v.is_const() && !defined[static_cast<size_t>(id)])
        report("graph output '" + v.name + "' is not defined");
    }
    for (size_t i = 0; i < g.num_values(); ++i) {
      const Value& v = g.value(static_cast<ValueId>(i));
      const auto it = listed.find(v.id);
      if (v.listed_as_output != (it == listed.end() ? 0 : it->second)) {
        report("value '" + v.name + "' miscounts how often it is a graph output");
      }
    }
  }

  static bool in_range(const Graph& g, ValueId id) {
    return id >= 0 && static_cast<size_t>(id) < g.num_values();
  }

  void values(const Graph& g) {
    uses_ = 0;
    for (size_t i = 0; i < g.num_values(); ++i) {
      const Value& v = g.value(static_cast<ValueId>(i));
      if (v.id != static_cast<ValueId>(i)) report("value '" + v.name + "' has the wrong id");
      // The index holds each name once, so values that are all found by their names have different ones.
      const ValueId found = g.find(v.name);
      if (found != v.id) {
        report(in_range(g, found) && g.value(found).name == v.name
                   ? "two values have the name '" + v.name + "'"
                   : "value '" + v.name + "' is not found by its name");
      }
      if (v.is_const()) {
        if (v.producer != nullptr) report("constant '" + v.name + "' has a producer");
        if (v.type.dtype != v.data->dtype() || !v.type.shape || *v.type.shape != to_dims(v.data->shape())) {
          report("constant '" + v.name + "' is " + v.data->type_text() + " but typed " + v.type.text());
        }
      }
      for (const Use& u : v.uses) {
        if (u.node == nullptr || u.index < 0 || static_cast<size_t>(u.index) >= u.node->inputs.size() ||
            u.node->inputs[static_cast<size_t>(u.index)] != v.id) {
          report("value '" + v.name + "' lists a use that is none");
        }
      }
      uses_ += static_cast<int64_t>(v.uses.size());
    }
  }

  void node(const Graph& g, const Node& n, Defined* defined,
            std::vector<std::pair<const Graph*, std::string>>* work) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const ValueId id = n.inputs[i];
      if (id == kNoValue) continue;
      if (!in_range(g, id)) {
        report(who(n) + " input " + std::to_string(i) + " is not a value");
        continue;
      }
      const Value& v = g.value(id);
      if (!v.is_const() && !(*defined)[static_cast<size_t>(id)])
        report(who(n) + " uses '" + v.name + "' before it is defined");
      // Every listed use is an input (checked above); counting shows that every input is a listed use.
      --uses_;
    }
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const ValueId id = n.outputs[i];
      if (id == kNoValue) continue;
      if (!in_range(g, id)) {
        report(who(n) + " output " + std::to_string(i) + " is not a value");
        continue;
      }
      const Value& v = g.value(id);
      if (v.producer != &n || v.output_index != static_cast<int>(i)) {
        report(who(n) + " and its output '" + v.name + "' disagree on who produces it");
      }
      if (!define(defined, id)) report("value '" + v.name + "' is defined twice");
    }
    subgraphs(n, work);
  }

  void subgraphs(const Node& n, std::vector<std::pair<const Graph*, std::string>>* work) {
    const auto n_inputs = static_cast<int>(n.inputs.size());
    if (n.num_captures < 0 || n.num_captures > n_inputs) {
      report(who(n) + " captures " + std::to_string(n.num_captures) + " of " + std::to_string(n_inputs) +
             " inputs");
    }
    bool any = false;
    const auto subgraph = [&](const std::string& key, const std::shared_ptr<Graph>& sub) {
      any = true;
      if (!sub) return report(who(n) + " has a null graph in attribute " + key);
      if (static_cast<int>(sub->captures.size()) != n.num_captures) {
        report(who(n) + " captures " + std::to_string(n.num_captures) + " values, its " + key + " expects " +
               std::to_string(sub->captures.size()));
      }
      work->emplace_back(sub.get(), path_ + "in " + key + " of " + who(n) + ": ");
    };
    for (const auto& [key, attr] : n.attrs) {
      if (const auto* one = std::get_if<std::shared_ptr<Graph>>(&attr)) subgraph(key, *one);
      if (const auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attr)) {
        for (const auto& sub : *many) subgraph(key, sub);
      }
    }
    if (!any && n.num_captures != 0) report(who(n) + " captures values without having a subgraph");
    if (!n.body) return;
    if (n.body->inputs().size() != n.inputs.size() || n.body->outputs().size() != n.outputs.size()) {
      report(who(n) + " has " + std::to_string(n.inputs.size()) + " inputs and " +
             std::to_string(n.outputs.size()) + " outputs, its body " +
             std::to_string(n.body->inputs().size()) + " and " + std::to_string(n.body->outputs().size()));
    }
    if (n.anchor < -1 || n.anchor >= static_cast<int>(n.body->num_nodes()))
      report(who(n) + " has no such anchor");
    work->emplace_back(n.body.get(), path_ + "in the body of " + who(n) + ": ");
  }

  std::string path_;
  int64_t uses_ = 0;  // uses listed by values, less the inputs met so far
};

}  // namespace

std::vector<std::string> verify(const Graph& graph) {
  Verifier v;
  v.graph(graph);
  return std::move(v.findings);
}

void verify_or_throw(const Graph& graph, const std::string& stage) {
  const std::vector<std::string> findings = verify(graph);
  if (findings.empty()) return;
  ErrorContext c;
  c.stage = stage;
  throw Error(ErrorCode::kInternal, "the graph is not sound: " + join_some(findings, "; ", 10), std::move(c));
}

}  // namespace hone::ir
