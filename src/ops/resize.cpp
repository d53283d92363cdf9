// Resize, and the deprecated Upsample. Separable: one pass an axis, weights and sums in f64, rounded once at
// the end; integers truncate. Nearest moves elements of any type. Source: ONNX Resize-19.
#include "ops/resize_taps.h"

#include <algorithm>
#include <cmath>

#include "ops/broadcast.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

/// floor(n * scale) in f32, as every runtime computes it: 3 * (7/3)f is 7, not 6.
int64_t scaled_extent(int64_t n, double scale) {
  return static_cast<int64_t>(std::floor(static_cast<float>(n) * static_cast<float>(scale)));
}

bool given(const KernelContext& ctx, size_t i) { return ctx.has_input(i) && ctx.in(i).numel() > 0; }

bool given(const InferContext& ctx, size_t i) {
  if (!ctx.has_input(i)) return false;
  return !ctx.has_shape(i) || ctx.shape(i).size() != 1 ||
         !(ctx.shape(i)[0] == Dim(0));  // an empty tensor means absent
}

/// Common scale of keep_aspect_ratio_policy.
double common_scale(const std::string& policy, const std::vector<int64_t>& sizes,
                    const std::vector<int64_t>& extents) {
  double scale = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const double s = static_cast<double>(sizes[i]) / static_cast<double>(extents[i]);
    scale = i == 0 ? s : policy == "not_larger" ? std::min(scale, s) : std::max(scale, s);
  }
  return scale;
}

int64_t round_half_up(double x) { return static_cast<int64_t>(std::floor(x + 0.5)); }

void infer_scaled(InferContext& ctx, Dims* out, const std::vector<int>& axes) {
  const Tensor* scales = ctx.constant(2);
  const bool crop =
      ctx.node().get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  const Tensor* roi = crop ? ctx.constant(1) : nullptr;
  if (scales != nullptr && scales->numel() != static_cast<int64_t>(axes.size()))
    ctx.fail("scales has the wrong length");
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& d = (*out)[static_cast<size_t>(axes[i])];
    if (scales == nullptr ||
        (crop && (roi == nullptr || roi->numel() != 2 * static_cast<int64_t>(axes.size())))) {
      d = ctx.fresh_symbol();
      continue;
    }
    double scale = scales->at(static_cast<int64_t>(i));
    if (!(scale > 0)) ctx.fail("scales must be positive");
    if (crop) scale *= roi->at(static_cast<int64_t>(i + axes.size())) - roi->at(static_cast<int64_t>(i));
    if (d.is_const()) {
      d = scaled_extent(d.value(), scale);
    } else if (scale == std::floor(scale) && scale < 65536) {
      d = d * Dim(static_cast<int64_t>(scale));
    } else if (1 / scale == std::floor(1 / scale) && scale > 1.0 / 65536) {
      d = Dim::floordiv(d, Dim(static_cast<int64_t>(1 / scale)));
    } else {
      d = ctx.fresh_symbol();
    }
  }
}

void infer_sized(InferContext& ctx, Dims* out, const std::vector<int>& axes) {
  const auto sizes = ctx.contents(3);
  if (sizes && sizes->size() != axes.size()) ctx.fail("sizes has the wrong length");
  const std::string policy = ctx.node().get_string("keep_aspect_ratio_policy", "stretch");
  if (sizes && policy != "stretch") {
    const auto wanted = ir::const_dims(*sizes);
    Dims selected;
    for (const int a : axes) selected.push_back((*out)[static_cast<size_t>(a)]);
    const auto extents = ir::const_dims(selected);
    if (wanted && extents &&
        std::none_of(extents->begin(), extents->end(), [](int64_t d) { return d == 0; })) {
      const double scale = common_scale(policy, *wanted, *extents);
      for (size_t i = 0; i < axes.size(); ++i) {
        (*out)[static_cast<size_t>(axes[i])] = round_half_up(scale * static_cast<double>((*extents)[i]));
      }
      return;
    }
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    (*out)[static_cast<size_t>(axes[i])] = sizes && policy == "stretch" ? (*sizes)[i] : ctx.fresh_symbol();
  }
}

void resize_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  Dims out = ctx.shape(0);
  std::vector<int64_t> axes = ctx.node().get_ints("axes");
  if (!ctx.node().has("axes")) {
    for (size_t i = 0; i < out.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  const std::vector<int> at = ctx.axes(axes, static_cast<int>(out.size()));
  if (given(ctx, 3)) {
    infer_sized(ctx, &out, at);
  } else if (given(ctx, 2)) {
    infer_scaled(ctx, &out, at);
  } else {
    ctx.fail("one of scales and sizes must be given");
  }
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, std::move(out)));
}

ResizeOptions read_options(const KernelContext& ctx) {
  ResizeOptions o;
  const auto mode = parse_resize_mode(ctx.get_string("mode", "nearest"));
  const auto nearest = parse_resize_nearest(ctx.get_string("nearest_mode", "round_prefer_floor"));
  const auto coordinates =
      parse_resize_coordinates(ctx.get_string("coordinate_transformation_mode", "half_pixel"));
  if (!mode) ctx.fail("unknown mode '" + ctx.get_string("mode", "") + "'");
  if (!nearest) ctx.fail("unknown nearest_mode '" + ctx.get_string("nearest_mode", "") + "'");
  if (!coordinates)
    ctx.fail("unknown coordinate_transformation_mode '" +
             ctx.get_string("coordinate_transformation_mode", "") + "'");
  o.mode = *mode;
  o.nearest = *nearest;
  o.coordinates = *coordinates;
  o.cubic_a = ctx.get_float("cubic_coeff_a", -0.75F);
  o.exclude_outside = ctx.get_int("exclude_outside", 0) != 0;
  o.antialias = ctx.get_int("antialias", 0) != 0;
  return o;
}

/// Extents, scales and crops of every dimension; those that `axes` does not name keep their extent.
std::vector<ResizeAxis> read_axes(const KernelContext& ctx, ResizeCoordinates coordinates) {
  const Tensor& x = ctx.in(0);
  std::vector<ResizeAxis> all;
  for (const int64_t d : x.shape()) all.push_back({.in = d, .out = d, .scale = 1, .from_sizes = true});
  std::vector<size_t> at;
  std::vector<bool> seen(all.size(), false);
  if (ctx.attrs.contains("axes")) {
    for (const int64_t a : ctx.get_ints("axes")) {
      at.push_back(static_cast<size_t>(ctx.axis(a, x.rank())));
      if (seen[at.back()]) ctx.fail("axes name a dimension twice");
      seen[at.back()] = true;
    }
  } else {
    for (size_t i = 0; i < all.size(); ++i) at.push_back(i);
  }
  const auto n = static_cast<int64_t>(at.size());
  if (coordinates == ResizeCoordinates::kTfCropAndResize) {
    if (!given(ctx, 1) || ctx.in(1).numel() != 2 * n)
      ctx.fail("tf_crop_and_resize needs roi with start and end of each axis");
    for (int64_t i = 0; i < n; ++i) {
      all[at[static_cast<size_t>(i)]].roi_start = ctx.in(1).at(i);
      all[at[static_cast<size_t>(i)]].roi_end = ctx.in(1).at(i + n);
    }
  }
  if (given(ctx, 3)) {
    const std::vector<int64_t> sizes = input_ints(ctx, 3);
    if (static_cast<int64_t>(sizes.size()) != n) ctx.fail("sizes has the wrong length");
    const std::string policy = ctx.get_string("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
      ctx.fail("unknown keep_aspect_ratio_policy '" + policy + "'");
    std::vector<int64_t> extents;
    for (const size_t a : at) extents.push_back(all[a].in);
    const bool keep = policy != "stretch";
    if (keep && std::find(extents.begin(), extents.end(), 0) != extents.end())
      ctx.fail("an empty dimension has no aspect ratio");
    const double scale = keep ? common_scale(policy, sizes, extents) : 1;
    for (size_t i = 0; i < at.size(); ++i) {
      ResizeAxis& a = all[at[i]];
      a.out = keep ? round_half_up(scale * static_cast<double>(a.in)) : sizes[i];
      a.scale = scale;
      a.from_sizes = !keep;
    }
    return all;
  }
  if (!given(ctx, 2)) ctx.fail("one of scales and sizes must be given");
  if (ctx.in(2).numel() != n) ctx.fail("scales has the wrong length");
  for (int64_t i = 0; i < n; ++i) {
    ResizeAxis& a = all[at[static_cast<size_t>(i)]];
    a.scale = ctx.in(2).at(i);
    if (!(a.scale > 0) || !std::isfinite(a.scale)) ctx.fail("scales must be positive");
    const double extent =
        a.scale * (coordinates == ResizeCoordinates::kTfCropAndResize ? a.roi_end - a.roi_start : 1.0);
    if (!(std::fabs(extent) < 1e12)) ctx.fail("scale is out of range");
    a.out = scaled_extent(a.in, extent);
    a.from_sizes = false;
  }
  return all;
}

/// One pass of the separable filter: [outer, in, inner] to [outer, out, inner].
std::vector<double> filter_axis(const std::vector<double>& src, int64_t outer, int64_t in, int64_t out,
                                int64_t inner, const ResizeTaps& taps) {
  std::vector<double> dst(static_cast<size_t>(outer * out * inner), 0.0);
  for (int64_t p = 0; p < outer; ++p) {
    const double* s = src.data() + p * in * inner;
    double* d = dst.data() + p * out * inner;
    for (int64_t o = 0; o < out; ++o, d += inner) {
      for (int64_t t = taps.begin[static_cast<size_t>(o)]; t < taps.begin[static_cast<size_t>(o) + 1]; ++t) {
        const double w = taps.weight[static_cast<size_t>(t)];
        const double* row = s + taps.index[static_cast<size_t>(t)] * inner;
        for (int64_t i = 0; i < inner; ++i) d[i] += w * row[i];
      }
    }
  }
  return dst;
}

/// Puts `value` where any coordinate lies outside the crop.
void extrapolate(const std::vector<ResizeTaps>& taps, const Shape& shape, double value,
                 std::vector<double>* data) {
  std::vector<size_t> index(shape.size(), 0);
  const auto empty = [&](size_t d) { return taps[d].begin[index[d]] == taps[d].begin[index[d] + 1]; };
  for (double& v : *data) {
    bool outside = false;
    for (size_t d = 0; d < shape.size(); ++d) outside = outside || empty(d);
    if (outside) v = value;
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < static_cast<size_t>(shape[d])) break;
      index[d] = 0;
    }
  }
}

struct Bytes16 {
  uint64_t lo, hi;
};

/// Nearest moves bytes: a gather along every axis.
void move_nearest(KernelContext& ctx, const Tensor& x, const std::vector<ResizeTaps>& taps, Tensor* y) {
  const Shape& shape = y->shape();
  const int64_t bytes = element_bytes(x);
  const std::vector<int64_t> strides = dense_strides(x.shape());
  const bool number = is_float(x.dtype()) || is_integer(x.dtype()) || x.dtype() == DType::kBool;
  const Tensor outside = number
                             ? convert(Tensor::f32_scalar(ctx.get_float("extrapolation_value", 0)), x.dtype())
                             : Tensor::zeros(x.dtype(), {});
  const size_t rank = shape.size();
  const int64_t width = shape[rank - 1];
  // Source offset of each column, -1 outside.
  std::vector<int64_t> columns;
  for (int64_t o = 0; o < width; ++o) {
    const auto& t = taps[rank - 1];
    const auto b = static_cast<size_t>(t.begin[static_cast<size_t>(o)]);
    columns.push_back(static_cast<int64_t>(b) == t.begin[static_cast<size_t>(o) + 1] ? -1 : t.index[b]);
  }
  std::vector<size_t> index(rank - 1, 0);
  auto* dst = static_cast<char*>(y->raw());
  const auto* src = static_cast<const char*>(x.raw());
  const auto copy = [&]<class T>(T*, const char* row, char* to) {
    for (int64_t j = 0; j < width; ++j) {
      reinterpret_cast<T*>(to)[j] = columns[static_cast<size_t>(j)] < 0
                                        ? *static_cast<const T*>(outside.raw())
                                        : reinterpret_cast<const T*>(row)[columns[static_cast<size_t>(j)]];
    }
  };
  for (int64_t done = 0; done < y->numel(); done += width, dst += width * bytes) {
    int64_t base = 0;
    bool skip = false;
    for (size_t d = 0; d + 1 < rank; ++d) {
      const auto b = static_cast<size_t>(taps[d].begin[index[d]]);
      if (static_cast<int64_t>(b) == taps[d].begin[index[d] + 1]) {
        skip = true;
      } else {
        base += taps[d].index[b] * strides[d];
      }
    }
    if (skip) {
      fill_elements(dst, outside.raw(), width, bytes);
    } else {
      switch (bytes) {
        case 1: copy(static_cast<uint8_t*>(nullptr), src + base * bytes, dst); break;
        case 2: copy(static_cast<uint16_t*>(nullptr), src + base * bytes, dst); break;
        case 4: copy(static_cast<uint32_t*>(nullptr), src + base * bytes, dst); break;
        case 8: copy(static_cast<uint64_t*>(nullptr), src + base * bytes, dst); break;
        default: copy(static_cast<Bytes16*>(nullptr), src + base * bytes, dst); break;
      }
    }
    for (size_t d = rank - 1; d-- > 0;) {
      if (++index[d] < static_cast<size_t>(shape[d])) break;
      index[d] = 0;
    }
  }
}

void resize_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, resize_kernel);
  const Tensor& x = ctx.in(0);
  const ResizeOptions options = read_options(ctx);
  const std::vector<ResizeAxis> axes = read_axes(ctx, options.coordinates);
  Shape shape;
  for (const ResizeAxis& a : axes) shape.push_back(a.out);
  check_budget(ctx, DType::kF64, shape);
  if (std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d == 0; })) {
    ctx.out(0, x.dtype(), shape);
    return;
  }
  std::vector<ResizeTaps> taps;
  for (const ResizeAxis& a : axes) {
    if (a.in == 0) ctx.fail("nothing to resize an empty dimension from");
    ResizeOptions o = options;
    if (a.in == a.out && a.from_sizes && a.roi_start == 0 && a.roi_end == 1) {
      o.coordinates = ResizeCoordinates::kAsymmetric;  // not resized
      o.mode = ResizeMode::kNearest;
    }
    taps.push_back(resize_taps(a, o));
  }
  if (x.rank() == 0) {
    ctx.set_out(0, x);
    return;
  }
  if (options.mode == ResizeMode::kNearest) {
    move_nearest(ctx, x, taps, &ctx.out(0, x.dtype(), shape));
    return;
  }
  const Tensor wide = convert(x, DType::kF64);
  std::vector<double> data(wide.data<double>(), wide.data<double>() + wide.numel());
  Shape now = x.shape();
  for (size_t d = axes.size(); d-- > 0;) {
    if (taps[d].identity) continue;
    const int64_t outer = numel(Shape(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(d)));
    const int64_t inner = numel(Shape(now.begin() + static_cast<std::ptrdiff_t>(d) + 1, now.end()));
    data = filter_axis(data, outer, axes[d].in, axes[d].out, inner, taps[d]);
    now[d] = axes[d].out;
  }
  if (options.coordinates == ResizeCoordinates::kTfCropAndResize) {
    extrapolate(taps, shape, ctx.get_float("extrapolation_value", 0), &data);
  }
  ctx.set_out(0, convert(Tensor::view(DType::kF64, shape, data.data()).clone(), ctx.out_dtypes[0]));
}

Cost resize_cost(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  Cost cost = elementwise_cost(attrs, inputs, outputs);
  const std::string mode = ir::attr_string(attrs, "mode", "nearest");
  cost.flops *= mode == "nearest" ? 1 : mode == "linear" ? 8 : 32;
  return cost;
}

/// Scales all at least 1, all at most 1, or neither (which one nearest_mode cannot express).
const char* old_nearest_mode(AdaptContext& ctx, ir::ValueId scales) {
  const Tensor* t = ctx.graph.value(scales).data.get();
  if (t == nullptr) ctx.fail("Resize-10 in nearest mode needs constant scales");
  bool up = false, down = false;
  for (int64_t i = 0; i < t->numel(); ++i) {
    up = up || t->at(i) > 1;
    down = down || t->at(i) < 1;
  }
  if (up && down) ctx.fail("Resize-10 in nearest mode that enlarges one axis and shrinks another");
  return down ? "ceil" : "floor";
}

/// Resize-10 and Upsample have the inputs X, scales and the coordinates now called asymmetric; Resize-10
/// rounds down when it enlarges and up when it shrinks.
void resize_adapt(AdaptContext& ctx) {
  ir::Node& node = ctx.node;
  if (ctx.since < 11) {
    const ir::ValueId scales = node.inputs[1];
    node.attrs["coordinate_transformation_mode"] = std::string("asymmetric");
    if (node.get_string("mode", "nearest") == "nearest")
      node.attrs["nearest_mode"] = std::string(old_nearest_mode(ctx, scales));
    ctx.graph.set_input(&node, 1, ir::kNoValue);
    put_input(ctx, 2, scales);
    return;
  }
  if (node.get_string("coordinate_transformation_mode", "") != "tf_half_pixel_for_nn") return;
  // (x + 0.5) / scale, which opset 13 dropped: half a pixel right of half_pixel.
  const std::string nearest = node.get_string("nearest_mode", "round_prefer_floor");
  if (node.get_string("mode", "nearest") != "nearest" ||
      (nearest != "floor" && nearest != "round_prefer_floor")) {
    ctx.fail("tf_half_pixel_for_nn exists for nearest modes floor and round_prefer_floor only");
  }
  node.attrs["coordinate_transformation_mode"] = std::string("half_pixel");
  node.attrs["nearest_mode"] = std::string(nearest == "floor" ? "round_prefer_ceil" : "ceil");
}

void upsample_adapt(AdaptContext& ctx) {
  ir::Node& node = ctx.node;
  const std::string mode = node.get_string("mode", "nearest");
  std::vector<float> scales;
  if (ctx.since < 7) {
    scales = {1, 1, node.get_float("height_scale", 1), node.get_float("width_scale", 1)};
  } else if (ctx.since < 9) {
    scales = node.get_floats("scales");
  }
  for (const char* name : {"height_scale", "width_scale", "scales"}) node.attrs.erase(name);
  ir::ValueId value = ir::kNoValue;
  if (ctx.since < 9) {
    value = ctx.graph.add_constant(
        node.name + "/scales", Tensor::of<float>(DType::kF32, {static_cast<int64_t>(scales.size())}, scales));
  } else {
    value = node.inputs[1];
    ctx.graph.set_input(&node, 1, ir::kNoValue);
  }
  put_input(ctx, 2, value);
  node.op = "Resize";
  node.attrs["mode"] = std::string(mode == "bilinear" ? "linear" : mode);
  node.attrs["coordinate_transformation_mode"] = std::string("asymmetric");
  node.attrs["nearest_mode"] = std::string("floor");
}

}  // namespace

const OpDef& op_Resize() {
  static const OpDef def{.name = "Resize",
                         .infer = resize_infer,
                         .kernel = resize_kernel,
                         .adapt = resize_adapt,
                         .cost = resize_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

/// Exists only before opset 11: its adapter turns every Upsample into a Resize.
const OpDef& op_Upsample() {
  static const OpDef def{.name = "Upsample", .adapt = upsample_adapt, .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
