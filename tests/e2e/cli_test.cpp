// Whole commands through the real program, on small models: what they print, write and compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/format.h"
#include "hone/io.h"
#include "support/program.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::string& demo_model() {
  static const std::string path = (source_dir() / "demo" / "fashion_resnet.onnx").string();
  return path;
}

/// Runs a command that must succeed.
Ran must(const std::vector<std::string>& args) {
  const Ran ran = run_hone(args);
  std::string line;
  for (const std::string& a : args) line += " " + a;
  EXPECT_EQ(ran.code, 0) << "hone" << line << "\n" << ran.err;
  return ran;
}

Json json_of(std::vector<std::string> args) {
  args.emplace_back("--json");
  const Ran ran = must(args);
  const Json j = Json::parse(ran.out, nullptr, false);
  EXPECT_FALSE(j.is_discarded()) << ran.out;
  return j.is_discarded() ? Json::object() : j;
}

/// Values that look like nothing in particular, the same every time.
Tensor noise(const Shape& shape, uint32_t seed) {
  Tensor t(DType::kF32, shape);
  uint32_t state = seed * 2654435761U + 1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    state = state * 1664525U + 1013904223U;
    t.data<float>()[i] = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return t;
}

double relative_l2(const Tensor& a, const Tensor& b) {
  double off = 0, norm = 0;
  for (int64_t i = 0; i < b.numel(); ++i) {
    off += (a.at(i) - b.at(i)) * (a.at(i) - b.at(i));
    norm += b.at(i) * b.at(i);
  }
  return norm > 0 ? std::sqrt(off / norm) : std::sqrt(off);
}

/// Every output within 1e-5 of the reference's; integers equal.
void expect_same_outputs(const std::string& ours, const std::string& truth) {
  const auto a = read_npz(ours), b = read_npz(truth);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    ASSERT_EQ(a[i].tensor.shape(), b[i].tensor.shape()) << a[i].name;
    if (is_float(a[i].tensor.dtype()))
      EXPECT_LT(relative_l2(a[i].tensor, b[i].tensor), 1e-5) << a[i].name;
    else
      for (int64_t k = 0; k < a[i].tensor.numel(); ++k)
        ASSERT_EQ(a[i].tensor.at(k), b[i].tensor.at(k)) << a[i].name;
  }
}

struct Case {
  const char* name;
  std::string model;
  std::vector<NamedTensor> inputs;
};

std::vector<Case> cases() {
  return {{"mlp", model("mlp"), {{"x", noise({5, 8}, 1)}}},
          {"conv", model("conv"), {{"image", noise({1, 3, 16, 16}, 2)}}},
          {"mixed",
           model("mixed"),
           {{"ids", Tensor::of<int64_t>(DType::kI64, {2, 3}, {0, 9, 4, 1, 1, 7})},
            {"gain", Tensor::f32_scalar(-1.5F)}}},
          {"nonzero", model("nonzero"), {{"x", Tensor::of<float>(DType::kF32, {5}, {0, 1, 0, -2, 3})}}},
          {"branch",
           model("branch"),
           {{"flag", Tensor::of<uint8_t>(DType::kBool, {}, {1})}, {"x0", noise({2, 64}, 4)}}},
          {"fashion_resnet", demo_model(), {{"image", noise({2, 1, 28, 28}, 3)}}}};
}

class EveryModel : public ::testing::TestWithParam<int> {
 protected:
  Case given_ = cases()[static_cast<size_t>(GetParam())];
};
INSTANTIATE_TEST_SUITE_P(Models, EveryModel, ::testing::Range(0, 6), [](const auto& which) {
  return std::string(cases()[static_cast<size_t>(which.param)].name);
});

TEST_P(EveryModel, EngineAndModelGiveTheReferencesOutputs) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", given_.inputs);
  must({"build", given_.model, "-o", scratch / "e", "--no-tune"});
  must({"run", given_.model, "--inputs", scratch / "x.npz", "--outputs", scratch / "ref.npz", "--backend",
        "ref"});
  must({"run", scratch / "e", "--inputs", scratch / "x.npz", "--outputs", scratch / "engine.npz"});
  must({"run", given_.model, "--inputs", scratch / "x.npz", "--outputs", scratch / "model.npz"});
  must({"run", scratch / "e", "--inputs", scratch / "x.npz", "--outputs", scratch / "stored.npz", "--backend",
        "ref"});
  expect_same_outputs(scratch / "engine.npz", scratch / "ref.npz");
  expect_same_outputs(scratch / "stored.npz", scratch / "ref.npz");
  EXPECT_EQ(read_file(scratch / "engine.npz"), read_file(scratch / "model.npz"))
      << "the same tactics give the same bits";
  must({"diff", scratch / "engine.npz", scratch / "ref.npz"});
}

TEST_P(EveryModel, TheSameBuildTwiceIsTheSameFile) {
  const Scratch scratch;
  must({"build", given_.model, "-o", scratch / "a", "--no-tune"});
  must({"build", given_.model, "-o", scratch / "b", "--no-tune"});
  EXPECT_EQ(read_file(scratch / "a"), read_file(scratch / "b"));
  must({"inspect", scratch / "a", "--verify"});
}

TEST_P(EveryModel, TwentyRunsAtOneAndTwoThreadsAreBitIdentical) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", given_.inputs);
  must({"build", given_.model, "-o", scratch / "e", "--no-tune"});
  std::string first;
  for (int i = 0; i < 20; ++i) {
    must({"run", scratch / "e", "--inputs", scratch / "x.npz", "--outputs", scratch / "y.npz", "--threads",
          i % 2 == 0 ? "1" : "2"});
    const std::string bytes = read_file(scratch / "y.npz");
    if (first.empty()) first = bytes;
    ASSERT_EQ(bytes, first) << "run " << i;
  }
}

/// Each branch has weights under the same name and number: neither may be taken for the other's.
TEST(Build, BranchesKeepTheirOwnWeights) {
  const Scratch scratch;
  must({"build", model("branch"), "-o", scratch / "e", "--no-tune"});
  std::vector<Tensor> results;
  for (const uint8_t flag : {0, 1}) {
    write_npz(scratch / "x.npz",
              {{"flag", Tensor::of<uint8_t>(DType::kBool, {}, {flag})}, {"x0", noise({2, 64}, 8)}});
    must({"run", scratch / "e", "--inputs", scratch / "x.npz", "--outputs", scratch / "y.npz"});
    must({"run", model("branch"), "--inputs", scratch / "x.npz", "--outputs", scratch / "ref.npz",
          "--backend", "ref"});
    expect_same_outputs(scratch / "y.npz", scratch / "ref.npz");
    results.push_back(read_npz(scratch / "y.npz")[0].tensor);
  }
  EXPECT_GT(relative_l2(results[0], results[1]), 0.1);
}

TEST(Build, FromAFullTimingCacheIsTheSameFile) {
  const Scratch scratch;
  const std::string cache = "--timingCacheFile=" + scratch / "cache";
  const Json tuned = json_of({"tune", model("conv"), cache});
  EXPECT_GT(tuned["tuning"]["tactics_timed"], 0);
  must({"build", model("conv"), "-o", scratch / "a", cache, "--errorOnTimingCacheMiss", "--no-tune"});
  must({"build", model("conv"), "-o", scratch / "b", cache, "--errorOnTimingCacheMiss", "--no-tune"});
  EXPECT_EQ(read_file(scratch / "a"), read_file(scratch / "b"));
}

TEST(Tune, AnEngineIsPlannedAgainWithItsOwnFlags) {
  const Scratch scratch;
  must({"build", model("mlp"), "-o", scratch / "e", "--no-tune", "--strict-f32", "--minShapes=x:1x8",
        "--optShapes=x:4x8", "--maxShapes=x:9x8"});
  const Json tuned =
      json_of({"tune", scratch / "e", "--timingCacheFile=" + scratch / "cache", "-o", scratch / "t"});
  EXPECT_GT(tuned["tuning"]["tactics_timed"], 0);
  EXPECT_FALSE(read_file(scratch / "cache").empty());
  const Json before = json_of({"inspect", scratch / "e"}),
             after = json_of({"inspect", scratch / "t", "--verify"});
  for (const char* same :
       {"profiles", "options", "model_hash", "target", "bytes_not_moved", "inputs", "outputs"})
    EXPECT_EQ(before[same], after[same]) << same;
  EXPECT_EQ(after["timed"], true);
  write_npz(scratch / "x.npz", {{"x", noise({5, 8}, 2)}});
  must({"run", scratch / "e", "--inputs", scratch / "x.npz", "--outputs", scratch / "a.npz"});
  must({"run", scratch / "t", "--inputs", scratch / "x.npz", "--outputs", scratch / "b.npz"});
  expect_same_outputs(scratch / "b.npz", scratch / "a.npz");
  EXPECT_EQ(
      run_hone({"tune", scratch / "e", "--timingCacheFile=" + scratch / "cache", "--shapes", "x:1x8"}).code,
      2);
}

TEST(Build, JsonHasWhatTheDocumentSays) {
  const Scratch scratch;
  const Json j = json_of({"build", model("conv"), "-o", scratch / "e", "--no-tune"});
  EXPECT_EQ(j["engine"], scratch / "e");
  EXPECT_EQ(j["engine_bytes"], read_file(scratch / "e").size());
  EXPECT_EQ(j["nodes_before"], 9);
  EXPECT_LT(j["nodes_after"], 9);
  EXPECT_GT(j["build_seconds"], 0.0);
  EXPECT_EQ(j["timed"], false);
  EXPECT_EQ(j["inputs"][0]["name"], "image");
  EXPECT_EQ(j["inputs"][0]["shape"], Json({1, 3, 16, 16}));
  EXPECT_FALSE(j["body_hash"].get<std::string>().empty());
  ASSERT_FALSE(j["layers"].empty());
  for (const Json& l : j["layers"]) {
    EXPECT_TRUE(l.contains("name") && l.contains("tactic") && l.contains("requested") &&
                l.contains("actual") && l.contains("reason"));
  }
  int64_t sum = 0;
  for (const Json& l : j["ledger"]) sum += l["bytes_not_moved"].get<int64_t>();
  EXPECT_EQ(sum, j["bytes_not_moved"]);
  EXPECT_GT(sum, 0);
  EXPECT_GE(j["memory"]["arena_bytes"], j["memory"]["peak_live_bytes"]);
}

TEST(Build, ReportSaysWhatPeopleAskFor) {
  const Scratch scratch;
  const Ran ran = must({"build", model("nonzero"), "-o", scratch / "e", "--no-tune"});
  for (const char* words : {"target:", "Precision, requested and actual", "Ledger", "Memory: arena",
                            "Fallbacks (1)", "depends on data"})
    EXPECT_THAT(ran.out, HasSubstr(words));
  EXPECT_EQ(ran.err, "") << "no progress bar without a terminal";
}

TEST(Build, DynamicProfilesRunInsideTheirRange) {
  const Scratch scratch;
  // The seeds' example: builder.create_optimization_profile with (1,...), (8,...), (32,...).
  must({"build", model("mlp"), "-o", scratch / "e", "--no-tune", "--minShapes=x:1x8", "--optShapes=x:8x8",
        "--maxShapes=x:32x8"});
  for (const int64_t n : {1, 3, 8, 32}) {
    write_npz(scratch / "x.npz", {{"x", noise({n, 8}, 9)}});
    must({"run", scratch / "e", "--inputs", scratch / "x.npz", "--outputs", scratch / "y.npz"});
    EXPECT_EQ(read_npz(scratch / "y.npz")[0].tensor.shape(), (Shape{n, 4}));
  }
  const Json j = json_of({"inspect", scratch / "e"});
  EXPECT_EQ(j["profiles"][0]["x"]["opt"], Json({8, 8}));
}

TEST(Simplify, WritesAGraphThatGivesTheSameOutputs) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"image", noise({1, 3, 16, 16}, 4)}});
  const Json j = json_of({"simplify", model("conv"), "-o", scratch / "s.onnx"});
  EXPECT_LT(j["nodes_after"], j["nodes_before"]);
  must({"run", model("conv"), "--inputs", scratch / "x.npz", "--outputs", scratch / "a.npz", "--backend",
        "ref"});
  must({"run", scratch / "s.onnx", "--inputs", scratch / "x.npz", "--outputs", scratch / "b.npz", "--backend",
        "ref"});
  expect_same_outputs(scratch / "b.npz", scratch / "a.npz");
}

TEST(Run, OneRankMoreIsOneRunPerLeadingIndex) {
  const Scratch scratch;
  const Tensor many = noise({3, 1, 3, 16, 16}, 5);
  write_npz(scratch / "many.npz", {{"image", many}});
  const Json j =
      json_of({"run", model("conv"), "--inputs", scratch / "many.npz", "--outputs", scratch / "y.npz"});
  EXPECT_EQ(j["samples"], 3);
  const Tensor y = read_npz(scratch / "y.npz")[0].tensor;
  ASSERT_EQ(y.shape(), (Shape{3, 1, 8}));
  for (int64_t i = 0; i < 3; ++i) {
    const Tensor one = Tensor::view(DType::kF32, {1, 3, 16, 16}, many.data<float>() + i * 768);
    write_npz(scratch / "one.npz", {{"image", one}});
    must({"run", model("conv"), "--inputs", scratch / "one.npz", "--outputs", scratch / "one_y.npz"});
    const Tensor alone = read_npz(scratch / "one_y.npz")[0].tensor;
    for (int64_t k = 0; k < 8; ++k) ASSERT_EQ(alone.at(k), y.at(i * 8 + k));
  }
}

TEST(Run, TapsDoNotChangeOutputs) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"image", noise({1, 3, 16, 16}, 6)}});
  must({"build", model("conv"), "-o", scratch / "e", "--no-tune"});
  const Json info = json_of({"inspect", scratch / "e"});
  std::vector<std::string> args = {"run",       scratch / "e",         "--inputs", scratch / "x.npz",
                                   "--outputs", scratch / "tapped.npz"};
  for (const Json& tap : info["taps"]) {
    args.emplace_back("--tap");
    args.push_back(tap.get<std::string>());
  }
  must(args);
  must({"run", scratch / "e", "--inputs", scratch / "x.npz", "--outputs", scratch / "plain.npz"});
  const auto tapped = read_npz(scratch / "tapped.npz"), plain = read_npz(scratch / "plain.npz");
  ASSERT_EQ(plain.size(), 1U);
  ASSERT_GT(tapped.size(), 1U);
  EXPECT_EQ(tapped[0].name, plain[0].name);
  for (int64_t i = 0; i < plain[0].tensor.numel(); ++i)
    EXPECT_EQ(tapped[0].tensor.at(i), plain[0].tensor.at(i));
}

TEST(Run, OracleComputesInDoubles) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"x", noise({2, 8}, 7)}});
  must({"run", model("mlp"), "--inputs", scratch / "x.npz", "--outputs", scratch / "y.npz", "--backend",
        "ref", "--oracle"});
  EXPECT_EQ(read_npz(scratch / "y.npz")[0].tensor.dtype(), DType::kF64);
}

TEST(Run, TheSeedDecidesRandomInputs) {
  const Scratch scratch;
  must({"run", model("mlp"), "--outputs", scratch / "a.npz", "--seed", "3"});
  must({"run", model("mlp"), "--outputs", scratch / "b.npz", "--seed", "3"});
  must({"run", model("mlp"), "--outputs", scratch / "c.npz", "--seed", "4"});
  EXPECT_EQ(read_file(scratch / "a.npz"), read_file(scratch / "b.npz"));
  EXPECT_NE(read_file(scratch / "a.npz"), read_file(scratch / "c.npz"));
}

TEST(Bench, JsonAndExportsParse) {
  const Scratch scratch;
  must({"build", model("conv"), "-o", scratch / "e", "--no-tune"});
  const Json j = json_of({"bench", scratch / "e", "--iterations", "20", "--warmUp", "0", "--threads", "1",
                          "--dumpProfile", "--exportTimes", scratch / "times.json", "--exportProfile",
                          scratch / "profile.json", "--exportLayerInfo", scratch / "layers.json"});
  EXPECT_EQ(j["iterations"], 20);
  EXPECT_EQ(j["threads"], 1);
  double before = 0;
  for (const char* p : {"p50", "p90", "p95", "p99", "p99_9"}) {
    EXPECT_GE(j["latency_ms"][p].get<double>(), before) << p;
    before = j["latency_ms"][p].get<double>();
  }
  EXPECT_GT(j["runs_per_s"], 0.0);
  EXPECT_GT(j["memory"]["peak_rss_bytes"], 0);
  EXPECT_FALSE(j["layers"].empty());
  const Json times = Json::parse(read_file(scratch / "times.json"));
  ASSERT_EQ(times.size(), 20U);
  EXPECT_DOUBLE_EQ(times[0]["latencyMs"], times[0]["computeMs"]);
  const Json profile = Json::parse(read_file(scratch / "profile.json"));
  EXPECT_GT(profile[0]["count"], 0);
  EXPECT_TRUE(profile[1].contains("averageMs") && profile[1].contains("percentage"));
  const Json layers = Json::parse(read_file(scratch / "layers.json"));
  EXPECT_EQ(layers["Bindings"], Json({"image", "features"}));
  EXPECT_TRUE(layers["Layers"][0].contains("TacticName"));
}

TEST(Bench, RecordNamesTheEngineAndLeavesItsBodyAlone) {
  const Scratch scratch;
  must({"build", model("mlp"), "-o", scratch / "e", "--no-tune"});
  const Json before = json_of({"inspect", scratch / "e"});
  must({"bench", scratch / "e", "--iterations", "10", "--warmUp", "0", "--record"});
  const Json after = json_of({"inspect", scratch / "e", "--verify"});
  EXPECT_EQ(after["body_hash"], before["body_hash"]);
  ASSERT_EQ(after["records"].size(), 1U);
  EXPECT_EQ(after["records"][0]["body_hash"], before["body_hash"]);
  EXPECT_EQ(after["records"][0]["kind"], "bench");
}

TEST(Inspect, PageIsOneSelfContainedFile) {
  const Scratch scratch;
  must({"build", model("conv"), "-o", scratch / "e", "--no-tune"});
  must({"inspect", scratch / "e", "--html", scratch / "e.html"});
  const std::string page = read_file(scratch / "e.html");
  for (const char* words :
       {"<!doctype html>", "prefers-color-scheme:dark", "name=viewport", "Ledger", "Layers", "Memory"})
    EXPECT_THAT(page, HasSubstr(words));
  for (const char* words : {"http://", "https://", "src=", "@import"})
    EXPECT_THAT(page, Not(HasSubstr(words)));
}

TEST(Inspect, EngineOfAnotherTargetShowsItsManifestAndWhy) {
  const Scratch scratch;
  must({"build", model("mlp"), "-o", scratch / "e", "--no-tune"});
  for (const char* target : {"cuda", "cuda-sm90", "cpu-amx"}) {
    const auto engine = engine::load(scratch / "e", {});
    engine->target = target;
    engine::save(*engine, scratch / "other");
    const Ran ran = must({"inspect", scratch / "other"});
    EXPECT_THAT(ran.out, HasSubstr("Only the manifest can be shown"));
    EXPECT_THAT(ran.out, HasSubstr(std::string("built for '") + target));
    EXPECT_THAT(ran.out, HasSubstr("x f32[N,8]"));
    const Json j = json_of({"inspect", scratch / "other"});
    EXPECT_EQ(j["loaded"], false);
    EXPECT_EQ(j["manifest"]["target"], target);
    EXPECT_NE(j["why_not"], "");
    must({"inspect", scratch / "other", "--html", scratch / "e.html"});
    EXPECT_THAT(read_file(scratch / "e.html"), HasSubstr("Only the manifest"));
    const Ran refused = run_hone({"run", scratch / "other"});
    EXPECT_EQ(refused.code, 4);
    EXPECT_THAT(refused.err, HasSubstr(target));
  }
}

TEST(Diff, TensorsBeyondTheLimitsFail) {
  const Scratch scratch;
  Tensor a = noise({4, 4}, 1), b = a.clone();
  b.data<float>()[5] += 0.5F;
  write_npz(scratch / "a.npz", {{"y", a}, {"n", Tensor::i64_vector({1, 2})}});
  write_npz(scratch / "b.npz", {{"y", b}, {"n", Tensor::i64_vector({1, 2})}});
  EXPECT_EQ(run_hone({"diff", scratch / "a.npz", scratch / "a.npz"}).code, 0);
  EXPECT_EQ(run_hone({"diff", scratch / "a.npz", scratch / "b.npz"}).code, 1);
  EXPECT_EQ(run_hone({"diff", scratch / "a.npz", scratch / "b.npz", "--atol", "0.6"}).code, 0);
  EXPECT_EQ(run_hone({"diff", scratch / "a.npz", scratch / "b.npz", "--atol", "0.4"}).code, 1);
  const Ran ran = run_hone({"diff", scratch / "a.npz", scratch / "b.npz", "--json"});
  const Json j = Json::parse(ran.out);
  EXPECT_EQ(j["pass"], false);
  EXPECT_NEAR(j["arrays"][0]["max_abs"].get<double>(), 0.5, 1e-6);
  EXPECT_EQ(j["arrays"][0]["worst_index"], 5);
  EXPECT_EQ(j["arrays"][1]["equal"], true);
}

TEST(Diff, NaNAndShapesAndNamesAreDifferences) {
  const Scratch scratch;
  Tensor nan = noise({3}, 1);
  nan.data<float>()[1] = std::nanf("");
  write_npz(scratch / "a.npz", {{"y", nan}, {"only", noise({1}, 2)}, {"s", noise({2, 3}, 3)}});
  write_npz(scratch / "b.npz", {{"y", noise({3}, 1)}, {"s", noise({3, 2}, 3)}});
  const Json j = Json::parse(run_hone({"diff", scratch / "a.npz", scratch / "b.npz", "--json"}).out);
  EXPECT_EQ(j["arrays"][0]["nan_a"], 1);
  for (const Json& a : j["arrays"]) EXPECT_EQ(a["pass"], false) << a;
  EXPECT_EQ(run_hone({"diff", scratch / "a.npz", scratch / "a.npz"}).code, 0)
      << "NaN at the same place is no difference";
}

TEST(Diff, EnginesTellWhichLayersDiffer) {
  const Scratch scratch;
  must({"build", model("conv"), "-o", scratch / "a", "--no-tune"});
  must({"build", model("conv"), "-o", scratch / "b", "--no-tune", "--target", "ref"});
  EXPECT_EQ(json_of({"diff", scratch / "a", scratch / "a"})["same"], true);
  const Json j = json_of({"diff", scratch / "a", scratch / "b"});
  EXPECT_EQ(j["same"], false);
  EXPECT_FALSE(j["different_layers"].empty());
}

TEST(Check, FallbacksCarryAReason) {
  const Json j = json_of({"check", model("nonzero")});
  EXPECT_EQ(j["ok"], true);
  ASSERT_EQ(j["problems"].size(), 1U);
  EXPECT_EQ(j["problems"][0]["node"], "find");
  EXPECT_THAT(j["problems"][0]["message"].get<std::string>(), HasSubstr("depend on data"));
}

// --- trtexec lines ---

/// The line that the seed gives for diagnosis, `trtexec --onnx=model.onnx --verbose --fp16`: it says what
/// would run in which precision.
TEST(Trtexec, SeedLineVerboseFp16) {
  const Ran ran = must({"trtexec", "--onnx=" + model("conv"), "--verbose", "--fp16",
                        "--builderOptimizationLevel=0", "--duration=0", "--warmUp=0"});
  EXPECT_THAT(ran.out, HasSubstr("Without effect"));
  EXPECT_THAT(ran.out, HasSubstr("--fp16"));
  EXPECT_THAT(ran.out, HasSubstr("f32 only"));
  EXPECT_THAT(ran.out, HasSubstr("Precision, requested and actual"));
  EXPECT_THAT(ran.out, HasSubstr("Throughput: "));
  EXPECT_THAT(ran.out, HasSubstr("percentile(99%)"));
  EXPECT_THAT(ran.err, HasSubstr("hone[")) << "--verbose prints developer lines";
}

/// The seed's dynamic shapes, (1,3,224,224) to (32,3,224,224), as a trtexec line on a small model.
TEST(Trtexec, SeedProfileBuildsLoadsAndRuns) {
  const Scratch scratch;
  const std::string engine = scratch / "model.engine";
  must({"trtexec", "--onnx=" + model("mlp"), "--minShapes=x:1x8", "--optShapes=x:8x8", "--maxShapes=x:32x8",
        "--saveEngine=" + engine, "--skipInference"});
  const Ran ran =
      must({"trtexec", "--loadEngine=" + engine, "--shapes=x:32x8", "--iterations=10", "--duration=0",
            "--warmUp=0", "--useCudaGraph", "--noDataTransfers", "--exportTimes=" + scratch / "t.json"});
  EXPECT_THAT(ran.out, HasSubstr("x[32,8]"));
  EXPECT_THAT(ran.out, HasSubstr("--useCudaGraph"));
  EXPECT_EQ(Json::parse(read_file(scratch / "t.json")).size(), 10U);
}

TEST(Trtexec, LoadInputsReadsRawBytes) {
  const Scratch scratch;
  const Tensor x = noise({2, 8}, 1);
  write_file(scratch / "x.bin",
             std::string(static_cast<const char*>(x.raw()), static_cast<size_t>(x.nbytes())));
  must({"trtexec", "--onnx=" + model("mlp"), "--shapes=x:2x8", "--loadInputs=x:" + scratch / "x.bin",
        "--duration=0", "--warmUp=0", "--builderOptimizationLevel=0"});
  const Ran wrong =
      run_hone({"trtexec", "--onnx=" + model("mlp"), "--shapes=x:3x8", "--loadInputs=x:" + scratch / "x.bin",
                "--duration=0", "--builderOptimizationLevel=0"});
  EXPECT_EQ(wrong.code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("96"));
}

// --- pages ---

TEST(Pages, EveryCommandHasHelpWithExamples) {
  for (const char* command :
       {"check", "build", "simplify", "run", "bench", "inspect", "diff", "tune", "completion", "trtexec"}) {
    const Ran ran = must({command, "--help"});
    EXPECT_THAT(ran.out, HasSubstr(std::string("hone ") + command)) << command;
  }
  EXPECT_THAT(must({"--help"}).out, HasSubstr("hone build model.onnx -o model.engine"));
}

TEST(Pages, ListsAndVersion) {
  EXPECT_THAT(must({"--version"}).out, HasSubstr("hone "));
  EXPECT_EQ(json_of({"--version"})["opset"], 28);
  EXPECT_GT(json_of({"--list-passes"})["passes"].size(), 10U);
  EXPECT_GT(json_of({"--list-ops"})["ops"].size(), 50U);
  EXPECT_EQ(must({"build", "--list-passes"}).out, must({"--list-passes"}).out);
}

TEST(Pages, CompletionNamesCommandsAndFlags) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = must({"completion", shell}).out;
    EXPECT_THAT(script, HasSubstr("simplify")) << shell;
    EXPECT_THAT(script, HasSubstr("timingCacheFile")) << shell;
    EXPECT_THAT(script, HasSubstr("cpu-avx2")) << shell;
  }
}

}  // namespace
}  // namespace hone::test
