// TensorProto to Tensor: raw, typed and external data, views where the bytes allow it.
//
// Math: none; every element keeps its bits. Raw and external data are little-endian, as this machine is.
// Owns: a tensor whose bytes lie suitably aligned in the mapped file is a view that keeps the mapping; others
// are copies.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "hone/tensor.h"
#include "onnx/proto.h"

namespace hone::onnx {

/// The files that external data of one model may live in. A location is a relative path of plain components
/// below `directory`; each component is opened from the one before without following links; the file is
/// regular and has one name. What was checked is what is read: the same descriptor is mapped. Each file is
/// opened once.
class ExternalFiles {
 public:
  /// `directory` is opened at first use; empty: external data is refused (a model from memory has no
  /// directory).
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}
  ~ExternalFiles();
  ExternalFiles(const ExternalFiles&) = delete;
  ExternalFiles& operator=(const ExternalFiles&) = delete;

  /// Errors: kInvalidModel saying which rule the location breaks.
  const MappedFile& open(std::string_view location);

 private:
  std::string directory_;
  int directory_fd_ = -1;
  std::map<std::string, MappedFile, std::less<>> files_;
};

/// Components of a location. Errors: kInvalidModel for absolute paths, drive letters, backslashes, `..`, zero
/// bytes and paths without a name. Also what the writer demands of the names it makes.
std::vector<std::string> check_location(std::string_view location);

struct WeightSource {
  MappedFile model;                   ///< what the TensorProto's views point into
  ExternalFiles* external = nullptr;  ///< null: external data is refused
  int64_t dense_budget = 128 << 20;   ///< bytes that one sparse tensor may take when made dense
};

/// ONNX element type to ours. Errors: kInvalidModel for unknown numbers, kUnsupported for strings and types
/// without a DType, by name.
DType element_type(int64_t onnx_type);

/// Errors: kInvalidModel when data and shape do not fit, when more than one kind of data is present, or
/// external rules are broken; kUnsupported for string tensors. Messages do not name the tensor: the caller
/// does.
Tensor load_tensor(const TensorProto& t, const WeightSource& source);
/// The same made dense: absent elements are zero.
Tensor load_sparse(const SparseTensorProto& t, const WeightSource& source);

}  // namespace hone::onnx
