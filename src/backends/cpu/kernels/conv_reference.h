// The convolutions as their definitions say, in double: what the kernel tests compare with.
#pragma once

#include <array>
#include <vector>

#include "backends/cpu/kernels/conv.h"

namespace hone::cpu::testing {

using Three = std::array<int64_t, 3>;

inline ConvShape make_conv(int64_t batch, int64_t ic, int64_t oc, int64_t groups, Three in, Three kernel,
                           Three stride = {1, 1, 1}, Three dilation = {1, 1, 1}, Three pad_begin = {0, 0, 0},
                           Three pad_end = {0, 0, 0}) {
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
    s.out[d] = (in[d] + pad_begin[d] + pad_end[d] - (kernel[d] - 1) * dilation[d] - 1) / stride[d] + 1;
  return s;
}

/// [batch][out...][oc], dense; x has s.src_stride, w is in ONNX order.
inline std::vector<double> conv_reference(const ConvShape& s, const float* x, const float* w) {
  const int64_t stride = s.src_stride == 0 ? s.ic : s.src_stride;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups;
  std::vector<double> y;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t z = 0; z < s.out[0]; ++z)
      for (int64_t v = 0; v < s.out[1]; ++v)
        for (int64_t u = 0; u < s.out[2]; ++u)
          for (int64_t o = 0; o < s.oc; ++o) {
            double sum = 0;
            for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
              for (int64_t ky = 0; ky < s.kernel[1]; ++ky)
                for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
                  const int64_t iz = z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
                  const int64_t iy = v * s.stride[1] - s.pad[1] + ky * s.dilation[1];
                  const int64_t ix = u * s.stride[2] - s.pad[2] + kx * s.dilation[2];
                  if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1] || ix < 0 || ix >= s.in[2]) continue;
                  const float* px = x + (((n * s.in[0] + iz) * s.in[1] + iy) * s.in[2] + ix) * stride;
                  const float* pw = w + o * icg * s.taps() + (kz * s.kernel[1] + ky) * s.kernel[2] + kx;
                  for (int64_t c = 0; c < icg; ++c)
                    sum += double{px[o / ocg * icg + c]} * double{pw[c * s.taps()]};
                }
            y.push_back(sum);
          }
  return y;
}

}  // namespace hone::cpu::testing
