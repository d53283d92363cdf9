// The command line: one description that parsing, help and completion share.
#pragma once

#include <string>
#include <vector>

#include "request.h"

namespace hone::cli {

/// Arguments without the program's name. Errors: kInvalidArgument; an unknown command or flag comes with the
/// nearest known one.
Request parse_command_line(const std::vector<std::string>& args);

/// What a shell must know to complete: commands with their flags.
struct FlagSpec {
  std::vector<std::string> names;  ///< `-o`, `--saveEngine`
  std::string help;
  bool takes_value = false;
  bool takes_file = false;
  std::vector<std::string> choices;  ///< values, where they are a closed list
};
struct CommandSpec {
  std::string name, help;
  bool takes_file = false;         ///< its positional arguments are files
  std::vector<std::string> words;  ///< closed list of its positional argument
  std::vector<FlagSpec> flags;
};
/// The program's own flags come as the command "".
std::vector<CommandSpec> command_specs();

}  // namespace hone::cli
