// Any bytes as an ONNX model: an error or a sound graph, which can be written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hone/error.h"
#include "ir/verify.h"
#include "onnx/import.h"
#include "onnx/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::onnx::ImportOptions options;
  options.max_nodes = 20000;
  options.dense_budget = 1 << 20;
  hone::ir::Model model;
  try {
    model = hone::onnx::import_model(data, size, options);
  } catch (const hone::Error& e) {
    if (e.code() == hone::ErrorCode::kInternal) std::abort();
    return 0;
  }
  if (!hone::ir::verify(*model.graph).empty()) std::abort();
  try {
    const std::string again = hone::onnx::serialize_model(*model.graph);
    (void)hone::onnx::import_model(again.data(), again.size(), options);
  } catch (const hone::Error& e) {
    if (e.code() == hone::ErrorCode::kInternal) std::abort();
  }
  return 0;
}
