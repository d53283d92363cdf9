// Operators on boxes: NonMaxSuppression RoiAlign MaxRoiPool; and MaxUnpool. Source: ONNX, opsets 11 and 22.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

// --- NonMaxSuppression: i64[selected, 3] of (batch, class, box), classes in order, boxes by falling score
// (ties: the lower index) ---

struct Box {
  double y1, x1, y2, x2;
  double area() const { return (y2 - y1) * (x2 - x1); }
};

double intersection_over_union(const Box& a, const Box& b) {
  const double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1),
               w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (!(h > 0) || !(w > 0) || !(a.area() > 0) || !(b.area() > 0)) return 0;
  return h * w / (a.area() + b.area() - h * w);
}

double scalar_or(const KernelContext& ctx, size_t i, double fallback) {
  if (!ctx.has_input(i)) return fallback;
  if (ctx.in(i).numel() != 1)
    ctx.fail("input " + std::to_string(i) + " must be a scalar, not " + ctx.in(i).type_text());
  return ctx.in(i).at(0);
}

void nms_kernel(KernelContext& ctx) {
  const Tensor &boxes = ctx.in(0), &scores = ctx.in(1);
  if (boxes.rank() != 3 || boxes.dim(2) != 4 || scores.rank() != 3 || scores.dim(0) != boxes.dim(0) ||
      scores.dim(2) != boxes.dim(1)) {
    ctx.fail("boxes must be [batch, boxes, 4] and scores [batch, classes, boxes], not " + boxes.type_text() +
             ", " + scores.type_text());
  }
  const int64_t limit = input_int(ctx, 2, 0);
  const double iou = scalar_or(ctx, 3, 0), threshold = scalar_or(ctx, 4, -INFINITY);
  if (!(iou >= 0 && iou <= 1)) ctx.fail("iou_threshold must be in [0, 1]");
  const bool center = ctx.get_int("center_point_box", 0) != 0;
  const int64_t batches = boxes.dim(0), classes = scores.dim(1), n = boxes.dim(1);
  std::vector<int64_t> selected;
  for (int64_t b = 0; b < batches && limit > 0; ++b) {
    std::vector<Box> all;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (b * n + i) * 4;
      const double p = boxes.at(at), q = boxes.at(at + 1), r = boxes.at(at + 2), s = boxes.at(at + 3);
      if (center)
        all.push_back({q - s / 2, p - r / 2, q + s / 2, p + r / 2});  // x, y, width, height
      else
        all.push_back({std::min(p, r), std::min(q, s), std::max(p, r), std::max(q, s)});
    }
    for (int64_t c = 0; c < classes; ++c) {
      const auto score = [&](int64_t i) { return scores.at((b * classes + c) * n + i); };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < n; ++i) {
        if (score(i) >= threshold) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return score(i) > score(j); });
      std::vector<int64_t> kept;
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= limit) break;
        const bool overlaps = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
          return intersection_over_union(all[static_cast<size_t>(i)], all[static_cast<size_t>(k)]) > iou;
        });
        if (overlaps) continue;
        kept.push_back(i);
        selected.insert(selected.end(), {b, c, i});
      }
    }
  }
  Tensor& y = ctx.out(0, DType::kI64, {static_cast<int64_t>(selected.size()) / 3, 3});
  std::copy(selected.begin(), selected.end(), y.data<int64_t>());
}

// --- RoiAlign ---

void roi_shape(InferContext& ctx, const Dim& rois, std::vector<int64_t> pooled) {
  const Dim channels = ctx.has_shape(0) && ctx.shape(0).size() == 4 ? ctx.shape(0)[1] : ctx.fresh_symbol();
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    ctx.fail("the pooled height and width must be positive");
  ctx.set_output(0, ctx.dtype(0), Dims{rois, channels, pooled[0], pooled[1]});
}

void roi_align_infer(InferContext& ctx) {
  const Dim rois = ctx.has_shape(1) && !ctx.shape(1).empty() ? ctx.shape(1)[0] : ctx.fresh_symbol();
  roi_shape(ctx, rois, {ctx.node().get_int("output_height", 1), ctx.node().get_int("output_width", 1)});
}

struct Corner {
  int64_t at;
  double weight;
};

/// The four neighbours of a point; false when it is more than one element outside.
bool corners_of(double y, double x, int64_t height, int64_t width, Corner* out) {
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
    return false;
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  auto y0 = static_cast<int64_t>(y), x0 = static_cast<int64_t>(x);
  int64_t y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= height - 1) {
    y0 = y1 = height - 1;
    y = static_cast<double>(y0);
  }
  if (x0 >= width - 1) {
    x0 = x1 = width - 1;
    x = static_cast<double>(x0);
  }
  const double ly = y - static_cast<double>(y0), lx = x - static_cast<double>(x0);
  out[0] = {y0 * width + x0, (1 - ly) * (1 - lx)};
  out[1] = {y0 * width + x1, (1 - ly) * lx};
  out[2] = {y1 * width + x0, ly * (1 - lx)};
  out[3] = {y1 * width + x1, ly * lx};
  return true;
}

void roi_align_kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &rois = ctx.in(1);
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 4)
    ctx.fail("X must be [N, C, H, W] and rois [R, 4], not " + x.type_text() + ", " + rois.type_text());
  const std::vector<int64_t> batch = read_indices(ctx, 2);
  const int64_t count = rois.dim(0), channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  if (static_cast<int64_t>(batch.size()) != count) ctx.fail("batch_indices must have one entry a region");
  const int64_t out_h = ctx.get_int("output_height", 1), out_w = ctx.get_int("output_width", 1),
                ratio = ctx.get_int("sampling_ratio", 0);
  const std::string mode = ctx.get_string("mode", "avg"),
                    coordinates = ctx.get_string("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max") ctx.fail("mode must be avg or max, not '" + mode + "'");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    ctx.fail("unknown coordinate_transformation_mode '" + coordinates + "'");
  if (out_h < 1 || out_w < 1 || ratio < 0 || ratio > 4096)
    ctx.fail("output size and sampling_ratio must be positive");
  const bool half = coordinates == "half_pixel", average = mode == "avg";
  const double scale = ctx.get_float("spatial_scale", 1.0F), offset = half ? 0.5 : 0.0;
  const Shape shape{count, channels, out_h, out_w};
  check_budget(ctx, x.dtype(), shape);
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), shape);
    T* dst = y.data<T>();
    for (int64_t r = 0; r < count; ++r) {
      const int64_t b = batch[static_cast<size_t>(r)];
      if (b < 0 || b >= x.dim(0))
        ctx.fail("batch index " + std::to_string(b) + " is outside [0, " + std::to_string(x.dim(0)) + ")");
      const double x1 = rois.at(r * 4) * scale - offset, y1 = rois.at(r * 4 + 1) * scale - offset;
      double w = rois.at(r * 4 + 2) * scale - offset - x1, h = rois.at(r * 4 + 3) * scale - offset - y1;
      if (!half) {
        w = std::max(w, 1.0);
        h = std::max(h, 1.0);
      }
      const double bin_h = h / static_cast<double>(out_h), bin_w = w / static_cast<double>(out_w);
      if (!std::isfinite(bin_h) || !std::isfinite(bin_w) || bin_h > 65536 || bin_w > 65536)
        ctx.fail("region " + std::to_string(r) + " is not a finite box");
      const int64_t grid_h = ratio > 0 ? ratio : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bin_h)));
      const int64_t grid_w = ratio > 0 ? ratio : std::max<int64_t>(0, static_cast<int64_t>(std::ceil(bin_w)));
      for (int64_t c = 0; c < channels; ++c) {
        const T* src = x.data<T>() + (b * channels + c) * height * width;
        for (int64_t ph = 0; ph < out_h; ++ph) {
          for (int64_t pw = 0; pw < out_w; ++pw) {
            double sum = 0, best = 0;
            bool any = false;
            for (int64_t iy = 0; iy < grid_h; ++iy) {
              const double py = y1 + static_cast<double>(ph) * bin_h +
                                (static_cast<double>(iy) + 0.5) * bin_h / static_cast<double>(grid_h);
              for (int64_t ix = 0; ix < grid_w; ++ix) {
                const double px = x1 + static_cast<double>(pw) * bin_w +
                                  (static_cast<double>(ix) + 0.5) * bin_w / static_cast<double>(grid_w);
                Corner corner[4] = {};
                double v = 0;
                if (height > 0 && width > 0 && corners_of(py, px, height, width, corner)) {
                  // max: the largest weighted neighbour, as the node tests and every runtime have it.
                  for (int k = 0; k < 4; ++k) {
                    const double term = corner[k].weight * static_cast<double>(src[corner[k].at]);
                    v = average ? v + term : k == 0 ? term : std::max(v, term);
                  }
                }
                sum += v;
                best = any ? std::max(best, v) : v;
                any = true;
              }
            }
            *dst++ = static_cast<T>(average ? sum / static_cast<double>(std::max<int64_t>(grid_h * grid_w, 1))
                                            : best);
          }
        }
      }
    }
  });
}

/// RoiAlign-10 did not shift by half a pixel.
void roi_align_adapt(AdaptContext& ctx) {
  if (ctx.since < 16) ctx.node.attrs["coordinate_transformation_mode"] = std::string("output_half_pixel");
}

// --- MaxRoiPool: rounded boxes [batch, x1, y1, x2, y2], ends included; an empty bin is 0 ---

void max_roi_pool_infer(InferContext& ctx) {
  const Dim rois = ctx.has_shape(1) && !ctx.shape(1).empty() ? ctx.shape(1)[0] : ctx.fresh_symbol();
  roi_shape(ctx, rois, ctx.node().get_ints("pooled_shape"));
}

void max_roi_pool_kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &rois = ctx.in(1);
  const std::vector<int64_t> pooled = ctx.get_ints("pooled_shape");
  if (x.rank() != 4 || rois.rank() != 2 || rois.dim(1) != 5 || pooled.size() != 2 || pooled[0] < 1 ||
      pooled[1] < 1) {
    ctx.fail("X must be [N, C, H, W], rois [R, 5] and pooled_shape two positive sizes");
  }
  const double scale = ctx.get_float("spatial_scale", 1.0F);
  const int64_t count = rois.dim(0), channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  const Shape shape{count, channels, pooled[0], pooled[1]};
  check_budget(ctx, x.dtype(), shape);
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), shape);
    T* dst = y.data<T>();
    for (int64_t r = 0; r < count; ++r) {
      const auto b = to_integer<int64_t>(rois.at(r * 5));
      if (b < 0 || b >= x.dim(0))
        ctx.fail("batch index " + std::to_string(b) + " is outside [0, " + std::to_string(x.dim(0)) + ")");
      int64_t edge[4];
      for (int k = 0; k < 4; ++k) {
        const double v = std::round(rois.at(r * 5 + 1 + k) * scale);
        if (!(std::fabs(v) < 1e9)) ctx.fail("region " + std::to_string(r) + " is not a finite box");
        edge[k] = static_cast<int64_t>(v);
      }
      const double bin_h =
          static_cast<double>(std::max<int64_t>(edge[3] - edge[1] + 1, 1)) / static_cast<double>(pooled[0]);
      const double bin_w =
          static_cast<double>(std::max<int64_t>(edge[2] - edge[0] + 1, 1)) / static_cast<double>(pooled[1]);
      const auto bounds = [](int64_t i, double bin, int64_t start, int64_t extent) {
        const int64_t from = static_cast<int64_t>(std::floor(static_cast<double>(i) * bin)) + start;
        const int64_t to = static_cast<int64_t>(std::ceil(static_cast<double>(i + 1) * bin)) + start;
        return std::pair(std::clamp<int64_t>(from, 0, extent), std::clamp<int64_t>(to, 0, extent));
      };
      for (int64_t c = 0; c < channels; ++c) {
        const T* src = x.data<T>() + (b * channels + c) * height * width;
        for (int64_t ph = 0; ph < pooled[0]; ++ph) {
          const auto [h0, h1] = bounds(ph, bin_h, edge[1], height);
          for (int64_t pw = 0; pw < pooled[1]; ++pw) {
            const auto [w0, w1] = bounds(pw, bin_w, edge[0], width);
            T best = 0;
            bool any = false;
            for (int64_t i = h0; i < h1; ++i) {
              for (int64_t j = w0; j < w1; ++j) {
                const T v = src[i * width + j];
                if (!any || v > best || v != v) best = v;
                any = true;
              }
            }
            *dst++ = best;
          }
        }
      }
    }
  });
}

// --- MaxUnpool: values go back to the places a MaxPool took them from ---

/// The size that kernel, strides and pads imply.
std::optional<Dims> unpooled(const AttrMap& attrs, const Dims& x) {
  const size_t n = x.size() - 2;
  const std::vector<int64_t> kernel = ir::attr_ints(attrs, "kernel_shape"),
                             strides = ir::attr_ints(attrs, "strides", std::vector<int64_t>(n, 1)),
                             pads = ir::attr_ints(attrs, "pads", std::vector<int64_t>(2 * n, 0));
  if (kernel.size() != n || strides.size() != n || pads.size() != 2 * n) return std::nullopt;
  Dims out{x[0], x[1]};
  for (size_t d = 0; d < n; ++d) {
    if (kernel[d] < 1 || strides[d] < 1) return std::nullopt;
    out.push_back((x[d + 2] - Dim(1)) * Dim(strides[d]) - Dim(pads[d]) - Dim(pads[d + n]) + Dim(kernel[d]));
  }
  return out;
}

void max_unpool_infer(InferContext& ctx) {
  if (ctx.has_input(2)) {
    const auto rank = vector_length(ctx, 2);
    auto shape = ctx.contents(2);
    if (shape) shape = checked_dims(ctx, std::move(*shape));
    ctx.set_output(0, ctx.dtype(0),
                   shape  ? shape
                   : rank ? std::optional<Dims>(unknown_dims(ctx, static_cast<size_t>(*rank)))
                          : std::nullopt);
    return;
  }
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  if (ctx.shape(0).size() < 3) ctx.fail("X must have spatial dimensions");
  const auto shape = unpooled(ctx.node().attrs, ctx.shape(0));
  if (!shape) ctx.fail("kernel_shape, strides or pads do not fit X");
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, *shape));
}

void max_unpool_kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &indices = ctx.in(1);
  if (x.rank() < 3 || indices.shape() != x.shape())
    ctx.fail("X must have spatial dimensions and indices its shape");
  const auto implied_dims = unpooled(ctx.attrs, ir::to_dims(x.shape()));
  const auto implied = implied_dims ? ir::const_dims(*implied_dims) : std::nullopt;
  if (!implied) ctx.fail("kernel_shape, strides or pads do not fit X");
  const Shape shape = ctx.has_input(2) ? input_ints(ctx, 2) : *implied;
  if (shape.size() != implied->size() || shape[0] != x.dim(0) || shape[1] != x.dim(1))
    ctx.fail("output_shape does not fit X");
  check_budget(ctx, x.dtype(), shape);
  check_budget(ctx, x.dtype(), *implied);
  Tensor& y = ctx.out(0, x.dtype(), shape);
  if (y.numel() == 0) return;
  std::memset(y.raw(), 0, static_cast<size_t>(y.nbytes()));
  // Indices are flat positions in the implied size; a larger output holds that block at its origin.
  const std::vector<int64_t> at = read_indices(ctx, 1);
  const int64_t total = numel(*implied), bytes = element_bytes(x);
  for (size_t k = 0; k < at.size(); ++k) {
    int64_t rest = at[k];
    if (rest < 0 || rest >= total)
      ctx.fail("index " + std::to_string(rest) + " is outside the unpooled tensor of " +
               std::to_string(total));
    int64_t to = 0, stride = 1;
    bool inside = true;
    for (size_t d = shape.size(); d-- > 0;) {
      const int64_t c = rest % (*implied)[d];
      rest /= (*implied)[d];
      inside = inside && c < shape[d];
      to += c * stride;
      stride *= shape[d];
    }
    if (inside)
      std::memcpy(static_cast<char*>(y.raw()) + to * bytes,
                  static_cast<const char*>(x.raw()) + static_cast<int64_t>(k) * bytes,
                  static_cast<size_t>(bytes));
  }
}

}  // namespace

const OpDef& op_NonMaxSuppression() {
  static const OpDef def{.name = "NonMaxSuppression",
                         .infer =
                             [](InferContext& ctx) {
                               ctx.set_output(0, DType::kI64, Dims{ctx.fresh_symbol(), Dim(3)});
                             },
                         .kernel = nms_kernel,
                         .cost = elementwise_cost};
  return def;
}

const OpDef& op_RoiAlign() {
  static const OpDef def{.name = "RoiAlign",
                         .infer = roi_align_infer,
                         .kernel = roi_align_kernel,
                         .adapt = roi_align_adapt,
                         .cost = elementwise_cost};
  return def;
}

const OpDef& op_MaxRoiPool() {
  static const OpDef def{.name = "MaxRoiPool",
                         .infer = max_roi_pool_infer,
                         .kernel = max_roi_pool_kernel,
                         .cost = elementwise_cost};
  return def;
}

const OpDef& op_MaxUnpool() {
  static const OpDef def{.name = "MaxUnpool",
                         .infer = max_unpool_infer,
                         .kernel = max_unpool_kernel,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
