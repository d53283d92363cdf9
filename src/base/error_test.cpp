#include "hone/error.h"

#include <gtest/gtest.h>

#include <string>

namespace hone {
namespace {

TEST(Error, TextNamesStageNodeOpOpsetTensorAndPlace) {
  ErrorContext c;
  c.stage = "import";
  c.node = "l3/Conv_12";
  c.op = "ai.onnx::Conv";
  c.opset = 19;
  c.tensor = "src f32[N,64,H,W]";
  const Error e(ErrorCode::kUnsupported, "auto_pad=SAME_LOWER needs static H", c);
  const std::string what = e.what();
  EXPECT_EQ(what.find("import: unsupported: node 'l3/Conv_12' op ai.onnx::Conv opset 19: auto_pad=SAME_LOWER "
                      "needs static H; "
                      "src f32[N,64,H,W] ("),
            0u)
      << what;
  EXPECT_NE(what.find("error_test.cpp:" + std::to_string(e.where().line()) + ")"), std::string::npos) << what;
  EXPECT_EQ(e.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(e.context().node, "l3/Conv_12");
}

TEST(Error, EmptyPartsLeaveNoTrace) {
  const Error e(ErrorCode::kInvalidArgument, "no such file");
  EXPECT_EQ(std::string(e.what()).find("invalid argument: no such file ("), 0u) << e.what();
}

TEST(Error, EveryCodeHasAName) {
  for (int i = 1; i <= 10; ++i) EXPECT_STRNE(error_code_name(static_cast<ErrorCode>(i)), "unknown");
}

}  // namespace
}  // namespace hone
