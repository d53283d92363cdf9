#include "ops/layout.h"

#include <vector>

namespace hone::ops {

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kPlain: return "plain";
    case Layout::kChannelsLast: return "nhwc";
  }
  return "unknown";
}

std::optional<Layout> parse_layout(std::string_view name) {
  for (const Layout l : {Layout::kPlain, Layout::kChannelsLast}) {
    if (name == layout_name(l)) return l;
  }
  return std::nullopt;
}

std::vector<int> layout_order(Layout layout, int rank) {
  std::vector<int> order;
  const bool last = layout == Layout::kChannelsLast && rank >= 3;
  for (int d = 0; d < rank; ++d) {
    if (!last || d != 1) order.push_back(d);
  }
  if (last) order.push_back(1);
  return order;
}

std::vector<int64_t> layout_strides(Layout layout, const Shape& shape) {
  const std::vector<int> order = layout_order(layout, static_cast<int>(shape.size()));
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (auto d = order.rbegin(); d != order.rend(); ++d) {
    strides[static_cast<size_t>(*d)] = stride;
    stride *= shape[static_cast<size_t>(*d)];
  }
  return strides;
}

bool same_order(Layout a, Layout b, const Shape& shape) {
  if (a == b) return true;
  const std::vector<int64_t> sa = layout_strides(a, shape), sb = layout_strides(b, shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return true;  // no elements, nothing out of place
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && sa[d] != sb[d]) return false;
  }
  return true;
}

}  // namespace hone::ops
