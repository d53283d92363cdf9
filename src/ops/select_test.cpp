// Operators that select, reorder and count: sizes that depend on values, hostile inputs.
#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;

TEST(NonZero, Coordinates) {  // E39
  EXPECT_EQ(values(run("NonZero", {f32({2, 2}, {1, 0, 1, 1})})[0]), (V{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(run("NonZero", {f32({2, 2}, {0, 0, 0, 0})})[0].shape(), (Shape{2, 0}));
  EXPECT_EQ(run("NonZero", {boolean({3}, {1, 0, 1})})[0].to_i64(), (std::vector<int64_t>{0, 2}));
}

TEST(Compress, AxisAndFlat) {
  const Tensor x = f32({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(run("Compress", {x, boolean({3}, {0, 1, 1})}, {{"axis", int64_t{0}}})[0]),
            (V{3, 4, 5, 6}));
  EXPECT_EQ(values(run("Compress", {x, boolean({2}, {0, 1})}, {{"axis", int64_t{1}}})[0]), (V{2, 4, 6}));
  EXPECT_EQ(values(run("Compress", {x, boolean({5}, {0, 1, 0, 0, 1})})[0]), (V{2, 5}));
  EXPECT_EQ(error_of("Compress", {x, boolean({4}, {0, 0, 0, 1})}, {{"axis", int64_t{0}}}), kData);
}

TEST(Unique, SortedAndNot) {
  auto out = run("Unique", {f32({6}, {2, 1, 1, 3, 4, 3})}, {}, 4);
  EXPECT_EQ(values(out[0]), (V{1, 2, 3, 4}));
  EXPECT_EQ(values(out[1]), (V{1, 0, 3, 4}));
  EXPECT_EQ(values(out[2]), (V{1, 0, 0, 2, 3, 2}));
  EXPECT_EQ(values(out[3]), (V{2, 1, 2, 1}));
  out = run("Unique", {f32({6}, {2, 1, 1, 3, 4, 3})}, {{"sorted", int64_t{0}}}, 4);
  EXPECT_EQ(values(out[0]), (V{2, 1, 3, 4}));
  EXPECT_EQ(values(out[2]), (V{0, 1, 1, 2, 3, 2}));
  out = run("Unique", {f32({3, 3}, {1, 0, 0, 1, 0, 0, 2, 3, 4})}, {{"axis", int64_t{0}}}, 4);
  EXPECT_EQ(values(out[0]), (V{1, 0, 0, 2, 3, 4}));
  EXPECT_EQ(values(out[3]), (V{2, 1}));
}

TEST(OneHot, PlacesAndOutOfRange) {
  const Tensor y = run("OneHot", {i64({3}, {0, -1, 7}), i64({}, {3}), f32({2}, {2, 5})})[0];
  EXPECT_EQ(values(y), (V{5, 2, 2, 2, 2, 5, 2, 2, 2}));
  EXPECT_EQ(
      values(run("OneHot", {i64({2}, {1, 0}), i64({}, {2}), i32({2}, {0, 1})}, {{"axis", int64_t{0}}})[0]),
      (V{0, 1, 1, 0}));
  EXPECT_EQ(error_of("OneHot", {i64({1}, {0}), i64({}, {int64_t{1} << 40}), f32({2}, {0, 1})}),
            kMemory);  // S06
}

TEST(Rearrange, ReverseSequenceTriluCenterCropPad) {
  EXPECT_EQ(values(run("ReverseSequence", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({2}, {2, 3})},
                       {{"time_axis", int64_t{1}}, {"batch_axis", int64_t{0}}})[0]),
            (V{2, 1, 3, 6, 5, 4}));
  EXPECT_EQ(error_of("ReverseSequence", {f32({2, 1}, {1, 2}), i64({1}, {3})}), kData);
  const Tensor m = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values(run("Trilu", {m})[0]), (V{1, 2, 3, 0, 5, 6}));
  EXPECT_EQ(values(run("Trilu", {m, i64({}, {-1})}, {{"upper", int64_t{0}}})[0]), (V{0, 0, 0, 4, 0, 0}));
  EXPECT_EQ(values(run("Trilu", {m, i64({}, {INT64_MAX})})[0]), (V{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values(run("Trilu", {m, i64({}, {INT64_MIN})})[0]), (V{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values(run("CenterCropPad", {f32({4}, {1, 2, 3, 4}), i64({1}, {2})})[0]), (V{2, 3}));
  EXPECT_EQ(values(run("CenterCropPad", {f32({2}, {1, 2}), i64({1}, {5})})[0]), (V{0, 1, 2, 0, 0}));
}

TEST(Rearrange, BlocksOfPixels) {
  const Tensor x = f32({1, 1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  const Tensor deep = run("SpaceToDepth", {x}, {{"blocksize", int64_t{2}}})[0];
  EXPECT_EQ(deep.shape(), (Shape{1, 4, 1, 2}));
  EXPECT_EQ(values(deep), (V{0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(values(run("DepthToSpace", {deep}, {{"blocksize", int64_t{2}}})[0]), values(x));
  const Tensor two = f32({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(values(run("DepthToSpace", {two}, {{"blocksize", int64_t{2}}})[0]), (V{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(values(run("DepthToSpace", {two}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}})[0]),
            (V{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(error_of("SpaceToDepth", {x}, {{"blocksize", int64_t{0}}}), kModel);  // S08
  EXPECT_EQ(error_of("SpaceToDepth", {x}, {{"blocksize", int64_t{3}}}), kModel);
}

TEST(Rearrange, TensorScatterWrapsOrRefuses) {
  const Tensor cache = f32({1, 3, 1}, {1, 2, 3}), update = f32({1, 2, 1}, {8, 9});
  EXPECT_EQ(values(run("TensorScatter", {cache, update, i64({1}, {1})})[0]), (V{1, 8, 9}));
  EXPECT_EQ(
      values(run("TensorScatter", {cache, update, i64({1}, {2})}, {{"mode", std::string("circular")}})[0]),
      (V{9, 2, 8}));
  EXPECT_EQ(error_of("TensorScatter", {cache, update, i64({1}, {2})}), kData);
}

TEST(Rearrange, Col2ImAddsOverlaps) {
  // Two overlapping blocks of 2 over an image of 1 x 3: the middle gets both.
  const Tensor y = run("Col2Im", {f32({1, 2, 2}, {1, 2, 3, 4}), i64({2}, {1, 3}), i64({2}, {1, 2})})[0];
  EXPECT_EQ(y.shape(), (Shape{1, 1, 1, 3}));
  EXPECT_EQ(values(y), (V{1, 5, 4}));
  EXPECT_EQ(error_of("Col2Im", {f32({1, 2, 2}, {1, 2, 3, 4}), i64({2}, {1, 3}), i64({2}, {1, 2})},
                     {{"strides", std::vector<int64_t>{0, 1}}}),
            kData);
}

TEST(Hostile, AttributesAndSizesFromConstants) {  // S08, S09
  EXPECT_EQ(error_of("Cast", {f32({1}, {1})}, {{"to", int64_t{999}}}), kModel);
  EXPECT_EQ(error_of("BitCast", {f32({1}, {1})}, {{"to", int64_t{-1}}}), kModel);
  EXPECT_EQ(error_of("EyeLike", {f32({1, 1}, {1})}, {{"dtype", int64_t{999}}}), kModel);
  EXPECT_EQ(error_of("RandomNormal", {}, {{"shape", std::vector<int64_t>{-1}}}), kModel);
  EXPECT_EQ(error_of("HannWindow", {i64({}, {-3})}), kData);
  EXPECT_EQ(error_of("CenterCropPad", {f32({1}, {1}), i64({1}, {-2})}), kData);
  // The same sizes as constants are refused by inference.
  EXPECT_THROW(one_node("CenterCropPad", {f32({1}, {1}), i64({1}, {-2})}, {}, 1, true), Error);
  EXPECT_THROW(one_node("HannWindow", {i64({}, {-3})}, {}, 1, true), Error);
  EXPECT_THROW(one_node("Resize", {f32({1}, {1}), Tensor(), Tensor(), i64({1}, {-2})}, {}, 1, true), Error);
}

TEST(Bitwise, Shifts) {
  const auto shift = [](const Tensor& x, const Tensor& by, const char* direction) {
    return values(run("BitShift", {x, by}, {{"direction", std::string(direction)}})[0]);
  };
  EXPECT_EQ(shift(u8({3}, {16, 4, 1}), u8({3}, {1, 2, 8}), "RIGHT"), (V{8, 1, 0}));
  EXPECT_EQ(shift(i32({3}, {-8, -8, 3}), i32({3}, {1, 40, -1}), "RIGHT"), (V{-4, -1, 0}));
  EXPECT_EQ(shift(i8({2}, {64, 1}), i8({2}, {1, 9}), "LEFT"), (V{-128, 0}));
  EXPECT_EQ(values(run("BitwiseAnd", {i32({2}, {6, -1}), i32({1}, {3})})[0]), (V{2, 3}));
  EXPECT_EQ(values(run("BitwiseOr", {u8({1}, {6}), u8({1}, {3})})[0]), (V{7}));
  EXPECT_EQ(values(run("BitwiseXor", {u8({1}, {6}), u8({1}, {3})})[0]), (V{5}));
  EXPECT_EQ(values(run("BitwiseNot", {u8({1}, {6})})[0]), (V{249}));
}

}  // namespace
}  // namespace hone
