// Each class of error through the real program: its exit code, one clear line on stderr, nothing on stdout,
// no crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "hone/io.h"
#include "support/program.h"

namespace hone::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// The command fails with `code`, and its message holds every one of `words`.
void expect_error(const std::vector<std::string>& args, int code, const std::vector<std::string>& words) {
  const Ran ran = run_hone(args);
  std::string line;
  for (const std::string& a : args) line += " " + a;
  SCOPED_TRACE("hone" + line);
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_THAT(ran.err, StartsWith("hone: error: "));
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.err, Not(HasSubstr(".cpp:"))) << "source locations serve developers";
  EXPECT_THAT(ran.err, Not(HasSubstr("terminate")));
  for (const std::string& w : words) EXPECT_THAT(ran.err, HasSubstr(w));
}

/// One engine for all tests, built on first use.
const std::string& mlp_engine() {
  static const Scratch scratch;
  static const std::string path = [] {
    const std::string engine = scratch / "mlp.engine";
    const Ran ran = run_hone({"build", model("mlp"), "-o", engine, "--no-tune"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    return engine;
  }();
  return path;
}

Tensor ramp(const Shape& shape) {
  Tensor t(DType::kF32, shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = 0.1F * static_cast<float>(i);
  return t;
}

// --- usage: 2 ---

TEST(Usage, UnknownCommandNamesTheNearest) {
  expect_error({"biuld", "x.onnx"}, 2, {"unknown command 'biuld'", "build"});
}

TEST(Usage, UnknownFlagNamesTheNearest) {
  expect_error({"build", model("mlp"), "-o", "x", "--optShape=x:1x8"}, 2,
               {"unknown flag --optShape", "--optShapes"});
  expect_error({"bench", model("mlp"), "--iteration", "3"}, 2, {"--iterations"});
  expect_error({"trtexec", "--onx=a.onnx"}, 2, {"--onnx"});
}

TEST(Usage, MissingArguments) {
  expect_error({"build"}, 2, {"no MODEL"});
  expect_error({"build", model("mlp")}, 2, {"no engine file", "-o"});
  expect_error({"diff", "a.npz"}, 2, {"two files"});
  expect_error({"tune", model("mlp")}, 2, {"--timingCacheFile"});
  expect_error({"trtexec"}, 2, {"--onnx", "--loadEngine"});
}

TEST(Usage, MalformedValues) {
  expect_error({"run", model("mlp"), "--shapes", "x:1xtwo"}, 2, {"--shapes", "x:1xtwo"});
  expect_error({"bench", model("mlp"), "--iterations", "many"}, 2, {"iterations"});
  expect_error({"build", model("mlp"), "-o", "x", "--memPoolSize=workspce:1"}, 2, {"workspce", "workspace"});
  expect_error({"build", model("mlp"), "-o", "x", "--maxMemory", "lots"}, 2, {"lots"});
  expect_error({"completion", "tcsh"}, 2, {"tcsh", "bash, zsh and fish"});
}

TEST(Usage, MissingFileIsNamed) {
  expect_error({"build", "nowhere.onnx", "-o", "x.engine"}, 2, {"nowhere.onnx"});
  expect_error({"run", mlp_engine(), "--inputs", "nowhere.npz"}, 2, {"nowhere.npz"});
  expect_error({"inspect", "nowhere.engine"}, 2, {"nowhere.engine"});
}

TEST(Usage, UnknownInputInShapesIsNamed) {
  expect_error({"build", model("mlp"), "-o", "x", "--shapes", "z:1x8"}, 2, {"'z'", "x"});
}

TEST(Usage, ProfileOutOfOrder) {
  expect_error(
      {"build", model("mlp"), "-o", "x", "--minShapes=x:4x8", "--optShapes=x:2x8", "--maxShapes=x:8x8"}, 2,
      {"min 4", "opt 2"});
}

TEST(Usage, ShapesOutsideTheProfile) {
  const Scratch scratch;
  const std::string engine = scratch / "e";
  ASSERT_EQ(run_hone({"build", model("mlp"), "-o", engine, "--no-tune", "--minShapes=x:1x8",
                      "--optShapes=x:2x8", "--maxShapes=x:4x8"})
                .code,
            0);
  expect_error({"bench", engine, "--shapes", "x:5x8", "--iterations", "1"}, 2, {"x"});
}

TEST(Usage, BuildFlagsOnAnEngine) {
  expect_error({"run", mlp_engine(), "--tune"}, 2, {"built already"});
  expect_error({"build", mlp_engine(), "-o", "x"}, 2, {"is an engine"});
}

TEST(Usage, UnknownTapNamesItself) {
  expect_error({"run", mlp_engine(), "--tap", "nothing"}, 2, {"'nothing'"});
}

// --- invalid model, engine, data: 3 ---

TEST(Invalid, TruncatedModel) {
  const Scratch scratch;
  const std::string whole = read_file(model("conv"));
  for (const size_t keep : {size_t{1}, whole.size() / 3, whole.size() - 7}) {
    write_file(scratch / "cut.onnx", whole.substr(0, keep));
    expect_error({"build", scratch / "cut.onnx", "-o", scratch / "e"}, 3, {"invalid model"});
  }
  write_file(scratch / "cut.onnx", "");
  expect_error({"run", scratch / "cut.onnx"}, 3, {"invalid model"});
}

TEST(Invalid, NotAModelAtAll) {
  const Scratch scratch;
  write_file(scratch / "x.onnx", "this is text, not a model\n");
  expect_error({"check", scratch / "y.onnx"}, 2, {"y.onnx"});
  expect_error({"build", scratch / "x.onnx", "-o", scratch / "e"}, 3, {});
}

TEST(Invalid, ModelThatBreaksTheSpecificationNamesTheNode) {
  expect_error({"build", model("bad_type"), "-o", "x"}, 3, {"invalid model", "mixed/add", "Add"});
}

TEST(Invalid, TruncatedOrDamagedEngine) {
  const Scratch scratch;
  const std::string whole = read_file(mlp_engine());
  ASSERT_GT(whole.size(), 4096U);
  for (const size_t keep : {size_t{16}, size_t{200}, whole.size() / 2, whole.size() - 1}) {
    write_file(scratch / "cut", whole.substr(0, keep));
    expect_error({"run", scratch / "cut"}, 3, {"corrupt engine"});
  }
  std::string damaged = whole;
  damaged[300] = static_cast<char>(damaged[300] ^ 0x40);
  write_file(scratch / "damaged", damaged);
  expect_error({"inspect", scratch / "damaged"}, 3, {"corrupt engine"});
}

TEST(Invalid, DamagedWeightsAreFoundByVerify) {
  const Scratch scratch;
  std::string bytes = read_file(mlp_engine());
  bytes[bytes.size() - 100] = static_cast<char>(bytes[bytes.size() - 100] ^ 1);
  write_file(scratch / "e", bytes);
  expect_error({"inspect", scratch / "e", "--verify"}, 3, {"corrupt engine"});
}

TEST(Invalid, DataThatDoesNotFitNamesInputAndType) {
  const Scratch scratch;
  write_npz(scratch / "name.npz", {{"z", ramp({1, 8})}});
  expect_error({"run", mlp_engine(), "--inputs", scratch / "name.npz"}, 3,
               {"'z' is not an input", "'x' f32[N,8] is missing"});
  write_npz(scratch / "shape.npz", {{"x", ramp({1, 9})}});
  expect_error({"run", mlp_engine(), "--inputs", scratch / "shape.npz"}, 3, {"f32[1,9]", "'x' f32[N,8]"});
  write_npz(scratch / "type.npz", {{"x", Tensor::zeros(DType::kF64, {1, 8})}});
  expect_error({"run", mlp_engine(), "--inputs", scratch / "type.npz"}, 3, {"f64", "f32"});
  write_file(scratch / "text.npz", "not an archive");
  expect_error({"run", mlp_engine(), "--inputs", scratch / "text.npz"}, 3, {"text.npz"});
  write_file(scratch / "x.json", "[{\"x\": ");
  expect_error({"run", mlp_engine(), "--inputs", scratch / "x.json"}, 3, {"JSON"});
}

// --- unsupported: 4 ---

TEST(Unsupported, EveryUnknownOperatorAtOnce) {
  expect_error({"build", model("unknown_op"), "-o", "x"}, 4,
               {"unsupported", "com.example::Frobnicate", "com.example::Defrobnicate", "first", "third"});
}

TEST(Unsupported, PrecisionFlagsAreNotSilentlyIgnored) {
  for (const char* flag : {"--fp16", "--bf16", "--int8", "--fp8", "--best", "--calib=c.cache",
                           "--layerPrecisions=a:fp16", "--precisionConstraints=obey"})
    expect_error({"build", model("mlp"), "-o", "x", flag}, 4,
                 {std::string(flag).substr(0, std::string(flag).find('=')), "f32"});
  expect_error({"run", model("mlp"), "--fp16"}, 4, {"--fp16"});
}

TEST(Unsupported, BackendThatThisBuildLacks) {
  expect_error({"run", model("mlp"), "--backend", "cuda"}, 4, {"CUDA"});
}

TEST(Unsupported, TrtexecFlagsThatWouldChangeTheResult) {
  expect_error({"trtexec", "--onnx=" + model("mlp"), "--plugins=libx.so"}, 4, {"--plugins=libx.so"});
}

// --- memory: 5 ---

TEST(Memory, BudgetNamesTheTensorsLiveAtThePeak) {
  expect_error({"build", model("conv"), "-o", "x", "--no-tune", "--maxMemory=1K"}, 5, {"out of memory"});
}

TEST(Memory, UnwritableOutput) {
  const Ran ran = run_hone({"build", model("mlp"), "-o", "/nonexistent/folder/e", "--no-tune"});
  EXPECT_TRUE(ran.code == 2 || ran.code == 5) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("/nonexistent/folder/e"));
}

// --- what comes with --json ---

TEST(Json, ErrorsAreOneObjectOnStdout) {
  const Ran ran = run_hone({"build", model("unknown_op"), "-o", "x", "--json"});
  EXPECT_EQ(ran.code, 4);
  const auto j = nlohmann::json::parse(ran.out);
  EXPECT_EQ(j["error"]["code"], "unsupported");
  EXPECT_EQ(j["error"]["exit"], 4);
  EXPECT_EQ(j["error"]["stage"], "import");
}

TEST(Json, CheckListsEveryProblemWithItsRemedy) {
  const Ran ran = run_hone({"check", model("unknown_op"), "--json"});
  EXPECT_EQ(ran.code, 4) << ran.err;
  const auto j = nlohmann::json::parse(ran.out);
  EXPECT_EQ(j["ok"], false);
  int errors = 0;
  for (const auto& p : j["problems"]) {
    if (p["severity"] != "error") continue;
    ++errors;
    EXPECT_NE(p["remedy"], "");
    EXPECT_EQ(p["code"], "unsupported");
  }
  EXPECT_EQ(errors, 2);
}

TEST(Hostile, NamesFromFilesCannotDriveTheTerminal) {
  const Scratch scratch;
  write_file(scratch / "x\x1b[31m.onnx", "junk");
  const Ran ran = run_hone({"build", scratch / "x\x1b[31m.onnx", "-o", scratch / "e"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_THAT(ran.err + ran.out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace hone::test
