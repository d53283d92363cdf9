#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_pointwise(Isa isa);

namespace {

using check::f32_operand;
using check::random_f32;
using ops::Act;
using ops::PwInstr;
using ops::PwOp;
using ops::PwProgram;

constexpr Layout kLast = Layout::kChannelsLast;

/// The program in f64, element by element.
std::vector<Tensor> evaluate(const Problem& p, const std::vector<const Tensor*>& srcs) {
  const PwProgram& program = p.post[0].program;
  const Shape& dims = p.dsts[0].dims;
  Tensor out(DType::kF64, dims);
  std::vector<int64_t> index(dims.size(), 0);
  for (int64_t e = 0; e < out.numel(); ++e) {
    int64_t rest = e;
    for (size_t d = dims.size(); d-- > 0;) {
      index[d] = rest % dims[d];
      rest /= dims[d];
    }
    std::vector<double> reg;
    for (const int s : p.post[0].srcs) {
      const Shape& sd = srcs[static_cast<size_t>(s)]->shape();
      int64_t at = 0;
      for (size_t d = 0; d < sd.size(); ++d)
        at = at * sd[d] + (sd[d] == 1 ? 0 : index[dims.size() - sd.size() + d]);
      reg.push_back(srcs[static_cast<size_t>(s)]->at(at));
    }
    for (const PwInstr& in : program.instrs) {
      const double a = in.a >= 0 ? reg[static_cast<size_t>(in.a)] : 0,
                   b = in.b >= 0 ? reg[static_cast<size_t>(in.b)] : 0;
      switch (in.op) {
        case PwOp::kAct: reg.push_back(ops::apply_act(in.act, a, in.alpha, in.beta)); break;
        case PwOp::kAdd: reg.push_back(a + b); break;
        case PwOp::kSub: reg.push_back(a - b); break;
        case PwOp::kMul: reg.push_back(a * b); break;
        case PwOp::kDiv: reg.push_back(a / b); break;
        case PwOp::kMin: reg.push_back(std::isnan(a) || a < b ? a : b); break;
        case PwOp::kMax: reg.push_back(std::isnan(a) || a > b ? a : b); break;
        case PwOp::kPow: reg.push_back(std::pow(a, b)); break;
        case PwOp::kConst: reg.push_back(in.alpha); break;
      }
    }
    out.data<double>()[e] = reg.back();
  }
  return {out};
}

Problem problem(const Operand& dst, std::vector<Operand> srcs, std::vector<PwInstr> instrs) {
  Problem p;
  p.domain = ir::kHoneDomain;
  p.op = "Pointwise";
  ops::PostOp post;
  post.kind = ops::PostOp::Kind::kProgram;
  for (size_t i = 0; i < srcs.size(); ++i) post.srcs.push_back(static_cast<int>(i));
  post.program = {static_cast<int>(srcs.size()), std::move(instrs)};
  p.srcs = std::move(srcs);
  p.num_anchor_srcs = 0;
  p.post.push_back(post);
  p.dsts.push_back(dst);
  return p;
}

void run(const Problem& p, uint32_t seed, double tolerance, bool specials = false) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < p.srcs.size(); ++i) {
    inputs.push_back(random_f32(p.srcs[i].dims, seed + static_cast<uint32_t>(i)));
    if (specials) check::add_specials(inputs.back(), seed + 77);
  }
  std::vector<const Tensor*> srcs;
  for (const Tensor& t : inputs) srcs.push_back(&t);
  EXPECT_GT(check::check_tactic(make_pointwise, p, srcs, evaluate, tolerance), 0);
}

PwInstr act(Act kind, int a, float alpha = 0, float beta = 0) {
  return {PwOp::kAct, kind, a, -1, alpha, beta};
}
PwInstr bin(PwOp op, int a, int b) { return {op, Act::kIdentity, a, b, 0, 0}; }
PwInstr constant(float v) { return {PwOp::kConst, Act::kIdentity, -1, -1, v, 0}; }

TEST(Pointwise, every_activation_on_values_of_every_class) {
  for (int kind = 0; kind <= static_cast<int>(Act::kIdentity); ++kind) {
    SCOPED_TRACE(ops::act_name(static_cast<Act>(kind)));
    const auto a = static_cast<Act>(kind);
    const float alpha = a == Act::kClip ? -0.5F : a == Act::kSelu ? 1.6732632F : 0.7F;
    const float beta = a == Act::kClip ? 1.25F : a == Act::kSelu ? 1.05070102F : 0.3F;
    const Shape dims{3, 347};
    run(problem(f32_operand(dims), {f32_operand(dims)}, {act(a, 0, alpha, beta)}), 11, 2e-6);
    if (a == Act::kSin || a == Act::kCos)
      continue;  // no finite answer in f32 for the largest values: compared above
    run(problem(f32_operand(dims), {f32_operand(dims)}, {act(a, 0, alpha, beta)}), 12, 2e-6, true);
  }
}

TEST(Pointwise, every_binary_operator_in_every_form) {
  for (const PwOp op : {PwOp::kAdd, PwOp::kSub, PwOp::kMul, PwOp::kDiv, PwOp::kMin, PwOp::kMax})
    for (const Shape& a : {Shape{5, 131}, Shape{1}, Shape{5, 1}, Shape{131}})
      for (const Shape& b : {Shape{5, 131}, Shape{1}, Shape{5, 1}, Shape{131}}) {
        run(problem(f32_operand({5, 131}), {f32_operand(a), f32_operand(b)}, {bin(op, 0, 1)}), 3, 1e-6);
        run(problem(f32_operand({5, 131}), {f32_operand(a), f32_operand(b)},
                    {bin(op, 0, 1), act(Act::kRelu, 2)}),
            4, 1e-6, true);
        run(problem(f32_operand({5, 131}), {f32_operand(a), f32_operand(b)},
                    {bin(op, 0, 1), act(Act::kClip, 2, -1, 0.5F)}),
            5, 1e-6, true);
      }
}

TEST(Pointwise, powers) {
  for (const float e : {2.0F, 3.0F, 0.5F, -1.0F, 1.0F, 0.0F, 2.5F, -0.5F})
    for (const bool specials : {false, true})
      run(problem(f32_operand({1001}), {f32_operand({1001})}, {constant(e), bin(PwOp::kPow, 0, 1)}), 8, 2e-6,
          specials);
  run(problem(f32_operand({3, 7}), {f32_operand({3, 7}), f32_operand({3, 7})}, {bin(PwOp::kPow, 0, 1)}), 9,
      2e-6);
  run(problem(f32_operand({3, 7}), {f32_operand({1}), f32_operand({3, 7})}, {bin(PwOp::kPow, 0, 1)}), 10,
      2e-6);
}

TEST(Pointwise, broadcasting_over_every_subset_of_dimensions) {
  // Short and long rows, both layouts, and every choice of repeated dimensions.
  for (const Shape& dims :
       {Shape{2, 5, 3, 7}, Shape{2, 3, 4, 130}, Shape{2, 140, 3, 5}, Shape{1, 3, 33, 31}, Shape{3, 1, 1, 1}})
    for (const Layout layout : {Layout::kPlain, kLast})
      for (int mask = 0; mask < 16; ++mask) {
        Shape b = dims;
        for (size_t d = 0; d < 4; ++d)
          if ((mask >> d & 1) != 0) b[d] = 1;
        Problem p = problem(f32_operand(dims),
                            {f32_operand(dims, layout), f32_operand(b, Layout::kPlain, mask % 2 == 0)},
                            {bin(PwOp::kMul, 0, 1), act(Act::kSigmoid, 1), bin(PwOp::kAdd, 2, 3)});
        run(p, static_cast<uint32_t>(mask), 1e-6);
        p.srcs[1].layout = kLast;
        p.srcs[1].constant = false;
        run(p, static_cast<uint32_t>(mask), 1e-6);
      }
}

TEST(Pointwise, lower_rank_operands_align_right) {
  for (const Shape& b : {Shape{}, Shape{9}, Shape{4, 9}, Shape{4, 1}, Shape{1, 1, 1}, Shape{6, 4, 1}})
    run(problem(f32_operand({2, 6, 4, 9}), {f32_operand({2, 6, 4, 9}, kLast), f32_operand(b)},
                {bin(PwOp::kSub, 1, 0)}),
        21, 1e-6);
}

TEST(Pointwise, peepholes_keep_the_meaning) {
  const Shape d{3, 259};
  const auto two = [&] { return std::vector<Operand>{f32_operand(d), f32_operand({259})}; };
  run(problem(f32_operand(d), {f32_operand(d)}, {act(Act::kSigmoid, 0), bin(PwOp::kMul, 0, 1)}), 1, 1e-6);
  run(problem(f32_operand(d), {f32_operand(d)}, {act(Act::kSigmoid, 0), bin(PwOp::kMul, 1, 0)}), 1, 1e-6);
  // The sigmoid is used twice: it must stay.
  run(problem(f32_operand(d), {f32_operand(d)},
              {act(Act::kSigmoid, 0), bin(PwOp::kMul, 0, 1), bin(PwOp::kAdd, 1, 2)}),
      2, 1e-6);
  run(problem(f32_operand(d), two(), {bin(PwOp::kMul, 0, 1), bin(PwOp::kAdd, 2, 1), act(Act::kRelu, 3)}), 3,
      1e-6);
  run(problem(f32_operand(d), two(), {bin(PwOp::kMul, 1, 0), bin(PwOp::kAdd, 0, 2)}), 4, 1e-6);
  run(problem(f32_operand(d), two(), {bin(PwOp::kMul, 0, 1), bin(PwOp::kAdd, 2, 2)}), 5, 1e-6);
  run(problem(f32_operand(d), {f32_operand(d), f32_operand({1}), f32_operand({1})},
              {bin(PwOp::kMul, 1, 0), bin(PwOp::kAdd, 3, 2)}),
      6, 1e-6);
  run(problem(f32_operand(d), {f32_operand(d), f32_operand({1}), f32_operand({1})},
              {bin(PwOp::kMul, 1, 2), bin(PwOp::kAdd, 0, 3)}),
      7, 1e-6);
}

TEST(Pointwise, constants_and_scalars) {
  run(problem(f32_operand({70}), {f32_operand({70})}, {constant(2.5F)}), 1, 1e-6);
  run(problem(f32_operand({70}), {f32_operand({1})}, {act(Act::kExp, 0)}), 1, 1e-6);
  run(problem(f32_operand({70}), {f32_operand({70})},
              {constant(2), constant(3), bin(PwOp::kAdd, 1, 2), bin(PwOp::kMul, 3, 0)}),
      1, 1e-6);
  run(problem(f32_operand({}), {f32_operand({}), f32_operand({})}, {bin(PwOp::kAdd, 0, 1)}), 1, 1e-6);
  run(problem(f32_operand({0, 3}), {f32_operand({0, 3})}, {act(Act::kRelu, 0)}), 1, 1e-6);
  run(problem(f32_operand({4, 3}), {f32_operand({4, 3})}, {}), 1, 0);
}

TEST(Pointwise, long_programs_share_slots) {
  std::vector<PwInstr> instrs{act(Act::kTanh, 0), act(Act::kExp, 1), bin(PwOp::kDiv, 2, 3),
                              bin(PwOp::kMax, 4, 0), bin(PwOp::kMin, 5, 2)};
  for (int i = 0; i < 20; ++i) instrs.push_back(bin(i % 2 == 0 ? PwOp::kMax : PwOp::kSub, 6 + i, 2 + i % 4));
  run(problem(f32_operand({2, 6, 20, 21}), {f32_operand({2, 6, 20, 21}, kLast), f32_operand({6, 1, 1})},
              instrs),
      5, 2e-5);
}

TEST(Pointwise, large_tensors_are_cut_into_pieces) {
  run(problem(f32_operand({3, 8, 61, 67}), {f32_operand({3, 8, 61, 67}, kLast), f32_operand({1, 8, 1, 1})},
              {bin(PwOp::kAdd, 0, 1), act(Act::kRelu, 2)}),
      6, 1e-6);
  run(problem(f32_operand({100003}), {f32_operand({100003}), f32_operand({100003})}, {bin(PwOp::kAdd, 0, 1)}),
      7, 1e-6);
}

TEST(Pointwise, refuses_with_a_reason) {
  const auto tactic = make_pointwise(Isa::kPortable);
  Problem p = problem(f32_operand({4}), {f32_operand({4})}, {act(Act::kRelu, 0)});
  EXPECT_TRUE(tactic->supports(p));
  p.srcs[0].dtype = DType::kF16;
  EXPECT_EQ(tactic->supports(p).reason, "dtype: source 0 is f16, not f32");
  p.srcs[0] = f32_operand({3});
  EXPECT_EQ(tactic->supports(p).reason, "shape: source 0 does not broadcast to the result");
  p.srcs[0] = f32_operand({4});
  p.post[0].program.instrs[0].a = 1;
  EXPECT_FALSE(tactic->supports(p));
}

}  // namespace
}  // namespace hone::backends::cpu
