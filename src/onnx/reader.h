// Reads the protobuf encoding of ONNX. Trusts no byte: every length is checked against what remains, nesting
// and counts against budgets.
//
// Packed and unpacked repeated numbers are read alike, unknown fields are skipped, a repeated singular field
// follows protobuf (the last scalar wins, messages merge). Names must be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

#include "onnx/proto.h"

namespace hone::onnx {

/// Budgets on what a file may hold, wherever it stands in it. The defaults exceed every model known by far.
struct ReadLimits {
  int64_t nodes = 2 << 20;
  int64_t tensors = 1 << 20;
  int64_t values = 8 << 20;  ///< value infos, dimensions, attributes, opset and metadata entries together
  int64_t names = 32 << 20;  ///< inputs and outputs of nodes and other names
  int64_t functions = 1 << 16;
  int64_t node_inputs = 1 << 16;      ///< of one node; outputs likewise
  int64_t node_attributes = 1 << 10;  ///< of one node
  int64_t name_bytes = 1 << 16;       ///< of one name
  int64_t rank = 64;
  int64_t numbers = int64_t{1} << 31;  ///< elements of typed data and lists
  int subgraph_depth = 32;
};

/// Errors: kInvalidModel naming the message and what is wrong with it.
ModelProto read_model(const void* data, size_t size, const ReadLimits& limits = {});

}  // namespace hone::onnx
