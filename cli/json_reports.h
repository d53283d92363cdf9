// The JSON objects of --json and of exported files, documented in docs/json.md. The one place that knows the
// JSON library.
#pragma once

#include <string>
#include <vector>

#include "hone/bench.h"
#include "hone/builder.h"
#include "hone/engine.h"
#include "hone/error.h"
#include "hone/session.h"
#include "reports.h"

namespace hone::cli {

std::string error_json(const Error& error, int exit);
std::string version_json();
std::string passes_json(const std::vector<PassInfo>& passes);
std::string ops_json(const std::vector<OpInfo>& ops);
std::string check_json(const CheckResult& result);
std::string build_json(const BuildResult& result);
std::string simplify_json(const SimplifyResult& result);
std::string run_json(const RunResult& result);
std::string bench_json(const BenchResult& result);
std::string inspect_json(const InspectResult& result);
std::string engine_diff_json(const EngineDiff& diff);
std::string tensor_diff_json(const TensorDiff& diff);
std::string tune_json(const TuneResult& result);

/// What `bench --record` appends: the bench object with the body hash.
std::string bench_record(const BenchResult& result);
/// trtexec's files.
std::string trtexec_times(const BenchReport& report);
std::string trtexec_profile(const BenchReport& report);
std::string trtexec_layers(const EngineInfo& info);

/// Fields of a manifest as `key: value` lines for people; nested values as compact JSON.
std::vector<std::pair<std::string, std::string>> manifest_rows(const std::string& manifest);

}  // namespace hone::cli
