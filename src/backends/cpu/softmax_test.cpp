#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_softmax(Isa isa);

namespace {

using check::f32_operand;
using check::random_f32;

constexpr Layout kLast = Layout::kChannelsLast;

/// Softmax, LogSoftmax and LpNormalization in f64 from their definitions.
std::vector<Tensor> reference(const Problem& p, const std::vector<const Tensor*>& srcs) {
  const Shape& dims = p.dsts[0].dims;
  int64_t axis = ir::attr_int(p.attrs, "axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  int64_t outer = 1, inner = 1;
  const int64_t n = dims[static_cast<size_t>(axis)];
  for (size_t d = 0; d < dims.size(); ++d)
    (static_cast<int64_t>(d) < axis ? outer : inner) *= static_cast<int64_t>(d) == axis ? 1 : dims[d];
  Tensor out(DType::kF64, dims);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t k) { return (o * n + k) * inner + i; };
      double top = -INFINITY, sum = 0;
      for (int64_t k = 0; k < n; ++k) top = std::max(top, srcs[0]->at(at(k)));
      const bool l1 = ir::attr_int(p.attrs, "p", 2) == 1, lp = p.op == "LpNormalization";
      for (int64_t k = 0; k < n; ++k) {
        const double x = srcs[0]->at(at(k));
        sum += lp ? (l1 ? std::fabs(x) : x * x) : std::exp(x - top);
      }
      for (int64_t k = 0; k < n; ++k) {
        const double x = srcs[0]->at(at(k));
        const double norm = l1 ? sum : std::sqrt(sum);
        double y = p.op == "Softmax"      ? std::exp(x - top) / sum
                   : p.op == "LogSoftmax" ? x - top - std::log(sum)
                   : norm == 0            ? 0
                                          : x / norm;
        for (const ops::PostOp& post : p.post)
          y = post.kind == ops::PostOp::Kind::kAct ? ops::apply_act(post.act, y, post.alpha, post.beta)
                                                   : y + srcs[static_cast<size_t>(post.srcs[0])]->at(at(k));
        out.data<double>()[at(k)] = y;
      }
    }
  return {out};
}

Problem problem(const std::string& op, const Shape& dims, int64_t axis, Layout layout) {
  Problem p;
  p.op = op;
  p.attrs["axis"] = axis;
  p.srcs = {f32_operand(dims, layout)};
  p.num_anchor_srcs = 1;
  p.dsts = {f32_operand(dims)};
  return p;
}

void run(const Problem& p, uint32_t seed, double range, bool specials, double tolerance) {
  Tensor x = random_f32(p.srcs[0].dims, seed, static_cast<float>(-range), static_cast<float>(range));
  if (specials) check::add_specials(x, seed);
  std::vector<const Tensor*> srcs{&x};
  Tensor y;
  if (p.srcs.size() > 1) {
    y = random_f32(p.srcs[1].dims, seed + 1);
    srcs.push_back(&y);
  }
  EXPECT_GT(check::check_tactic(make_softmax, p, srcs, reference, tolerance), 0);
}

TEST(Softmax, every_axis_and_layout) {
  uint32_t seed = 1;
  for (const char* op : {"Softmax", "LogSoftmax", "LpNormalization"})
    for (const Shape& dims :
         {Shape{3, 17, 5, 7}, Shape{2, 33, 1, 160}, Shape{1, 1, 1, 1}, Shape{2, 129, 3, 3}})
      for (int64_t axis = -4; axis < 4; ++axis)
        for (const Layout layout : {Layout::kPlain, kLast})
          run(problem(op, dims, axis, layout), seed++, 6, false, 1e-6);
}

TEST(Softmax, long_rows_and_large_values) {
  for (const char* op : {"Softmax", "LogSoftmax", "LpNormalization"}) {
    run(problem(op, {2, 50257}, 1, Layout::kPlain), 3, 20, false, 1e-6);
    run(problem(op, {5, 1000}, 1, Layout::kPlain), 4, 300, false, 1e-6);
    run(problem(op, {1, 3001, 19}, 1, Layout::kPlain), 5, 3, false, 2e-6);
  }
  Problem p = problem("LpNormalization", {3, 77}, -1, Layout::kPlain);
  p.attrs["p"] = int64_t{1};
  run(p, 6, 4, false, 1e-6);
  p = problem("LpNormalization", {3, 77, 5}, 1, Layout::kPlain);
  p.attrs["p"] = int64_t{1};
  run(p, 6, 4, false, 1e-6);
}

TEST(Softmax, values_of_every_class) {
  for (const char* op : {"Softmax", "LogSoftmax", "LpNormalization"})
    for (const int64_t axis : {0, 1, 2})
      run(problem(op, {40, 9, 41}, axis, Layout::kPlain), 9, 2, true, 1e-6);
}

TEST(Softmax, norms_outside_the_range_of_squares) {
  for (const float scale : {1e-30F, 1e30F, 0.0F, 1e-42F})
    for (const int64_t axis : {1, 2}) {
      Problem p = problem("LpNormalization", {2, 37, 5}, axis, Layout::kPlain);
      Tensor x = random_f32({2, 37, 5}, 3);
      for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] *= scale;
      EXPECT_GT(check::check_tactic(make_softmax, p, {&x}, reference, 1e-6), 0);
    }
}

TEST(Softmax, post_ops_in_rows_and_columns) {
  for (const int64_t axis : {1, 2})
    for (const Layout layout : {Layout::kPlain, kLast}) {
      Problem p = problem("Softmax", {2, 30, 50}, axis, layout);
      p.srcs.push_back(f32_operand({2, 30, 50}));
      ops::PostOp add;
      add.kind = ops::PostOp::Kind::kAdd;
      add.srcs = {1};
      ops::PostOp act;
      act.kind = ops::PostOp::Kind::kAct;
      act.act = ops::Act::kRelu;
      p.post = {add, act};
      run(p, 3, 4, false, 1e-6);
    }
}

TEST(Softmax, empty_tensors) {
  run(problem("Softmax", {0, 5}, 1, Layout::kPlain), 1, 1, false, 0);
  run(problem("Softmax", {5, 0}, 1, Layout::kPlain), 1, 1, false, 0);
}

}  // namespace
}  // namespace hone::backends::cpu
