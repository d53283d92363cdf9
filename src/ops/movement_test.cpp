// Operators that move data: their values, hostile indices and sizes.
#include <limits>

#include "ops/movement.h"
#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;

Tensor iota(Shape shape) {
  Tensor t(DType::kF32, shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

TEST(Movement, SubByteRoundTrip) {
  Tensor packed(DType::kU4, {3});
  packed.data<uint8_t>()[0] = 0x21;
  packed.data<uint8_t>()[1] = 0x03;
  const Tensor bytes = ops::unpack_subbyte(packed);
  EXPECT_EQ(values(bytes), (V{1, 2, 3}));
  EXPECT_EQ(values(ops::pack_subbyte(bytes, DType::kU4)), (V{1, 2, 3}));
  EXPECT_EQ(values(run("Concat", {packed, packed}, {{"axis", int64_t{0}}})[0]), (V{1, 2, 3, 1, 2, 3}));
}

TEST(Reshape, TargetForms) {
  const Tensor x = iota({2, 3, 4});
  EXPECT_EQ(run("Reshape", {x, i64({2}, {0, -1})})[0].shape(), (Shape{2, 12}));
  EXPECT_EQ(run("Reshape", {x, i64({3}, {-1, 2, 2})})[0].shape(), (Shape{6, 2, 2}));
  EXPECT_EQ(run("Reshape", {iota({0, 3}), i64({2}, {3, 0})}, {{"allowzero", int64_t{1}}})[0].shape(),
            (Shape{3, 0}));
  EXPECT_EQ(run("Reshape", {iota({1}), i64({0}, {})})[0].shape(), (Shape{}));
  EXPECT_EQ(error_of("Reshape", {x, i64({2}, {5, -1})}), kData);
  EXPECT_EQ(error_of("Reshape", {x, i64({2}, {-1, -1})}), kData);
  EXPECT_EQ(error_of("Reshape", {x, i64({1}, {7})}), kData);
}

TEST(Reshape, FlattenSqueezeUnsqueeze) {
  const Tensor x = iota({2, 1, 3});
  EXPECT_EQ(run("Flatten", {x})[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(run("Flatten", {x}, {{"axis", int64_t{0}}})[0].shape(), (Shape{1, 6}));
  EXPECT_EQ(run("Flatten", {x}, {{"axis", int64_t{-1}}})[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(run("Squeeze", {x})[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(run("Squeeze", {x, i64({1}, {-2})})[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(error_of("Squeeze", {x, i64({1}, {0})}), kData);
  EXPECT_EQ(run("Unsqueeze", {x, i64({2}, {-1, 0})})[0].shape(), (Shape{1, 2, 1, 3, 1}));
}

TEST(Shape, DimensionsAsI64) {  // E49
  const Tensor x = iota({2, 3, 4});
  EXPECT_EQ(run("Shape", {x})[0].to_i64(), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(run("Shape", {x}, {{"start", int64_t{-2}}, {"end", int64_t{-1}}})[0].to_i64(),
            (std::vector<int64_t>{3}));
  EXPECT_EQ(run("Shape", {x}, {{"start", int64_t{2}}, {"end", int64_t{1}}})[0].to_i64(),
            (std::vector<int64_t>{}));
  EXPECT_EQ(run("Size", {x})[0].to_i64(), (std::vector<int64_t>{24}));
}

TEST(Transpose, Permutes) {
  const Tensor y = run("Transpose", {iota({2, 3, 4})}, {{"perm", std::vector<int64_t>{2, 0, 1}}})[0];
  EXPECT_EQ(y.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(y.at(0 * 6 + 1 * 3 + 2), 20);
  EXPECT_EQ(y.at(3 * 6 + 0 * 3 + 1), 7);
  EXPECT_EQ(values(run("Transpose", {iota({2, 2})})[0]), (V{0, 2, 1, 3}));
  EXPECT_EQ(error_of("Transpose", {iota({2, 2})}, {{"perm", std::vector<int64_t>{0, 0}}}), kModel);
  // Larger than a tile both ways.
  const Tensor big = run("Transpose", {iota({37, 50})})[0];
  for (int64_t i = 0; i < 37; ++i) {
    for (int64_t j = 0; j < 50; ++j) ASSERT_EQ(big.at(j * 37 + i), static_cast<double>(i * 50 + j));
  }
}

TEST(Concat, JoinsAndChecks) {
  EXPECT_EQ(values(run("Concat", {iota({2, 1}), iota({2, 2})}, {{"axis", int64_t{1}}})[0]),
            (V{0, 0, 1, 1, 2, 3}));
  EXPECT_EQ(run("Concat", {iota({0, 2}), iota({3, 2})}, {{"axis", int64_t{-2}}})[0].shape(), (Shape{3, 2}));
  EXPECT_EQ(error_of("Concat", {iota({2, 1}), iota({3, 1})}, {{"axis", int64_t{1}}}), kModel);
}

TEST(Split, SizesAndCounts) {
  auto out = run("Split", {iota({4}), Tensor()}, {{"num_outputs", int64_t{2}}}, 2);  // F01
  EXPECT_EQ(values(out[1]), (V{2, 3}));
  out = run("Split", {iota({5}), i64({3}, {1, 0, 4})}, {}, 3);
  EXPECT_EQ(values(out[2]), (V{1, 2, 3, 4}));
  EXPECT_EQ(out[1].shape(), (Shape{0}));
  out = run("Split", {iota({2, 3})}, {{"axis", int64_t{1}}, {"num_outputs", int64_t{2}}}, 2);
  EXPECT_EQ(values(out[0]), (V{0, 1, 3, 4}));
  EXPECT_EQ(values(out[1]), (V{2, 5}));
  EXPECT_EQ(error_of("Split", {iota({5}), i64({2}, {1, 3})}, {}, 2), kData);
}

Tensor slice(const Tensor& x, int64_t s, int64_t e, int64_t step) {
  return run("Slice", {x, i64({1}, {s}), i64({1}, {e}), i64({1}, {0}), i64({1}, {step})})[0];
}

TEST(Slice, Bounds) {  // E23, E25
  EXPECT_EQ(values(slice(iota({10}), 9, 0, -1)), (V{9, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(values(slice(iota({10}), 9, 0, -3)), (V{9, 6, 3}));
  EXPECT_EQ(values(slice(iota({10}), 0, 5, -1)), (V{}));
  EXPECT_EQ(values(slice(iota({5}), 100, -100, -2)), (V{4, 2, 0}));
  EXPECT_EQ(values(slice(iota({5}), 100, INT64_MIN, -1)), (V{4, 3, 2, 1, 0}));
  EXPECT_EQ(values(slice(iota({5}), 2, INT64_MAX, 1)), (V{2, 3, 4}));
  EXPECT_EQ(values(slice(iota({5}), INT64_MIN, INT64_MAX, INT64_MAX)), (V{0}));
  EXPECT_EQ(values(slice(iota({5}), INT64_MAX, INT64_MIN, INT64_MIN)), (V{4}));
  EXPECT_EQ(values(slice(iota({0}), 0, 5, 1)), (V{}));
  const Tensor y = run(
      "Slice", {iota({3, 4}), i64({2}, {1, -1}), i64({2}, {3, 0}), i64({2}, {0, 1}), i64({2}, {1, -2})})[0];
  EXPECT_EQ(values(y), (V{7, 5, 11, 9}));
  EXPECT_EQ(error_of("Slice", {iota({3}), i64({1}, {0}), i64({1}, {1}), i64({1}, {0}), i64({1}, {0})}),
            kData);
}

TEST(Expand, BothWays) {
  EXPECT_EQ(values(run("Expand", {f32({2, 1}, {1, 2}), i64({2}, {1, 3})})[0]), (V{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(run("Expand", {f32({3, 1}, {1, 2, 3}), i64({3}, {2, 1, 6})})[0].shape(), (Shape{2, 3, 6}));
  EXPECT_EQ(run("Expand", {f32({1}, {1}), i64({1}, {0})})[0].shape(), (Shape{0}));
  EXPECT_EQ(error_of("Expand", {f32({2}, {1, 2}), i64({1}, {3})}), kData);
  EXPECT_EQ(values(run("Tile", {f32({1, 2}, {1, 2}), i64({2}, {2, 2})})[0]), (V{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(run("Tile", {f32({2}, {1, 2}), i64({1}, {0})})[0].shape(), (Shape{0}));
}

TEST(Movement, BudgetStopsHugeResults) {  // S06
  EXPECT_EQ(error_of("ConstantOfShape", {i64({1}, {17592186044800})}), kMemory);
  EXPECT_EQ(error_of("Expand", {f32({1}, {1}), i64({1}, {int64_t{1} << 40})}), kMemory);
  EXPECT_EQ(error_of("Expand", {f32({1}, {1}), i64({2}, {int64_t{1} << 40, int64_t{1} << 40})}), kMemory);
  EXPECT_EQ(error_of("Tile", {f32({1}, {1}), i64({1}, {int64_t{1} << 40})}), kMemory);
  EXPECT_EQ(error_of("Range", {f64({}, {0}), f64({}, {1e18}), f64({}, {1})}), kData);
  EXPECT_EQ(error_of("Range", {i64({}, {0}), i64({}, {1000000000000000000}), i64({}, {1})}), kMemory);
  EXPECT_EQ(error_of("Pad", {f32({1}, {1}), i64({2}, {0, int64_t{1} << 40})}), kMemory);
}

TEST(Gather, AxesAndIndices) {  // E19, E51
  const Tensor x = f32({3, 2}, {0, 1, 2, 3, 4, 5});
  const Tensor last = run("Gather", {x, i64({}, {-1})})[0];
  EXPECT_EQ(last.shape(), (Shape{2}));
  EXPECT_EQ(values(last), (V{4, 5}));
  EXPECT_EQ(values(run("Gather", {x, i32({1, 2}, {1, 0})}, {{"axis", int64_t{1}}})[0]),
            (V{1, 0, 3, 2, 5, 4}));
  EXPECT_EQ(values(run("Gather", {iota({5}), i64({2}, {-1, -5})})[0]), (V{4, 0}));
  EXPECT_EQ(error_of("Gather", {iota({5}), i64({2}, {5, 0})}), kData);
  EXPECT_EQ(error_of("Gather", {iota({5}), i64({1}, {-6})}), kData);
  EXPECT_EQ(error_of("Gather", {iota({5}), i64({1}, {INT64_MIN})}), kData);
}

TEST(Gather, ElementsAndND) {
  EXPECT_EQ(values(run("GatherElements", {f32({2, 2}, {1, 2, 3, 4}), i64({2, 2}, {0, 0, 1, 0})},
                       {{"axis", int64_t{1}}})[0]),
            (V{1, 1, 4, 3}));
  EXPECT_EQ(values(run("GatherElements", {f32({3, 2}, {1, 2, 3, 4, 5, 6}), i64({1, 2}, {-1, 0})})[0]),
            (V{5, 2}));
  EXPECT_EQ(error_of("GatherElements", {iota({5}), i64({1}, {5})}), kData);
  EXPECT_EQ(values(run("GatherND", {f32({2, 2}, {0, 1, 2, 3}), i64({2, 2}, {0, 0, 1, 1})})[0]), (V{0, 3}));
  EXPECT_EQ(values(run("GatherND", {iota({2, 2, 2}), i64({2, 1}, {1, 0})}, {{"batch_dims", int64_t{1}}})[0]),
            (V{2, 3, 4, 5}));
  EXPECT_EQ(error_of("GatherND", {f32({2}, {0, 1}), i64({1, 1}, {2})}), kData);
}

TEST(Scatter, ND) {  // E21
  EXPECT_EQ(values(run("ScatterND",
                       {f32({2, 3}, {0, 0, 0, 0, 0, 0}), i64({2, 2}, {0, 1, 1, -1}), f32({2}, {5, 7})})[0]),
            (V{0, 5, 0, 0, 0, 7}));
  EXPECT_EQ(values(run("ScatterND", {f32({2, 2}, {5, 5, 5, 5}), i64({2, 2}, {0, 1, 1, 0}), f32({2}, {3, 9})},
                       {{"reduction", std::string("min")}})[0]),
            (V{5, 3, 5, 5}));
  EXPECT_EQ(values(run("ScatterND", {f32({2, 2}, {1, 2, 3, 4}), i64({1, 1}, {1}), f32({1, 2}, {8, 9})})[0]),
            (V{1, 2, 8, 9}));
  EXPECT_EQ(values(run("ScatterND", {f32({2}, {1, 2}), i64({0, 1}, {}), f32({0}, {})})[0]), (V{1, 2}));
  EXPECT_EQ(error_of("ScatterND", {f32({2}, {1, 2}), i64({1, 1}, {2}), f32({1}, {0})}), kData);
}

TEST(Scatter, Elements) {
  EXPECT_EQ(values(run("ScatterElements",
                       {f32({1, 5}, {1, 2, 3, 4, 5}), i64({1, 2}, {1, 1}), f32({1, 2}, {1.5F, 2})},
                       {{"axis", int64_t{1}}, {"reduction", std::string("add")}})[0]),
            (V{1, 5.5, 3, 4, 5}));
  EXPECT_EQ(values(run("ScatterElements",
                       {f32({2, 2}, {0, 0, 0, 0}), i64({1, 2}, {-1, 0}), f32({1, 2}, {1, 2})})[0]),
            (V{0, 2, 1, 0}));
  EXPECT_EQ(error_of("ScatterElements", {f32({2}, {0, 0}), i64({1}, {2}), f32({1}, {1})}), kData);
}

TEST(Pad, Modes) {
  const auto pad = [](const Tensor& x, std::vector<int64_t> pads, const char* mode) {
    return run("Pad", {x, i64({static_cast<int64_t>(pads.size())}, pads)}, {{"mode", std::string(mode)}})[0];
  };
  EXPECT_EQ(values(pad(f32({2}, {1, 2}), {2, 1}, "constant")), (V{0, 0, 1, 2, 0}));
  EXPECT_EQ(values(run("Pad", {f32({2}, {1, 2}), i64({2}, {1, -1}), f32({}, {9})})[0]), (V{9, 1}));
  EXPECT_EQ(values(pad(f32({3}, {1, 2, 3}), {2, 2}, "reflect")), (V{3, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(values(pad(f32({3}, {1, 2, 3}), {2, 1}, "edge")), (V{1, 1, 1, 2, 3, 3}));
  EXPECT_EQ(values(pad(f32({3}, {1, 2, 3}), {2, 4}, "wrap")), (V{2, 3, 1, 2, 3, 1, 2, 3, 1}));
  // E27: more than the width, and after a removal.
  EXPECT_EQ(values(pad(f32({2}, {1, 1.5F}), {2, 2}, "reflect")), (V{1, 1.5, 1, 1.5, 1, 1.5}));
  EXPECT_EQ(values(pad(iota({5}), {-4, 4}, "reflect")), (V{4, 4, 4, 4, 4}));
  EXPECT_EQ(values(pad(f32({1}, {7}), {2, 0}, "reflect")), (V{7, 7, 7}));
  EXPECT_EQ(error_of("Pad", {f32({0}, {}), i64({2}, {1, 0})}, {{"mode", std::string("reflect")}}), kData);
  EXPECT_EQ(error_of("Pad", {f32({2}, {1, 2}), i64({2}, {-2, -1})}), kData);
  EXPECT_EQ(values(run("Pad", {f32({2, 2}, {1, 2, 3, 4}), i64({2}, {1, 0}), Tensor(), i64({1}, {-1})})[0]),
            (V{0, 1, 2, 0, 3, 4}));
  EXPECT_EQ(values(pad(f32({2, 2}, {1, 2, 3, 4}), {1, 1, 0, 1}, "reflect")),
            (V{4, 3, 4, 3, 2, 1, 2, 1, 4, 3, 4, 3}));
}

TEST(Constant, Makers) {
  EXPECT_EQ(values(run("Constant", {}, {{"value_ints", std::vector<int64_t>{3, 4}}})[0]), (V{3, 4}));
  EXPECT_EQ(values(run("ConstantOfShape", {i64({2}, {2, 1})}, {{"value", Tensor::i64_vector({7})}})[0]),
            (V{7, 7}));
  EXPECT_EQ(run("ConstantOfShape", {i64({0}, {})})[0].shape(), (Shape{}));
  EXPECT_EQ(values(run("Range", {i64({}, {10}), i64({}, {4}), i64({}, {-2})})[0]), (V{10, 8, 6}));
  EXPECT_EQ(values(run("Range", {i32({}, {3}), i32({}, {9}), i32({}, {3})})[0]), (V{3, 6}));
  EXPECT_EQ(values(run("Range", {f32({}, {1}), f32({}, {5}), f32({}, {2})})[0]), (V{1, 3}));
  EXPECT_EQ(run("Range", {i64({}, {5}), i64({}, {5}), i64({}, {1})})[0].shape(), (Shape{0}));
  EXPECT_EQ(run("Range", {i64({}, {INT64_MIN}), i64({}, {INT64_MAX}), i64({}, {INT64_MAX})})[0].numel(), 3);
  EXPECT_EQ(error_of("Range", {i64({}, {0}), i64({}, {5}), i64({}, {0})}), kData);
  EXPECT_EQ(values(run("EyeLike", {f32({2, 3}, {0, 0, 0, 0, 0, 0})}, {{"k", int64_t{1}}})[0]),
            (V{0, 1, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace hone
