// f32 convolution on channels-last tensors with a fused epilogue, 1-D to 3-D, as an implicit matrix product:
// no column matrix is built. A row of the product is an output pixel; the tile kernel reads the input through
// pointers, one per (kernel tap, pixel), taps that fall on padding pointing to a row of zeros. When the input
// has few channels, lines are copied once into a padded strip instead, and a tap is a whole kernel row.
//
// Math: y[n, o, oc] = epilogue(sum over taps t, then input channels c of the group: x[n, o * stride + t *
// dilation - pad, c] * w[oc, c, t]), one chain of multiply-adds per element (tile.h): the same bits for every
// thread count. Zero padding takes part as products with 0, so an infinite weight there gives NaN, as in the
// padded definition.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/blocked.h"
#include "backends/cpu/kernels/epilogue.h"
#include "backends/cpu/kernels/pixel_product.h"
#include "base/cpu.h"

namespace hone {
class ThreadPool;
}

namespace hone::cpu {

/// Spatial arrays are (depth, height, width); a 2-D convolution has depth 1, a 1-D one depth and height 1,
/// with kernel, stride and dilation 1 and no padding there. Output sizes are the caller's (they decide the
/// padding at the end).
struct ConvShape {
  int64_t batch = 1;
  int64_t ic = 0;
  int64_t oc = 0;
  int64_t groups = 1;
  Extent3 in{1, 1, 1};
  Extent3 out{1, 1, 1};
  Extent3 kernel{1, 1, 1};
  Extent3 stride{1, 1, 1};
  Extent3 dilation{1, 1, 1};
  Extent3 pad{0, 0, 0};     ///< at the beginning of each axis
  int64_t src_stride = 0;   ///< floats from pixel to pixel; 0 means ic
  int64_t dst_stride = 0;   ///< 0 means oc
  bool src_planar = false;  ///< src is [batch][ic][in...] instead: REQUIRES Conv::takes_planar(shape)

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
};

/// Floats of the packed weights.
int64_t packed_conv_floats(Isa isa, const ConvShape& shape);
/// From ONNX order [oc][ic / groups][kernel...] to [group][ceil(oc / groups / nr)][tap][ic / groups][nr].
void pack_conv_weights(Isa isa, const ConvShape& shape, const float* weights, float* packed);
/// The inverse.
void unpack_conv_weights(Isa isa, const ConvShape& shape, const float* packed, float* weights);

/// A convolution of fixed sizes. Threads: run() is const and may be called concurrently with different
/// arguments.
class Conv {
 public:
  Conv(Isa isa, const ConvShape& shape);

  /// Whether the input may stay in plain NCHW order: where lines are copied anyway, that is with few
  /// channels.
  static bool takes_planar(const ConvShape& shape);

  int64_t n_chunks() const { return strips_ ? split_.n_chunks() : product_.n_chunks(); }
  int64_t workspace_bytes(int workers) const { return worker_bytes_ * workers; }
  void run(const ConvArgs& args, ThreadPool& pool, int max_workers = 0) const;
  void run_chunk(const ConvArgs& args, int64_t chunk, int worker) const;

  BlockWalk walk;  ///< benchmarks and tests may change it

 private:
  struct Strip;
  Strip carve(void* base) const;
  void plan_strips();
  void run_strips(const ConvArgs& args, int64_t chunk, void* scratch) const;

  const TileKernels* kernels_;
  ConvShape shape_;
  bool strips_ = false;      ///< lines are copied into padded strips
  PixelProduct product_;     ///< else
  WorkSplit split_;          ///< strips: rows are output lines
  int64_t block_lines_ = 1;  ///< strips: output lines at a time
  int64_t worker_bytes_ = 0;
};

}  // namespace hone::cpu
