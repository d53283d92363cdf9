// A real model: the same bits over repeated runs, for one and two threads, and from eight concurrent callers;
// each instruction-set level agrees with the reference; the same build twice gives the same bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <thread>

#include "build/builder.h"
#include "engine/format.h"
#include "ops/interpreter.h"
#include "optimize/pass.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"
#include "support/paths.h"

namespace hone::builder {
namespace {

std::string model() { return (test::source_dir() / "demo/fashion_resnet.onnx").string(); }

std::vector<Tensor> images(int64_t batch) {
  return {runtime::random_input(DType::kF32, {batch, 1, 28, 28}, 5, 0)};
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), static_cast<size_t>(a.nbytes())) == 0;
}

TEST(RealModel, SameBitsOverRunsThreadsAndCallers) {
  const auto engine = build_engine(model(), {}, nullptr);
  const std::vector<Tensor> inputs = images(3);
  const Tensor first = runtime::Session(engine).run(inputs)[0];
  runtime::Session session(engine);
  for (int i = 0; i < 100; ++i) {
    runtime::RunOptions options;
    options.threads = 1 + i % 2;
    ASSERT_TRUE(same_bits(session.run(inputs, options)[0], first)) << "run " << i;
  }
  std::vector<std::thread> callers;
  std::vector<int> wrong(8, 0);
  for (size_t c = 0; c < wrong.size(); ++c)
    callers.emplace_back([&, c] {
      runtime::Session mine(engine);
      for (int i = 0; i < 10; ++i) wrong[c] += !same_bits(mine.run(inputs)[0], first);
    });
  for (std::thread& t : callers) t.join();
  for (int w : wrong) EXPECT_EQ(w, 0);
}

TEST(RealModel, EachIsaAgreesWithTheOracle) {
  const ir::Model m = import_for_build(model(), {}, nullptr);
  const std::vector<Tensor> inputs = images(2);
  const Tensor expected = ops::interpret(*m.graph, inputs, {.oracle = true})[0];
  for (Isa isa : supported_isas()) {
    BuildOptions options;
    options.target = "cpu-" + std::string(isa_name(isa));
    const Tensor got = runtime::Session(build_engine(model(), options, nullptr)).run(inputs)[0];
    double num = 0, den = 0;
    for (int64_t i = 0; i < got.numel(); ++i) {
      num += std::pow(got.at(i) - expected.at(i), 2);
      den += std::pow(expected.at(i), 2);
    }
    EXPECT_LE(std::sqrt(num / den), 1e-5) << options.target;
  }
}

TEST(RealModel, SameInputsGiveTheSameBytes) {
  EXPECT_EQ(engine::serialize(*build_engine(model(), {}, nullptr)),
            engine::serialize(*build_engine(model(), {}, nullptr)));
}

TEST(RealModel, BatchRowsDoNotDependOnTheirNeighbours) {
  const auto engine = build_engine(model(), {}, nullptr);
  runtime::Session session(engine);
  const Tensor five = images(5)[0];
  const Tensor all = session.run({five})[0];
  for (int64_t i = 0; i < 5; ++i) {
    const Tensor one =
        session.run({Tensor::view(DType::kF32, {1, 1, 28, 28}, five.data<float>() + i * 784)})[0];
    for (int64_t k = 0; k < one.numel(); ++k)
      EXPECT_NEAR(one.at(k), all.at(i * one.numel() + k), 1e-5 * std::max(1.0, std::fabs(one.at(k))));
  }
}

TEST(RealModel, EveryRewriteSwitchedOffInTurnAgrees) {
  const std::vector<Tensor> inputs = images(1);
  const Tensor expected = runtime::Session(build_engine(model(), {}, nullptr)).run(inputs)[0];
  std::vector<std::string> off = {"*"};
  for (const optimize::Pass& pass : optimize::all_passes()) off.emplace_back(pass.name);
  ASSERT_GT(off.size(), 50U);
  for (const std::string& name : off) {
    BuildOptions options;
    options.disable = {name};
    const Tensor got = runtime::Session(build_engine(model(), options, nullptr)).run(inputs)[0];
    for (int64_t k = 0; k < got.numel(); ++k)
      ASSERT_NEAR(got.at(k), expected.at(k), 1e-5 * std::max(1.0, std::fabs(expected.at(k)))) << name;
  }
}

}  // namespace
}  // namespace hone::builder
