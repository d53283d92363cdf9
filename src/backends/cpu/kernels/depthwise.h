// f32 convolution in small groups on channels-last tensors, 1-D to 3-D, with a fused epilogue: depthwise (one
// channel a group) and groups of 2, 4 or 8 channels with as many outputs. Vectors run over channels, a few
// output pixels of a line are computed together so that inputs and weights are loaded once for several of
// them; a vector holds whole groups, and the channels of a group reach all its outputs by a permutation.
//
// Math: y[n, o, c] = epilogue(sum over taps t inside the input, then channels i of the group of c: x[n, o *
// stride + t * dilation - pad, i] * w[c, i, t]), one chain of multiply-adds per element in that order: the
// same bits for every thread count. Taps on padding are left out.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/epilogue.h"

namespace hone::cpu {

/// From ONNX order [c][i][kernel...] (i input channels in a group) to [tap][i][c]; as many floats. The same
/// for every ISA.
void pack_depthwise_weights(const ConvShape& shape, const float* weights, float* packed);
void unpack_depthwise_weights(const ConvShape& shape, const float* packed, float* weights);

/// A convolution of fixed sizes in small groups. Threads: run() is const and may be called concurrently with
/// different arguments. Needs no workspace.
class Depthwise {
 public:
  /// REQUIRES takes(isa, shape).
  Depthwise(Isa isa, const ConvShape& shape);

  /// Whether groups have 1, 2, 4 or 8 channels, as many outputs, and fit a vector of the ISA.
  static bool takes(Isa isa, const ConvShape& shape);

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
  const float* const* weights = nullptr;  ///< for each of them [kw][group][channels]
  int64_t n_lines = 0;
  int64_t channels = 0;  ///< of the tensor
  int64_t group = 1;     ///< channels of a group
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
