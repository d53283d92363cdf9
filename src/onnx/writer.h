// Writes an IR graph as an ONNX file that other tools read.
//
// Opset: the lowest at which every operator's schema accepts the node and means the same, and the lowest IR
// version that knows that opset. "Means the same" is asked of the adapters that import uses: an older version
// will do when reading it back leaves the node as it is. Fused layers (domain hone) become model-local
// functions of their bodies, or are inlined. Captures become outer names again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace hone::onnx {

struct WriteOptions {
  int opset = 0;                             ///< 0: the lowest that will do; else this one or an error
  bool functions = true;                     ///< false: bodies of fused layers are written in place
  bool external = false;                     ///< put weights beside the file whatever the size
  int64_t external_from_bytes = 1932735283;  ///< 1.8 GiB: larger models have their weights in `<file>.data`
  bool value_types = true;                   ///< write inferred types of inner values
  std::string producer = "hone";
  std::map<std::string, std::string> metadata;
};

struct WriteReport {
  int opset = 0, ir_version = 0;
  int64_t file_bytes = 0, external_bytes = 0;
  std::vector<std::string> files;  ///< paths written
};

/// Files appear by rename, the weights' before the model's.
/// Errors: kUnsupported when the opset asked for does not accept a node (all are named) or an operator of
/// domain hone has no body; kDevice when a file cannot be written.
WriteReport write_model(const ir::Graph& graph, const std::string& path, const WriteOptions& options = {});
/// The same in memory, weights inside. Errors: also kInvalidArgument above 2 GiB, which protobuf cannot hold.
std::string serialize_model(const ir::Graph& graph, const WriteOptions& options = {},
                            WriteReport* report = nullptr);

/// The opset that the functions above choose. Errors: as there.
int choose_opset(const ir::Graph& graph, int wanted = 0);
/// The lowest ONNX IR version that knows an opset of ai.onnx.
int ir_version_for(int opset);
/// The node's attributes as an opset knows them: without newer ones that have their default values.
ir::AttrMap attrs_at(const ir::Node& node, int opset);

}  // namespace hone::onnx
