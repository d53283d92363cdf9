#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_reduce(Isa isa);

namespace {

using check::f32_operand;

constexpr const char* kOps[] = {"ReduceSum",       "ReduceMean",     "ReduceMax", "ReduceMin",
                                "ReduceProd",      "ReduceL1",       "ReduceL2",  "ReduceLogSum",
                                "ReduceLogSumExp", "ReduceSumSquare"};

Problem problem(const std::string& op, const Shape& dims, Layout layout, const std::vector<int64_t>& axes,
                bool keep) {
  Problem p;
  p.op = op;
  p.srcs = {f32_operand(dims, layout)};
  std::vector<bool> gone(dims.size(), axes.empty());
  for (const int64_t a : axes) gone[static_cast<size_t>(a)] = true;
  if (op[0] == 'R') {
    p.attrs["keepdims"] = int64_t{keep};
    Operand o{DType::kI64, {static_cast<int64_t>(axes.size())}, Layout::kPlain, true, {}};
    o.contents = axes;
    p.srcs.push_back(o);
  }
  p.num_anchor_srcs = p.srcs.size();
  Shape out;
  for (size_t d = 0; d < dims.size(); ++d)
    if (!gone[d])
      out.push_back(dims[d]);
    else if (keep)
      out.push_back(1);
  p.dsts = {f32_operand(out)};
  return p;
}

/// Positive data for logs of sums and for products, whose size stays near 1.
void run(const Problem& p, uint32_t seed, bool specials = false, double scale = 1, double tolerance = 2e-6) {
  const bool positive = p.op == "ReduceLogSum" || p.op == "ReduceProd";
  Tensor x = check::random_f32(p.srcs[0].dims, seed, positive ? 0.9F : -2, positive ? 1.1F : 2);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] *= static_cast<float>(scale);
  if (specials) check::add_specials(x, seed);
  // What is left of sums in which the largest values cancel depends on their order.
  if (specials && p.op != "ReduceMax" && p.op != "ReduceMin")
    for (int64_t i = 0; i < x.numel(); ++i)
      if (std::fabs(x.data<float>()[i]) == 3.4028235e38F) x.data<float>()[i] = 1;
  Tensor axes;
  std::vector<const Tensor*> srcs{&x};
  if (p.srcs.size() > 1 && p.srcs[1].contents) {
    axes = Tensor::i64_vector(*p.srcs[1].contents);
    srcs.push_back(&axes);
  }
  Tensor extra;
  if (srcs.size() < p.srcs.size()) {
    extra = check::random_f32(p.srcs.back().dims, seed + 9);
    srcs.push_back(&extra);
  }
  EXPECT_GT(check::check_tactic(make_reduce, p, srcs, check::oracle, tolerance), 0) << p.text();
}

TEST(Reduce, every_subset_of_axes_in_both_layouts) {
  uint32_t seed = 1;
  for (const char* op : kOps)
    for (const Shape& dims : {Shape{2, 5, 3, 7}, Shape{3, 70, 2, 9}})
      for (int mask = 0; mask < 16; ++mask)
        for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast})
          for (const bool keep : {false, true}) {
            std::vector<int64_t> axes;
            for (int64_t d = 0; d < 4; ++d)
              if ((mask >> d & 1) != 0) axes.push_back(d);
            run(problem(op, dims, layout, axes, keep), seed++, false, 1, 4e-6);
          }
}

TEST(Reduce, long_rows_and_columns) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"}) {
    run(problem(op, {3, 5003}, Layout::kPlain, {1}, true), 1, false, 1, 2e-5);
    run(problem(op, {5003, 37}, Layout::kPlain, {0}, true), 2, false, 1, 2e-5);
    run(problem(op, {1, 200, 31, 33}, Layout::kChannelsLast, {2, 3}, true), 3, false, 1, 2e-5);
  }
}

TEST(Reduce, values_of_every_class) {
  for (const char* op : kOps)
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, std::vector<int64_t>{1}})
      run(problem(op, {9, 41}, Layout::kPlain, axes, true), 7, true);
}

TEST(Reduce, squares_outside_the_range_of_f32) {
  for (const char* op : {"ReduceL2", "ReduceL1", "ReduceMax"})
    for (const double scale : {1e-30, 1e30})
      for (const std::vector<int64_t>& axes : {std::vector<int64_t>{0}, std::vector<int64_t>{1}})
        run(problem(op, {9, 41}, Layout::kPlain, axes, true), 7, false, scale);
}

TEST(Reduce, global_pools_with_post_ops) {
  for (const char* op : {"GlobalAveragePool", "GlobalMaxPool"})
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast})
      for (const Shape& dims : {Shape{2, 70, 7, 7}, Shape{1, 1280, 3, 5}, Shape{2, 3, 33}}) {
        Problem p = problem(op, dims, layout, {}, true);
        p.dsts[0].dims = dims;
        for (size_t d = 2; d < dims.size(); ++d) p.dsts[0].dims[d] = 1;
        run(p, 3);
        ops::PostOp add;
        add.kind = ops::PostOp::Kind::kAdd;
        add.srcs = {static_cast<int>(p.srcs.size())};
        p.srcs.push_back(f32_operand(p.dsts[0].dims));
        p.post = {add};
        run(p, 4);
      }
}

TEST(Reduce, refuses_with_a_reason) {
  Problem p = problem("ReduceSum", {2, 3}, Layout::kPlain, {1}, true);
  const auto tactic = make_reduce(Isa::kPortable);
  EXPECT_TRUE(tactic->supports(p));
  p.srcs[1].contents.reset();
  EXPECT_EQ(tactic->supports(p).reason, "axes: not constant, or out of range");
  p = problem("ReduceSum", {2, 0}, Layout::kPlain, {1}, true);
  EXPECT_EQ(tactic->supports(p).reason, "shape: empty");
}

}  // namespace
}  // namespace hone::backends::cpu
