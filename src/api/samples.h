// Feeds of a model in JSON as Polygraphy writes it; private to api. The public side is hone/io.h.
#pragma once

#include <string>
#include <vector>

#include "hone/session.h"

namespace hone::api {

/// Feeds in the file's order: `[{input: array, ...}, ...]`, what `polygraphy run --save-inputs` writes.
/// An array is base64 of a whole .npy file under the key "array", marked by "polygraphy_class": "ndarray" or
/// by the older "__polygraphy_encoded_ndarray"; a lazy wrapper ("LazyArray", "LazyNumpyArray") holds one
/// under "values"; older files keep the .npy bytes as latin-1 text. Outputs saved by the same tool
/// (RunResults) are told apart and refused with a remedy.
/// Errors: kInvalidData with file, feed and input.
std::vector<std::vector<NamedTensor>> read_polygraphy_feeds(const std::string& path);

}  // namespace hone::api
