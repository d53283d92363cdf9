// ReverseSequence Trilu CenterCropPad TensorScatter Col2Im. Source: ONNX, opsets 14 to 28.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

int64_t product_of(const Shape& s, size_t from, size_t to) {
  return numel(
      Shape(s.begin() + static_cast<std::ptrdiff_t>(from), s.begin() + static_cast<std::ptrdiff_t>(to)));
}

// --- ReverseSequence: the first sequence_lens[b] steps of each batch entry in reverse order ---

void reverse_sequence_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, reverse_sequence_kernel);
  const Tensor& x = ctx.in(0);
  const int64_t time_axis = ctx.get_int("time_axis", 0), batch_axis = ctx.get_int("batch_axis", 1);
  if (x.rank() < 2 || time_axis + batch_axis != 1 || time_axis * batch_axis != 0)
    ctx.fail("time_axis and batch_axis must be 0 and 1 of a tensor of rank 2 or more");
  const bool time_first = time_axis == 0;
  const int64_t steps = x.dim(time_first ? 0 : 1), batch = x.dim(time_first ? 1 : 0);
  const std::vector<int64_t> lengths = read_indices(ctx, 1);
  if (static_cast<int64_t>(lengths.size()) != batch)
    ctx.fail("sequence_lens has " + std::to_string(lengths.size()) + " entries for " + x.type_text());
  Tensor& y = ctx.out(0, x.dtype(), x.shape());
  const int64_t block = product_of(x.shape(), 2, x.shape().size()) * element_bytes(x);
  const auto at = [&](int64_t t, int64_t b) { return (time_first ? t * batch + b : b * steps + t) * block; };
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t n = lengths[static_cast<size_t>(b)];
    if (n < 0 || n > steps)
      ctx.fail("sequence length " + std::to_string(n) + " is outside [0, " + std::to_string(steps) + "]");
    for (int64_t t = 0; t < steps && block > 0; ++t) {
      std::memcpy(static_cast<char*>(y.raw()) + at(t, b),
                  static_cast<const char*>(x.raw()) + at(t < n ? n - 1 - t : t, b),
                  static_cast<size_t>(block));
    }
  }
}

// --- Trilu: zero below (upper) or above (lower) the k-th diagonal of the last two dimensions ---

void trilu_infer(InferContext& ctx) {
  if (ctx.has_shape(0) && ctx.shape(0).size() < 2)
    ctx.fail("input must have at least two dimensions, not " + ctx.input(0).text());
  infer_same(ctx);
}

void trilu_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() < 2) ctx.fail("input must have at least two dimensions, not " + x.type_text());
  const bool upper = ctx.get_int("upper", 1) != 0;
  const int64_t k = input_int(ctx, 1, 0), rows = x.dim(x.rank() - 2), cols = x.dim(x.rank() - 1),
                bytes = element_bytes(x);
  Tensor& y = ctx.out(0, x.dtype(), x.shape());
  if (y.numel() == 0) return;
  std::memset(y.raw(), 0, static_cast<size_t>(y.nbytes()));
  const int64_t matrices = x.numel() / (rows * cols);
  for (int64_t m = 0; m < matrices; ++m) {
    for (int64_t r = 0; r < rows; ++r) {
      // Column r + k is the diagonal; k far outside keeps everything or nothing.
      const int64_t diagonal = k >= cols ? cols : k <= -rows ? -1 : std::clamp<int64_t>(r + k, -1, cols);
      const int64_t from = upper ? std::max<int64_t>(0, k <= -rows ? 0 : diagonal) : 0;
      const int64_t to = upper ? cols : std::min(cols, diagonal + 1);
      const int64_t at = ((m * rows + r) * cols + from) * bytes;
      if (to > from)
        std::memcpy(static_cast<char*>(y.raw()) + at, static_cast<const char*>(x.raw()) + at,
                    static_cast<size_t>((to - from) * bytes));
    }
  }
}

// --- CenterCropPad ---

std::vector<int64_t> crop_axes(const AttrMap& attrs, size_t rank) {
  if (attrs.contains("axes")) return ir::attr_ints(attrs, "axes");
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

void center_crop_pad_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  Dims out = ctx.shape(0);
  const std::vector<int> axes =
      ctx.axes(crop_axes(ctx.node().attrs, out.size()), static_cast<int>(out.size()));
  const auto target = ctx.contents(1);
  if (target && target->size() != axes.size())
    ctx.fail("shape has " + std::to_string(target->size()) + " entries for " + std::to_string(axes.size()) +
             " axes");
  for (size_t i = 0; i < axes.size(); ++i)
    out[static_cast<size_t>(axes[i])] = target ? (*target)[i] : ctx.fresh_symbol();
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, std::move(out)));
}

void center_crop_pad_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, center_crop_pad_kernel);
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> axes = crop_axes(ctx.attrs, x.shape().size()), target = input_ints(ctx, 1);
  if (target.size() != axes.size())
    ctx.fail("shape has " + std::to_string(target.size()) + " entries for " + std::to_string(axes.size()) +
             " axes");
  Shape shape = x.shape();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (target[i] < 0) ctx.fail("negative target size");
    shape[static_cast<size_t>(ctx.axis(axes[i], x.rank()))] = target[i];
  }
  check_budget(ctx, x.dtype(), shape);
  Tensor& y = ctx.out(0, x.dtype(), shape);
  if (y.numel() == 0) return;
  std::memset(y.raw(), 0, static_cast<size_t>(y.nbytes()));
  if (x.numel() == 0) return;
  const std::vector<int64_t> xs = dense_strides(x.shape()), ys = dense_strides(shape);
  int64_t from = 0, to = 0;
  Shape common;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t a = x.shape()[d], b = shape[d];
    common.push_back(std::min(a, b));
    if (a > b)
      from += (a - b) / 2 * xs[d];
    else
      to += (b - a) / 2 * ys[d];
  }
  const int64_t bytes = element_bytes(x);
  copy_strided(static_cast<char*>(y.raw()) + to * bytes, ys, static_cast<const char*>(x.raw()) + from * bytes,
               xs, common, bytes);
}

// --- TensorScatter: writes `update` into the cache at write_indices[batch] along the sequence axis ---

void tensor_scatter_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, tensor_scatter_kernel);
  const Tensor &cache = ctx.in(0), &update = ctx.in(1);
  const std::string mode = ctx.get_string("mode", "linear");
  if (mode != "linear" && mode != "circular") ctx.fail("mode must be linear or circular, not '" + mode + "'");
  const auto axis = static_cast<size_t>(ctx.axis(ctx.get_int("axis", -2), cache.rank()));
  if (axis == 0) ctx.fail("axis must not be the batch dimension");
  if (update.rank() != cache.rank() || update.dtype() != cache.dtype())
    ctx.fail("cache " + cache.type_text() + " and update " + update.type_text() + " differ");
  for (size_t d = 0; d < cache.shape().size(); ++d) {
    if (d != axis && cache.shape()[d] != update.shape()[d])
      ctx.fail("cache " + cache.type_text() + " and update " + update.type_text() + " differ off the axis");
  }
  const int64_t batch = cache.dim(0), room = cache.shape()[axis], length = update.shape()[axis];
  if (length > room) ctx.fail("the update is longer than the cache");
  std::vector<int64_t> at(static_cast<size_t>(batch), 0);
  if (ctx.has_input(2)) {
    at = read_indices(ctx, 2);
    if (static_cast<int64_t>(at.size()) != batch) ctx.fail("write_indices must have one entry a batch entry");
  }
  Tensor& y = ctx.out(0, cache.dtype(), cache.shape());
  if (y.numel() == 0) return;
  std::memcpy(y.raw(), cache.raw(), static_cast<size_t>(cache.nbytes()));
  const int64_t middle = product_of(cache.shape(), 1, axis),
                block = product_of(cache.shape(), axis + 1, cache.shape().size()) * element_bytes(cache);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t start = at[static_cast<size_t>(b)];
    if (start < 0 || (mode == "linear" && start > room - length))
      ctx.fail("write index " + std::to_string(start) + " with " + std::to_string(length) +
               " steps leaves the cache");
    for (int64_t m = 0; m < middle; ++m) {
      for (int64_t s = 0; s < length; ++s) {
        const int64_t to = (start % room + s) % room;
        std::memcpy(static_cast<char*>(y.raw()) + (((b * middle + m) * room) + to) * block,
                    static_cast<const char*>(update.raw()) + (((b * middle + m) * length) + s) * block,
                    static_cast<size_t>(block));
      }
    }
  }
}

// --- Col2Im: adds column blocks back into an image ---

void col2im_infer(InferContext& ctx) {
  const auto image = ctx.contents(1), block = ctx.contents(2);
  if (!ctx.has_shape(0) || ctx.shape(0).size() != 3 || !image) {
    const auto rank = vector_length(ctx, 1);
    ctx.set_output(
        0, ctx.dtype(0),
        rank ? std::optional<Dims>(unknown_dims(ctx, static_cast<size_t>(*rank) + 2)) : std::nullopt);
    return;
  }
  Dims out{ctx.shape(0)[0], ctx.fresh_symbol()};
  if (block) out[1] = Dim::floordiv(ctx.shape(0)[1], ir::product(*block));
  out.insert(out.end(), image->begin(), image->end());
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, std::move(out)));
}

void col2im_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> image = input_ints(ctx, 1), block = input_ints(ctx, 2);
  const size_t n = image.size();
  const std::vector<int64_t> strides = ctx.get_ints("strides", std::vector<int64_t>(n, 1)),
                             dilations = ctx.get_ints("dilations", std::vector<int64_t>(n, 1)),
                             pads = ctx.get_ints("pads", std::vector<int64_t>(2 * n, 0));
  if (x.rank() != 3 || n == 0 || block.size() != n || strides.size() != n || dilations.size() != n ||
      pads.size() != 2 * n) {
    ctx.fail(
        "input must be [N, C * block, L]; image, block, strides, dilations and pads must agree in length");
  }
  Shape columns;  // blocks along each axis
  int64_t block_size = 1;
  for (size_t d = 0; d < n; ++d) {
    if (image[d] < 0 || block[d] < 1 || strides[d] < 1 || dilations[d] < 1 || pads[d] < 0 || pads[d + n] < 0)
      ctx.fail("sizes, strides, dilations and pads must be positive");
    block_size = checked_mul(block_size, block[d]);
    const int64_t span = checked_sub(checked_add(image[d], checked_add(pads[d], pads[d + n])),
                                     checked_add(checked_mul(dilations[d], block[d] - 1), 1));
    if (span < 0) ctx.fail("a block is larger than the padded image");
    columns.push_back(span / strides[d] + 1);
  }
  if (x.dim(1) % block_size != 0 || numel(columns) != x.dim(2)) {
    ctx.fail(x.type_text() + " does not hold blocks of " + std::to_string(block_size) + " at " +
             std::to_string(numel(columns)) + " places");
  }
  const int64_t batch = x.dim(0), channels = x.dim(1) / block_size, places = x.dim(2);
  Shape shape{batch, channels};
  shape.insert(shape.end(), image.begin(), image.end());
  check_budget(ctx, DType::kF64, shape);
  const int64_t plane = numel(image);
  const std::vector<int64_t> image_strides = dense_strides(image), block_strides = dense_strides(block),
                             column_strides = dense_strides(columns);
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<double> sum(static_cast<size_t>(numel(shape)), 0.0);
    const T* src = x.data<T>();
    for (int64_t nc = 0; nc < batch * channels; ++nc) {
      for (int64_t k = 0; k < block_size; ++k) {
        for (int64_t l = 0; l < places; ++l, ++src) {
          int64_t at = nc * plane;
          bool inside = true;
          for (size_t d = 0; d < n && inside; ++d) {
            const int64_t i = l / column_strides[d] % columns[d] * strides[d] - pads[d] +
                              k / block_strides[d] % block[d] * dilations[d];
            inside = i >= 0 && i < image[d];
            at += i * image_strides[d];
          }
          if (inside) sum[static_cast<size_t>(at)] += static_cast<double>(*src);
        }
      }
    }
    Tensor& y = ctx.out(0, x.dtype(), shape);
    for (size_t i = 0; i < sum.size(); ++i) y.data<T>()[i] = static_cast<T>(sum[i]);
  });
}

OpDef rearrange_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
                   NarrowFloats narrow = NarrowFloats::kNative) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.cost = elementwise_cost;
  def.narrow = narrow;
  return def;
}

}  // namespace

const OpDef& op_ReverseSequence() {
  static const OpDef def = rearrange_op("ReverseSequence", infer_same, reverse_sequence_kernel);
  return def;
}

const OpDef& op_Trilu() {
  static const OpDef def = rearrange_op("Trilu", trilu_infer, trilu_kernel);
  return def;
}

const OpDef& op_CenterCropPad() {
  static const OpDef def = rearrange_op("CenterCropPad", center_crop_pad_infer, center_crop_pad_kernel);
  return def;
}

const OpDef& op_TensorScatter() {
  static const OpDef def = rearrange_op("TensorScatter", infer_same, tensor_scatter_kernel);
  return def;
}

const OpDef& op_Col2Im() {
  static const OpDef def = rearrange_op("Col2Im", col2im_infer, col2im_kernel, NarrowFloats::kWiden);
  return def;
}

}  // namespace hone::ops
