#include <gtest/gtest.h>

#include "backends/cpu/tactic_check.h"
#include "hone/error.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_resize(Isa isa);

namespace {

constexpr Layout kLast = Layout::kChannelsLast;

struct Made {
  Problem p;
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> srcs() const {
    std::vector<const Tensor*> out;
    for (const Tensor& t : tensors) out.push_back(t.defined() ? &t : nullptr);
    return out;
  }
};

Tensor floats(const std::vector<float>& v) {
  return Tensor::of<float>(DType::kF32, {static_cast<int64_t>(v.size())}, v);
}

/// Exactly one of scales and sizes is not empty. The result's shape is the reference's.
Made make(Tensor x, Layout layout, const std::vector<float>& scales, const std::vector<int64_t>& sizes,
          const ir::AttrMap& attrs, const std::vector<float>& roi = {}) {
  Made m;
  m.p.op = "Resize";
  m.p.attrs = attrs;
  const DType type = x.dtype();
  m.p.srcs = {{type, x.shape(), layout}, {}, {}, {}};
  m.tensors = {std::move(x), Tensor(), Tensor(), Tensor()};
  if (!roi.empty()) m.tensors[1] = floats(roi);
  if (!scales.empty()) m.tensors[2] = floats(scales);
  if (!sizes.empty()) m.tensors[3] = Tensor::i64_vector(sizes);
  for (size_t i = 1; i < 4; ++i)
    if (m.tensors[i].defined())
      m.p.srcs[i] = {m.tensors[i].dtype(), m.tensors[i].shape(), Layout::kPlain, true};
  m.p.num_anchor_srcs = 4;
  m.p.dsts = {{type, {}, Layout::kPlain}};
  m.p.dsts[0].dims = ops::run_problem(m.p, m.srcs())[0].shape();
  return m;
}

void expect_right(const Made& m, double tolerance) {
  SCOPED_TRACE(m.p.text());
  const auto reference = [](const Problem& p, const std::vector<const Tensor*>& srcs) {
    return ops::run_problem(p, srcs, p.srcs[0].dtype == DType::kF32);
  };
  EXPECT_GT(check::check_tactic(make_resize, m.p, m.srcs(), reference, tolerance), 0);
}

const std::vector<std::string> kCoordinates = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                               "align_corners", "asymmetric"};

TEST(CpuResize, nearest_every_rounding_and_coordinate) {
  uint32_t seed = 1;
  for (const std::string& coordinates : kCoordinates)
    for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
      for (const Layout layout : {Layout::kPlain, kLast})
        for (const std::vector<float>& scales :
             {std::vector<float>{1, 1, 2, 2}, {1, 1, 0.6F, 1.7F}, {1, 1, 3, 0.5F}, {1, 2, 1, 1}})
          expect_right(make(check::random_f32({2, 3, 5, 7}, seed++), layout, scales, {},
                            {{"mode", std::string("nearest")},
                             {"nearest_mode", std::string(rounding)},
                             {"coordinate_transformation_mode", coordinates}}),
                       0);
}

TEST(CpuResize, linear_and_cubic_every_coordinate) {
  uint32_t seed = 1;
  for (const char* mode : {"linear", "cubic"})
    for (const std::string& coordinates : kCoordinates)
      for (const Layout layout : {Layout::kPlain, kLast})
        for (const int64_t channels : {1, 3, 17})
          for (const int variant : {0, 1, 2}) {
            ir::AttrMap attrs{{"mode", std::string(mode)}, {"coordinate_transformation_mode", coordinates}};
            if (variant == 1) attrs["antialias"] = int64_t{1};
            if (variant == 2) attrs["exclude_outside"] = int64_t{1};
            expect_right(
                make(check::random_f32({2, channels, 6, 37}, seed++), layout, {1, 1, 2, 2}, {}, attrs), 2e-6);
            expect_right(make(check::random_f32({1, channels, 9, 40}, seed++), layout, {},
                              {1, channels, 5, 23}, attrs),
                         2e-6);
            expect_right(
                make(check::random_f32({1, channels, 1, 5}, seed++), layout, {}, {1, channels, 4, 1}, attrs),
                2e-6);
          }
}

TEST(CpuResize, one_and_three_dimensions_and_every_axis) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const Layout layout : {Layout::kPlain, kLast}) {
      const ir::AttrMap attrs{{"mode", std::string(mode)}};
      expect_right(make(check::random_f32({2, 5, 33}, 1), layout, {1, 1, 2.5F}, {}, attrs), 2e-6);
      expect_right(make(check::random_f32({2, 3, 4, 5, 6}, 2), layout, {1, 1, 2, 1.5F, 0.7F}, {}, attrs),
                   2e-6);
      expect_right(make(check::random_f32({2, 3, 4, 5}, 3), layout, {2, 1.4F, 2, 1}, {}, attrs), 2e-6);
      expect_right(make(check::random_f32({2, 3, 4, 5}, 4), layout, {1, 1, 1, 1}, {}, attrs), 2e-6);
      ir::AttrMap named = attrs;
      named["axes"] = std::vector<int64_t>{3, -2};
      expect_right(make(check::random_f32({2, 3, 4, 5}, 5), layout, {}, {9, 3}, named), 2e-6);
      for (const char* policy : {"not_larger", "not_smaller"}) {
        named["keep_aspect_ratio_policy"] = std::string(policy);
        expect_right(make(check::random_f32({2, 3, 4, 5}, 6), layout, {}, {9, 3}, named), 2e-6);
      }
    }
  expect_right(make(check::random_f32({50}, 7), Layout::kPlain, {2}, {}, {{"mode", std::string("linear")}}),
               2e-6);
}

TEST(CpuResize, crops_with_values_outside) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const Layout layout : {Layout::kPlain, kLast})
      for (const std::vector<float>& roi :
           {std::vector<float>{0, 0, 0.2F, 0.1F, 1, 1, 0.7F, 0.9F}, {0, 0, -0.5F, 0.3F, 1, 1, 1.2F, 1.6F}}) {
        const ir::AttrMap attrs{{"mode", std::string(mode)},
                                {"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                                {"extrapolation_value", 10.0F}};
        expect_right(make(check::random_f32({2, 3, 6, 7}, 1), layout, {}, {2, 3, 5, 21}, attrs, roi), 2e-6);
        expect_right(make(check::random_f32({2, 3, 6, 7}, 1), layout, {1, 1, 2, 2}, {}, attrs, roi), 2e-6);
      }
}

TEST(CpuResize, nearest_moves_elements_of_every_width) {
  for (const DType type :
       {DType::kU8, DType::kI8, DType::kF16, DType::kI32, DType::kI64, DType::kF64, DType::kBool})
    for (const Layout layout : {Layout::kPlain, kLast})
      for (const int64_t channels : {1, 2, 3}) {
        Tensor x(type, {2, channels, 5, 6});
        for (int64_t i = 0; i < x.nbytes(); ++i)
          x.data<uint8_t>()[i] = static_cast<uint8_t>(type == DType::kBool ? i % 2 : i * 37 % 101);
        const Made m = make(x, layout, {1, 1, 2, 2}, {}, {});
        expect_right(m, 0);
        expect_right(make(x, layout, {}, {2, channels, 3, 11}, {}), 0);
      }
}

TEST(CpuResize, doubled_rows_of_every_length) {
  for (const DType type : {DType::kU8, DType::kF16, DType::kF32, DType::kI64})
    for (const int64_t width : {1, 15, 16, 17, 40, 100}) {
      Tensor x(type, {1, 2, 3, width});
      for (int64_t i = 0; i < x.nbytes(); ++i) x.data<uint8_t>()[i] = static_cast<uint8_t>(i * 37 % 101);
      expect_right(make(x, Layout::kPlain, {1, 1, 2, 2}, {}, {}), 0);
      expect_right(make(x, Layout::kPlain, {1, 1, 1, 3}, {}, {}), 0);
    }
}

TEST(CpuResize, values_of_every_class) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const Layout layout : {Layout::kPlain, kLast}) {
      Tensor x = check::random_f32({1, 17, 9, 33}, 3);
      check::add_specials(x, 4);
      // The largest finite values cancel or overflow in f32: no tolerance relative to the result holds.
      for (int64_t i = 0; i < x.numel(); ++i)
        if (std::fabs(x.data<float>()[i]) > 1e38F && std::isfinite(x.data<float>()[i]))
          x.data<float>()[i] = 1.5F;
      expect_right(make(x, layout, {1, 1, 2, 2}, {},
                        {{"mode", std::string(mode)},
                         {"coordinate_transformation_mode", std::string("align_corners")}}),
                   2e-6);
      expect_right(
          make(x, layout, {1, 1, 2, 3}, {},
               {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string("asymmetric")}}),
          2e-6);
    }
}

TEST(CpuResize, empty_results) {
  expect_right(make(check::random_f32({1, 3, 4, 4}, 1), Layout::kPlain, {1, 1, 0.1F, 1}, {}, {}), 0);
  expect_right(make(Tensor(DType::kF32, {0, 3, 4, 4}), Layout::kPlain, {1, 1, 2, 2}, {},
                    {{"mode", std::string("linear")}}),
               0);
}

TEST(CpuResize, tables_follow_parameters_that_change) {
  const Made m = make(check::random_f32({1, 2, 4, 4}, 1), Layout::kPlain, {1, 1, 1.5F, 2}, {},
                      {{"mode", std::string("linear")}});
  Made other = m;
  other.tensors[2] = floats({1, 1, 1.6F, 2});
  const auto tactic = make_resize(Isa::kPortable);
  const auto prepared = tactic->prepare(m.p);
  std::vector<float> workspace(static_cast<size_t>(prepared->workspace_bytes()) / 4 + 1);
  for (const Made* now : std::initializer_list<const Made*>{&m, &other, &m}) {
    Tensor y(DType::kF32, m.p.dsts[0].dims);
    const void* srcs[] = {now->tensors[0].raw(), nullptr, now->tensors[2].raw(), nullptr};
    void* dsts[] = {y.raw()};
    prepared->run({srcs, dsts, workspace.data(), &ThreadPool::process(), 1});
    check::expect_close(y, ops::run_problem(now->p, now->srcs())[0], 2e-6, "changed scales");
  }
}

TEST(CpuResize, scales_that_do_not_give_the_planned_shape) {
  Made m = make(check::random_f32({1, 2, 4, 4}, 1), Layout::kPlain, {1, 1, 2, 2}, {}, {});
  m.tensors[2] = floats({1, 1, 3, 2});
  try {
    check::execute(*make_resize(Isa::kPortable), m.p, m.srcs(), 1);
    FAIL() << "ran";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidData);
    EXPECT_NE(std::string(e.what()).find("dimension 2 becomes 12, the plan has 8"), std::string::npos)
        << e.what();
  }
}

TEST(CpuResize, refusals_have_reasons) {
  const auto tactic = make_resize(Isa::kPortable);
  Made m = make(check::random_f32({1, 2, 4, 4}, 1), Layout::kPlain, {1, 1, 2, 2}, {}, {});
  const auto reason = [&] { return tactic->supports(m.p).reason; };
  EXPECT_EQ(reason(), "");
  m.p.attrs["mode"] = std::string("area");
  EXPECT_NE(reason().find("mode:"), std::string::npos);
  m.p.attrs["mode"] = std::string("linear");
  m.p.srcs[0].dtype = m.p.dsts[0].dtype = DType::kU8;
  EXPECT_NE(reason().find("dtype: u8"), std::string::npos);
  m.p.attrs.clear();
  m.p.srcs[2] = {};
  EXPECT_NE(reason().find("neither scales nor sizes"), std::string::npos);
}

}  // namespace
}  // namespace hone::backends::cpu
