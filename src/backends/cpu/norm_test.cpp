// LayerNormalization, RMSNormalization, GroupNormalization, InstanceNormalization, BatchNormalization, LRN
// against the oracle.
#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_layer_norm(Isa isa);
std::unique_ptr<Tactic> make_group_norm(Isa isa);
std::unique_ptr<Tactic> make_batch_norm(Isa isa);
std::unique_ptr<Tactic> make_lrn(Isa isa);

namespace {

using check::f32_operand;
using check::random_f32;
using Maker = std::unique_ptr<Tactic> (*)(Isa);

constexpr Layout kPlain = Layout::kPlain;
constexpr Layout kLast = Layout::kChannelsLast;

Problem problem(const std::string& op, const Shape& dims, Layout layout, const std::vector<Shape>& params,
                ir::AttrMap attrs) {
  Problem p;
  p.op = op;
  p.attrs = std::move(attrs);
  p.srcs = {f32_operand(dims, layout)};
  for (const Shape& s : params) p.srcs.push_back(f32_operand(s, kPlain, true));
  p.num_anchor_srcs = p.srcs.size();
  p.dsts = {f32_operand(dims)};
  return p;
}

void add_relu_and_sum(Problem& p) {
  ops::PostOp add;
  add.kind = ops::PostOp::Kind::kAdd;
  add.srcs = {static_cast<int>(p.srcs.size())};
  p.srcs.push_back(f32_operand(p.dsts[0].dims));
  ops::PostOp act;
  act.kind = ops::PostOp::Kind::kAct;
  act.act = ops::Act::kRelu;
  p.post = {add, act};
}

/// `offset` moves the mean away from zero; variances (source 4 of BatchNormalization) are positive.
void run(Maker maker, const Problem& p, uint32_t seed, double offset = 0, double scale = 1,
         bool specials = false, double tolerance = 2e-6) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < p.srcs.size(); ++i)
    inputs.push_back(random_f32(p.srcs[i].dims, seed + static_cast<uint32_t>(i), i == 4 ? 0.1F : -2, 2));
  for (int64_t i = 0; i < inputs[0].numel(); ++i)
    inputs[0].data<float>()[i] =
        static_cast<float>(scale * (static_cast<double>(inputs[0].data<float>()[i]) + offset));
  if (specials) check::add_specials(inputs[0], seed);
  std::vector<const Tensor*> srcs;
  for (const Tensor& t : inputs) srcs.push_back(&t);
  EXPECT_GT(check::check_tactic(maker, p, srcs, check::oracle, tolerance), 0) << p.text();
}

TEST(LayerNorm, rows_of_every_length_and_axis) {
  for (const int64_t n : {1, 3, 15, 16, 17, 64, 100, 768, 1024, 3000}) {
    run(make_layer_norm, problem("LayerNormalization", {5, n}, kPlain, {{n}, {n}}, {}),
        static_cast<uint32_t>(n));
    run(make_layer_norm, problem("RMSNormalization", {5, n}, kPlain, {{n}}, {}), static_cast<uint32_t>(n));
  }
  run(make_layer_norm,
      problem("LayerNormalization", {2, 3, 4, 9}, kPlain, {{4, 9}, {4, 9}}, {{"axis", int64_t{2}}}), 1);
  run(make_layer_norm,
      problem("LayerNormalization", {2, 3, 4, 9}, kPlain, {{1, 9}},
              {{"axis", int64_t{-1}}, {"epsilon", 0.1F}}),
      2);
  run(make_layer_norm, problem("RMSNormalization", {2, 3, 36}, kPlain, {{3, 36}}, {{"axis", int64_t{1}}}), 3);
}

TEST(LayerNorm, means_far_from_zero_and_values_of_every_class) {
  Problem p = problem("LayerNormalization", {7, 500}, kPlain, {{500}, {500}}, {});
  run(make_layer_norm, p, 1, 1000, 1, false, 1e-5);
  run(make_layer_norm, p, 2, 0, 1e25);
  run(make_layer_norm, p, 3, 0, 1e-25);
  p = problem("LayerNormalization", {40, 33}, kPlain, {{33}, {33}}, {});
  run(make_layer_norm, p, 4, 0, 1, true);
  run(make_layer_norm, problem("RMSNormalization", {40, 33}, kPlain, {{33}}, {}), 5, 0, 1, true);
}

TEST(LayerNorm, statistics_outputs_and_post_ops) {
  Problem p = problem("LayerNormalization", {4, 6, 77}, kPlain, {{77}, {77}}, {});
  add_relu_and_sum(p);
  run(make_layer_norm, p, 1);
  p.post.clear();
  p.srcs.pop_back();
  p.dsts.push_back(f32_operand({4, 6, 1}));
  p.dsts.push_back(f32_operand({4, 6, 1}));
  run(make_layer_norm, p, 2);
}

TEST(GroupNorm, groups_of_every_size_in_both_layouts) {
  for (const Layout layout : {kPlain, kLast})
    for (const Shape& dims : {Shape{2, 12, 5, 7}, Shape{1, 96, 9, 13}, Shape{2, 600, 3, 3}, Shape{3, 24, 40},
                              Shape{1, 6, 2, 3, 4}})
      for (const int64_t groups : {1, 2, 3, 6, static_cast<int>(dims[1])}) {
        Problem p =
            problem("GroupNormalization", dims, layout, {{dims[1]}, {dims[1]}}, {{"num_groups", groups}});
        run(make_group_norm, p, static_cast<uint32_t>(groups));
        add_relu_and_sum(p);
        run(make_group_norm, p, static_cast<uint32_t>(groups), 3);
      }
}

TEST(GroupNorm, instance_normalisation_and_extremes) {
  for (const Layout layout : {kPlain, kLast}) {
    run(make_group_norm, problem("InstanceNormalization", {2, 70, 9, 11}, layout, {{70}, {70}}, {}), 1, 5);
    run(make_group_norm, problem("InstanceNormalization", {2, 70, 9, 11}, layout, {{70}, {70}}, {}), 2, 0,
        1e25);
    run(make_group_norm, problem("InstanceNormalization", {1, 3, 300}, layout, {{3}, {3}}, {}), 3, 200, 1,
        false, 1e-5);
    run(make_group_norm,
        problem("GroupNormalization", {4, 40, 3, 3}, layout, {{40}, {40}}, {{"num_groups", int64_t{20}}}), 4,
        0, 1, true);
  }
}

TEST(BatchNorm, both_layouts_and_ranks) {
  for (const Layout layout : {kPlain, kLast})
    for (const Shape& dims : {Shape{2, 13, 5, 7}, Shape{3, 130, 1, 1}, Shape{4, 19}, Shape{2, 5, 301}}) {
      const Shape c{dims[1]};
      Problem p = problem("BatchNormalization", dims, layout, {c, c, c, c}, {});
      run(make_batch_norm, p, 1);
      run(make_batch_norm, p, 2, 0, 1, true);
      add_relu_and_sum(p);
      run(make_batch_norm, p, 3);
    }
}

TEST(Lrn, windows_odd_and_even) {
  for (const Layout layout : {kPlain, kLast})
    for (const int64_t size : {1, 2, 3, 5, 9})
      for (const float beta : {0.75F, 0.5F, 1.0F, 0.6F}) {
        Problem p = problem("LRN", {2, 21, 5, 13}, layout, {},
                            {{"size", size}, {"beta", beta}, {"alpha", 0.3F}, {"bias", 1.5F}});
        run(make_lrn, p, static_cast<uint32_t>(size));
        add_relu_and_sum(p);
        run(make_lrn, p, static_cast<uint32_t>(size));
      }
}

TEST(Norms, refuse_with_a_reason) {
  const auto tactic = make_layer_norm(Isa::kPortable);
  Problem p = problem("LayerNormalization", {5, 8}, kPlain, {{1}, {8}}, {});
  EXPECT_EQ(tactic->supports(p).reason, "shape: scale or bias is not one row");
  p = problem("BatchNormalization", {5, 8}, kPlain, {{8}, {8}, {8}, {8}}, {{"training_mode", int64_t{1}}});
  EXPECT_EQ(make_batch_norm(Isa::kPortable)->supports(p).reason, "training_mode: set");
}

}  // namespace
}  // namespace hone::backends::cpu
