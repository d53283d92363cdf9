// GridSample and AffineGrid. Source: ONNX, opsets 20 and 22.
//
// A grid entry (x, y[, z]) in [-1, 1] names a place of the input, last dimension first. With align_corners -1
// and 1 are the centres of the outer elements, else their outer edges. Outside, `zeros` reads 0, `border` the
// nearest element, `reflection` mirrors at those borders. Nearest rounds ties to even; cubic has a = -0.75.
#include <algorithm>
#include <cmath>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

enum class Mode : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

double reflect(double x, double low, double high) {
  const double span = high - low;
  if (span <= 0) return low;
  double at = std::fmod(std::fabs(x - low), 2 * span);
  if (at > span) at = 2 * span - at;
  return low + at;
}

struct Tap {
  int64_t index;  ///< -1: reads 0
  double weight;
};

/// Elements and weights along one axis for a coordinate in element units.
class AxisSampler {
 public:
  AxisSampler(int64_t extent, bool align, Padding padding, Mode mode)
      : extent_(extent),
        padding_(padding),
        mode_(mode),
        align_(align),
        low_(align ? 0.0 : -0.5),
        high_(static_cast<double>(extent) - (align ? 1.0 : 0.5)) {}

  /// Fills at most four taps and returns how many.
  int taps(double normalized, Tap* out) const {
    const auto n = static_cast<double>(extent_);
    double x = align_ ? (normalized + 1) / 2 * (n - 1) : ((normalized + 1) * n - 1) / 2;
    if (!std::isfinite(x)) x = -1e9;  // nowhere; NaN as well
    if (mode_ == Mode::kNearest) x = std::nearbyint(x);
    if (x < low_ || x > high_) {
      if (padding_ == Padding::kBorder) x = std::clamp(x, 0.0, n - 1);
      if (padding_ == Padding::kReflection) x = reflect(x, low_, high_);
    }
    x = std::clamp(x, -1e9, 1e9);
    if (mode_ == Mode::kNearest) {
      out[0] = {index(std::nearbyint(x)), 1};
      return 1;
    }
    const double base = std::floor(x), t = x - base;
    if (mode_ == Mode::kLinear) {
      out[0] = {index(base), 1 - t};
      out[1] = {index(base + 1), t};
      return 2;
    }
    for (int k = 0; k < 4; ++k) out[k] = {index(base + k - 1), cubic(std::fabs(t - (k - 1)))};
    return 4;
  }

 private:
  static double cubic(double x) {
    constexpr double a = -0.75;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
  }
  int64_t index(double i) const {
    const auto last = static_cast<double>(extent_ - 1);
    if (i >= 0 && i <= last) return static_cast<int64_t>(i);
    if (padding_ == Padding::kZeros) return -1;
    if (padding_ == Padding::kReflection) i = std::trunc(reflect(i, low_, high_));
    return static_cast<int64_t>(std::clamp(i, 0.0, last));
  }

  int64_t extent_;
  Padding padding_;
  Mode mode_;
  bool align_;
  double low_, high_;
};

void grid_sample_infer(InferContext& ctx) {
  if (!ctx.has_shape(0) || !ctx.has_shape(1)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  const Dims &x = ctx.shape(0), &grid = ctx.shape(1);
  if (x.size() < 3 || grid.size() != x.size())
    ctx.fail("X and grid must have one rank of at least 3: " + ctx.input(0).text() + ", " +
             ctx.input(1).text());
  if (grid.back().is_const() && grid.back().value() != static_cast<int64_t>(x.size()) - 2)
    ctx.fail("grid entries must have one coordinate a spatial dimension");
  Dims out{x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, std::move(out)));
}

void grid_sample_kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &grid = ctx.in(1);
  const int n = x.rank() - 2;
  if (n < 1 || grid.rank() != x.rank() || grid.dim(grid.rank() - 1) != n || grid.dim(0) != x.dim(0)) {
    ctx.fail("grid " + grid.type_text() + " does not fit " + x.type_text());
  }
  const std::string mode_name = ctx.get_string("mode", "linear"),
                    padding_name = ctx.get_string("padding_mode", "zeros");
  const bool align = ctx.get_int("align_corners", 0) != 0;
  Mode mode = Mode::kLinear;
  if (mode_name == "nearest")
    mode = Mode::kNearest;
  else if (mode_name == "cubic")
    mode = Mode::kCubic;
  else if (mode_name != "linear")
    ctx.fail("mode must be linear, nearest or cubic, not '" + mode_name + "'");
  Padding padding = Padding::kZeros;
  if (padding_name == "border")
    padding = Padding::kBorder;
  else if (padding_name == "reflection")
    padding = Padding::kReflection;
  else if (padding_name != "zeros")
    ctx.fail("padding_mode must be zeros, border or reflection, not '" + padding_name + "'");

  Shape shape{x.dim(0), x.dim(1)};
  shape.insert(shape.end(), grid.shape().begin() + 1, grid.shape().end() - 1);
  std::vector<AxisSampler> axes;
  const Shape image(x.shape().begin() + 2, x.shape().end());
  for (const int64_t d : image) {
    if (d == 0 && numel(shape) > 0) ctx.fail("nothing to sample in an empty dimension");
    axes.emplace_back(d, align, padding, mode);
  }
  const std::vector<int64_t> strides = dense_strides(image);
  const int64_t plane = numel(image), places = numel(Shape(shape.begin() + 2, shape.end())),
                channels = x.dim(1);
  number_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), shape);
    std::vector<Tap> taps(static_cast<size_t>(n) * 4);
    std::vector<int> counts(static_cast<size_t>(n));
    std::vector<Tap> flat, next;
    for (int64_t b = 0; b < x.dim(0); ++b) {
      for (int64_t p = 0; p < places; ++p) {
        flat.assign(1, {0, 1.0});
        for (int d = 0; d < n; ++d) {
          const double at = grid.at((b * places + p) * n + (n - 1 - d));
          Tap* t = &taps[static_cast<size_t>(d) * 4];
          counts[static_cast<size_t>(d)] = axes[static_cast<size_t>(d)].taps(at, t);
          next.clear();
          for (const Tap& f : flat) {
            for (int k = 0; k < counts[static_cast<size_t>(d)]; ++k) {
              if (t[k].index >= 0 && t[k].weight != 0)
                next.push_back(
                    {f.index + t[k].index * strides[static_cast<size_t>(d)], f.weight * t[k].weight});
            }
          }
          std::swap(flat, next);
        }
        for (int64_t c = 0; c < channels; ++c) {
          const T* src = x.data<T>() + (b * channels + c) * plane;
          double sum = 0;
          for (const Tap& f : flat)
            sum += f.weight == 1.0 ? static_cast<double>(src[f.index])
                                   : f.weight * static_cast<double>(src[f.index]);
          y.data<T>()[(b * channels + c) * places + p] = from_double<T>(sum);
        }
      }
    }
  });
}

/// GridSample-16 named its modes for two dimensions.
void grid_sample_adapt(AdaptContext& ctx) {
  if (ctx.since >= 20) return;
  const std::string mode = ctx.node.get_string("mode", "bilinear");
  ctx.node.attrs["mode"] = std::string(mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode);
}

// --- AffineGrid: grid[n, d.., :] = theta[n] * (x, y[, z], 1) over the normalised places of an output of the
// given size ---

void affine_grid_infer(InferContext& ctx) {
  const auto size = ctx.contents(1);
  const auto rank = size ? std::optional<int64_t>(static_cast<int64_t>(size->size())) : vector_length(ctx, 1);
  if (!rank) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  if (*rank < 3) ctx.fail("size must be [N, C, spatial...]");
  Dims out = size ? *size : unknown_dims(ctx, static_cast<size_t>(*rank));
  out.erase(out.begin() + 1);
  out.push_back(Dim(*rank - 2));
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, std::move(out)));
}

void affine_grid_kernel(KernelContext& ctx) {
  const Tensor& theta = ctx.in(0);
  const std::vector<int64_t> size = input_ints(ctx, 1);
  const int64_t n = static_cast<int64_t>(size.size()) - 2;
  if (n < 1 || theta.shape() != Shape{size[0], n, n + 1})
    ctx.fail("theta " + theta.type_text() + " does not fit a size of " + std::to_string(size.size()) +
             " dimensions");
  const bool align = ctx.get_int("align_corners", 0) != 0;
  Shape shape{size[0]};
  shape.insert(shape.end(), size.begin() + 2, size.end());
  shape.push_back(n);
  check_budget(ctx, theta.dtype(), shape);
  const Shape image(size.begin() + 2, size.end());
  const std::vector<int64_t> strides = dense_strides(image);
  const int64_t places = numel(image);
  float_or_throw(ctx, theta.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, theta.dtype(), shape);
    std::vector<double> at(static_cast<size_t>(n));
    T* dst = y.data<T>();
    for (int64_t b = 0; b < size[0]; ++b) {
      const T* m = theta.data<T>() + b * n * (n + 1);
      for (int64_t p = 0; p < places; ++p) {
        for (int64_t d = 0; d < n; ++d) {
          const int64_t extent = image[static_cast<size_t>(d)];
          const auto i = static_cast<double>(p / strides[static_cast<size_t>(d)] % extent);
          const auto e = static_cast<double>(extent);
          at[static_cast<size_t>(n - 1 - d)] =
              align ? (extent == 1 ? 0.0 : 2 * i / (e - 1) - 1) : (2 * i + 1) / e - 1;
        }
        for (int64_t r = 0; r < n; ++r) {
          double sum = static_cast<double>(m[r * (n + 1) + n]);
          for (int64_t c = 0; c < n; ++c)
            sum += static_cast<double>(m[r * (n + 1) + c]) * at[static_cast<size_t>(c)];
          *dst++ = static_cast<T>(sum);
        }
      }
    }
  });
}

}  // namespace

const OpDef& op_GridSample() {
  static const OpDef def{.name = "GridSample",
                         .infer = grid_sample_infer,
                         .kernel = grid_sample_kernel,
                         .adapt = grid_sample_adapt,
                         .cost = elementwise_cost};
  return def;
}

const OpDef& op_AffineGrid() {
  static const OpDef def{.name = "AffineGrid",
                         .infer = affine_grid_infer,
                         .kernel = affine_grid_kernel,
                         .cost = elementwise_cost};
  return def;
}

}  // namespace hone::ops
