// Element and float syntax of the IR text, shared by its printing and parsing halves. Private to
// ir/text*.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hone/tensor.h"

namespace hone::ir {

/// How many numbers stand for `elements` elements: complex types write two each.
int64_t text_element_count(DType t, int64_t elements);
/// Number `i` of a tensor's elements. Integers and bools in decimal, floats by value, unusual NaNs by their
/// bits.
std::string element_text(const Tensor& t, int64_t i);
/// Stores number `i`; false when the text is not a number of that type or does not fit it exactly.
bool parse_element(std::string_view text, Tensor* t, int64_t i);

/// A float attribute; always tells itself from an integer: `1.0`, `1e-05`, `inf`, `nan`, `0x7fc00001`.
std::string float_text(float v);
/// Inverse of float_text; nullopt when the text is an integer or no number.
std::optional<float> parse_float_text(std::string_view s);

}  // namespace hone::ir
