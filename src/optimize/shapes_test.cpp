#include "optimize/shapes.h"

#include <gtest/gtest.h>

namespace hone::optimize {
namespace {

using ir::Dim;
using ir::Dims;
using Target = std::optional<std::vector<int64_t>>;
const Dim n = Dim::symbol("N"), s = Dim::symbol("S");

TEST(Shapes, ReshapeTargetsHoldForEveryBinding) {
  const Dims hidden = {n, s, 768};
  EXPECT_EQ(reshape_target(&hidden, {n, s, 12, 64}), Target({0, 0, 12, 64}));
  EXPECT_EQ(reshape_target(&hidden, {n * s, 768}), Target({-1, 768}));
  EXPECT_EQ(reshape_target(nullptr, {s, 4}), Target({-1, 4}));
  EXPECT_EQ(reshape_target(&hidden, {2, 3}), Target({2, 3}));
  const Dims flat = {n * s, 768};
  EXPECT_EQ(reshape_target(&flat, {n, s, 768}), Target());  // two unknowns
  const Dims heads = {n, s, 12, 64};
  EXPECT_EQ(reshape_target(&heads, {n, s * Dim(12), 64}),
            Target());  // -1 beside a copied dimension is ambiguous when that is zero
  EXPECT_EQ(reshape_target(&hidden, {0, 4}), Target());
}

TEST(Shapes, ExpandTargets) {
  EXPECT_EQ(expand_target({n, 1, s}, {n, 4, s}), Target({1, 4, 1}));
  EXPECT_EQ(expand_target({s}, {7, s}), Target({7, 1}));
  EXPECT_EQ(expand_target({1, s}, {n, s}), Target());
}

TEST(Shapes, SplitGroups) {
  using Groups = std::optional<std::vector<int>>;
  EXPECT_EQ(split_groups({n * Dim(12), s, 64}, {n, 12, s, 64}), Groups({2, 1, 1}));
  EXPECT_EQ(split_groups({n, 6}, {n, 1, 2, 3}), Groups({1, 3}));
  EXPECT_EQ(split_groups({4, 6}, {24}), Groups());
  EXPECT_EQ(split_groups({s, 1, 6}, {s, 2, 3}), Groups({1, 0, 2}));
  EXPECT_EQ(split_groups({s, 1, 6}, {s, 1, 6}), Groups({1, 1, 1}));
  EXPECT_EQ(split_groups({4, 6}, {6, 4}), Groups());
  EXPECT_EQ(split_groups({4, 6}, {4, 6, 1}), Groups({1, 2}));
}

}  // namespace
}  // namespace hone::optimize
