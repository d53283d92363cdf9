#include "ops/axis_view.h"

namespace hone::ops {
namespace {

struct Extent {
  int64_t size, stride;
};

/// Offsets of a row-major walk over the extents: a step when they are evenly spaced, else the table.
int64_t walk(const std::vector<Extent>& dims, int64_t* step, std::vector<int64_t>* table) {
  std::vector<Extent> merged;  // neighbours that continue one another are one
  int64_t count = 1;
  for (const Extent& e : dims) {
    count = checked_mul(count, e.size);
    if (e.size == 1) continue;
    if (!merged.empty() && merged.back().stride == e.stride * e.size)
      merged.back() = {merged.back().size * e.size, e.stride};
    else
      merged.push_back(e);
  }
  if (merged.size() <= 1) {
    *step = merged.empty() ? 0 : merged[0].stride;
    return count;
  }
  if (count == 0) return 0;
  table->reserve(static_cast<size_t>(count));
  table->push_back(0);
  for (const Extent& e : merged) {
    std::vector<int64_t> next;
    next.reserve(table->size() * static_cast<size_t>(e.size));
    for (const int64_t at : *table) {
      for (int64_t i = 0; i < e.size; ++i) next.push_back(at + i * e.stride);
    }
    table->swap(next);
  }
  return count;
}

}  // namespace

ReduceView::ReduceView(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<Extent> kept, gone;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    auto& list = reduced[d] ? gone : kept;
    list.insert(list.begin(), {shape[d], stride});
    stride = checked_mul(stride, shape[d]);
  }
  outputs_ = walk(kept, &base_step_, &bases_);
  count_ = walk(gone, &offset_step_, &offsets_);
}

}  // namespace hone::ops
