// Physical layouts of a tensor. They exist only in the plan, per edge; the IR is logical.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hone/tensor.h"

namespace hone::ops {

/// The list of physical layouts. Values are written into engine files: do not change them.
enum class Layout : uint8_t {
  kPlain = 0,         ///< row-major in ONNX dimension order
  kChannelsLast = 1,  ///< rank >= 3: dimension 1 moved to the end, then row-major (NCHW -> NHWC, NCW -> NWC)
};

const char* layout_name(Layout layout);  ///< "plain", "nhwc"
std::optional<Layout> parse_layout(std::string_view name);

/// Memory order of the dimensions, outermost first: channels-last rank 4 gives {0,2,3,1}. Rank below 3 is
/// always plain.
std::vector<int> layout_order(Layout layout, int rank);
/// Element stride of each logical dimension. Shapes: as `shape`.
std::vector<int64_t> layout_strides(Layout layout, const Shape& shape);
/// True when both layouts put every element at the same place (equal, or the moved dimensions have extent 1).
bool same_order(Layout a, Layout b, const Shape& shape);

}  // namespace hone::ops
