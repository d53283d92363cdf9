// Sliding windows: what convolutions and pools share: attributes, output sizes, offsets of the elements of a
// window.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ops/op.h"

namespace hone::ops {

/// Attributes of a windowed operator, checked, one entry per spatial dimension.
struct Window {
  enum class AutoPad : uint8_t { kNotSet, kValid, kSameUpper, kSameLower };
  std::vector<int64_t> kernel, strides, dilations, pad_begin, pad_end;
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;

  int rank() const { return static_cast<int>(strides.size()); }
  int64_t extent(int d) const;  ///< (kernel - 1) * dilation + 1
};

using Fail = std::function<void(const std::string&)>;  ///< throws
template <class Context>
Fail failer(const Context& ctx) {
  return [&ctx](const std::string& message) { ctx.fail(message); };
}

/// Reads kernel_shape, strides, dilations, pads, auto_pad, ceil_mode for `rank` spatial dimensions. `kernel`
/// is what the weights say (empty: the attribute is required). Errors, through `fail`, naming the attribute:
/// wrong length, zero or negative kernel, stride or dilation, negative pad, values above 2^31, an unknown
/// auto_pad, a kernel_shape that contradicts the weights.
Window read_window(const AttrMap& attrs, int rank, const std::vector<int64_t>& kernel, const Fail& fail);

/// Output size of one spatial dimension of a convolution or pool, in = input size.
/// Math: NOTSET floor((in + pads - extent) / stride) + 1; with ceil_mode the ceiling, less windows that would
/// start in the right padding; VALID floor((in - extent) / stride) + 1; SAME_* ceil(in / stride). A zero-size
/// input gives at least 0.
Dim window_out(const Window& w, int d, const Dim& in);
/// The same for a number. A window larger than the padded input fails.
int64_t window_out(const Window& w, int d, int64_t in, const Fail& fail);
/// Padding before the first element, once the input size is known (auto_pad resolved).
int64_t window_pad_begin(const Window& w, int d, int64_t in, int64_t out);
/// Padding behind the last element, likewise.
int64_t window_pad_end(const Window& w, int d, int64_t in, int64_t out);

/// Output dims of a convolution or pool over x: x[0], channels, spatial.
Dims window_dims(const Window& w, const Dims& x, const Dim& channels);
Shape window_shape(const Window& w, const Shape& x, int64_t channels, const Fail& fail);

/// LpPool-1 and GlobalLpPool-1 have the order p as a float; a whole one is the same integer.
void adapt_float_order(AdaptContext& ctx);

/// A window walk over one input plane: for every output position the offsets of its taps.
class WindowWalk {
 public:
  /// `in`, `out`: spatial sizes; `pad`: resolved padding before. Errors: kOutOfMemory for windows above 2^24
  /// elements.
  WindowWalk(const Window& w, std::vector<int64_t> in, std::vector<int64_t> out, std::vector<int64_t> pad);
  int64_t taps() const { return static_cast<int64_t>(tap_.size()) / rank_; }
  int64_t positions() const { return positions_; }
  int64_t plane() const { return plane_; }
  /// Coordinates of a position's first tap (may be negative): rank entries.
  void origin(int64_t position, int64_t* coords) const;
  /// Offset of tap `t` of the window at `origin` in the input plane; -1 in the padding.
  int64_t offset(const int64_t* origin, int64_t t) const {
    const int64_t* shift = &tap_[static_cast<size_t>(t * rank_)];
    int64_t at = 0;
    for (int d = 0; d < rank_; ++d) {
      const int64_t c = origin[d] + shift[d];
      if (c < 0 || c >= in_[static_cast<size_t>(d)]) return -1;
      at = at * in_[static_cast<size_t>(d)] + c;
    }
    return at;
  }

 private:
  int rank_;
  std::vector<int64_t> in_, out_, pad_, stride_;
  std::vector<int64_t> tap_;  ///< taps x rank: dilated kernel coordinates
  int64_t positions_ = 1, plane_ = 1;
};

/// Spatial sizes of an NC... shape.
inline std::vector<int64_t> spatial(const Shape& s) { return {s.begin() + 2, s.end()}; }

}  // namespace hone::ops
