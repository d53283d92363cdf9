// The program without its main(): tests link it.
#pragma once

#include <string>
#include <vector>

namespace hone::cli {

/// Runs one command line (without the program's name) and returns the exit code.
int run_program(const std::vector<std::string>& args);

}  // namespace hone::cli
