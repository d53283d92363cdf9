#include "ops/layout.h"

#include <gtest/gtest.h>

namespace hone::ops {
namespace {

TEST(Layout, NamesParseBack) {
  for (const Layout l : {Layout::kPlain, Layout::kChannelsLast}) EXPECT_EQ(parse_layout(layout_name(l)), l);
  EXPECT_FALSE(parse_layout("nc4hw"));
}

TEST(Layout, ChannelsLastMovesDimensionOne) {
  EXPECT_EQ(layout_order(Layout::kChannelsLast, 4), (std::vector<int>{0, 2, 3, 1}));
  EXPECT_EQ(layout_order(Layout::kChannelsLast, 2), (std::vector<int>{0, 1}));
  EXPECT_EQ(layout_strides(Layout::kChannelsLast, {2, 3, 4, 5}), (std::vector<int64_t>{60, 1, 15, 3}));
  EXPECT_EQ(layout_strides(Layout::kPlain, {2, 3, 4, 5}), (std::vector<int64_t>{60, 20, 5, 1}));
}

TEST(Layout, SameOrderWhereTheMovedDimensionsAreOne) {
  EXPECT_TRUE(same_order(Layout::kPlain, Layout::kChannelsLast, {2, 3, 1, 1}));
  EXPECT_TRUE(same_order(Layout::kPlain, Layout::kChannelsLast, {2, 1, 4, 5}));
  EXPECT_TRUE(same_order(Layout::kPlain, Layout::kChannelsLast, {2, 0, 4, 5}));
  EXPECT_FALSE(same_order(Layout::kPlain, Layout::kChannelsLast, {2, 3, 4, 5}));
  EXPECT_TRUE(same_order(Layout::kPlain, Layout::kChannelsLast, {2, 3}));
}

}  // namespace
}  // namespace hone::ops
