// The commands. Each prints its report on stdout (text, or one JSON object) and returns the exit code; errors
// are thrown.
#pragma once

#include <string>
#include <vector>

#include "reports.h"
#include "request.h"

namespace hone::cli {

int check_command(const Request& request);
int build_command(const Request& request);
int simplify_command(const Request& request);
int run_command(const Request& request);
int bench_command(const Request& request);
int inspect_command(const Request& request);
int diff_command(const Request& request);
int tune_command(const Request& request);
int list_passes_command(const Request& request);
int list_ops_command(const Request& request);
int version_command(const Request& request);
int completion_command(const Request& request);
int trtexec_command(const std::vector<std::string>& args);

/// Pieces that `hone trtexec` shares.
BuildResult run_build(const Request& request);
/// `layers`: the table of layers too; otherwise a line that says where it is, when the engine is a file that
/// stays.
void print_build(const BuildResult& result, bool layers, bool stays = true);
BenchResult run_bench(const Request& request);
void print_bench(const BenchResult& result, bool layers);
/// Writes --exportProfile, --exportTimes, --exportLayerInfo.
void export_bench(const Request& request, const BenchResult& result);

/// A whole text file, by rename. Errors: kDevice.
void write_file(const std::string& path, const std::string& text);
/// Prints to stdout; report() ends the line of JSON.
void print(const std::string& text);

/// The page of `inspect --html`.
std::string inspect_page(const InspectResult& result);

}  // namespace hone::cli
