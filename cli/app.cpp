#include "app.h"

#include <algorithm>
#include <cstdlib>

#include "commands.h"
#include "errors.h"
#include "parser.h"

namespace hone::cli {
namespace {

int dispatch(const Request& request) {
  switch (request.command) {
    case Command::kCheck: return check_command(request);
    case Command::kBuild: return build_command(request);
    case Command::kSimplify: return simplify_command(request);
    case Command::kRun: return run_command(request);
    case Command::kBench: return bench_command(request);
    case Command::kInspect: return inspect_command(request);
    case Command::kDiff: return diff_command(request);
    case Command::kTune: return tune_command(request);
    case Command::kListPasses: return list_passes_command(request);
    case Command::kListOps: return list_ops_command(request);
    case Command::kVersion: return version_command(request);
    case Command::kCompletion: return completion_command(request);
    case Command::kHelp: print(request.text); return 0;
    case Command::kNone: break;
  }
  usage("no command; see hone --help");
}

}  // namespace

int run_program(const std::vector<std::string>& args) {
  const bool json = std::find(args.begin(), args.end(), "--json") != args.end();
  return guarded(json, [&] {
    if (!args.empty() && args.front() == "trtexec") return trtexec_command({args.begin() + 1, args.end()});
    const Request request = parse_command_line(args);
    // The library reads it once, at its first use, which is yet to come. What the user set wins.
    if (request.verbose) setenv("HONE_VERBOSE", "onnx,pass,dispatch,tune", 0);
    return dispatch(request);
  });
}

}  // namespace hone::cli
