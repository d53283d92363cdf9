#include "optimize/shapes.h"

namespace hone::optimize {

using ir::Dim;
using ir::Dims;

std::optional<std::vector<int64_t>> reshape_target(const Dims* from, const Dims& to) {
  std::vector<int64_t> target;
  int inferred = 0;
  bool copies = false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_const()) {
      if (to[i].value() <= 0) return std::nullopt;
      target.push_back(to[i].value());
    } else if (from != nullptr && i < from->size() && (*from)[i] == to[i]) {
      target.push_back(0);
      copies = true;
    } else {
      target.push_back(-1);
      ++inferred;
    }
  }
  if (inferred > 1 || (inferred == 1 && copies)) return std::nullopt;
  return target;
}

std::optional<std::vector<int64_t>> expand_target(const Dims& from, const Dims& to) {
  if (to.size() < from.size()) return std::nullopt;
  const size_t lead = to.size() - from.size();
  std::vector<int64_t> target;
  for (size_t i = 0; i < to.size(); ++i) {
    if (i >= lead && from[i - lead] == to[i]) {
      target.push_back(1);
    } else if (to[i].is_const()) {
      target.push_back(to[i].value());
    } else {
      return std::nullopt;
    }
  }
  return target;
}

std::optional<std::vector<int>> split_groups(const Dims& from, const Dims& to) {
  std::vector<int> groups;
  size_t j = 0;
  for (const Dim& whole : from) {
    Dim got = 1;
    int count = 0;
    if (whole == Dim(1) && (j == to.size() || !(to[j] == Dim(1)))) {
      groups.push_back(0);  // a one that goes
      continue;
    }
    while (j < to.size() && (count == 0 || !(got == whole))) {
      got = got * to[j++];
      ++count;
    }
    if (count == 0 || !(got == whole)) return std::nullopt;
    groups.push_back(count);
  }
  if (groups.empty() && j < to.size()) return std::nullopt;
  for (; j < to.size(); ++j) {
    if (!(to[j] == Dim(1))) return std::nullopt;
    ++groups.back();
  }
  return groups;
}

}  // namespace hone::optimize
