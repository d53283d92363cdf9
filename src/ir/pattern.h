// Patterns over the graph, for rewrite rules: a pattern is the formula that a rule looks for, written as an
// expression.
//
//   const Pattern x = any("x");
//   op("Mul", {x, op("Sigmoid", {x})})                                     x * sigmoid(x), in either order
//   product({x, num(0.5), op("Add", {op("Erf", {op("Div", {x, num(1.41421356)})}), num(1)})})   GELU, however
//   it was associated op("Conv", {x, constant("w")}).as("conv").more_inputs()                further inputs
//   may be present
//
// A name stands for one value: where it occurs twice both places must hold the same value. Binary operators
// that commute match in either order. Inside a match nothing may be used from outside (a value that another
// node reads, or that is a graph output, must stay), unless the node is marked shared().
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace hone::ir {

/// What a pattern found.
struct Match {
  Node* root = nullptr;
  std::map<std::string, ValueId, std::less<>> values;  ///< by name: any(), constant(), as()
  std::vector<Node*> covered;  ///< operators of the pattern, root first, shared ones left out
  std::vector<Node*> shared;   ///< operators marked shared()

  bool has(std::string_view name) const { return values.find(name) != values.end(); }
  ValueId at(std::string_view name) const;  ///< throws kInternal for a name that the pattern doesn't bind
};

/// Conditions on a node beyond its operator and inputs.
using NodeTest = std::function<bool(const Graph&, const Node&)>;

/// Immutable and cheap to copy.
class Pattern {
 public:
  struct Impl;

  /// Names the value: output 0 of an operator pattern, the value itself otherwise.
  Pattern as(std::string name) const;
  /// The node passes a further test.
  Pattern where(NodeTest test) const;
  /// An attribute that is absent counts as `fallback`.
  Pattern attr(std::string name, int64_t wanted, int64_t fallback) const;
  /// The node may be used from outside the match; it then stays.
  Pattern shared() const;
  /// Inputs beyond those listed may be present.
  Pattern more_inputs() const;

  const Impl& impl() const { return *impl_; }
  explicit Pattern(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

Pattern any(std::string name = {});
/// A value whose data is known.
Pattern constant(std::string name = {});
/// One-element constant equal to `value` up to 1.5 units in the last place of its own type: what an exporter
/// that wrote the same number in that type holds, and nothing else. Zero, and integers, match exactly.
Pattern num(double value, std::string name = {});
Pattern op(std::string name, std::vector<Pattern> inputs, std::string domain = "");
/// The first alternative under which the whole match succeeds.
Pattern any_of(std::vector<Pattern> alternatives);
/// A product of all factors, in any order and association of Mul; Div by a number matches num(1 / number).
Pattern product(std::vector<Pattern> factors);

/// Does `root` compute the pattern? On failure `why` (may be null) says whether the shape was there but
/// something inside is used elsewhere.
bool match(const Graph& graph, Node& root, const Pattern& pattern, Match* found, std::string* why = nullptr);
/// Operators that a match can start at, for indexing rules; empty: any.
std::vector<std::string> root_ops(const Pattern& pattern);

/// Is the one-element constant `t` the number `value`, as num() means it?
bool is_number(const Tensor& t, double value);

}  // namespace hone::ir
