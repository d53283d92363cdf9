#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_attention(Isa isa);

namespace {

using check::f32_operand;

struct Case {
  int64_t b = 1, hq = 2, hkv = 2, sq = 5, skv = 7, d = 16, dv = 16;
  bool flat = false;  ///< 3-D operands
  Shape mask;         ///< empty: none
  DType mask_type = DType::kF32;
  bool causal = false;
  float softcap = 0, scale = 0;
};

Problem problem(const Case& c) {
  Problem p;
  p.op = "Attention";
  const auto dims = [&](int64_t h, int64_t s, int64_t d) {
    return c.flat ? Shape{c.b, s, h * d} : Shape{c.b, h, s, d};
  };
  p.srcs = {f32_operand(dims(c.hq, c.sq, c.d)), f32_operand(dims(c.hkv, c.skv, c.d)),
            f32_operand(dims(c.hkv, c.skv, c.dv))};
  if (c.flat) {
    p.attrs["q_num_heads"] = c.hq;
    p.attrs["kv_num_heads"] = c.hkv;
  }
  if (c.causal) p.attrs["is_causal"] = int64_t{1};
  if (c.softcap > 0) p.attrs["softcap"] = c.softcap;
  if (c.scale > 0) p.attrs["scale"] = c.scale;
  if (!c.mask.empty()) p.srcs.push_back({c.mask_type, c.mask, Layout::kPlain, false, {}});
  p.num_anchor_srcs = p.srcs.size();
  p.dsts = {f32_operand(dims(c.hq, c.sq, c.dv))};
  return p;
}

/// Scores of size s carry an error of s * 2^-24 into the exponent, which `tolerance` must allow.
void run(const Case& c, double range = 2, double tolerance = 4e-6) {
  const Problem p = problem(c);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < p.srcs.size(); ++i) {
    if (p.srcs[i].dtype == DType::kBool) {
      Tensor m(DType::kBool, p.srcs[i].dims);
      std::mt19937 rng(7);
      for (int64_t k = 0; k < m.numel(); ++k) m.data<uint8_t>()[k] = rng() % 3 != 0;
      // The first row is closed altogether: its result is zero.
      for (int64_t k = 0; k < m.shape().back(); ++k) m.data<uint8_t>()[k] = 0;
      inputs.push_back(std::move(m));
    } else {
      inputs.push_back(check::random_f32(p.srcs[i].dims, static_cast<uint32_t>(i) + 3,
                                         static_cast<float>(-range), static_cast<float>(range)));
    }
  }
  std::vector<const Tensor*> srcs;
  for (const Tensor& t : inputs) srcs.push_back(&t);
  EXPECT_GT(check::check_tactic(make_attention, p, srcs, check::oracle, tolerance), 0) << p.text();
}

TEST(Attention, sequences_and_head_sizes) {
  for (const bool flat : {false, true})
    for (const int64_t sq : {1, 3, 7, 8, 13, 65, 200})
      for (const int64_t skv : {1, 17, 64, 129})
        for (const int64_t d : {8, 33, 64})
          run({.b = 2,
               .hq = 3,
               .hkv = 3,
               .sq = sq,
               .skv = skv,
               .d = d,
               .dv = d == 33 ? 40 : d,
               .flat = flat});
}

TEST(Attention, grouped_heads) {
  for (const bool flat : {false, true})
    for (const int64_t hkv : {1, 2, 4})
      for (const int64_t sq : {1, 50})
        run({.b = 2,
             .hq = 4,
             .hkv = hkv,
             .sq = sq,
             .skv = 50,
             .d = 24,
             .dv = 24,
             .flat = flat,
             .causal = true});
}

TEST(Attention, masks_of_every_shape) {
  for (const bool flat : {false, true})
    for (const DType t : {DType::kF32, DType::kBool})
      for (const Shape& mask : {Shape{20, 37}, Shape{1, 1, 20, 37}, Shape{2, 1, 1, 37}, Shape{2, 3, 20, 37},
                                Shape{3, 1, 37}, Shape{20, 1}, Shape{37}, Shape{20, 30}})
        for (const bool causal : {false, true})
          run({.b = 2,
               .hq = 3,
               .hkv = 3,
               .sq = 20,
               .skv = 37,
               .d = 16,
               .dv = 16,
               .flat = flat,
               .mask = mask,
               .mask_type = t,
               .causal = causal});
  run({.sq = 3, .skv = 37, .mask = {3, 37}, .mask_type = DType::kBool});
}

TEST(Attention, softcap_scale_and_large_scores) {
  run({.sq = 33, .skv = 40, .softcap = 5.0F});
  run({.sq = 33, .skv = 40, .mask = {33, 40}, .softcap = 5.0F});
  run({.sq = 2, .skv = 40, .softcap = 5.0F, .scale = 0.5F});
  run({.sq = 33, .skv = 40, .scale = 1.0F});
  run({.sq = 33, .skv = 40, .d = 64, .scale = 0.02F}, 20, 2e-4);
}

TEST(Attention, long_sequences_take_several_blocks) {
  run({.hq = 2, .hkv = 1, .sq = 300, .skv = 1024, .d = 32, .dv = 32, .flat = true});
  run({.hq = 1, .hkv = 1, .sq = 700, .skv = 700, .d = 16, .dv = 48, .flat = true, .causal = true});
}

TEST(Attention, refuses_with_a_reason) {
  Problem p = problem({});
  const auto tactic = make_attention(Isa::kPortable);
  EXPECT_TRUE(tactic->supports(p));
  p.attrs["left_window_size"] = int64_t{4};
  EXPECT_EQ(tactic->supports(p).reason, "left_window_size: set");
  p = problem({});
  p.dsts.push_back(p.srcs[1]);
  EXPECT_EQ(tactic->supports(p).reason, "outputs: present keys and values or scores are asked for");
}

}  // namespace
}  // namespace hone::backends::cpu
