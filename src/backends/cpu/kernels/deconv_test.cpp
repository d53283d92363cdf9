#include "backends/cpu/kernels/deconv.h"

#include <gtest/gtest.h>

#include "backends/cpu/kernels/test_util.h"
#include "base/thread_pool.h"

namespace hone::cpu {
namespace {

using testing::close;
using testing::fill;
using testing::Guarded;
using testing::same_bits;
using testing::sum_tolerance;

ConvShape make(int64_t batch, int64_t ic, int64_t oc, int64_t groups, Extent3 in, Extent3 kernel,
               Extent3 stride = {1, 1, 1}, Extent3 dilation = {1, 1, 1}, Extent3 pad_begin = {0, 0, 0},
               Extent3 pad_end = {0, 0, 0}, Extent3 output_padding = {0, 0, 0}) {
  ConvShape s;
  s.batch = batch;
  s.ic = ic;
  s.oc = oc;
  s.groups = groups;
  s.in = in;
  s.kernel = kernel;
  s.stride = stride;
  s.dilation = dilation;
  s.pad = pad_begin;
  for (size_t d = 0; d < 3; ++d)
    s.out[d] = stride[d] * (in[d] - 1) + output_padding[d] + (kernel[d] - 1) * dilation[d] + 1 -
               pad_begin[d] - pad_end[d];
  return s;
}

// As ONNX defines it: every input pixel is scattered, in double.
std::vector<double> reference(const ConvShape& s, const float* x, const float* w) {
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups;
  std::vector<double> y(static_cast<size_t>(s.batch * s.out_pixels() * s.oc), 0.0);
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t p = 0; p < s.in_pixels(); ++p)
      for (int64_t t = 0; t < s.taps(); ++t) {
        const Extent3 i = {p / (s.in[1] * s.in[2]), p / s.in[2] % s.in[1], p % s.in[2]};
        const Extent3 k = {t / (s.kernel[1] * s.kernel[2]), t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
        int64_t to = n;
        bool inside = true;
        for (size_t d = 0; d < 3; ++d) {
          const int64_t o = i[d] * s.stride[d] + k[d] * s.dilation[d] - s.pad[d];
          inside = inside && o >= 0 && o < s.out[d];
          to = to * s.out[d] + o;
        }
        if (!inside) continue;
        for (int64_t c = 0; c < s.ic; ++c)
          for (int64_t o = 0; o < ocg; ++o)
            y[static_cast<size_t>(to * s.oc + c / icg * ocg + o)] +=
                double{x[(n * s.in_pixels() + p) * s.ic + c]} * double{w[(c * ocg + o) * s.taps() + t]};
      }
  return y;
}

void check(const ConvShape& s) {
  const int64_t depth = s.ic / s.groups * s.taps();
  Guarded x(s.batch * s.in_pixels() * s.ic, 1), w(s.ic * (s.oc / s.groups) * s.taps()), bias(s.oc),
      add(s.batch * s.out_pixels() * s.oc);
  fill(x.data(), x.size(), 1);
  fill(w.data(), w.size(), 2);
  fill(bias.data(), bias.size(), 3);
  fill(add.data(), add.size(), 4);
  const std::vector<double> sums = reference(s, x.data(), w.data());
  const std::vector<EpilogueOp> ops = {EpilogueOp::add(EpilogueOperand::per_column(bias.data())),
                                       EpilogueOp::add(EpilogueOperand::full(add.data(), s.oc)),
                                       EpilogueOp::activation(ActKind::kLeakyRelu, 0.25F)};
  ThreadPool one(1), three(3);
  for (Isa isa : supported_isas()) {
    SCOPED_TRACE(isa_name(isa));
    const Deconv deconv(isa, s);
    Guarded packed(packed_deconv_floats(isa, s));
    pack_deconv_weights(isa, s, w.data(), packed.data());
    packed.check("packed weights");
    std::vector<float> back(static_cast<size_t>(w.size()));
    unpack_deconv_weights(isa, s, packed.data(), back.data());
    ASSERT_TRUE(same_bits(back.data(), w.data(), w.size()));
    std::vector<float> first;
    for (ThreadPool* pool : {&one, &three}) {
      Guarded y(s.batch * s.out_pixels() * s.oc, 3), ws(deconv.workspace_bytes(pool->n_threads()) / 4);
      ConvArgs args;
      args.src = x.data();
      args.weights = packed.data();
      args.dst = y.data();
      args.epilogue = Epilogue(ops);
      args.workspace = ws.data();
      deconv.run(args, *pool);
      y.check("dst");
      ws.check("workspace");
      for (int64_t i = 0; i < y.size(); ++i) {
        const double v = sums[static_cast<size_t>(i)] + bias[i % s.oc] + add[i];
        ASSERT_TRUE(
            close(y[i], v < 0 ? 0.25 * v : v, sum_tolerance(depth + 2, static_cast<double>(depth + 2))))
            << "pixel " << i / s.oc << " channel " << i % s.oc;
      }
      if (first.empty()) first.assign(y.data(), y.data() + y.size());
      EXPECT_TRUE(same_bits(first.data(), y.data(), y.size())) << "differs between 1 and 3 threads";
    }
  }
}

TEST(Deconv, stride_two) {
  check(make(1, 16, 24, 1, {1, 5, 6}, {1, 2, 2}, {1, 2, 2}));
  check(make(1, 19, 5, 1, {1, 6, 5}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make(2, 12, 40, 1, {1, 4, 4}, {1, 4, 4}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
  check(make(1, 7, 1, 1, {1, 20, 20}, {1, 2, 2}, {1, 2, 2}));
}

TEST(Deconv, stride_one_is_a_full_convolution) {
  check(make(1, 8, 9, 1, {1, 4, 7}, {1, 3, 3}));
  check(make(1, 8, 9, 1, {1, 6, 7}, {1, 3, 5}, {1, 1, 1}, {1, 1, 1}, {0, 1, 2}, {0, 2, 1}));
}

TEST(Deconv, stride_beyond_the_kernel_leaves_pixels_with_bias_only) {
  check(make(1, 4, 6, 1, {1, 3, 3}, {1, 2, 2}, {1, 3, 4}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {0, 1, 2}));
}

TEST(Deconv, dilation_and_groups) {
  check(make(1, 6, 8, 2, {1, 5, 5}, {1, 3, 3}, {1, 2, 2}, {1, 2, 3}, {0, 1, 0}, {0, 0, 1}));
  check(make(1, 6, 8, 1, {1, 5, 4}, {1, 3, 3}, {1, 3, 2}, {1, 2, 1}, {0, 2, 1}, {0, 1, 1}));
  check(make(1, 32, 32, 32, {1, 6, 6}, {1, 4, 4}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}));
}

TEST(Deconv, one_and_three_dimensions) {
  check(make(2, 10, 7, 1, {1, 1, 15}, {1, 1, 16}, {1, 1, 8}, {1, 1, 1}, {0, 0, 4}, {0, 0, 4}));
  check(make(1, 5, 6, 1, {3, 4, 3}, {2, 3, 4}, {2, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 0}));
}

TEST(Deconv, large_enough_for_several_chunks) {
  check(make(1, 64, 32, 1, {1, 20, 20}, {1, 2, 2}, {1, 2, 2}));
  check(make(1, 0, 8, 1, {1, 3, 3}, {1, 2, 2}, {1, 2, 2}));
}

}  // namespace
}  // namespace hone::cpu
