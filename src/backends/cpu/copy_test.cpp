#include <gtest/gtest.h>

#include <numeric>

#include "backends/cpu/tactic_check.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_copy(Isa isa);

namespace {

using Ints = std::vector<int64_t>;

constexpr Layout kPlain = Layout::kPlain;
constexpr Layout kLast = Layout::kChannelsLast;

Operand operand(DType t, Shape dims, Layout layout = kPlain) {
  return {t, std::move(dims), layout, false, {}};
}
Operand ints(const Ints& values) {
  return {DType::kI64, {static_cast<int64_t>(values.size())}, kPlain, true, values};
}

/// Every byte different from its neighbours, by position.
Tensor pattern(const Operand& o, uint32_t seed) {
  if (o.contents) return Tensor::i64_vector(*o.contents);
  Tensor t(o.dtype, o.dims);
  std::mt19937 rng(seed);
  auto* bytes = static_cast<uint8_t*>(t.raw());
  for (int64_t i = 0; i < t.nbytes(); ++i) bytes[i] = o.dtype == DType::kBool ? rng() % 2 : rng() % 120;
  return t;
}

void run(const std::string& op, std::vector<Operand> srcs, std::vector<Operand> dsts, ir::AttrMap attrs) {
  Problem p;
  p.op = op;
  p.srcs = std::move(srcs);
  p.dsts = std::move(dsts);
  p.attrs = std::move(attrs);
  p.num_anchor_srcs = p.srcs.size();
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < p.srcs.size(); ++i) inputs.push_back(pattern(p.srcs[i], static_cast<uint32_t>(i)));
  std::vector<const Tensor*> ptrs;
  for (const Tensor& t : inputs) ptrs.push_back(&t);
  const auto reference = [](const Problem& plain, const std::vector<const Tensor*>& in) {
    return ops::run_problem(plain, in);
  };
  EXPECT_GT(check::check_tactic(make_copy, p, ptrs, reference, 0), 0) << p.text();
}

constexpr DType kTypes[] = {DType::kF32, DType::kI64, DType::kU8, DType::kF16, DType::kBool};

TEST(Copy, identity) {
  for (const DType t : kTypes)
    for (const Shape& dims : {Shape{}, Shape{7}, Shape{2, 5, 3, 9}, Shape{0, 3}, Shape{3, 70000}})
      for (const Layout layout : {kPlain, dims.size() > 2 ? kLast : kPlain})
        run("Identity", {operand(t, dims, layout)}, {operand(t, dims)}, {});
}

TEST(Copy, concat_of_layouts_axes_and_types) {
  for (const DType t : kTypes)
    for (int64_t axis = -4; axis < 4; ++axis)
      for (int mix = 0; mix < 8; ++mix) {
        const auto a = static_cast<size_t>(axis < 0 ? axis + 4 : axis);
        std::vector<Operand> srcs;
        Shape out{2, 5, 3, 9};
        out[a] = 0;
        for (int i = 0; i < 3; ++i) {
          Shape d{2, 5, 3, 9};
          d[a] = i + 1;
          out[a] += d[a];
          srcs.push_back(operand(t, d, (mix >> i & 1) != 0 ? kLast : kPlain));
        }
        run("Concat", srcs, {operand(t, out)}, {{"axis", axis}});
      }
  run("Concat", {operand(DType::kF32, {3}), operand(DType::kF32, {0}), operand(DType::kF32, {5})},
      {operand(DType::kF32, {8})}, {{"axis", int64_t{0}}});
  run("Concat", {operand(DType::kF32, {1, 130, 40, 41}, kLast), operand(DType::kF32, {1, 62, 40, 41}, kLast)},
      {operand(DType::kF32, {1, 192, 40, 41})}, {{"axis", int64_t{1}}});
}

TEST(Copy, split_in_either_layout) {
  for (const Layout layout : {kPlain, kLast})
    for (int64_t axis = 0; axis < 4; ++axis) {
      Shape a{2, 6, 4, 8}, b = a, x = a;
      a[static_cast<size_t>(axis)] = 1;
      b[static_cast<size_t>(axis)] = x[static_cast<size_t>(axis)] - 1;
      const Ints sizes{1, b[static_cast<size_t>(axis)]};
      run("Split", {operand(DType::kF32, x, layout), ints(sizes)},
          {operand(DType::kF32, a), operand(DType::kF32, b)}, {{"axis", axis}});
    }
}

TEST(Copy, slices_forwards_backwards_and_clamped) {
  for (const Layout layout : {kPlain, kLast}) {
    const Operand x = operand(DType::kF32, {2, 7, 5, 9}, layout);
    run("Slice", {x, ints({1, 2}), ints({6, 9}), ints({1, 3}), ints({2, 3})},
        {operand(DType::kF32, {2, 3, 5, 3})}, {});
    run("Slice", {x, ints({-1}), ints({-100}), ints({-1}), ints({-2})}, {operand(DType::kF32, {2, 7, 5, 5})},
        {});
    run("Slice", {x, ints({0, 1, -3}), ints({1, 1000, 1000})}, {operand(DType::kF32, {1, 6, 3, 9})}, {});
    run("Slice", {x, ints({5}), ints({2}), ints({1})}, {operand(DType::kF32, {2, 0, 5, 9})}, {});
  }
}

TEST(Copy, every_permutation_of_rank_four) {
  const Shape dims{3, 5, 17, 4};
  Ints perm{0, 1, 2, 3};
  do {
    Shape out;
    for (const int64_t d : perm) out.push_back(dims[static_cast<size_t>(d)]);
    for (const Layout layout : {kPlain, kLast})
      for (const DType t : kTypes)
        run("Transpose", {operand(t, dims, layout)}, {operand(t, out)}, {{"perm", perm}});
  } while (std::next_permutation(perm.begin(), perm.end()));
  run("Transpose", {operand(DType::kF32, {130, 77})}, {operand(DType::kF32, {77, 130})}, {});
}

TEST(Copy, expand_and_tile) {
  const auto expand = [](const Shape& from, const Shape& to, Layout layout) {
    run("Expand", {operand(DType::kF32, from, layout), ints(to)}, {operand(DType::kF32, to)}, {});
  };
  for (const Layout layout : {kPlain, kLast}) {
    expand({2, 1, 3, 1}, {2, 4, 3, 5}, layout);
    expand({1, 6, 1, 1}, {3, 6, 7, 7}, layout);
    expand({1}, {3, 5}, layout);
    expand({3, 1, 2}, {2, 3, 4, 2}, layout);
    run("Tile", {operand(DType::kI64, {2, 3, 2, 5}, layout), ints({2, 1, 3, 2})},
        {operand(DType::kI64, {4, 3, 6, 10})}, {});
  }
  run("Tile", {operand(DType::kF32, {7}), ints({3})}, {operand(DType::kF32, {21})}, {});
}

TEST(Copy, depth_and_space) {
  for (const Layout layout : {kPlain, kLast}) {
    for (const char* mode : {"DCR", "CRD"}) {
      run("DepthToSpace", {operand(DType::kF32, {2, 12, 3, 5}, layout)},
          {operand(DType::kF32, {2, 3, 6, 10})}, {{"blocksize", int64_t{2}}, {"mode", std::string(mode)}});
      run("SpaceToDepth", {operand(DType::kF32, {2, 3, 6, 9}, layout)}, {operand(DType::kF32, {2, 27, 2, 3})},
          {{"blocksize", int64_t{3}}, {"mode", std::string(mode)}});
    }
  }
}

TEST(Copy, channels_last_transpose_is_one_run) {
  // NHWC data whose logical order is permuted to NCHW: the bytes may stay as they are.
  Problem p;
  p.op = "Transpose";
  p.attrs["perm"] = Ints{0, 3, 1, 2};
  p.srcs = {operand(DType::kF32, {1, 8, 9, 16})};
  p.dsts = {operand(DType::kF32, {1, 16, 8, 9})};
  p.num_anchor_srcs = 1;
  make_copy(Isa::kPortable)->choose_layouts(p);
  EXPECT_EQ(p.dsts[0].layout, kLast);
}

TEST(Copy, refuses_with_a_reason) {
  Problem p;
  p.op = "Slice";
  p.srcs = {operand(DType::kF32, {4}), operand(DType::kI64, {1}), operand(DType::kI64, {1})};
  p.dsts = {operand(DType::kF32, {2})};
  p.num_anchor_srcs = 3;
  EXPECT_EQ(make_copy(Isa::kPortable)->supports(p).reason, "starts, ends, axes or steps: not constant");
}

}  // namespace
}  // namespace hone::backends::cpu
