// Runs one operator through inference and interpreter, for the tests beside the operators.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "hone/error.h"
#include "ops/infer.h"
#include "ops/interpreter.h"
#include "ops/op.h"

namespace hone::testing {

inline Tensor f32(Shape shape, const std::vector<float>& v) {
  return Tensor::of<float>(DType::kF32, std::move(shape), v);
}
inline Tensor f64(Shape shape, const std::vector<double>& v) {
  return Tensor::of<double>(DType::kF64, std::move(shape), v);
}
inline Tensor i64(Shape shape, const std::vector<int64_t>& v) {
  return Tensor::of<int64_t>(DType::kI64, std::move(shape), v);
}
inline Tensor i32(Shape shape, const std::vector<int32_t>& v) {
  return Tensor::of<int32_t>(DType::kI32, std::move(shape), v);
}
inline Tensor u8(Shape shape, const std::vector<uint8_t>& v) {
  return Tensor::of<uint8_t>(DType::kU8, std::move(shape), v);
}
inline Tensor i8(Shape shape, const std::vector<int8_t>& v) {
  return Tensor::of<int8_t>(DType::kI8, std::move(shape), v);
}
inline Tensor boolean(Shape shape, const std::vector<uint8_t>& v) {
  return Tensor::of<uint8_t>(DType::kBool, std::move(shape), v);
}

/// All elements as doubles.
inline std::vector<double> values(const Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.numel(); ++i) v.push_back(t.at(i));
  return v;
}

/// A graph of one node. Inputs that are constants in the graph where `constant`; undefined tensors are absent
/// inputs.
inline std::unique_ptr<ir::Graph> one_node(const std::string& op, const std::vector<Tensor>& inputs,
                                           const ir::AttrMap& attrs, int outputs, bool constant) {
  auto g = std::make_unique<ir::Graph>();
  std::vector<ir::ValueId> ids;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (!inputs[i].defined())
      ids.push_back(ir::kNoValue);
    else if (constant)
      ids.push_back(g->add_constant(name, inputs[i]));
    else
      ids.push_back(g->add_input(name, {inputs[i].dtype(), ir::to_dims(inputs[i].shape())}));
  }
  const ir::Node* node = g->add_node(op, ids, attrs, "", nullptr, "n", outputs);
  for (const ir::ValueId id : node->outputs) g->add_output(id);
  ops::infer_graph(*g);
  return g;
}

/// What inference says of an output must hold for the computed tensor, contents included.
inline void expect_inferred(const ir::Graph& g, size_t i, const Tensor& t) {
  const ir::Value& v = g.value(g.outputs()[i]);
  EXPECT_EQ(v.type.dtype, t.dtype()) << "output " << i;
  if (v.type.shape) {
    ASSERT_EQ(v.type.shape->size(), t.shape().size()) << v.type.text() << " inferred, got " << t.type_text();
    for (size_t d = 0; d < t.shape().size(); ++d) {
      const int64_t inferred = (*v.type.shape)[d].maybe().value_or(t.shape()[d]);
      EXPECT_EQ(inferred, t.shape()[d]) << v.type.text() << " inferred, got " << t.type_text();
    }
  }
  if (v.contents) {
    const std::vector<int64_t> have = t.to_i64();
    ASSERT_EQ(v.contents->size(), have.size());
    for (size_t e = 0; e < have.size(); ++e) {
      EXPECT_EQ((*v.contents)[e].maybe().value_or(have[e]), have[e]) << "inferred contents, element " << e;
    }
  }
}

/// Outputs of one operator; checks inference with variable and with constant inputs on the way.
inline std::vector<Tensor> run(const std::string& op, const std::vector<Tensor>& inputs,
                               const ir::AttrMap& attrs = {}, int outputs = 1) {
  const auto g = one_node(op, inputs, attrs, outputs, false);
  std::vector<Tensor> given;
  for (const Tensor& t : inputs) {
    if (t.defined()) given.push_back(t);
  }
  std::vector<Tensor> out = ops::interpret(*g, given);
  const auto folded = one_node(op, inputs, attrs, outputs, true);
  for (size_t i = 0; i < out.size(); ++i) {
    expect_inferred(*g, i, out[i]);
    expect_inferred(*folded, i, out[i]);
  }
  return out;
}

/// The code of the error that a run ends in; kInternal's opposite, 0, when it does not.
inline int error_of(const std::string& op, const std::vector<Tensor>& inputs, const ir::AttrMap& attrs = {},
                    int outputs = 1) {
  try {
    const auto g = one_node(op, inputs, attrs, outputs, false);
    std::vector<Tensor> given;
    for (const Tensor& t : inputs) {
      if (t.defined()) given.push_back(t);
    }
    (void)ops::interpret(*g, given);
  } catch (const Error& e) {
    return static_cast<int>(e.code());
  }
  return 0;
}
inline constexpr int kData = static_cast<int>(ErrorCode::kInvalidData);
inline constexpr int kModel = static_cast<int>(ErrorCode::kInvalidModel);
inline constexpr int kMemory = static_cast<int>(ErrorCode::kOutOfMemory);

}  // namespace hone::testing
