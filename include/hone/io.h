// Tensors in files: .npz and .npy (NumPy), directories of .npz, Polygraphy inputs JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hone/session.h"

namespace hone {

/// Arrays of an .npz archive in its order. Trusts nothing: sizes, headers and compression ratios are checked.
/// Errors: kInvalidData with file, entry and what is wrong; object arrays and Fortran order of rank > 1 with
/// a remedy.
std::vector<NamedTensor> read_npz(const std::string& path);
Tensor read_npy(const std::string& path);
/// Writes by rename, entries stored uncompressed. bf16 and narrower types are written as f32.
void write_npz(const std::string& path, const std::vector<NamedTensor>& arrays);

/// Samples for a model: each element of the result holds one array per input. An array of one rank more than
/// its input is one sample per leading index. `path` is an .npz, a directory of .npz (sorted), or Polygraphy
/// inputs JSON. Errors: kInvalidData naming inputs that are missing, unknown or do not fit.
std::vector<std::vector<NamedTensor>> read_samples(const std::string& path,
                                                   const std::vector<TensorInfo>& inputs,
                                                   bool* stacked = nullptr);
/// Outputs of several samples as one archive: stacked along a new leading axis when `stacked`, else the
/// single sample's arrays.
void write_outputs(const std::string& path, const std::vector<std::vector<NamedTensor>>& samples,
                   bool stacked);

}  // namespace hone
