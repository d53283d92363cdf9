// Values of flags: shapes, sizes, lists; and the nearest known word to a mistyped one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hone/engine.h"

namespace hone::cli {

/// `name:1x3x224x224,'other, name':8,flag:scalar`: shapes by input. A name may hold colons (the last one
/// counts), a quoted name commas too; one `*` in a name matches any characters (expand_shapes). Errors:
/// kInvalidArgument naming the flag and the part.
std::map<std::string, Shape> parse_shapes(const std::string& text, const std::string& flag);
/// Replaces names that hold a `*` by the inputs that they match. Errors: kInvalidArgument when one matches
/// none.
std::map<std::string, Shape> expand_shapes(const std::map<std::string, Shape>& shapes,
                                           const std::vector<TensorInfo>& inputs);
bool has_wildcard(const std::map<std::string, Shape>& shapes);

/// `64M`, `1.5G`, `4096B`, `64` (MiB): bytes. Suffixes B K M G T, optionally followed by B or iB, are powers
/// of 1024.
int64_t parse_bytes(const std::string& text, const std::string& flag);
/// `workspace:64M,tacticSharedMem:1`: the workspace's bytes, 0 when it is not named. Names of pools that a
/// CPU does not have go to `ignored`.
int64_t parse_pools(const std::string& text, const std::string& flag, std::vector<std::string>* ignored);

/// Parts between commas, without empty ones.
std::vector<std::string> parse_list(const std::string& text);

/// The word that is at most a third of its letters away from `word`, or empty. Case does not count, and
/// neither do leading dashes.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// `1x3x224x224`, `scalar`
std::string shape_text(const Shape& shape);
/// `image f32[N,3,224,224]`
std::string tensor_text(const TensorInfo& t);

}  // namespace hone::cli
