// f32 transposed convolution on channels-last tensors, 1-D to 3-D, groups, dilation, output padding, with a
// fused epilogue. No scatter: an output pixel o gathers the taps k with o + pad - k * dilation divisible by
// the stride. Pixels with equal remainder of o + pad share their taps, so the work is one implicit product
// (pixel_product.h) per remainder.
//
// Math: y[n, o, oc] = epilogue(sum over taps k as above with i = (o + pad - k * dilation) / stride inside the
// input, then input channels c of the group: x[n, i, c] * w[c, oc, k]), one chain of multiply-adds per
// element. ConvShape is read as: in, out of the transposed convolution; pad is ONNX's pads at the beginning;
// kernel, stride, dilation as usual. Output sizes are the caller's (they decide output_padding and the
// padding at the end).
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv.h"

namespace hone::cpu {

int64_t packed_deconv_floats(Isa isa, const ConvShape& shape);
/// From ONNX order [ic][oc / groups][kernel...] to [remainder][group][panel][tap][ic / groups][nr].
void pack_deconv_weights(Isa isa, const ConvShape& shape, const float* weights, float* packed);
void unpack_deconv_weights(Isa isa, const ConvShape& shape, const float* packed, float* weights);

/// A transposed convolution of fixed sizes. Threads: run() is const and may be called concurrently.
class Deconv {
 public:
  Deconv(Isa isa, const ConvShape& shape);

  int64_t n_chunks() const { return product_.n_chunks(); }
  int64_t workspace_bytes(int workers) const { return product_.worker_bytes() * workers; }
  void run(const ConvArgs& args, ThreadPool& pool, int max_workers = 0) const;
  void run_chunk(const ConvArgs& args, int64_t chunk, int worker) const;

 private:
  PixelProduct product_;
  bool empty_;
};

}  // namespace hone::cpu
