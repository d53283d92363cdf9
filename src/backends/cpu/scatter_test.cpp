// GatherND, GatherElements, ScatterND, ScatterElements and Trilu.
#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"
#include "hone/error.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_gather_nd(Isa isa);
std::unique_ptr<Tactic> make_gather_elements(Isa isa);
std::unique_ptr<Tactic> make_scatter_nd(Isa isa);
std::unique_ptr<Tactic> make_scatter_elements(Isa isa);
std::unique_ptr<Tactic> make_trilu(Isa isa);

namespace {

using Maker = std::unique_ptr<Tactic> (*)(Isa);
constexpr DType kTypes[] = {DType::kF32, DType::kI64, DType::kU8, DType::kF16, DType::kBool};

Operand operand(DType t, Shape dims) { return {t, std::move(dims), Layout::kPlain, false, {}}; }

Tensor bytes(DType t, const Shape& dims, uint32_t seed) {
  Tensor x(t, dims);
  std::mt19937 rng(seed);
  for (int64_t i = 0; i < x.nbytes(); ++i)
    x.data<uint8_t>()[i] = static_cast<uint8_t>(t == DType::kBool ? rng() % 2 : rng() % 120);
  return x;
}

Tensor indices(DType t, const Shape& dims, const std::function<int64_t(int64_t)>& extent_of, uint32_t seed) {
  Tensor x(t, dims);
  std::mt19937 rng(seed);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t extent = extent_of(i),
                  v = static_cast<int64_t>(rng() % static_cast<uint64_t>(2 * extent)) - extent;
    if (t == DType::kI64)
      x.data<int64_t>()[i] = v;
    else
      x.data<int32_t>()[i] = static_cast<int32_t>(v);
  }
  return x;
}

struct Made {
  Problem p;
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> srcs() const {
    std::vector<const Tensor*> out;
    for (const Tensor& t : tensors) out.push_back(&t);
    return out;
  }
};

Made make(const std::string& op, std::vector<Tensor> tensors, ir::AttrMap attrs) {
  Made m;
  m.p.op = op;
  m.p.attrs = std::move(attrs);
  for (const Tensor& t : tensors) m.p.srcs.push_back(operand(t.dtype(), t.shape()));
  m.p.num_anchor_srcs = tensors.size();
  m.tensors = std::move(tensors);
  m.p.dsts = {operand(m.tensors[0].dtype(), {})};
  m.p.dsts[0].dims = ops::run_problem(m.p, m.srcs())[0].shape();
  return m;
}

std::vector<Tensor> plain_reference(const Problem& p, const std::vector<const Tensor*>& srcs) {
  return ops::run_problem(p, srcs);
}

void expect_right(Maker maker, const Made& m) {
  SCOPED_TRACE(m.p.text());
  EXPECT_EQ(check::check_tactic(maker, m.p, m.srcs(), plain_reference, 0), 1);
}

TEST(GatherNd, depths_batches_and_types) {
  uint32_t seed = 1;
  for (const DType t : kTypes)
    for (const DType it : {DType::kI64, DType::kI32})
      for (int64_t batch = 0; batch < 3; ++batch)
        for (int64_t depth = 1; batch + depth <= 4; ++depth) {
          const Shape x{2, 3, 5, 7};
          Shape at(x.begin(), x.begin() + batch);
          at.insert(at.end(), {11, 2, depth});
          const auto extent = [&](int64_t i) { return x[static_cast<size_t>(batch + i % depth)]; };
          expect_right(make_gather_nd,
                       make("GatherND", {bytes(t, x, seed), indices(it, at, extent, seed + 1)},
                            {{"batch_dims", batch}}));
          seed += 2;
        }
}

TEST(GatherElements, axes_and_types) {
  uint32_t seed = 1;
  for (const DType t : kTypes)
    for (const DType it : {DType::kI64, DType::kI32})
      for (int64_t axis = -4; axis < 4; ++axis) {
        const Shape x{2, 4, 5, 70};
        Shape at{2, 3, 5, 60};
        const auto a = static_cast<size_t>(axis < 0 ? axis + 4 : axis);
        at[a] = 9;
        expect_right(make_gather_elements,
                     make("GatherElements",
                          {bytes(t, x, seed), indices(
                                                  it, at, [&](int64_t) { return x[a]; }, seed + 1)},
                          {{"axis", axis}}));
        seed += 2;
      }
  expect_right(make_gather_elements, make("GatherElements",
                                          {bytes(DType::kF32, {40000}, 1),
                                           indices(
                                               DType::kI64, {50000}, [](int64_t) { return 40000; }, 2)},
                                          {}));
  expect_right(make_gather_elements,
               make("GatherElements", {bytes(DType::kF32, {4, 3}, 1), Tensor(DType::kI64, {4, 0})},
                    {{"axis", int64_t{1}}}));
}

TEST(ScatterNd, depths_types_and_reductions) {
  uint32_t seed = 1;
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const DType t : {DType::kF32, DType::kF64, DType::kI64, DType::kI32, DType::kU8, DType::kI8})
      for (const Shape& x : {Shape{3, 4, 5}, Shape{5, 9001}, Shape{7}})
        for (int64_t depth = 1; depth <= static_cast<int64_t>(x.size()); ++depth) {
          Shape block(x.begin() + depth, x.end()),
              updates{6, 3};  // more than there are places: equal indices meet
          updates.insert(updates.end(), block.begin(), block.end());
          const auto extent = [&](int64_t i) { return x[static_cast<size_t>(i % depth)]; };
          const Tensor at = indices(DType::kI64, {6, 3, depth}, extent, seed);
          Tensor data = is_float(t) ? check::random_f32(x, seed) : bytes(t, x, seed),
                 up = is_float(t) ? check::random_f32(updates, seed + 1) : bytes(t, updates, seed + 1);
          if (t == DType::kF64) {
            data = bytes(DType::kU8, x, seed);
            Tensor wide(t, x), wide_up(t, updates);
            for (int64_t i = 0; i < wide.numel(); ++i) wide.data<double>()[i] = data.at(i) / 7;
            for (int64_t i = 0; i < wide_up.numel(); ++i) wide_up.data<double>()[i] = up.at(i);
            data = wide;
            up = wide_up;
          }
          expect_right(make_scatter_nd,
                       make("ScatterND", {data, at, up}, {{"reduction", std::string(reduction)}}));
          seed += 3;
        }
  for (const DType t : kTypes)
    expect_right(make_scatter_nd, make("ScatterND",
                                       {bytes(t, {5, 3}, 1),
                                        indices(
                                            DType::kI64, {4, 1}, [](int64_t) { return 5; }, 2),
                                        bytes(t, {4, 3}, 3)},
                                       {}));
}

TEST(ScatterElements, axes_types_and_reductions) {
  uint32_t seed = 1;
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const DType t : {DType::kF32, DType::kI64, DType::kI32, DType::kU8})
      for (const DType it : {DType::kI64, DType::kI32})
        for (int64_t axis = -3; axis < 3; ++axis) {
          const Shape x{40, 5, 30};
          Shape at{39, 4, 25};
          const auto a = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
          at[a] = 2 * x[a];
          const Tensor index = indices(
              it, at, [&](int64_t) { return x[a]; }, seed);
          const Tensor data = t == DType::kF32 ? check::random_f32(x, seed) : bytes(t, x, seed),
                       up = t == DType::kF32 ? check::random_f32(at, seed + 1) : bytes(t, at, seed + 1);
          expect_right(make_scatter_elements, make("ScatterElements", {data, index, up},
                                                   {{"axis", axis}, {"reduction", std::string(reduction)}}));
          seed += 3;
        }
}

TEST(Scatter, an_index_out_of_range_is_named_with_its_place) {
  const Tensor data = bytes(DType::kF32, {4, 3}, 1);
  struct Case {
    Maker maker;
    Made m;
  };
  const auto bad = [](const Shape& dims) {
    Tensor t = Tensor::zeros(DType::kI64, dims);
    t.data<int64_t>()[1] = 2;
    t.data<int64_t>()[2] = -5;
    return t;
  };
  const auto broken = [&](const std::string& op, const Shape& at, bool updates, const Shape& up) {
    std::vector<Tensor> tensors{data, Tensor::zeros(DType::kI64, at)};
    if (updates) tensors.push_back(bytes(DType::kF32, up, 2));
    Made m = make(op, std::move(tensors), {});
    m.tensors[1] = bad(at);
    return m;
  };
  const Case cases[] = {{make_gather_nd, broken("GatherND", {3, 1}, false, {})},
                        {make_gather_elements, broken("GatherElements", {3, 1}, false, {})},
                        {make_scatter_nd, broken("ScatterND", {3, 1}, true, {3, 3})},
                        {make_scatter_elements, broken("ScatterElements", {3, 1}, true, {3, 1})}};
  for (const Case& c : cases) {
    try {
      check::execute(*c.maker(Isa::kPortable), c.m.p, c.m.srcs(), 1);
      FAIL() << c.m.p.op << " ran";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidData);
      EXPECT_NE(
          std::string(e.what()).find(c.m.p.op + ": index -5 (element 2 of the indices) is outside [-4, 3]"),
          std::string::npos)
          << e.what();
    }
  }
}

TEST(Scatter, refusals_have_reasons) {
  Made m = make(
      "ScatterND",
      {bytes(DType::kF16, {4, 3}, 1), Tensor::zeros(DType::kI64, {2, 1}), bytes(DType::kF16, {2, 3}, 2)}, {});
  const auto tactic = make_scatter_nd(Isa::kPortable);
  EXPECT_TRUE(tactic->supports(m.p));
  m.p.attrs["reduction"] = std::string("add");
  EXPECT_EQ(tactic->supports(m.p).reason, "dtype: a reduction of f16");
  m.p.attrs["reduction"] = std::string("mean");
  EXPECT_EQ(tactic->supports(m.p).reason, "reduction: 'mean'");
  m.p.srcs[1].dtype = DType::kF32;
  EXPECT_EQ(tactic->supports(m.p).reason, "dtype: indices are neither i32 nor i64");
}

TEST(Trilu, diagonals_shapes_and_types) {
  for (const DType t : kTypes)
    for (const int64_t upper : {0, 1})
      for (const Shape& x :
           {Shape{5, 7}, Shape{7, 5}, Shape{2, 3, 4, 130}, Shape{1, 1}, Shape{3, 0, 4}, Shape{90, 300}}) {
        for (const int64_t k :
             {int64_t{-9}, int64_t{-2}, int64_t{0}, int64_t{1}, int64_t{4}, int64_t{9}, INT64_MAX, INT64_MIN})
          expect_right(make_trilu,
                       make("Trilu", {bytes(t, x, 3), Tensor::i64_scalar(k)}, {{"upper", upper}}));
        expect_right(make_trilu, make("Trilu", {bytes(t, x, 3)}, {{"upper", upper}}));
      }
}

}  // namespace
}  // namespace hone::backends::cpu
