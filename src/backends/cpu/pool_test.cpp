#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_pool(Isa isa);

namespace {

using check::f32_operand;
using Ints = std::vector<int64_t>;

/// A problem whose output shape comes from the reference itself.
Problem problem(const std::string& op, const Shape& dims, Layout layout, ir::AttrMap attrs) {
  Problem p;
  p.op = op;
  p.attrs = std::move(attrs);
  p.srcs = {f32_operand(dims, layout)};
  p.num_anchor_srcs = 1;
  p.dsts = {f32_operand(dims)};
  Problem plain = p;
  plain.srcs[0].layout = Layout::kPlain;
  const Tensor x = Tensor::zeros(DType::kF32, dims);
  p.dsts[0].dims = ops::run_problem(plain, {&x}).at(0).shape();
  return p;
}

void run(Problem p, uint32_t seed, bool specials = false) {
  Tensor x = check::random_f32(p.srcs[0].dims, seed);
  if (specials) check::add_specials(x, seed);
  EXPECT_GT(check::check_tactic(make_pool, p, {&x}, check::oracle, 2e-6), 0) << p.text();
  ops::PostOp act;
  act.kind = ops::PostOp::Kind::kAct;
  act.act = ops::Act::kRelu;
  p.post = {act};
  EXPECT_GT(check::check_tactic(make_pool, p, {&x}, check::oracle, 2e-6), 0) << p.text();
}

TEST(Pool, windows_pads_strides_and_dilations) {
  uint32_t seed = 1;
  for (const char* op : {"MaxPool", "AveragePool"})
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast})
      for (const int64_t channels : {1, 3, 16, 70})
        for (const int64_t include : {0, 1})
          for (const int64_t ceil : {0, 1}) {
            if (include == 1 && op[0] == 'M') continue;
            const auto attrs = [&](Ints k, Ints s, Ints pads, Ints dil) {
              ir::AttrMap a{{"kernel_shape", std::move(k)},
                            {"strides", std::move(s)},
                            {"pads", std::move(pads)},
                            {"dilations", std::move(dil)},
                            {"ceil_mode", ceil}};
              if (op[0] == 'A') a["count_include_pad"] = include;
              return a;
            };
            run(problem(op, {2, channels, 13, 11}, layout, attrs({3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1})),
                seed++);
            run(problem(op, {1, channels, 14, 37}, layout, attrs({2, 3}, {1, 1}, {0, 1, 1, 0}, {2, 3})),
                seed++);
            run(problem(op, {1, channels, 9, 9}, layout, attrs({5, 5}, {3, 2}, {2, 0, 0, 2}, {1, 1})),
                seed++);
          }
}

TEST(Pool, one_and_three_dimensions_and_auto_pad) {
  for (const char* op : {"MaxPool", "AveragePool"})
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
      run(problem(op, {2, 19, 41}, layout,
                  {{"kernel_shape", Ints{4}}, {"strides", Ints{2}}, {"pads", Ints{1, 2}}}),
          1);
      run(problem(op, {1, 5, 6, 7, 8}, layout,
                  {{"kernel_shape", Ints{2, 3, 2}},
                   {"strides", Ints{1, 2, 2}},
                   {"pads", Ints{1, 0, 1, 0, 1, 0}}}),
          2);
      run(problem(op, {1, 33, 10, 9}, layout,
                  {{"kernel_shape", Ints{3, 2}},
                   {"strides", Ints{2, 2}},
                   {"auto_pad", std::string("SAME_LOWER")}}),
          3);
    }
}

TEST(Pool, values_of_every_class) {
  for (const char* op : {"MaxPool", "AveragePool"})
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast})
      for (uint32_t seed = 0; seed < 4; ++seed) {
        // Sums of the largest values overflow f32 in any order but f64: keep them out of averages.
        Problem p =
            problem(op, {1, 21, 12, 12}, layout, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 1}}});
        Tensor x = check::random_f32(p.srcs[0].dims, seed);
        check::add_specials(x, seed);
        if (op[0] == 'A')
          for (int64_t i = 0; i < x.numel(); ++i)
            if (std::fabs(x.data<float>()[i]) == 3.4028235e38F) x.data<float>()[i] = 1;
        EXPECT_GT(check::check_tactic(make_pool, p, {&x}, check::oracle, 2e-6), 0);
      }
}

TEST(Pool, large_maps_are_cut_into_rows) {
  run(problem("MaxPool", {1, 64, 56, 56}, Layout::kChannelsLast,
              {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}),
      5);
}

}  // namespace
}  // namespace hone::backends::cpu
