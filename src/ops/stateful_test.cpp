// CausalConvWithState, LinearAttention, SwiGLU, DeformConv.
#include "support/op_expect.h"

namespace hone {
namespace {

using namespace testing;
using Ints = std::vector<int64_t>;

TEST(CausalConvWithState, StateCarriesOverTheCut) {
  const Tensor w = f32({2, 1, 3}, {1, 2, 3, -1, 0, 1}), b = f32({2}, {10, 0});
  const Tensor whole = f32({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto all = run("CausalConvWithState", {whole, w, b}, {}, 2);
  expect_values(all[0], {13, 18, 24, 30, 5, 6, 2, 2});
  expect_values(all[1], {3, 4, 7, 8});
  const auto first = run("CausalConvWithState", {f32({1, 2, 1}, {1, 5}), w, b}, {}, 2);
  expect_values(first[1], {0, 1, 0, 5});
  const auto rest = run("CausalConvWithState", {f32({1, 2, 3}, {2, 3, 4, 6, 7, 8}), w, b, first[1]}, {}, 2);
  expect_values(rest[0], {18, 24, 30, 6, 2, 2});
  expect_values(rest[1], {3, 4, 7, 8});
  const auto silu = run("CausalConvWithState", {f32({1, 1, 1}, {2}), f32({1, 1, 1}, {1})},
                        {{"activation", std::string("silu")}}, 2);
  expect_values(silu[0], {2 / (1 + std::exp(-2.0))});
  EXPECT_EQ(error_of("CausalConvWithState", {whole, w}, {{"activation", std::string("relu")}}, 2), kModel);
  EXPECT_EQ(error_of("CausalConvWithState", {whole, f32({3, 1, 1}, {1, 1, 1})}, {}, 2), kModel);
}

/// The four rules on one head with dk = 1, dv = 1, by hand.
TEST(LinearAttention, Rules) {
  const Tensor q = f32({1, 2, 1}, {2, 3}), k = f32({1, 2, 1}, {0.5F, 1}), v = f32({1, 2, 1}, {4, 6}),
               g = f32({1, 2, 1}, {0, std::log(0.5F)}), beta = f32({1, 2, 1}, {1, 0.5F});
  const auto attrs = [](const char* rule) {
    return ir::AttrMap{
        {"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{1}}, {"update_rule", std::string(rule)}};
  };
  expect_values(run("LinearAttention", {q, k, v}, attrs("linear"), 2)[0], {2 * 2, 3 * 8});
  expect_values(run("LinearAttention", {q, k, v, Tensor(), g}, attrs("gated"), 2)[0], {4, 3 * 7});
  expect_values(run("LinearAttention", {q, k, v, Tensor(), Tensor(), beta}, attrs("delta"), 2)[0],
                {4, 3 * (2 + 0.5 * (6 - 2))});
  const auto both =
      run("LinearAttention", {q, k, v, f32({1, 1, 1, 1}, {1}), g, beta}, attrs("gated_delta"), 2);
  const double s1 = 1 + 0.5 * (4 - 0.5), s2 = s1 / 2 + 0.5 * (6 - s1 / 2);
  expect_values(both[0], {2 * s1, 3 * s2});
  expect_values(both[1], {s2});
  EXPECT_EQ(error_of("LinearAttention", {q, k, v}, attrs("gated"), 2), kData) << "decay is missing";
  EXPECT_EQ(error_of("LinearAttention", {q, k, v}, attrs("rotated"), 2), kModel);
  EXPECT_EQ(
      error_of("LinearAttention", {q, k, v}, {{"q_num_heads", int64_t{1}}, {"kv_num_heads", int64_t{2}}}, 2),
      kModel);
}

TEST(LinearAttention, HeadsShareStates) {
  const Tensor q = f32({1, 1, 4}, {1, 0, 0, 1}), k = f32({1, 1, 2}, {2, 3}), v = f32({1, 1, 1}, {5});
  const auto y = run("LinearAttention", {q, k, v},
                     {{"q_num_heads", int64_t{2}},
                      {"kv_num_heads", int64_t{1}},
                      {"update_rule", std::string("linear")},
                      {"scale", 1.0F}},
                     2);
  expect_values(y[0], {10, 15});
}

TEST(SwiGLU, GatesAndRefusesBroadcast) {
  expect_values(run("SwiGLU", {f32({2}, {1, -2}), f32({2}, {3, 4})}, {{"alpha", 2.0F}})[0],
                {3 / (1 + std::exp(-2.0)), -8 / (1 + std::exp(4.0))});
  EXPECT_EQ(error_of("SwiGLU", {f32({2}, {1, -2}), f32({1}, {3})}), kModel);
}

TEST(DeformConv, WithoutOffsetsIsConv) {
  const Tensor x = f32({2, 4, 6, 5}, noise(240)), w = f32({6, 2, 3, 2}, noise(72, 2)),
               b = f32({6}, noise(6, 3));
  const ir::AttrMap attrs = {{"group", int64_t{2}}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{1, 2}}};
  const Tensor want = run("Conv", {x, w, b}, attrs)[0];
  ir::AttrMap deform = attrs;
  deform["offset_group"] = int64_t{4};
  const Tensor offset = Tensor::zeros(DType::kF32, {2, 4 * 6 * 2, want.dim(2), want.dim(3)});
  expect_values(run("DeformConv", {x, w, offset, b}, deform)[0], values(want));
}

TEST(DeformConv, OffsetsMasksAndEdges) {
  const Tensor x = f32({1, 1, 1, 3}, {10, 20, 40}), w = f32({1, 1, 1, 1}, {1});
  const auto at = [&](float dy, float dx, float mask) {
    std::vector<float> off = {dy, dy, dy, dx, dx, dx};
    return run("DeformConv",
               {x, w, f32({1, 2, 1, 3}, off), Tensor(), f32({1, 1, 1, 3}, {mask, mask, mask})})[0];
  };
  expect_values(at(0, 0.5F, 1), {15, 30, 20});
  expect_values(at(0.25F, 0, 2), {15, 30, 60});
  expect_values(at(0, -2, 1), {0, 0, 10});
  expect_values(at(NAN, 0, 1), {0, 0, 0});
  expect_values(at(0, 1e30F, 1), {0, 0, 0});
  EXPECT_EQ(error_of("DeformConv", {x, w, f32({1, 1, 1, 3}, {0, 0, 0})}), kData);
  EXPECT_EQ(error_of("DeformConv", {x, w, f32({1, 2, 1, 3}, noise(6))}, {{"offset_group", int64_t{2}}}),
            kData);
}

}  // namespace
}  // namespace hone
