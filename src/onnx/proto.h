// An ONNX file as plain structs. Strings and bulk data are views into the file's bytes, which must outlive
// them. Only fields that mean something to us are kept; the reader skips the rest. Source: onnx.proto (IR
// version 14), our own field list.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace hone::onnx {

struct GraphProto;

struct KeyValue {
  std::string_view key, value;
};

struct TensorProto {
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  std::string_view name;
  bool has_raw = false;
  std::string_view raw_data;
  std::vector<float> float_data;
  std::vector<int32_t> int32_data;
  std::vector<int64_t> int64_data;
  std::vector<double> double_data;
  std::vector<uint64_t> uint64_data;
  std::vector<std::string_view> string_data;
  std::vector<KeyValue> external_data;
  int64_t data_location = 0;  ///< 1: external
  bool has_segment = false;
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct DimProto {
  std::optional<int64_t> value;
  std::string_view param;
};

struct TypeProto {
  enum class Kind : uint8_t { kNone, kTensor, kSequence, kMap, kOptional, kSparseTensor, kOpaque };
  Kind kind = Kind::kNone;
  int64_t elem_type = 0;                       ///< kTensor
  std::optional<std::vector<DimProto>> shape;  ///< kTensor; nullopt: unknown rank
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

/// AttributeProto.AttributeType.
enum class AttrType : uint8_t {
  kUndefined = 0,
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
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

struct AttributeProto {
  std::string_view name, ref_attr_name;
  int64_t type = 0;   ///< as the file says; AttrType, or 0 in files of IR version 1
  uint32_t seen = 0;  ///< bit t: a value of AttrType t is present
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::unique_ptr<TensorProto> t;
  std::unique_ptr<GraphProto> g;
  std::unique_ptr<SparseTensorProto> sparse_tensor;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<GraphProto> graphs;
};

struct NodeProto {
  std::vector<std::string_view> input, output;
  std::string_view name, op_type, domain, overload;
  std::vector<AttributeProto> attribute;
};

struct GraphProto {
  std::vector<NodeProto> node;
  std::string_view name, doc;
  std::vector<TensorProto> initializer;
  std::vector<SparseTensorProto> sparse_initializer;
  std::vector<ValueInfoProto> input, output, value_info;
};

struct OpsetProto {
  std::string_view domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> input, output, attribute;
  std::vector<AttributeProto> attribute_proto;  ///< with default values
  std::vector<NodeProto> node;
  std::vector<OpsetProto> opset_import;
  std::vector<ValueInfoProto> value_info;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::vector<OpsetProto> opset_import;
  std::string_view producer_name, producer_version;
  std::vector<KeyValue> metadata;
  bool has_graph = false;
  bool has_training_info = false;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

}  // namespace hone::onnx
