#include "base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace hone {
namespace {

TEST(Log, CategoriesAreChosenByName) {
  set_log_categories("pass, tune,nonsense");
  EXPECT_TRUE(log_enabled(Log::kPass));
  EXPECT_TRUE(log_enabled(Log::kTune));
  EXPECT_FALSE(log_enabled(Log::kOnnx));
  set_log_categories("all");
  for (const Log c : {Log::kOnnx, Log::kPass, Log::kDispatch, Log::kTune, Log::kExec})
    EXPECT_TRUE(log_enabled(c));
  set_log_categories("");
  EXPECT_FALSE(log_enabled(Log::kPass));
}

TEST(Log, LinesGoToTheSinkOrToStderr) {
  std::string seen;
  set_log_sink(
      [&](Log c, std::string_view line) { seen += std::string(log_name(c)) + "|" + std::string(line); });
  log(Log::kExec, "step 3");
  set_log_sink({});
  EXPECT_EQ(seen, "exec|step 3");
  testing::internal::CaptureStderr();
  log(Log::kOnnx, "read");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "hone[onnx]: read\n");
}

}  // namespace
}  // namespace hone
