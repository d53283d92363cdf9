#include "build/lower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/format.h"
#include "hone/error.h"
#include "ir/text.h"
#include "ops/infer.h"
#include "ops/interpreter.h"
#include "runtime/materialize.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"

namespace hone::builder {
namespace {

std::unique_ptr<ir::Graph> graph_of(const std::string& text) {
  auto g = ir::parse(text);
  ops::infer_graph(*g);
  return g;
}

engine::Profile profile_of(const ir::Graph& g, const std::vector<Shape>& shapes) {
  engine::Profile p;
  for (size_t i = 0; i < shapes.size(); ++i) {
    engine::ProfileRange r;
    r.input = g.value(g.inputs()[i]).name;
    r.opt = shapes[i];
    r.min.assign(shapes[i].size(), 0);
    r.max.assign(shapes[i].size(), 1 << 20);
    p.push_back(r);
  }
  return p;
}

std::shared_ptr<const engine::Engine> round_trip(engine::Engine e) {
  auto bytes = std::make_shared<std::string>(engine::serialize(e));
  EXPECT_EQ(*bytes, engine::serialize(e));
  return engine::load_bytes(bytes->data(), bytes->size(), bytes, {.verify_weights = true});
}

/// Lowers, writes, loads, runs and compares with the interpreter, at each of the given input shapes.
void check(const std::string& text, const std::vector<std::vector<Shape>>& shapes,
           const std::string& target = "cpu", double limit = 1e-5) {
  const auto g = graph_of(text);
  LowerOptions options;
  options.target = backends::Target::parse(target);
  options.profiles = {profile_of(*g, shapes.front())};
  const auto e = round_trip(lower(*g, options));
  ASSERT_EQ(engine::check_plan(*e), "");
  runtime::Session session(e);
  for (const auto& at : shapes) {
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < at.size(); ++i)
      inputs.push_back(runtime::random_input(g->value(g->inputs()[i]).type.dtype, at[i], 3, i));
    const std::vector<Tensor> expected = ops::interpret(*g, inputs, {.oracle = true});
    const std::vector<Tensor> got = session.run(inputs);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t k = 0; k < got.size(); ++k)
      EXPECT_EQ(e->plan.values[static_cast<size_t>(e->plan.outputs[k])].name, g->value(g->outputs()[k]).name);
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_EQ(got[k].shape(), expected[k].shape());
      double num = 0, den = 0;
      for (int64_t i = 0; i < got[k].numel(); ++i) {
        num += std::pow(got[k].at(i) - expected[k].at(i), 2);
        den += std::pow(expected[k].at(i), 2);
      }
      EXPECT_LE(std::sqrt(num), limit * std::sqrt(den) + 1e-30) << "output " << k << " on " << target;
    }
    // The stored graph, with weights unpacked, means the same.
    const auto stored = runtime::materialize_graph(*e);
    const std::vector<Tensor> again = ops::interpret(*stored, inputs, {.oracle = true});
    for (size_t k = 0; k < again.size(); ++k)
      for (int64_t i = 0; i < again[k].numel(); ++i) ASSERT_EQ(again[k].at(i), expected[k].at(i));
  }
}

std::string weights(const std::string& name, const Shape& shape, int seed) {
  const Tensor t = runtime::random_input(DType::kF32, shape, static_cast<uint64_t>(seed), 0);
  std::string text = "const %" + name + ": " + t.type_text() + " = {";
  for (int64_t i = 0; i < t.numel(); ++i) text += (i ? ", " : "") + std::to_string(t.at(i) * 0.2);
  return text + "}\n";
}

class Targets : public ::testing::TestWithParam<const char*> {};

TEST_P(Targets, ConvBiasReluPoolFlattenGemm) {
  const std::string text = "graph \"net\" (%x: f32[N,3,9,11]) {\n" + weights("w", {8, 3, 3, 3}, 1) +
                           weights("b", {8}, 2) + weights("fc", {5, 8}, 3) +
                           R"(%y: f32[N,8,5,6] = Conv(%x, %w, %b) {pads = [1, 1, 1, 1], strides = [2, 2]} "c"
  %z: f32[N,8,5,6] = Relu(%y) "r"
  %p: f32[N,8,1,1] = GlobalAveragePool(%z) "p"
  %f: f32[N,8] = Flatten(%p) "f"
  %o: f32[N,5] = Gemm(%f, %fc) {transB = 1} "g"
  return %o
})";
  check(text, {{{2, 3, 9, 11}}, {{1, 3, 9, 11}}, {{5, 3, 9, 11}}}, GetParam());
}

TEST_P(Targets, MatMulBroadcastSoftmaxTranspose) {
  const std::string text = "graph \"net\" (%q: f32[B,S,12], %k: f32[B,S,12]) {\n" +
                           weights("w", {12, 12}, 4) +
                           R"(%a = MatMul(%q, %w) "a"
  %t = Transpose(%k) {perm = [0, 2, 1]} "t"
  %s = MatMul(%a, %t) "s"
  %m = Softmax(%s) {axis = -1} "m"
  %o = MatMul(%m, %k) "o"
  %n = Add(%o, %q) "n"
  return %n, %m
})";
  check(text, {{{2, 5, 12}, {2, 5, 12}}, {{3, 7, 12}, {3, 7, 12}}}, GetParam());
}

TEST_P(Targets, ChannelsLastTransposeMovesNothing) {
  const std::string text = "graph \"net\" (%x: f32[1,4,6,5]) {\n" + weights("w", {8, 4, 1, 1}, 5) +
                           weights("m", {8, 8}, 6) +
                           R"(%y = Conv(%x, %w) "c"
  %t = Transpose(%y) {perm = [0, 2, 3, 1]} "t"
  %o = MatMul(%t, %m) "o"
  %u = Transpose(%o) {perm = [0, 3, 1, 2]} "u"
  %z = Add(%u, %y) "z"
  return %z
})";
  check(text, {{{1, 4, 6, 5}}}, GetParam());
}

TEST_P(Targets, OutputOfAConvolutionIsPlainAndKeepsItsName) {
  const std::string text =
      "graph \"net\" (%x: f32[1,4,6,5]) {\n" + weights("w", {8, 4, 1, 1}, 5) + R"(%y = Conv(%x, %w) "c"
  %z = Relu(%y) "r"
  return %z, %y
})";
  check(text, {{{1, 4, 6, 5}}}, GetParam());
}

TEST_P(Targets, OutputsThatAreInputsConstantsViewsAndRepeats) {
  const std::string text = R"(graph "net" (%x: f32[N,4]) {
  const %c: f32[2] = {1, 2}
  const %s: i64[3] = {-1, 2, 2}
  %r = Reshape(%x, %s) "r"
  %n = Neg(%x) "n"
  %v = Reshape(%n, %s) "v"
  return %x, %c, %r, %n, %v
})";
  check(text, {{{3, 4}}, {{1, 4}}}, GetParam());
}

TEST_P(Targets, DataDependentShapes) {
  const std::string text = R"(graph "net" (%x: f32[N,4]) {
  %i = NonZero(%x) "nz"
  %t = Transpose(%i) "t"
  %g = GatherND(%x, %t) "g"
  %d = Add(%g, %g) "d"
  return %d
})";
  check(text, {{{3, 4}}, {{2, 4}}}, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Isa, Targets, ::testing::Values("ref", "cpu-portable", "cpu-avx2", "cpu-avx512"));

TEST(Lower, EqualSymbolsMustBeEqualAtRunTime) {
  const auto g = graph_of(R"(graph "net" (%x: f32[N], %y: f32[N]) {
  %z = Add(%x, %y) "a"
  return %z
})");
  LowerOptions options;
  options.target = backends::Target::parse("cpu");
  options.profiles = {profile_of(*g, {{3}, {3}})};
  runtime::Session session(round_trip(lower(*g, options)));
  try {
    session.run({Tensor::zeros(DType::kF32, {3}), Tensor::zeros(DType::kF32, {4})});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(e.message().find("'N'"), std::string::npos) << e.message();
  }
}

engine::Engine small_engine() {
  const auto g = graph_of("graph \"net\" (%x: f32[N,3,5,5]) {\n" + weights("w", {4, 3, 3, 3}, 1) +
                          R"(%y = Conv(%x, %w) "c"
  %z = Relu(%y) "r"
  return %z
})");
  LowerOptions options;
  options.target = backends::Target::parse("cpu-portable");
  options.profiles = {profile_of(*g, {{1, 3, 5, 5}})};
  return lower(*g, options);
}

/// Loads untrusted bytes; anything but an engine or a clean error fails the test.
bool loads(const std::string& bytes) {
  auto held = std::make_shared<std::string>(bytes);
  try {
    (void)engine::load_bytes(held->data(), held->size(), held, {.verify_weights = true});
    return true;
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == ErrorCode::kCorruptEngine || e.code() == ErrorCode::kUnsupported) << e.what();
    return false;
  }
}

TEST(EngineBytes, TruncatedAnywhereIsRefused) {
  const std::string bytes = engine::serialize(small_engine());
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(loads(bytes.substr(0, n))) << n;
  EXPECT_TRUE(loads(bytes));
}

TEST(EngineBytes, EveryFlippedBitIsRefused) {
  std::string bytes = engine::serialize(small_engine());
  for (size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      EXPECT_FALSE(loads(bytes)) << "byte " << i << " bit " << bit;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
    }
}

TEST(EnginePlan, InconsistentPlansAreNamed) {
  {
    engine::Engine e = small_engine();
    std::swap(e.plan.steps.front(), e.plan.steps.back());
    EXPECT_NE(engine::check_plan(e).find("before it is defined"), std::string::npos) << engine::check_plan(e);
  }
  {
    engine::Engine e = small_engine();
    e.plan.steps.back().srcs[0] = 12345;
    EXPECT_NE(engine::check_plan(e), "");
  }
  {
    engine::Engine e = small_engine();
    for (engine::PlanValue& v : e.plan.values)
      if (v.place == engine::Place::kConstant) v.constant = 99;
    EXPECT_NE(engine::check_plan(e).find("unknown constant"), std::string::npos);
  }
}

TEST(Session, LimitOnMemoryNamesTheTensorsAtThePeak) {
  auto e = std::make_shared<engine::Engine>(small_engine());
  runtime::Session session(e, /*max_memory=*/64);
  try {
    session.run({Tensor::zeros(DType::kF32, {8, 3, 5, 5})});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(error.message().find("y"), std::string::npos);
  }
  EXPECT_NO_THROW(runtime::Session(e).run({Tensor::zeros(DType::kF32, {8, 3, 5, 5})}));
}

}  // namespace
}  // namespace hone::builder
