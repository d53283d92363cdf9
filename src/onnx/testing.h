// Builds ONNX bytes for tests, sound ones and such as no exporter would write. Test support only.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include "onnx/import.h"

namespace hone::onnx::test {

using Strings = std::vector<std::string>;

/// One protobuf field.
inline std::string bytes_field(uint32_t field, const std::string& bytes) {
  std::string s;
  protozero::pbf_writer(s).add_bytes(field, bytes);
  return s;
}
inline std::string int_field(uint32_t field, int64_t v) {
  std::string s;
  protozero::pbf_writer(s).add_int64(field, v);
  return s;
}

template <class T>
std::string raw_bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

/// TensorProto without data; append fields for that.
inline std::string tensor_type(const std::string& name, int dtype, const std::vector<int64_t>& dims) {
  std::string s;
  for (const int64_t d : dims) s += int_field(1, d);
  return s + int_field(2, dtype) + bytes_field(8, name);
}
template <class T>
std::string tensor(const std::string& name, int dtype, const std::vector<int64_t>& dims,
                   const std::vector<T>& values) {
  return tensor_type(name, dtype, dims) + bytes_field(9, raw_bytes(values));
}
inline std::string floats(const std::string& name, const std::vector<int64_t>& dims,
                          const std::vector<float>& values) {
  return tensor(name, 1, dims, values);
}
inline std::string external_tensor(const std::string& name, int dtype, const std::vector<int64_t>& dims,
                                   const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string s = tensor_type(name, dtype, dims) + int_field(14, 1);
  for (const auto& [key, value] : entries) s += bytes_field(13, bytes_field(1, key) + bytes_field(2, value));
  return s;
}

/// TypeProto of a tensor; a dimension is digits, a name, or empty for unknown.
inline std::string type(int dtype, const Strings& dims) {
  std::string shape;
  for (const std::string& d : dims) {
    const bool number = !d.empty() && d.find_first_not_of("-0123456789") == std::string::npos;
    shape += bytes_field(1, d.empty() ? "" : number ? int_field(1, std::stoll(d)) : bytes_field(2, d));
  }
  return bytes_field(1, int_field(1, dtype) + bytes_field(2, shape));
}
inline std::string value(const std::string& name, int dtype, const Strings& dims) {
  return bytes_field(1, name) + bytes_field(2, type(dtype, dims));
}

// AttributeProto.
inline std::string attr(const std::string& name, int64_t v) {
  return bytes_field(1, name) + int_field(3, v) + int_field(20, 2);
}
inline std::string attr_s(const std::string& name, const std::string& v) {
  return bytes_field(1, name) + bytes_field(4, v) + int_field(20, 3);
}
inline std::string attr_f(const std::string& name, float v) {
  std::string s = bytes_field(1, name);
  protozero::pbf_writer(s).add_float(2, v);
  return s + int_field(20, 1);
}
inline std::string attr_ints(const std::string& name, const std::vector<int64_t>& v) {
  std::string s = bytes_field(1, name) + int_field(20, 7);
  for (const int64_t i : v) s += int_field(8, i);
  return s;
}
inline std::string attr_t(const std::string& name, const std::string& t) {
  return bytes_field(1, name) + bytes_field(5, t) + int_field(20, 4);
}
inline std::string attr_g(const std::string& name, const std::string& g) {
  return bytes_field(1, name) + bytes_field(6, g) + int_field(20, 5);
}
inline std::string attr_ref(const std::string& name, const std::string& of, int kind) {
  return bytes_field(1, name) + bytes_field(21, of) + int_field(20, kind);
}

/// NodeProto.
inline std::string node(const std::string& op, const Strings& inputs, const Strings& outputs,
                        const Strings& attrs = {}, const std::string& name = {},
                        const std::string& domain = {}) {
  std::string s;
  for (const std::string& i : inputs) s += bytes_field(1, i);
  for (const std::string& o : outputs) s += bytes_field(2, o);
  if (!name.empty()) s += bytes_field(3, name);
  s += bytes_field(4, op);
  if (!domain.empty()) s += bytes_field(7, domain);
  for (const std::string& a : attrs) s += bytes_field(5, a);
  return s;
}

/// GraphProto.
struct GraphText {
  Strings nodes, initializers, inputs, outputs, value_infos, sparse;
  std::string bytes() const {
    std::string s = bytes_field(2, "g");
    for (const std::string& n : nodes) s += bytes_field(1, n);
    for (const std::string& t : initializers) s += bytes_field(5, t);
    for (const std::string& v : inputs) s += bytes_field(11, v);
    for (const std::string& v : outputs) s += bytes_field(12, v);
    for (const std::string& v : value_infos) s += bytes_field(13, v);
    for (const std::string& t : sparse) s += bytes_field(15, t);
    return s;
  }
};

inline std::string opset(const std::string& domain, int64_t version) {
  return bytes_field(1, domain) + int_field(2, version);
}

/// FunctionProto.
inline std::string function(const std::string& domain, const std::string& name, const Strings& inputs,
                            const Strings& outputs, const Strings& nodes, int64_t version = 17,
                            const Strings& attributes = {}, const Strings& defaults = {}) {
  std::string s = bytes_field(1, name) + bytes_field(10, domain) + bytes_field(9, opset("", version));
  for (const std::string& i : inputs) s += bytes_field(4, i);
  for (const std::string& o : outputs) s += bytes_field(5, o);
  for (const std::string& a : attributes) s += bytes_field(6, a);
  for (const std::string& n : nodes) s += bytes_field(7, n);
  for (const std::string& a : defaults) s += bytes_field(11, a);
  return s;
}

/// ModelProto.
struct ModelText : GraphText {
  int64_t ir = 8;
  std::vector<std::pair<std::string, int64_t>> opsets{{"", 17}};
  Strings functions;
  std::string model() const {
    std::string s = int_field(1, ir);
    for (const auto& [domain, version] : opsets) s += bytes_field(8, opset(domain, version));
    s += bytes_field(7, bytes());
    for (const std::string& f : functions) s += bytes_field(25, f);
    return s;
  }
  /// Inputs x (f32[2,3]) and outputs y, the nodes given.
  static ModelText simple(const Strings& nodes) {
    ModelText m;
    m.nodes = nodes;
    m.inputs = {value("x", 1, {"2", "3"})};
    m.outputs = {value("y", 1, {})};
    m.outputs[0] = bytes_field(1, "y");
    return m;
  }
};

inline ir::Model import_text(const std::string& bytes, ImportReport* report = nullptr,
                             const ImportOptions& options = {}) {
  return import_model(bytes.data(), bytes.size(), options, report);
}

}  // namespace hone::onnx::test
