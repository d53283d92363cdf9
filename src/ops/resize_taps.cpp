#include "ops/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace hone::ops {

std::optional<ResizeMode> parse_resize_mode(const std::string& name) {
  if (name == "nearest") return ResizeMode::kNearest;
  if (name == "linear") return ResizeMode::kLinear;
  if (name == "cubic") return ResizeMode::kCubic;
  return std::nullopt;
}

std::optional<ResizeNearest> parse_resize_nearest(const std::string& name) {
  if (name == "round_prefer_floor") return ResizeNearest::kRoundPreferFloor;
  if (name == "round_prefer_ceil") return ResizeNearest::kRoundPreferCeil;
  if (name == "floor") return ResizeNearest::kFloor;
  if (name == "ceil") return ResizeNearest::kCeil;
  return std::nullopt;
}

std::optional<ResizeCoordinates> parse_resize_coordinates(const std::string& name) {
  if (name == "half_pixel") return ResizeCoordinates::kHalfPixel;
  if (name == "half_pixel_symmetric") return ResizeCoordinates::kHalfPixelSymmetric;
  if (name == "pytorch_half_pixel") return ResizeCoordinates::kPytorchHalfPixel;
  if (name == "align_corners") return ResizeCoordinates::kAlignCorners;
  if (name == "asymmetric") return ResizeCoordinates::kAsymmetric;
  if (name == "tf_crop_and_resize") return ResizeCoordinates::kTfCropAndResize;
  return std::nullopt;
}

namespace {

/// Coordinate in the input of output coordinate x.
double source_coordinate(const ResizeAxis& a, ResizeCoordinates mode, double x) {
  const auto in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  const auto unscale = [&](double v) { return a.from_sizes ? v * in / out : v / a.scale; };
  switch (mode) {
    case ResizeCoordinates::kHalfPixel: return unscale(x + 0.5) - 0.5;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      const double width = a.from_sizes ? out : a.scale * in;
      return in / 2 * (1 - out / width) + unscale(x + 0.5) - 0.5;
    }
    case ResizeCoordinates::kPytorchHalfPixel: return a.out > 1 ? unscale(x + 0.5) - 0.5 : 0.0;
    case ResizeCoordinates::kAlignCorners: {
      const double width = a.from_sizes ? out : a.scale * in;
      return a.out == 1 || width == 1 ? 0.0 : x * (in - 1) / (width - 1);
    }
    case ResizeCoordinates::kAsymmetric: return unscale(x);
    case ResizeCoordinates::kTfCropAndResize:
      if (a.out <= 1) return 0.5 * (a.roi_start + a.roi_end) * (in - 1);
      return a.roi_start * (in - 1) + x * (a.roi_end - a.roi_start) * (in - 1) / (out - 1);
  }
  return 0;
}

double nearest_index(double x, ResizeNearest mode) {
  switch (mode) {
    case ResizeNearest::kRoundPreferFloor: return std::ceil(x - 0.5);
    case ResizeNearest::kRoundPreferCeil: return std::floor(x + 0.5);
    case ResizeNearest::kFloor: return std::floor(x);
    case ResizeNearest::kCeil: return std::ceil(x);
  }
  return 0;
}

double linear_filter(double x) { return std::max(0.0, 1 - std::fabs(x)); }

double cubic_filter(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

}  // namespace

ResizeTaps resize_taps(const ResizeAxis& axis, const ResizeOptions& options) {
  ResizeTaps taps;
  taps.begin.push_back(0);
  const int64_t last = axis.in - 1;
  const double stretch =
      options.antialias
          ? std::min(1.0, axis.from_sizes ? static_cast<double>(axis.out) / static_cast<double>(axis.in)
                                          : axis.scale)
          : 1.0;
  bool identity = axis.in == axis.out;
  for (int64_t o = 0; o < axis.out; ++o) {
    const double x = source_coordinate(axis, options.coordinates, static_cast<double>(o));
    const bool outside = options.coordinates == ResizeCoordinates::kTfCropAndResize &&
                         !(x >= 0 && x <= static_cast<double>(last));
    if (outside) {
      identity = false;
    } else if (options.mode == ResizeMode::kNearest) {
      const double i = std::clamp(nearest_index(x, options.nearest), 0.0, static_cast<double>(last));
      taps.index.push_back(static_cast<int64_t>(i));
      taps.weight.push_back(1);
      identity = identity && taps.index.back() == o;
    } else {
      const double base = std::floor(x), ratio = x - base;
      const double support = options.mode == ResizeMode::kLinear ? 1 : 2;
      const auto first = static_cast<int64_t>(std::floor(-support / stretch)) + 1, end = 2 - first;
      double sum = 0;
      const size_t begin = taps.index.size();
      for (int64_t k = first; k < end; ++k) {
        const double at = (static_cast<double>(k) - ratio) * stretch;
        const double w =
            options.mode == ResizeMode::kLinear ? linear_filter(at) : cubic_filter(at, options.cubic_a);
        const double i = base + static_cast<double>(k);
        const bool inside = i >= 0 && i <= static_cast<double>(last);
        if (w == 0 || (options.exclude_outside && !inside)) continue;
        sum += w;
        taps.index.push_back(static_cast<int64_t>(std::clamp(i, 0.0, static_cast<double>(last))));
        taps.weight.push_back(w);
      }
      if (taps.index.size() == begin) {  // everything was excluded: the nearest element stands in
        taps.index.push_back(static_cast<int64_t>(std::clamp(base, 0.0, static_cast<double>(last))));
        taps.weight.push_back(1);
        sum = 1;
      }
      if (stretch < 1 || options.exclude_outside) {
        for (size_t i = begin; i < taps.weight.size(); ++i) taps.weight[i] /= sum;
      }
      identity =
          identity && taps.index.size() == begin + 1 && taps.index.back() == o && taps.weight.back() == 1;
    }
    taps.begin.push_back(static_cast<int64_t>(taps.index.size()));
  }
  taps.identity = identity;
  return taps;
}

}  // namespace hone::ops
