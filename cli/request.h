// What the user asked for: the command line after parsing. The parser fills it, commands read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hone/builder.h"

namespace hone::cli {

enum class Command {
  kNone,
  kCheck,
  kBuild,
  kSimplify,
  kRun,
  kBench,
  kInspect,
  kDiff,
  kTune,
  kListPasses,
  kListOps,
  kVersion,
  kCompletion,
  kHelp,  ///< `text` holds what to print
};

struct Request {
  Command command = Command::kNone;
  std::string path;   ///< MODEL, ENGINE or the first file of diff
  std::string other;  ///< the second file of diff
  std::string text;   ///< kHelp: the page; kCompletion: the shell
  std::string out;    ///< -o, --saveEngine
  bool json = false;
  bool verbose = false;

  // building
  BuildOptions build;        ///< everything but `tune` and `progress`, which commands decide
  std::optional<bool> tune;  ///< --tune, --no-tune
  std::string save_onnx;
  int opset = 0;
  std::vector<std::string> precision;  ///< precision flags as given; this version builds f32 only
  bool permits_only = false;           ///< the precision flags are trtexec's permissions: f32 satisfies them

  // running
  std::string inputs, outputs, backend = "cpu";
  bool oracle = false;
  std::vector<std::string> taps;
  int threads = 0;
  uint64_t seed = 1;

  // bench
  std::optional<int64_t> iterations;
  std::optional<double> duration_s, warm_up_ms;
  bool dump_profile = false, record = false;
  std::string export_profile, export_times, export_layer_info;
  std::vector<double> percentiles;  ///< trtexec's --percentile

  // inspect
  std::string html;
  bool verify_file = false;

  // diff
  std::optional<double> rtol, atol, rel_l2;
};

}  // namespace hone::cli
