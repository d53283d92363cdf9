// How one axis of a Resize samples its input: for each output coordinate a few input elements with weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hone::ops {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class ResizeNearest : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
enum class ResizeCoordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize
};

std::optional<ResizeMode> parse_resize_mode(const std::string& name);
std::optional<ResizeNearest> parse_resize_nearest(const std::string& name);
std::optional<ResizeCoordinates> parse_resize_coordinates(const std::string& name);

struct ResizeAxis {
  int64_t in = 0, out = 0;
  double scale = 1;         ///< as given, or of the sizes
  bool from_sizes = false;  ///< scale is exactly out / in
  double roi_start = 0, roi_end = 1;
};

struct ResizeOptions {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeNearest nearest = ResizeNearest::kRoundPreferFloor;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

/// Taps of all output coordinates: those of o are index/weight[begin[o] .. begin[o+1]). Indices are inside
/// the axis (edges repeat). A coordinate without taps lies outside the crop (tf_crop_and_resize): it takes
/// the extrapolation value.
struct ResizeTaps {
  std::vector<int64_t> begin, index;
  std::vector<double> weight;
  bool identity = false;  ///< output equals input along this axis
};

/// Math: the formulas of the ONNX Resize text; linear and cubic filters are normalised when they are
/// stretched (antialias) or cut (exclude_outside). The width in align_corners is in * scale, not rounded, as
/// the node tests have it. REQUIRES in >= 1.
ResizeTaps resize_taps(const ResizeAxis& axis, const ResizeOptions& options);

}  // namespace hone::ops
