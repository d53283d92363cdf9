// Any text as an IR graph: an error, or a sound graph that prints to a fixed point.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "hone/error.h"
#include "ir/text.h"
#include "ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::ir::PrintOptions all;
  all.inline_bytes = INT64_MAX;
  std::string printed;
  try {
    const auto g = hone::ir::parse(std::string_view(reinterpret_cast<const char*>(data), size));
    if (!hone::ir::verify(*g).empty()) std::abort();
    printed = hone::ir::print(*g, all);
  } catch (const hone::Error& e) {
    if (e.code() == hone::ErrorCode::kInternal) std::abort();
    return 0;
  }
  if (hone::ir::print(*hone::ir::parse(printed), all) != printed) std::abort();
  return 0;
}
