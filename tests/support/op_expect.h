// Comparison of computed tensors with values written in a test, and operators as older opsets wrote them.
#pragma once

#include <cmath>

#include "support/op_run.h"

namespace hone::testing {

/// Elements agree within tolerance * max(1, |want|); NaN and infinities exactly.
inline void expect_values(const Tensor& t, const std::vector<double>& want, double tolerance = 1e-6) {
  const std::vector<double> have = values(t);
  ASSERT_EQ(have.size(), want.size()) << t.type_text();
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(have[i])) << "element " << i << " is " << have[i];
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(have[i], want[i]) << "element " << i;
    } else {
      EXPECT_NEAR(have[i], want[i], tolerance * std::max(1.0, std::fabs(want[i]))) << "element " << i;
    }
  }
}

inline std::vector<float> iota(int64_t n, float first = 0) {
  std::vector<float> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(first + static_cast<float>(i));
  return v;
}

/// Deterministic values in [-1, 1) that no structure of a test repeats.
inline std::vector<float> noise(int64_t n, uint32_t seed = 1) {
  std::vector<float> v;
  uint32_t s = seed * 2654435761U + 12345U;
  for (int64_t i = 0; i < n; ++i) {
    s = s * 1664525U + 1013904223U;
    v.push_back(static_cast<float>(static_cast<int32_t>(s)) * 0x1p-31F);
  }
  return v;
}

/// Outputs of a node that was written for schema version `since`: through the operator's adapter. `typed`
/// tells the adapter the inputs' types.
inline std::vector<Tensor> run_old(const std::string& op, int since, const std::vector<Tensor>& inputs,
                                   const ir::AttrMap& attrs = {}, int outputs = 1, bool typed = true) {
  ir::Graph g;
  std::vector<ir::ValueId> ids;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ids.push_back(g.add_input(
        "x" + std::to_string(i),
        typed ? ir::TypeInfo{inputs[i].dtype(), ir::to_dims(inputs[i].shape())} : ir::TypeInfo{}));
  }
  ir::Node* node = g.add_node(op, ids, attrs, "", nullptr, "n", outputs);
  g.add_output(node->outputs[0]);
  ops::AdaptContext ctx{g, *node, since};
  const ops::OpDef* def = ops::find_op("", op);
  if (def != nullptr && def->adapt != nullptr) def->adapt(ctx);
  for (size_t i = 0; i < inputs.size(); ++i)
    g.value(ids[i]).type = {inputs[i].dtype(), ir::to_dims(inputs[i].shape())};
  ops::infer_graph(g);
  return ops::interpret(g, inputs);
}

}  // namespace hone::testing
