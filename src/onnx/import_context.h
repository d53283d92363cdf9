// State of one import, shared by the files import*.cpp and upgrade.cpp. Private to onnx/.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "hone/error.h"
#include "ir/graph.h"
#include "onnx/import.h"
#include "onnx/proto.h"
#include "onnx/weights.h"

namespace hone::onnx {

using Opsets = std::map<std::string, int64_t, std::less<>>;  // "" is ai.onnx

/// "ai.onnx" is "".
std::string_view plain_domain(std::string_view domain);

/// Who an issue speaks of.
struct Subject {
  std::string node, op;
  int64_t opset = 0;
  std::string tensor;
};

/// Collects what is wrong, so that one import tells all of it.
class Issues {
 public:
  explicit Issues(std::vector<Issue>* out) : out_(out) {}
  void error(ErrorCode code, Subject subject, std::string message, std::string remedy,
             std::source_location where = std::source_location::current());
  void warning(Subject subject, std::string message, std::string remedy = {});
  void note(Subject subject, std::string message);
  bool any() const { return errors_ != 0; }
  /// Throws one Error that lists every error, if there is one.
  void throw_if_any() const;

 private:
  static constexpr size_t kMaxKept = 10000;
  void add(const char* severity, Subject subject, std::string message, std::string remedy);
  std::vector<Issue>* out_;
  size_t errors_ = 0;
  bool invalid_ = false;  // else unsupported alone
  std::source_location first_;
};

/// What to do about an error whose thrower does not say.
std::string default_remedy(ErrorCode code);

/// Captured values of one node with subgraphs: ids in the graph that holds the node.
struct Captures {
  std::vector<ir::ValueId> outer;
  std::unordered_map<ir::ValueId, size_t> index;
};

/// Names visible in one graph, or in one inlined function body (which adds to its caller's graph but sees
/// only its own names).
struct Scope {
  ir::Graph* graph = nullptr;
  Scope* outer = nullptr;  ///< the enclosing scope, subgraphs only
  const Opsets* opsets = nullptr;
  const ir::AttrMap* attrs = nullptr;  ///< attributes of the function call; null outside functions
  std::string prefix;                  ///< of names of an inlined body
  int depth = 0;                       ///< subgraph nesting
  int call_depth = 0;                  ///< function nesting
  Captures* captures = nullptr;        ///< subgraphs only
  std::unordered_map<ir::ValueId, ir::ValueId> captured;  ///< outer id -> value in here
  std::unordered_map<std::string_view, ir::ValueId> names;
};

/// What a node was in the model.
struct Origin {
  int64_t opset = 0;
};

class Importer {
 public:
  Importer(const ModelProto& proto, const WeightSource& source, const ImportOptions& options,
           ImportReport* report)
      : proto_(proto), source_(source), options_(options), report_(report), issues_(&report->issues) {}
  ir::Model run();

 private:
  // import.cpp
  void read_opsets(ir::Model* model);
  Opsets opset_table(const std::vector<OpsetProto>& imports, const std::string& whose);
  void check_opset(int64_t version, const std::string& whose);

  // import_types.cpp
  enum class Role : uint8_t { kInput, kInner };
  ir::TypeInfo to_type(const TypeProto& type, std::string_view value, Role role);
  ir::Dim to_dim(const DimProto& dim, std::string_view value, Role role);
  std::optional<ir::Attr> to_attr(
      const AttributeProto& a, Scope& scope, Captures* captures, const Subject& subject,
      std::vector<std::pair<std::shared_ptr<ir::Graph>, std::unique_ptr<Scope>>>* subgraphs);
  std::optional<Tensor> constant_value(const NodeProto& node, Scope& scope, const Subject& subject);

  // import_graph.cpp
  void build(const GraphProto& proto, Scope& scope);
  void declare_inputs(const GraphProto& proto, Scope& scope);
  void declare_initializers(const GraphProto& proto, Scope& scope);
  void declare_nodes(const std::vector<NodeProto>& nodes, Scope& scope,
                     const std::unordered_map<std::string_view, const TypeProto*>& types,
                     const std::unordered_map<std::string_view, ir::ValueId>& bound);
  void make_node(const NodeProto& proto, Scope& scope);
  void make_outputs(const GraphProto& proto, Scope& scope);
  void sort(ir::Graph& graph);
  std::shared_ptr<ir::Graph> build_subgraph(const GraphProto& proto, Scope& outer, Captures* captures,
                                            std::unique_ptr<Scope>* scope);
  /// The value of a name, captured from outside where necessary; nullopt when undefined, kNoValue for an
  /// absent optional.
  std::optional<ir::ValueId> lookup(Scope& scope, std::string_view name);
  std::vector<ir::ValueId> node_inputs(const NodeProto& proto, Scope& scope, const Subject& subject);
  std::vector<ir::ValueId> node_outputs(const NodeProto& proto, Scope& scope);
  std::string unique_node_name(std::string wanted);
  Subject subject_of(const NodeProto& node, const Scope& scope) const;
  int64_t opset_of(std::string_view domain, const Scope& scope) const;
  void count_node(const Subject& subject);

  // import_functions.cpp
  using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
  void read_functions();
  void refuse_recursion() const;
  const FunctionProto* find_function(const NodeProto& node) const;
  void inline_call(const NodeProto& call, const FunctionProto& function, Scope& scope);
  ir::AttrMap call_attributes(const NodeProto& call, const FunctionProto& function, Scope& scope,
                              const Subject& subject);

  // upgrade.cpp
  void upgrade(ir::Graph& graph);
  bool upgrade_node(ir::Graph& graph, ir::Node& node, const Origin& origin);
  bool check_known(const ir::Graph& graph, const ir::Node& node, const Subject& subject, int64_t opset);

  const ModelProto& proto_;
  const WeightSource& source_;
  const ImportOptions& options_;
  ImportReport* report_;
  Issues issues_;
  ir::Graph* fresh_ = nullptr;  // the main graph, which numbers fresh symbols
  Opsets opsets_;
  std::set<std::string, std::less<>> input_symbols_;
  std::map<FunctionKey, const FunctionProto*> functions_;
  std::map<const FunctionProto*, Opsets> function_opsets_;
  std::unordered_map<const ir::Node*, Origin> origins_;
  std::unordered_map<std::string, int64_t> node_names_;  // taken names; the number is the next suffix to try
  int64_t nodes_made_ = 0;
};

}  // namespace hone::onnx
