#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"
#include "hone/error.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_elementwise(Isa isa);

namespace {

constexpr Layout kPlain = Layout::kPlain;
constexpr Layout kLast = Layout::kChannelsLast;

Operand operand(DType t, Shape dims, Layout layout = kPlain) {
  return {t, std::move(dims), layout, false, {}};
}

/// Small numbers, so that equal ones meet; the lowest and highest value too, and every class of float.
Tensor pattern(const Operand& o, uint32_t seed, bool zeros) {
  Tensor t(o.dtype, o.dims);
  std::mt19937 rng(seed);
  const auto number = [&] {
    const auto v = static_cast<int>(rng() % 7) - 3;
    return v == 0 && !zeros ? 5 : v;
  };
  for (int64_t i = 0; i < t.numel(); ++i) {
    const bool extreme = rng() % 16 == 0, low = rng() % 2 == 0;
    switch (o.dtype) {
      case DType::kBool: t.data<uint8_t>()[i] = rng() % 2; break;
      case DType::kU8: t.data<uint8_t>()[i] = static_cast<uint8_t>(extreme ? 255 : number()); break;
      case DType::kI8:
        t.data<int8_t>()[i] = static_cast<int8_t>(extreme ? (low ? -128 : 127) : number());
        break;
      case DType::kI32: t.data<int32_t>()[i] = extreme ? (low ? INT32_MIN : INT32_MAX) : number(); break;
      case DType::kI64: t.data<int64_t>()[i] = extreme ? (low ? INT64_MIN : INT64_MAX) : number(); break;
      case DType::kF64:
        t.data<double>()[i] =
            extreme ? (low ? static_cast<double>(NAN) : static_cast<double>(INFINITY)) : number() * 0.5;
        break;
      default:
        t.data<float>()[i] = extreme ? (low ? NAN : -INFINITY) : static_cast<float>(number()) * 0.5F;
        break;
    }
  }
  return t;
}

void run(const std::string& op, std::vector<Operand> srcs, Operand dst, ir::AttrMap attrs = {}) {
  Problem p;
  p.op = op;
  p.attrs = std::move(attrs);
  p.srcs = std::move(srcs);
  p.num_anchor_srcs = p.srcs.size();
  p.dsts = {std::move(dst)};
  SCOPED_TRACE(p.text());
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < p.srcs.size(); ++i)
    inputs.push_back(
        pattern(p.srcs[i], static_cast<uint32_t>(i + 1), i == 0 || (op != "Div" && op != "Mod")));
  std::vector<const Tensor*> ptrs;
  for (const Tensor& t : inputs) ptrs.push_back(&t);
  const auto reference = [](const Problem& plain, const std::vector<const Tensor*>& in) {
    return ops::run_problem(plain, in);
  };
  EXPECT_EQ(check::check_tactic(make_elementwise, p, ptrs, reference, 0), 1);
  // Integers beyond 2^53 are equal bit by bit too.
  if (!is_integer(p.dsts[0].dtype) || p.srcs[0].layout != kPlain) return;
  const Tensor got = check::execute(*make_elementwise(Isa::kPortable), p, ptrs, 1)[0],
               want = ops::run_problem(p, ptrs)[0];
  EXPECT_EQ(std::memcmp(got.raw(), want.raw(), static_cast<size_t>(want.nbytes())), 0);
}

constexpr DType kIntegers[] = {DType::kI8, DType::kU8, DType::kI32, DType::kI64};
constexpr DType kNumbers[] = {DType::kI8, DType::kU8, DType::kI32, DType::kI64, DType::kF32, DType::kF64};

struct Pair {
  Shape a, b, y;
};
const Pair kPairs[] = {{{2, 3, 5, 7}, {2, 3, 5, 7}, {2, 3, 5, 7}},
                       {{2, 3, 5, 7}, {1}, {2, 3, 5, 7}},
                       {{}, {3, 200}, {3, 200}},
                       {{2, 1, 5, 1}, {3, 1, 70}, {2, 3, 5, 70}},
                       {{1, 130}, {4, 1}, {4, 130}},
                       {{2, 3, 5, 7}, {1, 3, 1, 1}, {2, 3, 5, 7}},
                       {{}, {}, {}},
                       {{0, 3}, {1, 3}, {0, 3}},
                       {{40000}, {40000}, {40000}},
                       {{3, 1, 1}, {3, 129, 65}, {3, 129, 65}}};

TEST(Elementwise, arithmetic_of_every_type_and_broadcast) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max"})
    for (const DType t : kNumbers)
      for (const Pair& s : kPairs) run(op, {operand(t, s.a), operand(t, s.b)}, operand(t, s.y));
  for (const DType t : kIntegers)
    for (const int64_t fmod : {0, 1})
      for (const Pair& s : kPairs)
        run("Mod", {operand(t, s.a), operand(t, s.b)}, operand(t, s.y), {{"fmod", fmod}});
}

TEST(Elementwise, comparisons_of_every_type_and_broadcast) {
  for (const char* op : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
    for (const DType t : kNumbers)
      for (const Pair& s : kPairs) run(op, {operand(t, s.a), operand(t, s.b)}, operand(DType::kBool, s.y));
  for (const char* op : {"Equal", "And", "Or", "Xor"})
    for (const Pair& s : kPairs)
      run(op, {operand(DType::kBool, s.a), operand(DType::kBool, s.b)}, operand(DType::kBool, s.y));
}

TEST(Elementwise, one_source) {
  for (const Shape& dims : {Shape{}, Shape{1}, Shape{3, 67}, Shape{0, 2}, Shape{70000}}) {
    for (const char* op : {"Neg", "Abs", "Sign"})
      for (const DType t : kNumbers)
        if (t != DType::kU8 || op != std::string("Neg")) run(op, {operand(t, dims)}, operand(t, dims));
    run("Not", {operand(DType::kBool, dims)}, operand(DType::kBool, dims));
    for (const DType t : {DType::kF32, DType::kF64})
      run("IsNaN", {operand(t, dims)}, operand(DType::kBool, dims));
  }
}

TEST(Elementwise, layouts) {
  for (const char* op : {"Add", "Equal", "Max"}) {
    const DType y = op == std::string("Equal") ? DType::kBool : DType::kI32;
    for (const Layout a : {kPlain, kLast})
      for (const Layout b : {kPlain, kLast}) {
        run(op, {operand(DType::kI32, {2, 3, 5, 7}, a), operand(DType::kI32, {2, 3, 5, 7}, b)},
            operand(y, {2, 3, 5, 7}));
        run(op, {operand(DType::kI32, {2, 70, 5, 3}, a), operand(DType::kI32, {2, 70, 1, 3}, b)},
            operand(y, {2, 70, 5, 3}));
        run(op, {operand(DType::kI32, {3, 5, 7}, a), operand(DType::kI32, {2, 3, 5, 7}, b)},
            operand(y, {2, 3, 5, 7}));
      }
  }
}

TEST(Elementwise, many_sources) {
  for (const char* op : {"Min", "Max"})
    for (const DType t : {DType::kI64, DType::kF32, DType::kF64})
      run(op, {operand(t, {5, 1}), operand(t, {1, 90}), operand(t, {5, 90}), operand(t, {})},
          operand(t, {5, 90}));
}

TEST(Elementwise, division_by_zero_is_refused) {
  const Tensor a = Tensor::i64_vector({1, 2, 3}), b = Tensor::i64_vector({1, 0, 2});
  for (const char* op : {"Div", "Mod"}) {
    Problem p;
    p.op = op;
    p.srcs = {operand(DType::kI64, {3}), operand(DType::kI64, {3})};
    p.num_anchor_srcs = 2;
    p.dsts = {operand(DType::kI64, {3})};
    try {
      check::execute(*make_elementwise(Isa::kPortable), p, {&a, &b}, 1);
      FAIL() << op << " ran";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidData);
    }
  }
}

TEST(Elementwise, refusals_have_reasons) {
  const auto tactic = make_elementwise(Isa::kPortable);
  Problem p;
  p.op = "Add";
  p.srcs = {operand(DType::kF16, {3}), operand(DType::kF16, {3})};
  p.num_anchor_srcs = 2;
  p.dsts = {operand(DType::kF16, {3})};
  EXPECT_EQ(tactic->supports(p).reason, "dtype: f16");
  p.srcs[0] = p.srcs[1] = p.dsts[0] = operand(DType::kI32, {3});
  EXPECT_TRUE(tactic->supports(p));
  p.srcs[1].dims = {4};
  EXPECT_EQ(tactic->supports(p).reason, "shape: source 1 does not broadcast to the result");
  p.op = "Mod";
  p.srcs[0] = p.srcs[1] = p.dsts[0] = operand(DType::kF32, {3});
  EXPECT_EQ(tactic->supports(p).reason, "dtype: f32");
}

}  // namespace
}  // namespace hone::backends::cpu
