// Facts of every operator version of ai.onnx, as the ONNX schemas state them: arity, types, attributes and
// defaults.
//
// The facts are rows of schema_table.inc, which scripts/gen_schema.py writes from PyPI onnx:
//   HONE_SCHEMA(name, since, "min_inputs min_outputs [deprecated]", inputs, outputs, types, attributes)
//   inputs, outputs: `X T, B? T, rest* T, any** V`   formal name, option (? optional, * variadic, ** variadic
//   of mixed types), type variable or #set types: `T=3 V=6`                                  type variable =
//   number of a type set (HONE_TYPES rows) attributes: `axis i=1, kernel_shape! is`          name, !
//   required, kind, default (ints joined by ':')
// Types that hone::DType has no value for (six-bit floats) are left out of the sets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace hone::ops {

/// ONNX AttributeProto.AttributeType, by its own numbers.
enum class AttrKind : uint8_t {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kTypeProto = 13,
};
const char* attr_kind_name(AttrKind kind);  ///< "int", "floats", ...

/// Allowed element types of a plain tensor and of the containers; bit i stands for DType i.
struct TypeSet {
  uint32_t tensor = 0, sequence = 0, optional = 0, optional_sequence = 0;
  bool has(DType t) const { return (tensor >> static_cast<int>(t) & 1U) != 0; }
  bool only_tensors() const { return (sequence | optional | optional_sequence) == 0; }
  /// `f32 f16 bf16`; containers as `seq:f32`.
  std::string text() const;
};

enum class ParamOption : uint8_t { kSingle, kOptional, kVariadic };

/// Formal input or output.
struct SchemaParam {
  std::string_view name;
  std::string_view type_var;  ///< equal variables mean equal types; empty for a fixed type
  TypeSet types;
  ParamOption option = ParamOption::kSingle;
  bool homogeneous = true;  ///< variadic: all of one type
};

struct SchemaAttr {
  std::string_view name;
  AttrKind kind = AttrKind::kInt;
  bool required = false;
  std::optional<ir::Attr> default_value;  ///< ints, floats, strings, int lists
};

struct SchemaVersion {
  std::string_view domain;  ///< "" is ai.onnx
  std::string_view name;
  int since = 0;
  bool deprecated = false;
  int min_inputs = 0, min_outputs = 0;
  std::vector<SchemaParam> inputs, outputs;
  std::vector<SchemaAttr> attrs;

  int max_inputs() const;  ///< INT_MAX when variadic
  int max_outputs() const;
  /// Formal parameter of an actual position (the variadic one for all positions from its own); nullptr beyond
  /// the last.
  const SchemaParam* input(size_t i) const;
  const SchemaParam* output(size_t i) const;
  const SchemaAttr* attr(std::string_view attr_name) const;  ///< nullptr when unknown
};

/// The version in force at an opset: the newest whose `since` is not above it; nullptr when the operator did
/// not exist then. Domain "ai.onnx" equals "". A deprecated version is returned as such. Threads: safe.
const SchemaVersion* find_schema(std::string_view domain, std::string_view op, int64_t opset);
/// The newest version known; nullptr for an unknown operator.
const SchemaVersion* newest_schema(std::string_view domain, std::string_view op);
/// All versions of one operator, oldest first; empty for an unknown one.
std::span<const SchemaVersion> schema_versions(std::string_view domain, std::string_view op);
/// Every version of every operator, by domain, name, version.
std::span<const SchemaVersion> all_schemas();

/// What of a node breaks a schema: arity, unknown, missing or wrongly typed attributes, absent required
/// inputs, element types that are known and not allowed or that differ under one type variable. One message
/// each, naming attribute or input; empty when the node is sound. Captured inputs do not count. Values of
/// unknown type are not judged.
std::vector<std::string> check_node(const ir::Graph& graph, const ir::Node& node,
                                    const SchemaVersion& schema);

}  // namespace hone::ops
