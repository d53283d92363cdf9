// What passes and rules share: rule rows and their driver, replacing values without losing names, counting
// bytes moved, notes on reasons.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/pattern.h"
#include "optimize/pass.h"

namespace hone::optimize {

// --- bytes ---

/// Reshape, Squeeze, Unsqueeze, Flatten, Identity: another name for the same bytes.
bool is_view(const ir::Node& node);
/// Bytes of an activation; 0 for constants, absent values and unknown shapes.
ir::Dim value_bytes(const ir::Graph& graph, ir::ValueId id);
/// Activation bytes that a node reads and writes: one read per input that is not constant, one write per
/// output; 0 for views.
ir::Dim node_traffic(const ir::Graph& graph, const ir::Node& node);
/// The sum over all nodes of this graph, those of subgraphs counted once.
ir::Dim graph_traffic(const ir::Graph& graph);

// --- types ---

bool known(const ir::TypeInfo& t);                             ///< dtype and shape are known
bool same_type(const ir::TypeInfo& a, const ir::TypeInfo& b);  ///< both known and equal, symbols included
/// Dimension `i` (negative from the end) as an integer, or -1.
int64_t static_dim(const ir::TypeInfo& t, int i);
/// A constant integer tensor's elements, or the known contents of an integer value; nullopt otherwise.
std::optional<std::vector<int64_t>> const_ints(const ir::Graph& graph, ir::ValueId id);
/// Axes input `index` of a reduction, squeeze, ... made non-negative and sorted; nullopt when they are not
/// constant.
std::optional<std::vector<int64_t>> node_axes(const ir::Graph& graph, const ir::Node& node, size_t index,
                                              int rank);
/// The axis attribute made non-negative.
int64_t node_axis(const ir::Node& node, int rank, int64_t fallback);

// --- notes ---

/// HONE_VERBOSE contains "pass": why rules fired or did not goes to stderr.
bool tracing();
void trace(std::string_view pass, std::string_view node, std::string_view what);

// --- changing the graph ---

/// Everything that read `from` reads `to`, and the producer of `from` is gone if nothing else needs it. A
/// graph output keeps its name: `to` takes it over, or an Identity gives it. REQUIRES: the producer of `from`
/// has no other output in use.
void replace_value(ir::Graph& graph, ir::ValueId from, ir::ValueId to);

/// Nodes made on trial: inferred as they are made, taken back when the trial fails.
class Trial {
 public:
  Trial(ir::Graph& graph, ir::Node* before) : graph_(graph), before_(before) {}

  /// A node before the given one; infers its outputs. Errors: those of inference.
  ir::Node* add(std::string_view op, std::vector<ir::ValueId> inputs, ir::AttrMap attrs = {},
                std::string_view domain = "", int num_outputs = 1);
  ir::ValueId value(std::string_view op, std::vector<ir::ValueId> inputs, ir::AttrMap attrs = {},
                    std::string_view domain = "") {
    return add(op, std::move(inputs), std::move(attrs), domain)->outputs[0];
  }
  ir::ValueId constant(std::string_view hint, Tensor data) {
    return graph_.add_constant(hint, std::move(data));
  }
  ir::ValueId ints(std::string_view hint, const std::vector<int64_t>& v) {
    return constant(hint, Tensor::i64_vector(v));
  }
  /// Adopts a node built elsewhere (a fused layer).
  ir::Node* adopt(ir::Node node);

  void take_back();
  const std::vector<ir::Node*>& added() const { return added_; }

 private:
  ir::Graph& graph_;
  ir::Node* before_;
  std::vector<ir::Node*> added_;
};

/// Ends a trial: `to` stands for `from`, the nodes in `gone` are removed, sources and passes are carried
/// over, the ledger gets a row. False, with everything taken back, when `to` has another type than `from`
/// had.
bool commit(PassContext& ctx, const std::string& pass, Trial& trial, ir::ValueId from, ir::ValueId to,
            const std::vector<ir::Node*>& gone, std::string* why);

/// Removes a node, whose outputs are unused, with a ledger row.
void drop_node(PassContext& ctx, const std::string& pass, ir::Node* node);

// --- rules ---

/// What a rule's functions see.
struct RuleContext {
  ir::Graph& graph;
  const ir::Match& match;
  Trial& trial;

  ir::ValueId at(std::string_view name) const { return match.at(name); }
  bool has(std::string_view name) const { return match.has(name); }
  const ir::Value& value(std::string_view name) const { return graph.value(match.at(name)); }
  const ir::TypeInfo& type(std::string_view name) const { return value(name).type; }
  const Tensor& data(std::string_view name) const { return *value(name).data; }
  /// The operator that computes the named value.
  const ir::Node& node(std::string_view name) const { return *value(name).producer; }
  const ir::TypeInfo& result_type() const { return graph.value(match.root->outputs[0]).type; }
};

/// A fusion as a row: what it looks for, when it may, what stands there instead.
struct Rule {
  const char* name;
  const char* what;
  Numerics numerics;
  ir::Pattern pattern;
  /// Why not; empty: it may. May be null.
  std::string (*when)(const RuleContext&);
  /// Builds the replacement of the root's output 0 through ctx.trial.
  ir::ValueId (*result)(RuleContext&);
};

using Rules = std::vector<Rule>;

/// Applies one rule wherever it fits, in node order, and counts changes. A replacement whose inferred type
/// differs is taken back.
void run_rule(PassContext& ctx, const Rule& rule);
/// Each rule as a pass. `rules` must live as long as the passes (static).
std::vector<Pass> as_passes(const Rules& rules);

}  // namespace hone::optimize
