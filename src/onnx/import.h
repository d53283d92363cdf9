// Reads an ONNX model into the IR: every operator upgraded to the IR's opset, functions inlined, captures
// explicit, weights as constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hone/builder.h"
#include "ir/graph.h"
#include "onnx/reader.h"

namespace hone::onnx {

struct ImportOptions {
  /// Initializers that are also graph inputs: false makes them constants (and says so), true leaves them
  /// inputs that the caller must feed.
  bool override_initializers = false;
  /// Infer types and shapes while importing. Adapters of old opsets need them; without it models below the
  /// IR's opset may fail.
  bool infer = true;
  /// Directory of external data files. Empty: that of the model file; a model from memory then has none.
  std::string external_directory;
  int64_t dense_budget = 128 << 20;  ///< bytes that one sparse tensor may take when made dense
  int64_t max_nodes = 2 << 20;       ///< after inlining of functions
  ReadLimits limits;
};

/// What import found, whether or not it threw. Issues are in the model's order; severity is error, warning or
/// note.
struct ImportReport {
  std::vector<Issue> issues;
  int64_t nodes = 0;              ///< nodes of the model, subgraphs included, before inlining
  int64_t functions_inlined = 0;  ///< calls
  int64_t constants = 0, constant_bytes = 0;
  size_t errors() const;
};

/// Imports a file (external data beside it) or bytes in memory. Names: values keep theirs, nodes get unique
/// ones; Node::sources is the model's name. The graph is verified and in execution order. Errors:
/// kInvalidModel for what breaks ONNX or a budget, kUnsupported for what is valid but not implemented,
/// kInvalidArgument for a file that cannot be read. All problems of all nodes are in one error (and,
/// separately, in the report).
ir::Model import_model(const std::string& path, const ImportOptions& options = {},
                       ImportReport* report = nullptr);
ir::Model import_model(const void* data, size_t size, const ImportOptions& options = {},
                       ImportReport* report = nullptr);

}  // namespace hone::onnx
