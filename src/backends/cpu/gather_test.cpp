// Gather, Where, Cast, Pad against the reference kernels, bit for bit.
#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"
#include "hone/error.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_gather(Isa isa);
std::unique_ptr<Tactic> make_where(Isa isa);
std::unique_ptr<Tactic> make_cast(Isa isa);
std::unique_ptr<Tactic> make_pad(Isa isa);

namespace {

using Ints = std::vector<int64_t>;
using Maker = std::unique_ptr<Tactic> (*)(Isa);

Operand operand(DType t, Shape dims, Layout layout = Layout::kPlain) {
  return {t, std::move(dims), layout, false, {}};
}
Operand ints(const Ints& values) {
  return {DType::kI64, {static_cast<int64_t>(values.size())}, Layout::kPlain, true, values};
}

void run(Maker maker, Problem p, const std::vector<Tensor>& inputs) {
  p.num_anchor_srcs = p.srcs.size();
  std::vector<const Tensor*> ptrs;
  for (const Tensor& t : inputs) ptrs.push_back(t.defined() ? &t : nullptr);
  const auto reference = [](const Problem& plain, const std::vector<const Tensor*>& in) {
    return ops::run_problem(plain, in);
  };
  EXPECT_EQ(check::check_tactic(maker, p, ptrs, reference, 0), 1) << p.text();
}

Tensor counted(DType t, const Shape& dims) {
  Tensor x = Tensor::zeros(t, dims);
  const int64_t bytes = dtype_bits(t) / 8;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t v = i % 100;
    if (t == DType::kF32)
      x.data<float>()[i] = static_cast<float>(v) - 30;
    else
      std::memcpy(x.data<char>() + i * bytes, &v, static_cast<size_t>(bytes));
  }
  return x;
}

TEST(Gather, axes_types_and_negative_indices) {
  for (const DType t : {DType::kF32, DType::kI64, DType::kU8})
    for (int64_t axis = -3; axis < 3; ++axis)
      for (const DType index : {DType::kI64, DType::kI32})
        for (const Shape& at : {Shape{}, Shape{3}, Shape{2, 2}}) {
          const Shape dims{4, 6, 5};
          const auto a = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
          Shape out(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(a));
          out.insert(out.end(), at.begin(), at.end());
          out.insert(out.end(), dims.begin() + static_cast<std::ptrdiff_t>(a) + 1, dims.end());
          Problem p;
          p.op = "Gather";
          p.attrs["axis"] = axis;
          p.srcs = {operand(t, dims), operand(index, at)};
          p.dsts = {operand(t, out)};
          Tensor i(index, at);
          for (int64_t k = 0; k < i.numel(); ++k) {
            const int64_t v = k % 2 == 0 ? k % 4 : -1 - k % 4;
            if (index == DType::kI64)
              i.data<int64_t>()[k] = v;
            else
              i.data<int32_t>()[k] = static_cast<int32_t>(v);
          }
          run(make_gather, p, {counted(t, dims), i});
        }
}

TEST(Gather, an_index_outside_is_an_error) {
  Problem p;
  p.op = "Gather";
  p.srcs = {operand(DType::kF32, {4, 2}), operand(DType::kI64, {1})};
  p.dsts = {operand(DType::kF32, {1, 2})};
  p.num_anchor_srcs = 2;
  const auto tactic = make_gather(Isa::kPortable);
  const Tensor x = counted(DType::kF32, {4, 2});
  for (const int64_t bad : {int64_t{4}, int64_t{-5}, INT64_MAX}) {
    const Tensor i = Tensor::i64_vector({bad});
    try {
      check::execute(*tactic, p, {&x, &i}, 2);
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidData);
      EXPECT_NE(std::string(e.what()).find("index " + std::to_string(bad) + " (element 0 of the indices)"),
                std::string::npos)
          << e.what();
    }
  }
}

TEST(Where, broadcasting_of_all_three) {
  const std::vector<Shape> shapes{{2, 3, 70}, {1, 3, 1}, {70}, {1}, {2, 1, 70}};
  for (const DType t : {DType::kF32, DType::kI64, DType::kBool, DType::kF16})
    for (const Shape& c : shapes)
      for (const Shape& x : shapes)
        for (const Shape& y : shapes) {
          Problem p;
          p.op = "Where";
          p.srcs = {operand(DType::kBool, c), operand(t, x), operand(t, y)};
          Tensor cond(DType::kBool, c);
          for (int64_t i = 0; i < cond.numel(); ++i) cond.data<uint8_t>()[i] = i % 3 == 1;
          p.dsts = {operand(t, {2, 3, 70})};
          Tensor tx = counted(t, x), ty = counted(t, y);
          for (Tensor* b : {&tx, &ty})
            for (int64_t i = 0; t == DType::kBool && i < b->numel(); ++i) b->data<uint8_t>()[i] &= 1;
          bool full = false;
          for (const Shape* s : {&c, &x, &y}) full = full || (s->size() == 3 && (*s)[0] == 2 && (*s)[1] == 3);
          if (full) run(make_where, p, {cond, tx, ty});
        }
}

TEST(Cast, every_pair_of_types_saturates_and_truncates) {
  const DType types[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64,
                         DType::kU8,  DType::kI8,  DType::kU32, DType::kBool};
  for (const DType from : types)
    for (const DType to : types) {
      const Shape dims{2, 3, 4, 5};
      Problem p;
      p.op = "Cast";
      p.attrs["to"] = static_cast<int64_t>(to);
      p.srcs = {operand(from, dims, Layout::kChannelsLast)};
      p.dsts = {operand(to, dims)};
      Tensor x = counted(from, dims);
      if (from == DType::kF32) check::add_specials(x, 5);
      if (from == DType::kBool)
        for (int64_t i = 0; i < x.numel(); ++i) x.data<uint8_t>()[i] &= 1;
      run(make_cast, p, {x});
    }
}

TEST(Pad, modes_layouts_and_negative_pads) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"})
    for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast})
      for (const DType t : {DType::kF32, DType::kI64, DType::kU8})
        for (const Ints& pads : {Ints{0, 0, 1, 2, 0, 0, 3, 0}, Ints{0, 1, 0, 2, 0, 2, 0, 2},
                                 Ints{1, 0, -1, -2, 0, 0, 2, 1}, Ints{0, 0, 0, 0, 0, 0, 0, 0}}) {
          const Shape dims{2, 5, 4, 6};
          Problem p;
          p.op = "Pad";
          p.attrs["mode"] = std::string(mode);
          p.srcs = {operand(t, dims, layout), ints(pads), operand(t, {})};
          Shape out;
          for (size_t d = 0; d < 4; ++d) out.push_back(dims[d] + pads[d] + pads[d + 4]);
          p.dsts = {operand(t, out)};
          Tensor value = counted(t, {3}).reshaped({3});
          Tensor one(t, {});
          std::memcpy(one.raw(), value.data<char>() + 2 * (dtype_bits(t) / 8),
                      static_cast<size_t>(one.nbytes()));
          run(make_pad, p, {counted(t, dims), Tensor::i64_vector(pads), one});
        }
}

TEST(Pad, named_axes_and_no_value) {
  Problem p;
  p.op = "Pad";
  p.srcs = {operand(DType::kF32, {3, 7}), ints({2, 1}), Operand{}, ints({-1})};
  p.dsts = {operand(DType::kF32, {3, 10})};
  run(make_pad, p,
      {counted(DType::kF32, {3, 7}), Tensor::i64_vector({2, 1}), Tensor(), Tensor::i64_vector({-1})});
}

}  // namespace
}  // namespace hone::backends::cpu
