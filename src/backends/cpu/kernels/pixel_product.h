// Products whose rows are output pixels and whose operand A is read through pointers to input pixels: what
// convolution and transposed convolution have in common. Internal to the kernels.
//
// A phase is a regular grid of output pixels that all use the same taps: a convolution has one phase, a
// transposed convolution one per residue of its strides. Pixel j of a phase lies at out_first + j * out_step
// in the output; its tap t reads the input at j * in_step + tap[t], or zeros when that is outside.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/cpu/kernels/blocked.h"
#include "backends/cpu/kernels/epilogue.h"
#include "base/cpu.h"

namespace hone::cpu {

using Extent3 = std::array<int64_t, 3>;  ///< depth, height, width

struct PixelPhase {
  Extent3 count{0, 0, 0};  ///< pixels of the grid
  Extent3 in_step{1, 1, 1};
  Extent3 out_first{0, 0, 0};
  Extent3 out_step{1, 1, 1};
  std::vector<Extent3> taps;  ///< displacement in the input
  int64_t weights = 0;  ///< where the phase's packed weights start: [group][panel][tap][ic / groups][nr]
};

struct PixelProductShape {
  int64_t batch = 1, ic = 0, oc = 0, groups = 1;
  Extent3 in{1, 1, 1}, out{1, 1, 1};
  int64_t src_stride = 0, dst_stride = 0;  ///< floats from pixel to pixel
  std::vector<PixelPhase> phases;
};

/// Pointers of one run of a convolution or transposed convolution.
struct ConvArgs {
  const float* src = nullptr;      ///< [batch][in...][ic]
  const float* weights = nullptr;  ///< packed
  float* dst = nullptr;            ///< [batch][out...][oc]
  Epilogue epilogue;               ///< row numbers: batch * output pixels + output pixel
  void* workspace = nullptr;       ///< workspace_bytes(n), 64-byte aligned, for n >= the workers that may run
};

class PixelProduct {
 public:
  PixelProduct() = default;
  PixelProduct(Isa isa, PixelProductShape shape);

  int64_t n_chunks() const { return first_chunk_.empty() ? 0 : first_chunk_.back(); }
  int64_t worker_bytes() const { return worker_bytes_; }
  /// `scratch`: worker_bytes() of the worker that runs the chunk.
  void run_chunk(const ConvArgs& args, int64_t chunk, void* scratch, const BlockWalk& walk) const;

 private:
  struct Scratch;
  struct Pixel;
  Scratch carve(void* base) const;
  void point_tile(const ConvArgs& args, size_t phase, const Scratch& s, const Pixel* pixels, int64_t rows,
                  const float** out) const;

  const TileKernels* kernels_ = nullptr;
  PixelProductShape shape_;
  std::vector<std::vector<int64_t>> offsets_;  ///< per phase and tap: the displacement in floats
  std::vector<std::array<Extent3, 2>> reach_;  ///< per phase: least and greatest displacement
  std::vector<WorkSplit> splits_;              ///< per phase
  std::vector<int64_t> first_chunk_;           ///< per phase, and the total
  int64_t block_rows_ = 1;
  int64_t most_taps_ = 0;
  bool linear_ = false;  ///< one tap, pixel for pixel
  int64_t worker_bytes_ = 0;
};

/// Runs panels [panel0, panel1) (of all groups, in order) over a block; shared with the strips of conv.cpp.
void run_group_panels(const TileKernels& kernels, const RowBlock& block, const ConvArgs& args,
                      const float* weights, int64_t groups, int64_t ic, int64_t oc, int64_t panel0,
                      int64_t panel1, const BlockWalk& walk);

}  // namespace hone::cpu
