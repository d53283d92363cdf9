#include "backends/cpu/kernels/depthwise.h"

#include <gtest/gtest.h>

#include "backends/cpu/kernels/conv_reference.h"
#include "backends/cpu/kernels/test_util.h"
#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

using testing::close;
using testing::conv_reference;
using testing::fill;
using testing::Guarded;
using testing::make_conv;
using testing::same_bits;
using testing::sum_tolerance;
using testing::Three;

void check(const ConvShape& s) {
  const int64_t src_stride = s.src_stride == 0 ? s.ic : s.src_stride;
  const int64_t dst_stride = s.dst_stride == 0 ? s.oc : s.dst_stride;
  Guarded x(s.batch * s.in_pixels() * src_stride, 1), w(s.oc * s.taps() * (s.ic / s.groups)),
      packed(w.size(), 1), bias(s.oc), add(s.batch * s.out_pixels() * s.oc, 1), scale(s.oc);
  fill(x.data(), x.size(), 1);
  fill(w.data(), w.size(), 2);
  fill(bias.data(), bias.size(), 3);
  fill(add.data(), add.size(), 4);
  fill(scale.data(), scale.size(), 5);
  const int64_t depth = s.taps() * (s.ic / s.groups);
  const std::vector<double> sums = conv_reference(s, x.data(), w.data());
  pack_depthwise_weights(s, w.data(), packed.data());
  packed.check("packed weights");
  std::vector<float> back(static_cast<size_t>(w.size()));
  unpack_depthwise_weights(s, packed.data(), back.data());
  ASSERT_TRUE(same_bits(back.data(), w.data(), w.size()));
  const EpilogueOp b = EpilogueOp::add(EpilogueOperand::per_column(bias.data()));
  const EpilogueOp a = EpilogueOp::add(EpilogueOperand::full(add.data(), s.oc));
  const EpilogueOp clip = EpilogueOp::activation(ActKind::kClip, -0.25F, 1.5F);
  const EpilogueOp mul = EpilogueOp::mul(EpilogueOperand::per_column(scale.data()));
  const std::vector<std::vector<EpilogueOp>> lists = {{b, clip}, {}, {b, a, clip, mul}, {a}};
  ThreadPool one(1), three(3);
  for (Isa isa : supported_isas())
    for (size_t l = 0; l < lists.size(); ++l) {
      if (!Depthwise::takes(isa, s)) continue;
      SCOPED_TRACE(std::string(isa_name(isa)) + " list " + std::to_string(l));
      const Depthwise conv(isa, s);
      std::vector<float> first;
      for (ThreadPool* pool : {&one, &three}) {
        Guarded y(s.batch * s.out_pixels() * dst_stride, 3);
        std::fill_n(y.data(), y.size(), -55.0F);
        ConvArgs args;
        args.src = x.data();
        args.weights = packed.data();
        args.dst = y.data();
        args.epilogue = Epilogue(lists[l]);
        conv.run(args, *pool);
        y.check("dst");
        for (int64_t p = 0; p < s.batch * s.out_pixels(); ++p)
          for (int64_t c = 0; c < dst_stride; ++c) {
            const float got = y[p * dst_stride + c];
            if (c >= s.oc) {
              ASSERT_EQ(got, -55.0F) << "gap between pixels written";
              continue;
            }
            double want = sums[static_cast<size_t>(p * s.oc + c)];
            if (l == 0 || l == 2) want += bias[c];
            if (l >= 2) want += add[p * s.oc + c];
            if (l == 0 || l == 2) want = std::min(1.5, std::max(-0.25, want));
            if (l == 2) want *= scale[c];
            ASSERT_TRUE(close(got, want, sum_tolerance(depth + 3, 3.0 + static_cast<double>(depth))))
                << "pixel " << p << " channel " << c;
          }
        if (first.empty()) first.assign(y.data(), y.data() + y.size());
        EXPECT_TRUE(same_bits(first.data(), y.data(), y.size())) << "differs between 1 and 3 threads";
      }
    }
}

ConvShape depthwise(int64_t batch, int64_t c, Three in, Three kernel, Three stride = {1, 1, 1},
                    Three dilation = {1, 1, 1}, Three pad_begin = {0, 0, 0}, Three pad_end = {0, 0, 0}) {
  return make_conv(batch, c, c, c, in, kernel, stride, dilation, pad_begin, pad_end);
}

TEST(Depthwise, three_by_three) {
  for (int64_t c : {1, 7, 16, 33})
    for (int64_t w : {1, 2, 5, 11, 30})
      for (int64_t stride : {1, 2})
        check(depthwise(1, c, {1, 5, w}, {1, 3, 3}, {1, stride, stride}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
}

TEST(Depthwise, five_by_five) {
  for (int64_t w : {1, 3, 4, 14, 27})
    for (int64_t stride : {1, 2})
      check(depthwise(2, 40, {1, 9, w}, {1, 5, 5}, {1, stride, stride}, {1, 1, 1}, {0, 2, 2}, {0, 2, 2}));
}

TEST(Depthwise, other_kernels_dilation_and_asymmetric_padding) {
  check(depthwise(1, 24, {1, 12, 13}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 3, 3}, {0, 3, 3}));
  check(depthwise(1, 20, {1, 15, 16}, {1, 3, 3}, {1, 1, 1}, {1, 2, 3}, {0, 2, 3}, {0, 2, 3}));
  check(depthwise(1, 20, {1, 9, 10}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 1, 1}));
  check(depthwise(1, 17, {1, 6, 7}, {1, 2, 4}, {1, 1, 3}, {1, 1, 1}, {0, 1, 5}, {0, 0, 2}));
  check(depthwise(1, 48, {1, 4, 4}, {1, 1, 1}));
}

TEST(Depthwise, one_and_three_dimensions) {
  check(depthwise(1, 35, {1, 1, 60}, {1, 1, 31}, {1, 1, 1}, {1, 1, 1}, {0, 0, 15}, {0, 0, 15}));
  check(depthwise(2, 18, {5, 6, 7}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}));
}

TEST(Depthwise, many_lines_and_channels) {
  check(depthwise(1, 96, {1, 40, 40}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(depthwise(1, 520, {1, 7, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(depthwise(1, 600, {1, 1, 200}, {1, 1, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 2}, {0, 0, 2}));
}

TEST(Depthwise, small_groups) {
  for (int64_t group : {2, 4, 8})
    for (int64_t groups : {1, 3, 8})
      for (int64_t w : {1, 4, 13})
        for (int64_t stride : {1, 2})
          check(make_conv(1, group * groups, group * groups, groups, {1, 5, w}, {1, 3, 3},
                          {1, stride, stride}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(2, 128, 128, 32, {1, 14, 14}, {1, 3, 3}, {1, 1, 1}, {1, 2, 2}, {0, 2, 2}, {0, 2, 2}));
  check(make_conv(1, 24, 24, 6, {3, 4, 9}, {3, 1, 5}, {1, 1, 2}, {1, 1, 1}, {1, 0, 3}, {1, 0, 1}));
}

TEST(Depthwise, takes_says_which_groups) {
  const auto shape = [](int64_t ic, int64_t oc, int64_t groups) {
    return make_conv(1, ic, oc, groups, {1, 4, 4}, {1, 3, 3});
  };
  for (Isa isa : supported_isas()) {
    EXPECT_TRUE(Depthwise::takes(isa, shape(7, 7, 7)));
    EXPECT_TRUE(Depthwise::takes(isa, shape(12, 12, 3)));
    EXPECT_EQ(Depthwise::takes(isa, shape(16, 16, 2)), isa != Isa::kPortable);
    EXPECT_FALSE(Depthwise::takes(isa, shape(7, 14, 7)));
    EXPECT_FALSE(Depthwise::takes(isa, shape(9, 9, 3)));
    EXPECT_FALSE(Depthwise::takes(isa, shape(32, 32, 2)));
  }
}

TEST(Depthwise, pixel_strides) {
  ConvShape s = depthwise(1, 20, {1, 6, 6}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1});
  s.src_stride = 25;
  s.dst_stride = 31;
  check(s);
}

TEST(Depthwise, nan_stays_in_its_receptive_field_and_channel) {
  const ConvShape s = depthwise(1, 20, {1, 9, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1});
  Guarded x(s.in_pixels() * s.ic), w(s.oc * 9), packed(s.oc * 9);
  fill(x.data(), x.size(), 1);
  fill(w.data(), w.size(), 2);
  x[(4 * 9 + 4) * s.ic + 3] = NAN;
  x[8 * s.ic + 19] = INFINITY;
  pack_depthwise_weights(s, w.data(), packed.data());
  const std::vector<double> want = conv_reference(s, x.data(), w.data());
  ThreadPool pool(1);
  for (Isa isa : supported_isas()) {
    Guarded y(s.out_pixels() * s.oc);
    ConvArgs args;
    args.src = x.data();
    args.weights = packed.data();
    args.dst = y.data();
    Depthwise(isa, s).run(args, pool);
    for (int64_t i = 0; i < y.size(); ++i) ASSERT_TRUE(close(y[i], want[static_cast<size_t>(i)], 1e-5)) << i;
  }
}

}  // namespace
}  // namespace hone::cpu
