// Errors become exit codes and one clear line here, and nowhere else.
#pragma once

#include <functional>
#include <string>

#include "hone/error.h"

namespace hone::cli {

/// 0 fine; 1 a comparison or a band failed; 2 usage; 3 invalid model, engine or data; 4 unsupported, or
/// refused under --strict; 5 device or memory; 70 internal.
int exit_code(ErrorCode code);
/// The same from error_code_name's text (Issue::code).
int exit_code(const std::string& code_name);

/// A usage error: exit code 2.
[[noreturn]] void usage(const std::string& message);

/// Runs a command. An exception becomes `hone: error: ...` on stderr (with `json`, also an object on stdout)
/// and its exit code.
int guarded(bool json, const std::function<int()>& command);

/// Warnings and notes on stderr: `hone: warning: ...`.
void warn(const std::string& message);

}  // namespace hone::cli
