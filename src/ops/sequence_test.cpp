// Attention, RotaryEmbedding, RNN, GRU, LSTM.
#include "support/op_expect.h"

namespace hone {
namespace {

using namespace testing;
using Ints = std::vector<int64_t>;

/// Attention of one head by its definition; `allowed(i, j)`.
template <class F>
std::vector<double> naive_head(const Tensor& q, const Tensor& k, const Tensor& v, double scale, F&& allowed) {
  const int64_t sq = q.dim(2), sk = k.dim(2), d = q.dim(3), dv = v.dim(3);
  std::vector<double> out;
  for (int64_t i = 0; i < sq; ++i) {
    std::vector<double> p(static_cast<size_t>(sk), 0.0);
    double sum = 0;
    for (int64_t j = 0; j < sk; ++j) {
      if (!allowed(i, j)) continue;
      double s = 0;
      for (int64_t e = 0; e < d; ++e) s += q.at(i * d + e) * k.at(j * d + e);
      p[static_cast<size_t>(j)] = std::exp(scale * s);
      sum += p[static_cast<size_t>(j)];
    }
    for (int64_t e = 0; e < dv; ++e) {
      double y = 0;
      for (int64_t j = 0; j < sk; ++j) y += sum == 0 ? 0 : p[static_cast<size_t>(j)] / sum * v.at(j * dv + e);
      out.push_back(y);
    }
  }
  return out;
}

struct Head {
  Tensor q = f32({1, 1, 3, 4}, noise(12)), k = f32({1, 1, 5, 4}, noise(20, 2)),
         v = f32({1, 1, 5, 2}, noise(10, 3));
  std::vector<Tensor> in() const { return {q, k, v}; }
};

TEST(Attention, PlainCausalAndWindows) {
  const Head h;
  expect_values(run("Attention", h.in())[0], naive_head(h.q, h.k, h.v, 0.5, [](auto, auto) { return true; }));
  expect_values(run("Attention", h.in(), {{"scale", 2.0F}})[0],
                naive_head(h.q, h.k, h.v, 2, [](auto, auto) { return true; }));
  expect_values(run("Attention", h.in(), {{"is_causal", int64_t{1}}})[0],
                naive_head(h.q, h.k, h.v, 0.5, [](auto i, auto j) { return j <= i; }));
  expect_values(
      run("Attention", h.in(), {{"left_window_size", int64_t{1}}, {"right_window_size", int64_t{1}}})[0],
      naive_head(h.q, h.k, h.v, 0.5, [](auto i, auto j) { return j >= i - 1 && j <= i + 1; }));
}

TEST(Attention, PastShiftsTheCausalFrontier) {
  const Head h;
  const Tensor past_k = f32({1, 1, 2, 4}, noise(8, 4)), past_v = f32({1, 1, 2, 2}, noise(4, 5));
  const auto out =
      run("Attention", {h.q, h.k, h.v, Tensor(), past_k, past_v}, {{"is_causal", int64_t{1}}}, 4);
  std::vector<double> k = values(past_k), v = values(past_v);
  for (const double e : values(h.k)) k.push_back(e);
  for (const double e : values(h.v)) v.push_back(e);
  expect_values(out[1], k);
  expect_values(out[2], v);
  expect_values(out[0], naive_head(h.q, f64({1, 1, 7, 4}, k), f64({1, 1, 7, 2}, v), 0.5,
                                   [](auto i, auto j) { return j <= i + 2; }));
  EXPECT_EQ(out[3].shape(), (Shape{1, 1, 3, 7}));
}

TEST(Attention, MasksShortMasksAndMaskedRows) {
  const Head h;
  const Tensor mask = boolean({3, 4}, {1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1});
  const auto out = run("Attention", {h.q, h.k, h.v, mask}, {{"qk_matmul_output_mode", int64_t{3}}}, 4);
  const auto m = values(mask);
  expect_values(out[0], naive_head(h.q, h.k, h.v, 0.5, [&](auto i, auto j) {
                  return j < 4 && m[static_cast<size_t>(i * 4 + j)] != 0;
                }));
  EXPECT_EQ(out[0].at(2), 0) << "row 1 attends nothing";
  EXPECT_EQ(out[3].at(5), 0);
  const Tensor add = f32({1, 5}, {0, -INFINITY, 0, -INFINITY, 0});
  expect_values(run("Attention", {h.q, h.k, h.v, add})[0],
                naive_head(h.q, h.k, h.v, 0.5, [](auto, auto j) { return j % 2 == 0; }));
}

TEST(Attention, PaddedKeys) {
  const Head h;
  const auto padded = run("Attention", {h.q, h.k, h.v, Tensor(), Tensor(), Tensor(), i64({1}, {4})},
                          {{"is_causal", int64_t{1}}})[0];
  expect_values(padded, naive_head(h.q, h.k, h.v, 0.5, [](auto i, auto j) { return j < 4 && j <= i + 1; }));
}

TEST(Attention, GroupedHeadsIn3DEqual4D) {
  const Tensor q = f32({2, 3, 8}, noise(48)), k = f32({2, 5, 4}, noise(40, 2)),
               v = f32({2, 5, 6}, noise(60, 3));
  const auto flat =
      run("Attention", {q, k, v}, {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}})[0];
  EXPECT_EQ(flat.shape(), (Shape{2, 3, 12}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t head = 0; head < 4; ++head) {
      const auto part = [&](const Tensor& t, int64_t rows, int64_t width, int64_t size, int64_t at) {
        std::vector<float> out;
        for (int64_t s = 0; s < rows; ++s) {
          for (int64_t e = 0; e < size; ++e)
            out.push_back(t.data<float>()[(b * rows + s) * width + at * size + e]);
        }
        return f32({1, 1, rows, size}, out);
      };
      const auto want =
          naive_head(part(q, 3, 8, 2, head), part(k, 5, 4, 2, head / 2), part(v, 5, 6, 3, head / 2),
                     1 / std::sqrt(2.0), [](auto, auto) { return true; });
      for (int64_t s = 0; s < 3; ++s) {
        for (int64_t e = 0; e < 3; ++e)
          EXPECT_NEAR(flat.at((b * 3 + s) * 12 + head * 3 + e), want[static_cast<size_t>(s * 3 + e)], 1e-6);
      }
    }
  }
}

TEST(Attention, SoftcapAndScoreOutputs) {
  const Head h;
  const auto raw = run("Attention", h.in(), {{"scale", 1.0F}, {"softcap", 0.5F}}, 4)[3];
  const auto capped = run("Attention", h.in(),
                          {{"scale", 1.0F}, {"softcap", 0.5F}, {"qk_matmul_output_mode", int64_t{1}}}, 4)[3];
  const auto biased = run("Attention", {h.q, h.k, h.v, f32({}, {3})},
                          {{"scale", 1.0F}, {"qk_matmul_output_mode", int64_t{2}}}, 4)[3];
  for (int64_t i = 0; i < raw.numel(); ++i) {
    EXPECT_NEAR(capped.at(i), 0.5 * std::tanh(raw.at(i) / 0.5), 1e-6);
    EXPECT_NEAR(biased.at(i), raw.at(i) + 3, 1e-6);
  }
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Head h;
  EXPECT_EQ(error_of("Attention", {h.q, h.k, f32({1, 1, 4, 2}, noise(8))}), kData);
  EXPECT_EQ(error_of("Attention", {h.q, f32({1, 1, 5, 3}, noise(15)), h.v}), kModel);
  EXPECT_EQ(error_of("Attention",
                     {f32({1, 3, 4}, noise(12)), f32({1, 3, 4}, noise(12)), f32({1, 3, 4}, noise(12))}),
            kModel);
  EXPECT_EQ(error_of("Attention", {h.q, h.k, h.v, f32({4, 5}, noise(20))}), kData);
  EXPECT_EQ(error_of("Attention", {h.q, h.k, h.v, Tensor(), Tensor(), Tensor(), i64({1}, {6})}), kData);
  EXPECT_EQ(error_of("Attention", h.in(), {{"qk_matmul_output_mode", int64_t{4}}}, 4), kData);
}

TEST(Attention, EmptySequences) {
  const auto y = run("Attention", {f32({1, 1, 2, 4}, noise(8)), Tensor(DType::kF32, {1, 1, 0, 4}),
                                   Tensor(DType::kF32, {1, 1, 0, 3})})[0];
  expect_values(y, std::vector<double>(6, 0.0));
}

TEST(RotaryEmbedding, HalvesNeighboursAndPartial) {
  const Tensor x = f32({1, 1, 1, 4}, {1, 2, 3, 4}), c = f32({1, 1, 2}, {0.5F, 0.25F}),
               s = f32({1, 1, 2}, {2, 3});
  expect_values(run("RotaryEmbedding", {x, c, s})[0], {0.5 - 6, 0.5 - 12, 2 + 1.5, 6 + 1.0});
  expect_values(run("RotaryEmbedding", {x, c, s}, {{"interleaved", int64_t{1}}})[0],
                {0.5 - 4, 2 + 1, 0.75 - 12, 9 + 1});
  const Tensor c1 = f32({3, 1}, {9, 0.5F, 9}), s1 = f32({3, 1}, {9, 2, 9});
  expect_values(
      run("RotaryEmbedding", {x, c1, s1, i64({1, 1}, {1})}, {{"rotary_embedding_dim", int64_t{2}}})[0],
      {0.5 - 4, 2 + 1, 3, 4});
  expect_values(run("RotaryEmbedding", {f32({1, 1, 4}, {1, 2, 3, 4}), c1, s1, i64({1, 1}, {1})},
                    {{"num_heads", int64_t{2}}})[0],
                {-3.5, 3, 1.5 - 8, 6 + 2});
  EXPECT_EQ(
      error_of("RotaryEmbedding", {x, c1, s1, i64({1, 1}, {3})}, {{"rotary_embedding_dim", int64_t{2}}}),
      kData);
}

// Case E47: padding steps are 0, the reverse direction starts at each own end.
TEST(LSTM, BidirectionalWithSequenceLens) {
  const Tensor x = f32({3, 2, 1}, {1, 2, 3, 4, 5, 6}), w = f32({2, 4, 1}, std::vector<float>(8, 0.5F)),
               r = f32({2, 4, 1}, std::vector<float>(8, 0.25F));
  const auto y = run("LSTM", {x, w, r, Tensor(), i32({2}, {3, 1})},
                     {{"direction", std::string("bidirectional")}, {"hidden_size", int64_t{1}}}, 3);
  expect_values(y[0],
                {0.174270, 0.369606, 0.594596, 0.369606, 0.623731, 0, 0.768651, 0, 0.889234, 0, 0.667213, 0},
                1e-5);
  expect_values(y[1], {0.889234, 0.369606, 0.594596, 0.369606}, 1e-5);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(LSTM, PeepholesStatesAndCoupledGates) {
  const Tensor x = f32({1, 1, 1}, {0.5F}), w = f32({1, 4, 1}, {1, 2, 3, 4}),
               r = f32({1, 4, 1}, {0.1F, 0.2F, 0.3F, 0.4F});
  const Tensor b = f32({1, 8}, {0.1F, 0.2F, 0.3F, 0.4F, 0, 0, 0, 0.5F}), h0 = f32({1, 1, 1}, {0.7F}),
               c0 = f32({1, 1, 1}, {-0.3F}), p = f32({1, 3}, {1, 2, 3});
  const double i = sigmoid(0.5 + 0.07 + 0.1 - 0.3), f = sigmoid(1.5 + 0.21 + 0.3 - 0.9),
               g = std::tanh(2 + 0.28 + 0.4 + 0.5), c = f * -0.3 + i * g;
  const double o = sigmoid(1 + 0.14 + 0.2 + 2 * c);
  const auto y = run("LSTM", {x, w, r, b, Tensor(), h0, c0, p}, {{"hidden_size", int64_t{1}}}, 3);
  expect_values(y[2], {c});
  expect_values(y[0], {o * std::tanh(c)});
  const double coupled = (1 - i) * -0.3 + i * g;
  expect_values(run("LSTM", {x, w, r, b, Tensor(), h0, c0, p}, {{"input_forget", int64_t{1}}}, 3)[2],
                {coupled});
  const auto clipped = run("LSTM", {x, w, r, b, Tensor(), h0, c0, p}, {{"clip", 0.5F}}, 3);
  const double ci = sigmoid(0.37), cf = sigmoid(0.5), cg = std::tanh(0.5), cc = cf * -0.3 + ci * cg;
  expect_values(clipped[2], {cc});
}

TEST(GRU, LinearBeforeReset) {
  const Tensor x = f32({1, 1, 1}, {0.5F}), w = f32({1, 3, 1}, {1, 2, 3}),
               r = f32({1, 3, 1}, {0.5F, 0.25F, 2}), b = f32({1, 6}, {0, 0, 0, 0.1F, 0.2F, 0.3F}),
               h0 = f32({1, 1, 1}, {0.8F});
  const double z = sigmoid(0.5 + 0.4 + 0.1), reset = sigmoid(1 + 0.2 + 0.2);
  const double before = std::tanh(1.5 + reset * 0.8 * 2 + 0.3), after = std::tanh(1.5 + reset * (1.6 + 0.3));
  expect_values(run("GRU", {x, w, r, b, Tensor(), h0})[0], {(1 - z) * before + z * 0.8});
  expect_values(run("GRU", {x, w, r, b, Tensor(), h0}, {{"linear_before_reset", int64_t{1}}})[0],
                {(1 - z) * after + z * 0.8});
}

TEST(RNN, ActivationsDirectionAndLayout) {
  const Tensor x = f32({2, 1, 1}, {1, -2}), w = f32({1, 1, 1}, {1}), r = f32({1, 1, 1}, {0.5F});
  using S = std::vector<std::string>;
  expect_values(run("RNN", {x, w, r},
                    {{"activations", S{"Affine"}},
                     {"activation_alpha", std::vector<float>{2}},
                     {"activation_beta", std::vector<float>{1}}})[0],
                {3, 2 * (-2 + 1.5) + 1});
  expect_values(run("RNN", {x, w, r}, {{"activations", S{"Relu"}}, {"direction", std::string("reverse")}})[0],
                {1, 0});
  expect_values(run("RNN", {x, w, r}, {{"activations", S{"LeakyRelu"}}}, 2)[1], {-0.01 * 1.5}, 1e-6);
  const auto swapped =
      run("RNN", {x.reshaped({1, 2, 1}), w, r}, {{"activations", S{"Relu"}}, {"layout", int64_t{1}}}, 2);
  EXPECT_EQ(swapped[0].shape(), (Shape{1, 2, 1, 1}));
  expect_values(swapped[0], {1, 0});
  expect_values(
      run_old("RNN", 1, {x, w, r}, {{"activations", S{"Relu"}}, {"output_sequence", int64_t{1}}})[0], {1, 0});
  EXPECT_EQ(error_of("RNN", {x, w, r}, {{"activations", S{"Sine"}}}), kModel);
  EXPECT_EQ(error_of("RNN", {x, w, r}, {{"direction", std::string("both")}}), kModel);
  EXPECT_EQ(error_of("RNN", {x, w, r}, {{"hidden_size", int64_t{2}}}), kModel);
  EXPECT_EQ(error_of("RNN", {x, w, r, Tensor(), i32({1}, {3})}), kData);
  EXPECT_EQ(run("RNN", {Tensor(DType::kF32, {0, 1, 1}), w, r}, {}, 2)[0].shape(), (Shape{0, 1, 1, 1}));
}

}  // namespace
}  // namespace hone
