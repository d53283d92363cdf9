#include "trtexec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hone/error.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

Error refusal(const std::vector<std::string>& args) {
  try {
    (void)parse_trtexec(args);
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was refused";
  return Error(ErrorCode::kInternal, "");
}

std::string value_of(const std::vector<std::pair<std::string, std::string>>& rows, const std::string& key) {
  for (const auto& [k, v] : rows)
    if (k == key) return v;
  return "";
}

/// `trtexec --onnx=model.onnx --verbose --fp16`, as the seed has it.
TEST(TrtexecLine, SeedVerboseFp16) {
  const TrtexecPlan p = parse_trtexec({"--onnx=model.onnx", "--verbose", "--fp16"});
  EXPECT_EQ(p.build.path, "model.onnx");
  EXPECT_TRUE(p.build.verbose);
  EXPECT_TRUE(p.runs);
  EXPECT_EQ(p.build.tune, true);
  EXPECT_THAT(value_of(p.ignored, "--fp16"), HasSubstr("every layer runs in f32"));
}

/// The seed's profile: min (1,3,224,224), opt (8,3,224,224), max (32,3,224,224).
TEST(TrtexecLine, SeedProfile) {
  const TrtexecPlan p = parse_trtexec({"--onnx=m", "--minShapes=input:1x3x224x224",
                                       "--optShapes=input:8x3x224x224", "--maxShapes=input:32x3x224x224"});
  ASSERT_EQ(p.build.build.profiles.size(), 1U);
  EXPECT_EQ(p.build.build.profiles[0].max.at("input"), (Shape{32, 3, 224, 224}));
  EXPECT_TRUE(p.ignored.empty());
}

TEST(TrtexecLine, DefaultsAreTrtexecs) {
  const TrtexecPlan p = parse_trtexec({"--onnx=m"});
  EXPECT_EQ(p.bench.iterations, 10);
  EXPECT_EQ(p.bench.duration_s, 3);
  EXPECT_EQ(p.bench.warm_up_ms, 200);
  EXPECT_EQ(p.bench.percentiles, (std::vector<double>{90, 95, 99}));
  EXPECT_EQ(value_of(p.settings, "percentile"), "90,95,99");
  EXPECT_THAT(value_of(p.settings, "builderOptimizationLevel"), HasSubstr("3"));
}

TEST(TrtexecLine, OldAndNewSpellings) {
  const TrtexecPlan p = parse_trtexec({"--onnx=m", "--workspace=1024", "--buildOnly", "--saveEngine=e",
                                       "--explicitBatch", "--useCudaGraph", "--noDataTransfers"});
  EXPECT_EQ(p.build.build.max_workspace, int64_t{1} << 30);
  EXPECT_FALSE(p.runs);
  EXPECT_EQ(p.ignored.size(), 3U);
}

TEST(TrtexecLine, ValuesMayFollowWithoutEquals) {
  const TrtexecPlan p = parse_trtexec({"--onnx", "m", "--iterations", "7", "--percentile=50,99.9"});
  EXPECT_EQ(p.build.path, "m");
  EXPECT_EQ(p.bench.iterations, 7);
  EXPECT_EQ(p.bench.percentiles, (std::vector<double>{50, 99.9}));
}

TEST(TrtexecLine, SeveralProfiles) {
  const TrtexecPlan p =
      parse_trtexec({"--onnx=m", "--profile=0", "--optShapes=x:1", "--profile=1", "--optShapes=x:8"});
  ASSERT_EQ(p.build.build.profiles.size(), 2U);
  EXPECT_EQ(p.build.build.profiles[1].opt.at("x"), (Shape{8}));
}

TEST(TrtexecLine, OrdersThatCannotBeObeyedAreRefused) {
  const Error e = refusal({"--onnx=m", "--layerPrecisions=conv1:fp16", "--precisionConstraints=obey"});
  EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
  EXPECT_NO_THROW(
      (void)parse_trtexec({"--onnx=m", "--layerPrecisions=conv1:fp16", "--precisionConstraints=prefer"}));
  EXPECT_EQ(refusal({"--onnx=m", "--useDLACore=0"}).code(), ErrorCode::kUnsupported);
}

TEST(TrtexecLine, MistakesAreUsageErrors) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{},
                                             {"--onnx=m", "--loadEngine=e"},
                                             {"--onnx"},
                                             {"model.onnx"},
                                             {"--onnx=m", "--duration=-1"},
                                             {"--onnx=m", "--percentile=101"},
                                             {"--onnx=m", "--skipInference"}})
    EXPECT_EQ(refusal(args).code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(refusal({"--onnx=m", "--minShape=x:1"}).message(), HasSubstr("--minShapes"));
}

TEST(TrtexecLine, EveryFlagIsOnTheHelpPage) {
  const std::string page = trtexec_help();
  for (const std::string& f : trtexec_flags()) EXPECT_THAT(page, HasSubstr(f)) << f;
}

}  // namespace
}  // namespace hone::cli
