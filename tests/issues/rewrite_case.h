// A case from the field about rewriting: a small graph, inputs, and the right outputs, which every stage must
// give.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/infer.h"
#include "ops/interpreter.h"
#include "optimize/pass.h"

namespace hone::issues {

inline Tensor f32(Shape shape, const std::vector<float>& values) {
  return Tensor::of<float>(DType::kF32, std::move(shape), values);
}
inline Tensor i64(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>(DType::kI64, std::move(shape), values);
}
inline Tensor i32(Shape shape, const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>(DType::kI32, std::move(shape), values);
}

inline Tensor arange(Shape shape) {
  Tensor t(DType::kF32, std::move(shape));
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

inline void expect_values(const Tensor& got, const std::vector<double>& right, double tolerance,
                          const std::string& what) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(right.size())) << what;
  for (size_t i = 0; i < right.size(); ++i) {
    const double v = got.at(static_cast<int64_t>(i));
    if (std::isnan(right[i])) {
      EXPECT_TRUE(std::isnan(v)) << what << ": element " << i << " is " << v;
    } else if (std::isinf(right[i])) {
      EXPECT_EQ(v, right[i]) << what << ": element " << i;
    } else {
      EXPECT_NEAR(v, right[i], tolerance) << what << ": element " << i;
    }
  }
}

/// Interprets the graph as it is, optimised, and optimised with each pass that changes it switched off in
/// turn; all must give the right outputs. Returns the optimised graph.
inline std::unique_ptr<ir::Graph> expect_case(const std::string& text, const std::vector<Tensor>& inputs,
                                              const std::vector<std::vector<double>>& right,
                                              double tolerance = 2e-6) {
  const auto check = [&](const ir::Graph& graph, const std::string& what) {
    const std::vector<Tensor> outputs = ops::interpret(graph, inputs);
    ASSERT_EQ(outputs.size(), right.size()) << what;
    for (size_t i = 0; i < right.size(); ++i)
      expect_values(outputs[i], right[i], tolerance, what + "\n" + ir::print(graph));
  };
  const auto imported = ir::parse(text);
  ops::infer_graph(*imported);
  check(*imported, "as imported");
  std::vector<std::string> fired;
  optimize::PipelineOptions options;
  options.verify_structure = true;
  options.log = [&](const optimize::Pass& pass, int, double) { fired.emplace_back(pass.name); };
  auto optimised = imported->clone();
  optimize::run_pipeline(*optimised, options, nullptr);
  check(*optimised, "optimised");
  for (const std::string& name : fired) {
    optimize::PipelineOptions without;
    without.disable = {name};
    auto graph = imported->clone();
    optimize::run_pipeline(*graph, without, nullptr);
    check(*graph, "without " + name);
  }
  return optimised;
}

inline bool has_op(const ir::Graph& graph, std::string_view op) {
  for (const auto& n : graph.nodes()) {
    if (n->op == op) return true;
    if (n->body != nullptr && has_op(*n->body, op)) return true;
  }
  return false;
}

}  // namespace hone::issues
