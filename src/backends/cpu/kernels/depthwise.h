// f32 depthwise convolution (one filter per channel, multiplier 1) on channels-last tensors, 1-D to 3-D, with
// a fused epilogue: vectors run over channels, a few output pixels of a line are computed together so that
// inputs and weights are loaded once for several of them.
//
// Math: y[n, o, c] = epilogue(sum over taps t inside the input: x[n, o * stride + t * dilation - pad, c] *
// w[c, t]), one chain of multiply-adds per element in the order of the taps: the same bits for every thread
// count. Taps on padding are left out.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/epilogue.h"

namespace hone::cpu {

/// From ONNX order [c][1][kernel...] to [tap][c]; taps * c floats. The same for every ISA.
void pack_depthwise_weights(const ConvShape& shape, const float* weights, float* packed);
void unpack_depthwise_weights(const ConvShape& shape, const float* packed, float* weights);

/// A depthwise convolution of fixed sizes: REQUIRES shape.groups == shape.ic == shape.oc.
/// Threads: run() is const and may be called concurrently with different arguments. Needs no workspace.
class Depthwise {
 public:
  Depthwise(Isa isa, const ConvShape& shape);

  int64_t n_chunks() const { return split_.n_chunks(); }
  /// args.weights as pack_depthwise_weights left them; args.workspace is not used.
  void run(const ConvArgs& args, ThreadPool& pool, int max_workers = 0) const;
  void run_chunk(const ConvArgs& args, int64_t chunk) const;

 private:
  Isa isa_;
  ConvShape shape_;
  WorkSplit split_;  ///< rows: output lines; panels: runs of 16 channels
};

/// Output pixels [x0, x1) of one line, channels [c0, c1). Internal, compiled per ISA.
struct DepthwiseSpan {
  const float* const* lines = nullptr;    ///< input lines of the taps that exist: pixel 0, channel 0
  const float* const* weights = nullptr;  ///< for each of them [kw][channels]
  int64_t n_lines = 0;
  int64_t channels = 0;  ///< distance of weights from tap to tap
  int64_t c0 = 0, c1 = 0;
  int64_t x0 = 0, x1 = 0;
  int64_t width = 0;  ///< of the input
  int64_t kw = 1, stride = 1, dilation = 1, pad = 0;
  int64_t src_stride = 0, dst_stride = 0;  ///< floats from pixel to pixel
  float* dst = nullptr;                    ///< pixel 0, channel 0 of the output line
  const float* bias = nullptr;
  bool clamp = false;
  float lo = 0, hi = 0;
};
using DepthwiseSpanFn = void (*)(const DepthwiseSpan& span);

}  // namespace hone::cpu
