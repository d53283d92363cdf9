#include "flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hone/error.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.message();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(Shapes, NamesScalarsColonsAndQuotes) {
  const auto s = parse_shapes("image:1x3x224x224,sr:scalar,input:0:5,'a, b':2x0", "--shapes");
  ASSERT_EQ(s.size(), 4U);
  EXPECT_EQ(s.at("image"), (Shape{1, 3, 224, 224}));
  EXPECT_EQ(s.at("sr"), Shape{});
  EXPECT_EQ(s.at("input:0"), (Shape{5}));
  EXPECT_EQ(s.at("a, b"), (Shape{2, 0}));
}

TEST(Shapes, MalformedPartsAreNamed) {
  for (const char* text : {"x", "x:", ":1x2", "x:1xx2", "x:-1", "x:1x2x", "x:99999999999999999999", "'x:1"})
    EXPECT_THAT(refusal([&] { (void)parse_shapes(text, "--shapes"); }), HasSubstr("--shapes")) << text;
  EXPECT_THAT(refusal([] { (void)parse_shapes("x:1,x:2", "--shapes"); }), HasSubstr("twice"));
}

TEST(Shapes, OneStarMatchesAnyCharactersAndFullNamesWin) {
  const std::vector<TensorInfo> inputs = {
      {"ids", DType::kI64, {"N"}}, {"mask_a", DType::kI64, {"N"}}, {"mask_b", DType::kI64, {"N"}}};
  const auto s = expand_shapes(parse_shapes("mask_*:4,mask_b:5", "--shapes"), inputs);
  EXPECT_EQ(s.at("mask_a"), (Shape{4}));
  EXPECT_EQ(s.at("mask_b"), (Shape{5}));
  EXPECT_EQ(s.count("ids"), 0U);
  EXPECT_THAT(refusal([&] { (void)expand_shapes({{"z*", {1}}}, inputs); }), HasSubstr("ids, mask_a, mask_b"));
  EXPECT_THAT(refusal([] { (void)parse_shapes("*x*:1", "--shapes"); }), HasSubstr("more than one"));
}

TEST(Bytes, MebibytesWithoutASuffix) {
  EXPECT_EQ(parse_bytes("64", "f"), int64_t{64} << 20);
  EXPECT_EQ(parse_bytes("64M", "f"), int64_t{64} << 20);
  EXPECT_EQ(parse_bytes("1.5G", "f"), int64_t{3} << 29);
  EXPECT_EQ(parse_bytes("2KiB", "f"), 2048);
  EXPECT_EQ(parse_bytes("100B", "f"), 100);
  for (const char* text : {"", "M", "-1", "1X", "1e400", "nan", "999999999T", "1 M"})
    EXPECT_THAT(refusal([&] { (void)parse_bytes(text, "--maxMemory"); }), HasSubstr("--maxMemory")) << text;
}

TEST(Pools, OnlyTheWorkspaceCounts) {
  std::vector<std::string> ignored;
  EXPECT_EQ(parse_pools("workspace:2,dlaSRAM:1", "f", &ignored), int64_t{2} << 20);
  EXPECT_EQ(ignored, std::vector<std::string>{"dlaSRAM"});
  EXPECT_THAT(refusal([] { (void)parse_pools("workspac:2", "f", nullptr); }),
              HasSubstr("did you mean workspace?"));
}

TEST(Nearest, OnlyWhatIsNear) {
  const std::vector<std::string> known = {"--optShapes", "--maxShapes", "--shapes",
                                          "-o",          "--json",      "--verify"};
  EXPECT_EQ(nearest("--optShape", known), "--optShapes");
  EXPECT_EQ(nearest("--OPTSHAPES=x:1", known), "--optShapes");
  EXPECT_EQ(nearest("--jsno", known), "--json");
  EXPECT_EQ(nearest("--colour", known), "");
}

}  // namespace
}  // namespace hone::cli
