// The IR: an SSA graph of ONNX operators at one opset.
//
// A Graph owns Values and Nodes. Every Value has one producer (a node, the graph's inputs, or constant data)
// and a list of uses that the Graph keeps up to date; therefore edges change only through the Graph's
// methods. Nodes stand in a valid execution order at all times
// (`verify` checks it). Tensors are logical, in ONNX dimension order; physical layout exists only in the
// plan.
//
// Subgraphs (If, Loop, Scan) are Graphs of their own. What they capture from outside is made explicit at
// import: captured values follow the formal inputs in Node::inputs, and Graph::captures maps them to values
// inside. Passes thus never need to look into a subgraph to know that a value is used.
//
// A fused layer is one node of domain "hone" with a `body`: its ordinary ONNX nodes, in order, the anchor
// marked. body->inputs() and outputs() correspond to the node's inputs and outputs one to one.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "hone/tensor.h"
#include "ir/dim.h"

namespace hone::ir {

class Graph;
struct Node;

using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;  ///< an absent optional input or output

/// Deepest nesting of If/Loop/Scan bodies that import and the text reader accept; deeper models are refused.
inline constexpr int kMaxSubgraphDepth = 32;

inline constexpr const char* kHoneDomain = "hone";
inline constexpr const char* kMicrosoftDomain = "com.microsoft";

/// Attribute of a node. Graph attributes hold subgraphs.
using Attr =
    std::variant<int64_t, float, std::string, Tensor, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, std::shared_ptr<Graph>, std::vector<std::shared_ptr<Graph>>>;
using AttrMap = std::map<std::string, Attr, std::less<>>;

/// What is known of a tensor: the element type, and the shape unless even the rank is unknown.
struct TypeInfo {
  DType dtype = DType::kUndefined;
  std::optional<Dims> shape;

  bool known_rank() const { return shape.has_value(); }
  int rank() const { return static_cast<int>(shape->size()); }  ///< REQUIRES known_rank()
  std::string text() const;  ///< `f32[N,3,224,224]`, `f32[?]` for an unknown rank
  friend bool operator==(const TypeInfo&, const TypeInfo&) = default;
};

struct Use {
  Node* node = nullptr;
  int index = 0;  ///< position in node->inputs
};

struct Value {
  ValueId id = kNoValue;
  std::string name;  ///< unique within its graph
  TypeInfo type;
  Node* producer = nullptr;            ///< null for graph inputs, captures and constants
  int output_index = 0;                ///< position in producer->outputs
  std::shared_ptr<const Tensor> data;  ///< set for constants (initializers and folded values)
  std::optional<Dims>
      contents;           ///< elements of a small integer tensor, where known symbolically (shape arithmetic)
  std::vector<Use> uses;  ///< kept by the Graph, in no particular order; graph outputs are not uses
  int listed_as_output = 0;  ///< how often it stands among the graph's outputs; kept by the Graph
  bool is_const() const { return data != nullptr; }
};

struct Node {
  std::string name;    ///< ONNX node name; unique after import
  std::string domain;  ///< "" is ai.onnx
  std::string op;
  std::vector<ValueId> inputs;  ///< kNoValue for an absent optional input
  std::vector<ValueId> outputs;
  AttrMap attrs;
  int num_captures = 0;         ///< trailing inputs that subgraphs capture
  std::shared_ptr<Graph> body;  ///< fused layers only
  int anchor = -1;  ///< index of the anchor in body's order; -1 when there is none (pointwise programs)
  std::vector<std::string> sources;  ///< names of the model's nodes that this one stands for
  std::vector<std::string> passes;   ///< rewrites that made it, in order

  bool is(std::string_view op_name, std::string_view op_domain = "") const {
    return op == op_name && domain == op_domain;
  }
  std::string op_text() const { return (domain.empty() ? "ai.onnx" : domain) + "::" + op; }
  bool has_input(size_t i) const { return i < inputs.size() && inputs[i] != kNoValue; }

  // Attributes with defaults; a present attribute of the wrong type throws kInvalidModel.
  bool has(std::string_view attr) const { return attrs.find(attr) != attrs.end(); }
  int64_t get_int(std::string_view attr, int64_t fallback) const;
  float get_float(std::string_view attr, float fallback) const;
  std::string get_string(std::string_view attr, std::string_view fallback) const;
  std::vector<int64_t> get_ints(std::string_view attr, std::vector<int64_t> fallback = {}) const;
  std::vector<float> get_floats(std::string_view attr, std::vector<float> fallback = {}) const;
  const Tensor* get_tensor(std::string_view attr) const;
  std::shared_ptr<Graph> get_graph(std::string_view attr) const;

 private:
  friend class Graph;
  std::list<std::unique_ptr<Node>>::iterator self_;
  std::vector<int32_t> use_at_;  // use_at_[i]: where this use of inputs[i] stands in Value::uses
  int32_t mark_ = 0;             // scratch of sort()
};

// The same accessors for a bare attribute map (kernels see attributes without a node).
int64_t attr_int(const AttrMap& attrs, std::string_view name, int64_t fallback);
float attr_float(const AttrMap& attrs, std::string_view name, float fallback);
std::string attr_string(const AttrMap& attrs, std::string_view name, std::string_view fallback);
std::vector<int64_t> attr_ints(const AttrMap& attrs, std::string_view name,
                               std::vector<int64_t> fallback = {});
std::vector<float> attr_floats(const AttrMap& attrs, std::string_view name, std::vector<float> fallback = {});
const Tensor* attr_tensor(const AttrMap& attrs, std::string_view name);
bool attrs_equal(const AttrMap& a, const AttrMap& b);  ///< tensors by bytes, graphs by text

/// Threads: a Graph is confined to one thread while it changes; const access may be shared.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;
  std::string doc;

  // --- values ---
  Value& value(ValueId id) { return *values_[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return *values_[static_cast<size_t>(id)]; }
  size_t num_values() const { return values_.size(); }
  /// A new value; an empty or taken name is made unique ("name", "name_1", ...).
  ValueId add_value(std::string_view name, TypeInfo type);
  ValueId add_constant(std::string_view name, Tensor data);
  ValueId find(std::string_view name) const;  ///< kNoValue when absent
  void rename_value(ValueId id, std::string_view name);
  /// Turns a value into a constant; its producer loses that output.
  void set_constant(ValueId id, Tensor data);
  /// A symbol that no dimension of this graph, nor of a graph it shares symbols with, uses yet: `prefix0`,
  /// `prefix1`, ...
  Dim fresh_symbol(std::string_view prefix = "u");
  /// Subgraphs and their parent number fresh symbols together: called by whoever makes a subgraph (import,
  /// text).
  void share_symbols(const Graph& parent) { next_symbol_ = parent.next_symbol_; }

  // --- interface ---
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  ValueId add_input(std::string_view name, TypeInfo type);
  void add_input_value(ValueId id) { inputs_.push_back(id); }
  void add_output(ValueId id);
  void set_output(size_t index, ValueId id);
  void remove_output(size_t index);
  void remove_input(size_t index) { inputs_.erase(inputs_.begin() + static_cast<std::ptrdiff_t>(index)); }
  bool is_output(ValueId id) const { return value(id).listed_as_output != 0; }
  /// Subgraphs: captures[i] is the value in here of the parent node's i-th captured input.
  std::vector<ValueId> captures;

  // --- nodes, in execution order ---
  std::list<std::unique_ptr<Node>>& nodes() { return nodes_; }
  const std::list<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  size_t num_nodes() const { return nodes_.size(); }
  /// Appends (before == nullptr) or inserts a node; links uses and producers. Outputs must be producerless
  /// values.
  Node* add_node(Node node, Node* before = nullptr);
  /// Convenience: node with one new output of unknown type (inference fills it in).
  Node* add_node(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {},
                 std::string_view domain = "", Node* before = nullptr, std::string_view name = {},
                 int num_outputs = 1);
  Node* next(Node* node);
  void move_before(Node* node, Node* before);
  /// Unlinks and deletes; its outputs stay as producerless values (and must have no uses unless replaced
  /// first).
  void remove_node(Node* node);
  void set_input(Node* node, size_t index, ValueId id);
  void append_input(Node* node, ValueId id);
  void pop_input(Node* node);  ///< drops the last input
  /// Redirects every use of `from`, graph outputs included, to `to`. A graph output keeps its name: `to`
  /// takes over the name of `from` when it may (it is not itself an input, constant or output), else the
  /// caller sees `from` still listed and must add an Identity.
  void replace_uses(ValueId from, ValueId to);
  /// The only use of a value, or nullptr when it has several, none, or is a graph output.
  Node* sole_user(ValueId id) const;
  /// Sorts nodes topologically, stable; throws kInvalidModel naming the nodes of a cycle.
  void sort();
  /// Deep copy (constants share bytes).
  std::unique_ptr<Graph> clone() const;

 private:
  void link(Node* node);
  void unlink(Node* node);
  void add_use(Node* node, size_t index);
  void drop_use(Node* node, size_t index);
  std::string unique_name(std::string_view wanted);

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  using Counters = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;
  void note_symbols(const TypeInfo& type);
  std::unique_ptr<Graph> clone(std::shared_ptr<Counters> symbols) const;

  std::vector<std::unique_ptr<Value>> values_;
  std::unordered_map<std::string, ValueId, Hash, std::equal_to<>> by_name_;
  Counters next_suffix_;  // so that unique names cost no search
  std::list<std::unique_ptr<Node>> nodes_;
  std::vector<ValueId> inputs_, outputs_;
  std::shared_ptr<Counters> next_symbol_ = std::make_shared<Counters>();  // by prefix; shared with subgraphs
};

/// A model: the main graph plus what the file says about itself. Functions are inlined at import.
struct Model {
  std::unique_ptr<Graph> graph;
  int64_t ir_version = 0;
  std::map<std::string, int64_t, std::less<>> opsets;  ///< as imported, domain -> version
  std::string producer;
  std::map<std::string, std::string> metadata;
};

/// Calls `fn` on every node, subgraphs (not bodies) included, outer first. Iterative: safe at any depth. `fn`
/// may change the graph but not remove the node it is given.
void for_each_node(Graph& graph, const std::function<void(Graph&, Node&)>& fn);

}  // namespace hone::ir
