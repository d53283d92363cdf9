// The one exception of the project: a request that cannot be completed ends in a hone::Error.
#pragma once

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>

namespace hone {

/// Why a request ended. Values are stable: they appear in JSON and decide a program's exit code.
enum class ErrorCode : uint8_t {
  kInvalidArgument = 1,  ///< the caller asked for something that makes no sense (exit code 2)
  kInvalidModel = 2,     ///< the model breaks the ONNX specification or our budgets (3)
  kUnsupported = 3,      ///< valid, but not implemented here (4)
  kNoTactic = 4,         ///< no tactic accepts a problem; the message lists each reason (4)
  kCorruptEngine = 5,    ///< an engine file fails its checks (3)
  kOutOfMemory = 6,      ///< a budget or the machine's memory is exceeded (5)
  kDevice = 7,           ///< a device or operating-system call failed (5)
  kRejected = 8,         ///< a comparison, band or --strict request failed (1 or 4)
  kInvalidData = 9,      ///< input data (an .npz, say) is malformed or does not fit (3)
  kInternal = 10,        ///< a bug in Hone (70)
};

const char* error_code_name(ErrorCode code);

/// Where an error happened, in the model's own terms. Empty fields do not apply.
struct ErrorContext {
  std::string stage = {};   ///< import, infer, optimize, plan, load, bind, run ...
  std::string node = {};    ///< ONNX node name
  std::string op = {};      ///< domain::name
  int64_t opset = 0;        ///< opset the model imports for that domain
  std::string tensor = {};  ///< name and type, as `name f32[1,3,224,224]`
};

/// One error: code, what went wrong, where, and what to do about it.
/// `what()` reads: `stage: code: node 'n' op d::o opset v: message; tensor (file:line)`.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string message, ErrorContext context = {},
        std::source_location where = std::source_location::current());

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const ErrorContext& context() const { return context_; }
  const std::source_location& where() const { return where_; }

 private:
  ErrorCode code_;
  std::string message_;
  ErrorContext context_;
  std::source_location where_;
};

}  // namespace hone
