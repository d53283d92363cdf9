// trtexec's command line: the spellings of versions 10 and 11, mapped to build and bench.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "request.h"

namespace hone::cli {

struct TrtexecPlan {
  Request build, bench;  ///< build.path is empty when an engine is loaded
  bool runs = true;      ///< false with --skipInference
  bool help = false;
  bool dump_layer_info = false;
  std::vector<std::pair<std::string, std::string>>
      settings;  ///< what is in effect, trtexec's defaults included
  std::vector<std::pair<std::string, std::string>> ignored;  ///< flag as given, why it has no effect here
  std::vector<std::pair<std::string, std::string>> loads;    ///< --loadInputs: input, file of raw bytes
};

/// Errors: kInvalidArgument (unknown flag with the nearest known one, missing value, neither --onnx nor
/// --loadEngine), kUnsupported for what would change the result and is not built.
TrtexecPlan parse_trtexec(const std::vector<std::string>& args);

/// The flags and what becomes of each.
std::string trtexec_help();
/// Names of all flags, for completion.
std::vector<std::string> trtexec_flags();

}  // namespace hone::cli
