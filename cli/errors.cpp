#include "errors.h"

#include <cstdio>
#include <new>

#include "json_reports.h"
#include "text.h"

namespace hone::cli {
namespace {

struct Row {
  ErrorCode code;
  int exit;
};
constexpr Row kExitCodes[] = {
    {ErrorCode::kInvalidArgument, 2}, {ErrorCode::kInvalidModel, 3},  {ErrorCode::kUnsupported, 4},
    {ErrorCode::kNoTactic, 4},        {ErrorCode::kCorruptEngine, 3}, {ErrorCode::kOutOfMemory, 5},
    {ErrorCode::kDevice, 5},          {ErrorCode::kRejected, 1},      {ErrorCode::kInvalidData, 3},
    {ErrorCode::kInternal, 70},
};

/// what() without the source location, which serves developers: it is kept for internal errors.
std::string message_of(const Error& e) {
  std::string s = e.what();
  if (e.code() == ErrorCode::kInternal) return s + "; this is a bug in Hone, please report it";
  const size_t at = s.rfind(" (");
  if (at != std::string::npos && s.back() == ')') s.resize(at);
  const std::string usual = std::string(error_code_name(ErrorCode::kInvalidArgument)) + ": ";
  if (e.context().stage.empty() && s.rfind(usual, 0) == 0) s.erase(0, usual.size());
  return s;
}

int report(bool json, const Error& e) {
  const std::string text = message_of(e);
  std::fflush(stdout);
  std::fprintf(stderr, "hone: error: %s\n", printable(text, true).c_str());
  const int code = exit_code(e.code());
  if (json) std::fprintf(stdout, "%s\n", error_json(e, code).c_str());
  return code;
}

}  // namespace

int exit_code(ErrorCode code) {
  for (const Row& r : kExitCodes)
    if (r.code == code) return r.exit;
  return 70;
}

int exit_code(const std::string& code_name) {
  for (const Row& r : kExitCodes)
    if (code_name == error_code_name(r.code)) return r.exit;
  return 70;
}

void usage(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

int guarded(bool json, const std::function<int()>& command) {
  int code = 70;
  try {
    code = command();
  } catch (const Error& e) {
    code = report(json, e);
  } catch (const std::bad_alloc&) {
    code = report(json, Error(ErrorCode::kOutOfMemory, "memory ran out"));
  } catch (const std::exception& e) {
    code = report(json, Error(ErrorCode::kInternal, e.what()));
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fprintf(stderr, "hone: error: cannot write to stdout\n");
    if (code == 0) code = 5;
  }
  return code;
}

void warn(const std::string& message) {
  std::fprintf(stderr, "hone: warning: %s\n", printable(message, true).c_str());
}

}  // namespace hone::cli
