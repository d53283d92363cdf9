// Layer, RMS, group, instance and batch normalisation and LRN in f32, compiled per ISA.
//
// Statistics: two passes, f32 partial sums of at most 64 additions, added in f64; done wholly in f64 where
// f32 would overflow or underflow. The mean is kept as two floats. y = (x - mean) / sqrt(var + epsilon) *
// scale + bias, one rounding each step.
#pragma once

#include <cstdint>

#include "backends/cpu/isa_pick.h"

namespace hone::cpu {

/// One row of n: layer norm (centred) or RMS norm. scale and bias may be null; n values each. dst may equal
/// src.
struct NormRow {
  bool centred = true;
  double epsilon = 1e-5;
  const float* scale = nullptr;
  const float* bias = nullptr;
};
/// mean and inverse deviation go to stats[0], stats[1].
HONE_DECLARE_ISA(void, norm_row, (const NormRow& norm, const float* src, float* dst, int64_t n, float* stats))

/// One group of a plain tensor: `channels` contiguous planes of `plane` values. scale and bias: one a
/// channel.
HONE_DECLARE_ISA(void, group_norm_plain,
                 (const float* src, float* dst, int64_t channels, int64_t plane, const float* scale,
                  const float* bias, double epsilon))

/// `groups` neighbouring groups of `channels` each of a channels-last image: `rows` pixels `stride` apart.
/// scratch: 3 floats a channel.
HONE_DECLARE_ISA(void, group_norm_last,
                 (const float* src, float* dst, int64_t rows, int64_t stride, int64_t channels,
                  int64_t groups, const float* scale, const float* bias, double epsilon, float* scratch))

/// dst[i] = (src[i] - mean) * a + b, one value of mean, a, b for all (`each` false) or one an element.
HONE_DECLARE_ISA(void, centre_scale,
                 (bool each, const float* src, float* dst, int64_t n, const float* mean, const float* a,
                  const float* b))

/// Local response normalisation of one image [c, inner] (inner 1: channels-last pixel), columns [0, cols):
/// dst = src / (bias + alpha / size * sum of squares of channels c - (size-1)/2 .. c + size/2) ^ beta. dst
/// may not equal src.
HONE_DECLARE_ISA(void, lrn_columns,
                 (const float* src, float* dst, int64_t channels, int64_t inner, int64_t cols, int64_t size,
                  float alpha, float beta, float bias))
/// The same for one contiguous pixel of `channels`; padded: channels + size + 32 floats of scratch.
HONE_DECLARE_ISA(void, lrn_pixel,
                 (const float* src, float* dst, int64_t channels, int64_t size, float alpha, float beta,
                  float bias, float* padded))

}  // namespace hone::cpu
