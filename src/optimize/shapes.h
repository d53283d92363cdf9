// Shape arguments with symbols: which Reshape and Expand targets can be written as constants that mean the
// same for every binding.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"

namespace hone::optimize {

/// A constant target that takes shape `from` to `to` whatever the symbols are, zero included: integers; 0
/// where the dimension is copied from the same place; one -1 when all others are integers. nullopt when there
/// is none. `from` may be null (unknown).
///   [N,S,768] -> [N,S,12,64]: {0, 0, 12, 64}     [N,12,S,64] -> [N*12,S,64]: none, -1 would be ambiguous
///   where S = 0
std::optional<std::vector<int64_t>> reshape_target(const ir::Dims* from, const ir::Dims& to);

/// The same for Expand: integers, and 1 where the dimension is already there.
std::optional<std::vector<int64_t>> expand_target(const ir::Dims& from, const ir::Dims& to);

/// For a Reshape that only splits dimensions (or inserts or drops ones): how many dimensions of `to` stand
/// for each of `from`; nullopt otherwise.
///   [B*H,S,D] -> [B,H,S,D]: {2, 1, 1}     [S,1,D] -> [S,D]: {1, 0, 1}
std::optional<std::vector<int>> split_groups(const ir::Dims& from, const ir::Dims& to);

}  // namespace hone::optimize
