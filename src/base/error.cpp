#include "hone/error.h"

#include <utility>

namespace hone {

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kInvalidModel: return "invalid model";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kNoTactic: return "no tactic";
    case ErrorCode::kCorruptEngine: return "corrupt engine";
    case ErrorCode::kOutOfMemory: return "out of memory";
    case ErrorCode::kDevice: return "device";
    case ErrorCode::kRejected: return "rejected";
    case ErrorCode::kInvalidData: return "invalid data";
    case ErrorCode::kInternal: return "internal";
  }
  return "unknown";
}

namespace {

// `stage: code: node 'n' op d::o opset v: message; tensor (file:line)`; parts that do not apply are left out.
std::string compose(ErrorCode code, const std::string& message, const ErrorContext& c,
                    const std::source_location& where) {
  std::string s;
  if (!c.stage.empty()) s += c.stage + ": ";
  s += error_code_name(code);
  s += ": ";
  std::string subject;
  if (!c.node.empty()) subject += "node '" + c.node + "'";
  if (!c.op.empty()) subject += (subject.empty() ? "op " : " op ") + c.op;
  if (c.opset != 0) subject += (subject.empty() ? "opset " : " opset ") + std::to_string(c.opset);
  if (!subject.empty()) s += subject + ": ";
  s += message;
  if (!c.tensor.empty()) s += "; " + c.tensor;
  s += " (";
  s += where.file_name();
  s += ":" + std::to_string(where.line()) + ")";
  return s;
}

}  // namespace

Error::Error(ErrorCode code, std::string message, ErrorContext context, std::source_location where)
    : std::runtime_error(compose(code, message, context, where)),
      code_(code),
      message_(std::move(message)),
      context_(std::move(context)),
      where_(where) {}

}  // namespace hone
