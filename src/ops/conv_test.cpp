// Conv, ConvTranspose and their windows.
#include "ops/conv.h"

#include <cstring>

#include "base/thread_pool.h"
#include "support/op_expect.h"

namespace hone {
namespace {

using namespace testing;
using Ints = std::vector<int64_t>;

/// Conv by its definition, one element at a time.
std::vector<double> naive_conv2d(const Tensor& x, const Tensor& w, const Ints& stride, const Ints& pad,
                                 const Ints& dilation, int64_t group, const Tensor& y) {
  std::vector<double> out;
  for (int64_t n = 0; n < y.dim(0); ++n) {
    for (int64_t m = 0; m < y.dim(1); ++m) {
      for (int64_t oy = 0; oy < y.dim(2); ++oy) {
        for (int64_t ox = 0; ox < y.dim(3); ++ox) {
          double sum = 0;
          const int64_t g = m / (w.dim(0) / group);
          for (int64_t c = 0; c < w.dim(1); ++c) {
            for (int64_t ky = 0; ky < w.dim(2); ++ky) {
              for (int64_t kx = 0; kx < w.dim(3); ++kx) {
                const int64_t iy = oy * stride[0] - pad[0] + ky * dilation[0],
                              ix = ox * stride[1] - pad[1] + kx * dilation[1];
                if (iy < 0 || ix < 0 || iy >= x.dim(2) || ix >= x.dim(3)) continue;
                sum += x.at(((n * x.dim(1) + g * w.dim(1) + c) * x.dim(2) + iy) * x.dim(3) + ix) *
                       w.at(((m * w.dim(1) + c) * w.dim(2) + ky) * w.dim(3) + kx);
              }
            }
          }
          out.push_back(sum);
        }
      }
    }
  }
  return out;
}

TEST(Conv, FollowsItsDefinition) {
  struct Case {
    Shape x, w;
    Ints stride, pads, dilation;
    int64_t group;
  };
  const Case cases[] = {
      {{2, 3, 9, 11}, {5, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
      {{1, 4, 10, 7}, {6, 2, 3, 2}, {2, 1}, {0, 1, 2, 0}, {1, 2}, 2},
      {{1, 6, 8, 8}, {6, 1, 5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, 6},
      {{3, 70, 5, 5}, {67, 70, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
      {{1, 3, 20, 20}, {4, 3, 7, 7}, {3, 3}, {3, 3, 3, 3}, {2, 2}, 1},
      {{1, 200, 3, 3}, {1, 200, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
  };
  for (const Case& c : cases) {
    const Tensor x = f32(c.x, noise(numel(c.x))), w = f32(c.w, noise(numel(c.w), 7));
    const Tensor y =
        run("Conv", {x, w},
            {{"strides", c.stride}, {"pads", c.pads}, {"dilations", c.dilation}, {"group", c.group}})[0];
    expect_values(y, naive_conv2d(x, w, c.stride, c.pads, c.dilation, c.group, y));
  }
}

TEST(Conv, AddsBiasAndTakesOneAndThreeDimensions) {
  const Tensor line =
      run("Conv", {f32({1, 1, 4}, {1, 2, 3, 4}), f32({2, 1, 2}, {1, 1, 1, -1}), f32({2}, {10, 20})})[0];
  expect_values(line, {13, 15, 17, 19, 19, 19});
  const Tensor cube =
      run("Conv", {f32({1, 1, 2, 2, 2}, iota(8)), f32({1, 1, 2, 2, 2}, std::vector<float>(8, 1))})[0];
  expect_values(cube, {28});
}

TEST(Conv, AutoPad) {
  const Tensor x = f32({1, 1, 5}, {1, 2, 3, 4, 5}), w = f32({1, 1, 2}, {1, 10});
  expect_values(run("Conv", {x, w}, {{"auto_pad", std::string("SAME_UPPER")}})[0], {21, 32, 43, 54, 5});
  expect_values(run("Conv", {x, w}, {{"auto_pad", std::string("SAME_LOWER")}})[0], {10, 21, 32, 43, 54});
  expect_values(run("Conv", {x, w}, {{"auto_pad", std::string("VALID")}, {"strides", Ints{2}}})[0], {21, 43});
}

TEST(Conv, KeepsF64AndZeroSizes) {
  const double third = 1.0 / 3.0;
  const Tensor y = run("Conv", {f64({1, 1, 1}, {third}), f64({1, 1, 1}, {3.0})})[0];
  EXPECT_EQ(y.at(0), third * 3.0);
  EXPECT_EQ(run("Conv", {Tensor(DType::kF32, {0, 3, 8, 8}), f32({4, 3, 3, 3}, noise(108))})[0].shape(),
            (Shape{0, 4, 6, 6}));
}

TEST(Conv, RefusesWhatMakesNoSense) {
  const Tensor x = f32({1, 2, 4, 4}, noise(32)), w = f32({2, 2, 3, 3}, noise(36));
  EXPECT_EQ(error_of("Conv", {x, w}, {{"strides", Ints{0, 1}}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"dilations", Ints{1, -1}}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"group", int64_t{0}}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"group", int64_t{2}}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"pads", Ints{0, 0, 0}}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"pads", Ints{0, 0, 0, INT64_MAX}}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"kernel_shape", Ints{3, 2}}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"auto_pad", std::string("SAME")}}), kModel);
  EXPECT_EQ(error_of("Conv", {x, w}, {{"dilations", Ints{4, 4}}}), kModel)
      << "a window larger than the input";
  EXPECT_EQ(error_of("Conv", {x, f32({}, {1})}), kModel) << "scalar weights";
  EXPECT_EQ(error_of("Conv", {x, w, f32({3}, {1, 2, 3})}), kData) << "bias of another length";
}

TEST(Conv, InfersSymbolicSizes) {
  ir::Graph g;
  const auto x =
      g.add_input("x", {DType::kF32, ir::Dims{ir::Dim::symbol("N"), 3, ir::Dim::symbol("H"), 224}});
  const auto w = g.add_input("w", {DType::kF32, ir::Dims{64, 3, 7, 7}});
  const ir::Node* n = g.add_node("Conv", {x, w}, {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}});
  ops::infer_graph(g);
  const ir::Dims& y = *g.value(n->outputs[0]).type.shape;
  EXPECT_EQ(y[0], ir::Dim::symbol("N"));
  EXPECT_EQ(y[2].eval({{"H", 224}}), 112);
  EXPECT_EQ(y[2].eval({{"H", 225}}), 113);
  EXPECT_EQ(y[3].value(), 112);
}

TEST(Conv, SameBitsForAnyNumberOfThreads) {
  const Tensor x = f32({2, 16, 33, 29}, noise(2 * 16 * 33 * 29)),
               w = f32({70, 16, 3, 3}, noise(70 * 16 * 9, 3));
  ThreadPool& pool = ThreadPool::process();
  const int before = pool.n_threads();
  pool.set_n_threads(1);
  const Tensor one = run("Conv", {x, w})[0];
  pool.set_n_threads(before);
  const Tensor many = run("Conv", {x, w})[0];
  EXPECT_EQ(0, std::memcmp(one.raw(), many.raw(), static_cast<size_t>(one.nbytes())));
}

TEST(ConvTranspose, IsTheTransposeOfConv) {
  // <conv(x, w), y> = <x, convT(y, w)> for every x and y: checked on random ones.
  for (const Ints& stride : {Ints{1, 1}, Ints{2, 3}}) {
    for (const int64_t group : {1, 2}) {
      const Shape wide = {2, 4, 13, 14};
      const ir::AttrMap attrs = {
          {"strides", stride}, {"pads", Ints{1, 0, 1, 2}}, {"dilations", Ints{1, 2}}, {"group", group}};
      const Tensor x = f32(wide, noise(numel(wide))),
                   w = f32({6, 4 / group, 3, 3}, noise(6 * 4 / group * 9, 5));
      const Tensor y = run("Conv", {x, w}, attrs)[0];
      const Tensor u = f32(y.shape(), noise(y.numel(), 9));
      ir::AttrMap back = attrs;
      const Tensor bare = run("ConvTranspose", {u, w}, back)[0];
      back["output_padding"] = Ints{wide[2] - bare.dim(2), wide[3] - bare.dim(3)};
      const Tensor t = run("ConvTranspose", {u, w}, back)[0];
      ASSERT_EQ(t.shape(), wide);
      double left = 0, right = 0;
      for (int64_t i = 0; i < y.numel(); ++i) left += y.at(i) * u.at(i);
      for (int64_t i = 0; i < t.numel(); ++i) right += t.at(i) * x.at(i);
      EXPECT_NEAR(left, right, 1e-4);
    }
  }
}

// Case E09.
TEST(ConvTranspose, SamePaddingAndOutputShape) {
  const Tensor x = f32({1, 1, 2, 2}, {1, 2, 3, 4}), w = f32({1, 1, 3, 3}, std::vector<float>(9, 1));
  const std::vector<double> want = {1, 3, 2, 2, 4, 10, 6, 6, 3, 7, 4, 4, 3, 7, 4, 4};
  expect_values(run("ConvTranspose", {x, w},
                    {{"strides", Ints{2, 2}},
                     {"auto_pad", std::string("SAME_UPPER")},
                     {"output_padding", Ints{1, 1}}})[0],
                want);
  expect_values(run("ConvTranspose", {x, w}, {{"strides", Ints{2, 2}}, {"output_shape", Ints{4, 4}}})[0],
                want);
}

TEST(ConvTranspose, AnInfiniteWeightStaysWhereItIs) {
  const Tensor y =
      run("ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, INFINITY, 1}), f32({1}, {5})},
          {{"strides", Ints{3}}})[0];
  expect_values(y, {6, INFINITY, 6, 7, INFINITY, 7});
}

TEST(ConvTranspose, RefusesWhatMakesNoSense) {
  const Tensor x = f32({1, 2, 4}, noise(8)), w = f32({2, 2, 3}, noise(12));
  EXPECT_EQ(error_of("ConvTranspose", {x, w}, {{"pads", Ints{9, 9}}}), kModel);
  EXPECT_EQ(error_of("ConvTranspose", {x, w}, {{"group", int64_t{3}}}), kModel);
  EXPECT_EQ(error_of("ConvTranspose", {x, w}, {{"strides", Ints{-2}}}), kModel);
  EXPECT_EQ(error_of("ConvTranspose", {x, w}, {{"output_padding", Ints{1, 1}}}), kModel);
}

}  // namespace
}  // namespace hone
