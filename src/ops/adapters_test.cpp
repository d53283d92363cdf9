// Nodes of older opsets, rewritten for the IR's and run.
#include "support/op_run.h"

namespace hone {
namespace {

using namespace testing;
using V = std::vector<double>;

/// Adapts one node written for schema version `since`, infers and runs the graph.
std::vector<Tensor> old(const std::string& op, int since, const std::vector<Tensor>& inputs,
                        const ir::AttrMap& attrs, int outputs = 1) {
  ir::Graph g;
  std::vector<ir::ValueId> ids;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ids.push_back(inputs[i].defined() ? g.add_constant("x" + std::to_string(i), inputs[i]) : ir::kNoValue);
  }
  ir::Node* node = g.add_node(op, ids, attrs, "", nullptr, "n", outputs);
  for (const ir::ValueId id : node->outputs) g.add_output(id);
  ops::AdaptContext ctx{g, *node, since};
  const ops::OpDef* def = ops::find_op("", op);
  if (def->adapt != nullptr) def->adapt(ctx);
  ops::infer_graph(g);
  std::vector<Tensor> out = ops::interpret(g, {});
  for (size_t i = 0; i < out.size(); ++i) expect_inferred(g, i, out[i]);
  return out;
}

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

TEST(Adapters, ClipAttributes) {  // E17
  EXPECT_EQ(values(old("Clip", 6, {f32({3}, {-2, 0, 9})}, {{"min", -1.0F}, {"max", 6.0F}})[0]),
            (V{-1, 0, 6}));
  EXPECT_EQ(values(old("Clip", 6, {i32({3}, {-2, 1, 9})}, {{"min", 0.0F}, {"max", 1.0F}})[0]), (V{0, 1, 1}));
  EXPECT_EQ(values(old("Clip", 6, {i32({2}, {-2, 9})}, {{"min", -3.4028235e38F}, {"max", 6.0F}})[0]),
            (V{-2, 6}));
  EXPECT_EQ(values(old("Clip", 1, {f32({2}, {-2, 9})}, {{"max", 6.0F}, {"consumed_inputs", Ints{0}}})[0]),
            (V{-2, 6}));
}

TEST(Adapters, AxesAttributes) {
  EXPECT_EQ(old("Squeeze", 1, {f32({1, 2, 1}, {1, 2})}, {{"axes", Ints{0}}})[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(old("Squeeze", 11, {f32({1, 2, 1}, {1, 2})}, {})[0].shape(), (Shape{2}));
  EXPECT_EQ(old("Unsqueeze", 11, {f32({2}, {1, 2})}, {{"axes", Ints{0, -1}}})[0].shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(old("Reshape", 1, {f32({4}, {1, 2, 3, 4})}, {{"shape", Ints{2, -1}}})[0].shape(), (Shape{2, 2}));
  EXPECT_EQ(values(old("Slice", 1, {f32({4}, {1, 2, 3, 4})},
                       {{"starts", Ints{1}}, {"ends", Ints{-1}}, {"axes", Ints{0}}})[0]),
            (V{2, 3}));
  EXPECT_EQ(values(old("Slice", 1, {f32({4}, {1, 2, 3, 4})}, {{"starts", Ints{-2}}, {"ends", Ints{100}}})[0]),
            (V{3, 4}));
}

TEST(Adapters, SplitForms) {
  EXPECT_EQ(values(old("Split", 2, {f32({4}, {1, 2, 3, 4})}, {{"split", Ints{1, 3}}}, 2)[1]), (V{2, 3, 4}));
  EXPECT_EQ(values(old("Split", 2, {f32({4}, {1, 2, 3, 4})}, {}, 2)[1]), (V{3, 4}));
  EXPECT_EQ(values(old("Split", 1, {f32({3}, {1, 2, 3}), i64({2}, {2, 1})}, {}, 2)[0]), (V{1, 2}));
  EXPECT_EQ(values(old("Split", 13, {f32({4}, {1, 2, 3, 4}), Tensor()}, {}, 2)[0]), (V{1, 2}));
}

TEST(Adapters, PadForms) {
  EXPECT_EQ(values(old("Pad", 2, {f32({2}, {1, 2})}, {{"pads", Ints{1, 1}}, {"value", 7.0F}})[0]),
            (V{7, 1, 2, 7}));
  EXPECT_EQ(
      values(old("Pad", 1, {f32({2}, {1, 2})}, {{"paddings", Ints{0, 1}}, {"mode", std::string("edge")}})[0]),
      (V{1, 2, 2}));
}

TEST(Adapters, LegacyBroadcast) {
  const Tensor a = f32({2, 2, 2}, {0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(
      values(old("Add", 6, {a, f32({2}, {1, 2})}, {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}})[0]),
      (V{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(values(old("Add", 1, {a, f32({2}, {1, 2})}, {{"broadcast", int64_t{1}}})[0]),
            (V{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(values(old("Mul", 6, {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {10, 100})},
                       {{"broadcast", int64_t{1}}, {"axis", int64_t{0}}})[0]),
            (V{10, 20, 300, 400}));
  EXPECT_EQ(values(old("Greater", 1, {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {1, 3})},
                       {{"broadcast", int64_t{1}}, {"axis", int64_t{0}}})[0]),
            (V{0, 1, 0, 1}));
  EXPECT_EQ(values(old("PRelu", 6, {f32({1, 2, 2}, {-1, -1, -1, -1}), f32({2}, {2, 3})}, {})[0]),
            (V{-2, -2, -3, -3}));
}

TEST(Adapters, ResizeFamily) {
  const Tensor x = f32({1, 1, 1, 2}, {1, 3});
  EXPECT_EQ(
      values(old("Upsample", 7, {x}, {{"mode", std::string("nearest")}, {"scales", Floats{1, 1, 1, 2}}})[0]),
      (V{1, 1, 3, 3}));
  EXPECT_EQ(values(old("Upsample", 9, {x, f32({4}, {1, 1, 1, 2})}, {{"mode", std::string("linear")}})[0]),
            (V{1, 2, 3, 3}));  // asymmetric
  EXPECT_EQ(
      values(old("Upsample", 1, {x},
                 {{"mode", std::string("bilinear")}, {"height_scale", 1.0F}, {"width_scale", 2.0F}})[0]),
      (V{1, 2, 3, 3}));
  // Resize-10 rounds up when it shrinks.
  EXPECT_EQ(values(old("Resize", 10, {f32({4}, {1, 2, 3, 4}), f32({1}, {0.6F})}, {})[0]), (V{1, 3}));
  EXPECT_EQ(values(old("Resize", 10, {f32({2}, {1, 2}), f32({1}, {1.5F})}, {})[0]), (V{1, 1, 2}));
  EXPECT_EQ(values(old("Resize", 11, {f32({2}, {1, 2}), Tensor(), f32({1}, {2})},
                       {{"coordinate_transformation_mode", std::string("tf_half_pixel_for_nn")},
                        {"nearest_mode", std::string("floor")}})[0]),
            (V{1, 1, 2, 2}));
  EXPECT_THROW(old("Resize", 10, {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {2, 0.5F})}, {}), Error);
}

TEST(Adapters, Others) {
  EXPECT_EQ(values(old("Dropout", 7, {f32({2}, {1, 2})}, {{"ratio", 0.5F}})[0]), (V{1, 2}));
  EXPECT_EQ(values(old("Dropout", 1, {f32({2}, {1, 2})}, {{"is_test", int64_t{1}}})[0]), (V{1, 2}));
  EXPECT_EQ(old("Cast", 1, {f32({1}, {1.5F})}, {{"to", std::string("INT32")}})[0].dtype(), DType::kI32);
  EXPECT_EQ(values(old("Concat", 1, {f32({1, 1}, {1}), f32({1, 1}, {2})}, {})[0]), (V{1, 2}));
  EXPECT_EQ(values(old("Scatter", 9, {f32({1, 3}, {0, 0, 0}), i64({1, 1}, {1}), f32({1, 1}, {5})},
                       {{"axis", int64_t{1}}})[0]),
            (V{0, 5, 0}));
  EXPECT_EQ(values(old("Tile", 1, {f32({1, 2}, {1, 2}), f32({}, {2}), f32({}, {1})}, {})[0]),
            (V{1, 2, 1, 2}));
  EXPECT_EQ(
      values(old("RoiAlign", 10, {f32({1, 1, 2, 2}, {1, 2, 3, 4}), f32({1, 4}, {0, 0, 1, 1}), i64({1}, {0})},
                 {{"sampling_ratio", int64_t{1}}})[0]),
      (V{2.5}));
  EXPECT_EQ(values(old("GridSample", 16, {f32({1, 1, 1, 2}, {1, 3}), f32({1, 1, 1, 2}, {0, 0})},
                       {{"mode", std::string("bilinear")}})[0]),
            (V{2}));
  EXPECT_EQ(old("DFT", 17, {f32({1, 4, 1}, {1, 1, 1, 1})}, {{"axis", int64_t{1}}})[0].at(0), 4);
}

}  // namespace
}  // namespace hone
