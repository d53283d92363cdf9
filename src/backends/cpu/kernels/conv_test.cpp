#include "backends/cpu/kernels/conv.h"

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

void check(const ConvShape& s) {
  const int64_t src_stride = s.src_stride == 0 ? s.ic : s.src_stride;
  const int64_t dst_stride = s.dst_stride == 0 ? s.oc : s.dst_stride;
  const int64_t depth = s.ic / s.groups * s.taps();
  Guarded x(s.batch * s.in_pixels() * src_stride, 1), w(s.oc * depth), bias(s.oc),
      add(s.batch * s.out_pixels() * s.oc, 1);
  fill(x.data(), x.size(), 1);
  fill(w.data(), w.size(), 2);
  fill(bias.data(), bias.size(), 3);
  fill(add.data(), add.size(), 4);
  const std::vector<double> sums = conv_reference(s, x.data(), w.data());
  const std::vector<EpilogueOp> ops = {EpilogueOp::add(EpilogueOperand::per_column(bias.data())),
                                       EpilogueOp::add(EpilogueOperand::full(add.data(), s.oc)),
                                       EpilogueOp::activation(ActKind::kRelu)};
  ThreadPool one(1), three(3);
  for (Isa isa : supported_isas()) {
    SCOPED_TRACE(isa_name(isa));
    const Conv conv(isa, s);
    Guarded packed(packed_conv_floats(isa, s));
    pack_conv_weights(isa, s, w.data(), packed.data());
    packed.check("packed weights");
    std::vector<float> back(static_cast<size_t>(w.size()));
    unpack_conv_weights(isa, s, packed.data(), back.data());
    ASSERT_TRUE(same_bits(back.data(), w.data(), w.size()));
    std::vector<float> first;
    for (ThreadPool* pool : {&one, &three}) {
      Guarded y(s.batch * s.out_pixels() * dst_stride, 3), ws(conv.workspace_bytes(pool->n_threads()) / 4);
      std::fill_n(y.data(), y.size(), -55.0F);
      ConvArgs args;
      args.src = x.data();
      args.weights = packed.data();
      args.dst = y.data();
      args.epilogue = Epilogue(ops);
      args.workspace = ws.data();
      conv.run(args, *pool);
      y.check("dst");
      ws.check("workspace");
      for (int64_t p = 0; p < s.batch * s.out_pixels(); ++p)
        for (int64_t c = 0; c < dst_stride; ++c) {
          const float got = y[p * dst_stride + c];
          if (c >= s.oc) {
            ASSERT_EQ(got, -55.0F) << "gap between pixels written";
            continue;
          }
          const double want = sums[static_cast<size_t>(p * s.oc + c)] + bias[c] + add[p * s.oc + c];
          ASSERT_TRUE(
              close(got, want < 0 ? 0 : want, sum_tolerance(depth + 2, 1.0 * static_cast<double>(depth + 2))))
              << "pixel " << p << " channel " << c;
        }
      if (first.empty()) first.assign(y.data(), y.data() + y.size());
      EXPECT_TRUE(same_bits(first.data(), y.data(), y.size())) << "differs between 1 and 3 threads";
    }
  }
}

//          batch ic oc g  in           kernel     stride     dilation   pad_begin  pad_end
TEST(Conv, one_by_one) {
  check(make_conv(1, 17, 33, 1, {1, 5, 7}, {1, 1, 1}));
  check(make_conv(2, 64, 40, 1, {1, 9, 9}, {1, 1, 1}, {1, 2, 2}));
}

TEST(Conv, three_by_three) {
  check(make_conv(1, 16, 24, 1, {1, 7, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(2, 19, 35, 1, {1, 8, 6}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(1, 20, 5, 1, {1, 13, 13}, {1, 3, 3}, {1, 1, 1}, {1, 2, 3}, {0, 2, 3}, {0, 2, 3}));
}

TEST(Conv, asymmetric_padding_and_kernels) {
  check(make_conv(1, 18, 9, 1, {1, 6, 11}, {1, 2, 5}, {1, 1, 2}, {1, 1, 1}, {0, 0, 3}, {0, 1, 1}));
  check(make_conv(1, 16, 8, 1, {1, 3, 3}, {1, 5, 5}, {1, 1, 1}, {1, 1, 1}, {0, 4, 4}, {0, 2, 3}));
}

TEST(Conv, few_channels_take_strips) {
  check(make_conv(1, 3, 64, 1, {1, 23, 21}, {1, 7, 7}, {1, 2, 2}, {1, 1, 1}, {0, 3, 3}, {0, 3, 3}));
  check(make_conv(2, 3, 10, 1, {1, 10, 12}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 1, 1}));
  check(make_conv(1, 1, 6, 1, {1, 28, 28}, {1, 5, 5}, {1, 1, 1}, {1, 2, 1}, {0, 2, 2}, {0, 2, 2}));
  check(make_conv(1, 4, 5, 1, {1, 5, 3}, {1, 3, 7}, {1, 1, 1}, {1, 1, 1}, {0, 1, 5}, {0, 1, 4}));
  check(make_conv(1, 5, 5, 1, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {1, 1, 2}, {0, 1, 2},
                  {0, 1, 2}));  // dilated: taps
}

TEST(Conv, planar_source_gives_the_same_bits) {
  ConvShape s = make_conv(2, 3, 40, 1, {1, 37, 50}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1});
  for (int64_t ic : {1, 3, 5}) {
    s.ic = ic;
    const int64_t pixels = s.in_pixels();
    Guarded x(s.batch * pixels * ic), planar(s.batch * pixels * ic), w(s.oc * ic * 9);
    fill(x.data(), x.size(), 1);
    fill(w.data(), w.size(), 2);
    for (int64_t n = 0; n < s.batch; ++n)
      for (int64_t p = 0; p < pixels; ++p)
        for (int64_t c = 0; c < ic; ++c) planar[(n * ic + c) * pixels + p] = x[(n * pixels + p) * ic + c];
    ThreadPool pool(2);
    for (Isa isa : supported_isas()) {
      Guarded packed(packed_conv_floats(isa, s)), a(s.batch * s.out_pixels() * s.oc), b(a.size());
      pack_conv_weights(isa, s, w.data(), packed.data());
      for (bool is_planar : {false, true}) {
        ConvShape shape = s;
        shape.src_planar = is_planar;
        const Conv conv(isa, shape);
        Guarded ws(conv.workspace_bytes(2) / 4);
        ConvArgs args;
        args.src = is_planar ? planar.data() : x.data();
        args.weights = packed.data();
        args.dst = is_planar ? b.data() : a.data();
        args.workspace = ws.data();
        conv.run(args, pool);
        ws.check("workspace");
      }
      EXPECT_TRUE(same_bits(a.data(), b.data(), a.size())) << isa_name(isa) << " ic " << ic;
    }
  }
}

TEST(Conv, few_outputs) {
  check(make_conv(1, 24, 1, 1, {1, 9, 11}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(1, 64, 3, 1, {1, 10, 7}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(2, 40, 4, 2, {1, 6, 6}, {1, 1, 1}));
}

TEST(Conv, groups) {
  check(make_conv(1, 32, 64, 4, {1, 6, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(2, 12, 18, 6, {1, 7, 7}, {1, 3, 3}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(1, 70, 70, 2, {1, 4, 4}, {1, 1, 1}));
  check(make_conv(1, 10, 20, 10, {1, 5, 5}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
}

TEST(Conv, one_and_three_dimensions) {
  check(make_conv(2, 24, 17, 1, {1, 1, 40}, {1, 1, 9}, {1, 1, 3}, {1, 1, 2}, {0, 0, 8}, {0, 0, 5}));
  check(make_conv(1, 1, 16, 1, {1, 1, 100}, {1, 1, 10}, {1, 1, 5}));
  check(make_conv(1, 16, 12, 1, {4, 5, 6}, {3, 3, 3}, {1, 2, 1}, {2, 1, 1}, {2, 1, 1}, {1, 1, 1}));
  check(make_conv(2, 3, 12, 1, {5, 6, 7}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}));
}

TEST(Conv, many_pixels_and_chunks) {
  check(make_conv(1, 32, 48, 1, {1, 40, 41}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make_conv(1, 128, 512, 1, {1, 7, 7}, {1, 1, 1}));
  check(make_conv(3, 3, 32, 1, {1, 60, 50}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
}

TEST(Conv, pixel_strides) {
  ConvShape s = make_conv(1, 16, 20, 1, {1, 6, 6}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1});
  s.src_stride = 21;
  s.dst_stride = 33;
  check(s);
  s = make_conv(1, 3, 20, 1, {1, 6, 6}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1});
  s.src_stride = 5;
  check(s);
}

TEST(Conv, empty) {
  check(make_conv(0, 16, 8, 1, {1, 4, 4}, {1, 3, 3}));
  ConvShape s = make_conv(1, 16, 8, 1, {1, 4, 4}, {1, 1, 1});
  s.out = {1, 0, 4};
  check(s);
}

TEST(Conv, nan_stays_in_its_receptive_field) {
  const ConvShape s =
      make_conv(1, 16, 32, 1, {1, 9, 9}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1});
  Guarded x(s.in_pixels() * s.ic), w(s.oc * s.ic * 9);
  fill(x.data(), x.size(), 1);
  fill(w.data(), w.size(), 2);
  x[(4 * 9 + 4) * s.ic + 3] = NAN;
  x[(0 * 9 + 8) * s.ic + 0] = INFINITY;
  const std::vector<double> want = conv_reference(s, x.data(), w.data());
  ThreadPool pool(1);
  for (Isa isa : supported_isas()) {
    const Conv conv(isa, s);
    Guarded packed(packed_conv_floats(isa, s)), ws(conv.workspace_bytes(1) / 4), y(s.out_pixels() * s.oc);
    pack_conv_weights(isa, s, w.data(), packed.data());
    ConvArgs args;
    args.src = x.data();
    args.weights = packed.data();
    args.dst = y.data();
    args.workspace = ws.data();
    conv.run(args, pool);
    for (int64_t i = 0; i < y.size(); ++i) ASSERT_TRUE(close(y[i], want[static_cast<size_t>(i)], 1e-4)) << i;
  }
}

}  // namespace
}  // namespace hone::cpu
