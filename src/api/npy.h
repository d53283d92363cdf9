// .npy arrays in memory; private to api. The public side is hone/io.h.
#pragma once

#include <string>

#include "hone/tensor.h"

namespace hone::api {

/// The array in the bytes of one .npy file. `where` leads every error text: a file, or file and entry.
/// Errors: kInvalidData.
Tensor parse_npy(const std::string& bytes, const std::string& where);

}  // namespace hone::api
