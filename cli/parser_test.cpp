#include "parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hone/error.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::vector<std::string>& args) {
  try {
    (void)parse_command_line(args);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.message();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

TEST(Parser, BothSpellingsMeanTheSame) {
  for (const bool camel : {true, false}) {
    const Request r = parse_command_line(
        {"build", "m.onnx", camel ? "--saveEngine=e" : "-o", camel ? "--minShapes=x:1" : "e",
         camel ? "--optShapes=x:2" : "--min-shapes=x:1", camel ? "--maxShapes=x:3" : "--opt-shapes=x:2",
         camel ? "--timingCacheFile=c" : "--max-shapes=x:3",
         camel ? "--memPoolSize=workspace:1" : "--timing-cache=c",
         camel ? "--errorOnTimingCacheMiss" : "--mem-pool-size=workspace:1"});
    EXPECT_EQ(r.command, Command::kBuild);
    EXPECT_EQ(r.path, "m.onnx");
    EXPECT_EQ(r.out, "e");
    ASSERT_EQ(r.build.profiles.size(), 1U);
    EXPECT_EQ(r.build.profiles[0].min.at("x"), (Shape{1}));
    EXPECT_EQ(r.build.profiles[0].opt.at("x"), (Shape{2}));
    EXPECT_EQ(r.build.profiles[0].max.at("x"), (Shape{3}));
    EXPECT_EQ(r.build.timing_cache_file, "c");
    EXPECT_EQ(r.build.max_workspace, 1 << 20);
  }
}

TEST(Parser, RepeatedShapeFlagsAreFurtherProfiles) {
  const Request r = parse_command_line(
      {"build", "m", "--minShapes=x:1", "--maxShapes=x:2", "--minShapes=x:3", "--maxShapes=x:4"});
  ASSERT_EQ(r.build.profiles.size(), 2U);
  EXPECT_EQ(r.build.profiles[1].max.at("x"), (Shape{4}));
  EXPECT_THAT(refusal({"build", "m", "--minShapes=x:1", "--minShapes=x:2", "--optShapes=x:1"}),
              HasSubstr("--optShapes is given 1 times for 2"));
}

TEST(Parser, ListsAndRepeatedTaps) {
  const Request r =
      parse_command_line({"run", "e", "--tap", "a", "--tap=b,c", "--disable", "x,y", "--threads", "2"});
  EXPECT_EQ(r.taps, (std::vector<std::string>{"a", "b,c"}));
  EXPECT_EQ(r.build.disable, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(r.threads, 2);
}

TEST(Parser, TuneIsAChoiceOfThree) {
  EXPECT_FALSE(parse_command_line({"build", "m"}).tune.has_value());
  EXPECT_EQ(parse_command_line({"build", "m", "--tune"}).tune, true);
  EXPECT_EQ(parse_command_line({"build", "m", "--no-tune"}).tune, false);
}

TEST(Parser, PrecisionFlagsAreKept) {
  const Request r =
      parse_command_line({"build", "m", "--fp16", "--calib", "c.cache", "--precisionConstraints=obey"});
  EXPECT_EQ(r.precision,
            (std::vector<std::string>{"--fp16", "--calib=c.cache", "--precisionConstraints=obey"}));
}

TEST(Parser, LoadEngineIsThePath) {
  EXPECT_EQ(parse_command_line({"bench", "--loadEngine=e"}).path, "e");
  EXPECT_THAT(refusal({"bench", "m", "--loadEngine=e"}), HasSubstr("give one"));
}

TEST(Parser, MistakesNameTheNearest) {
  EXPECT_THAT(refusal({"isnpect", "e"}), HasSubstr("'inspect'"));
  EXPECT_THAT(refusal({"bench", "e", "--itterations=5"}), HasSubstr("--iterations"));
  EXPECT_THAT(refusal({"bench", "e", "f"}), HasSubstr("one argument too many"));
  EXPECT_THAT(refusal({"bench", "e", "--threads", "many"}), HasSubstr("see hone bench --help"));
  EXPECT_THAT(refusal({"--josn"}), HasSubstr("--json"));
}

TEST(Parser, HelpIsAPage) {
  const Request r = parse_command_line({"bench", "--help"});
  EXPECT_EQ(r.command, Command::kHelp);
  EXPECT_THAT(r.text, HasSubstr("--dumpProfile"));
  EXPECT_EQ(parse_command_line({}).command, Command::kHelp);
}

TEST(Parser, SpecsCarryChoicesAndFiles) {
  bool target = false, inputs = false;
  for (const CommandSpec& c : command_specs())
    for (const FlagSpec& f : c.flags) {
      target |= c.name == "build" && f.names == std::vector<std::string>{"--target"} && f.choices.size() == 5;
      inputs |=
          c.name == "run" && f.names == std::vector<std::string>{"--inputs"} && f.takes_file && f.takes_value;
      EXPECT_FALSE(f.help.empty()) << c.name << " " << f.names.front();
    }
  EXPECT_TRUE(target);
  EXPECT_TRUE(inputs);
}

}  // namespace
}  // namespace hone::cli
