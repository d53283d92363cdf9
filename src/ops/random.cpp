// RandomNormal RandomUniform (and Like) Bernoulli Multinomial Dropout.
//
// Generator: element i takes the 64 bits splitmix64(key + (i+1) * 0x9E3779B97F4A7C15), the key being the bits
// of `seed` as f32, or the integer that Dropout has (0 where the attribute is absent: one fixed stream, so
// that a model without seeds runs the same twice). Uniform: the upper 53 bits as a fraction in [0, 1).
// Normal: Box-Muller on the fractions of elements 2i and 2i+1. Source: ONNX, opset 22; splitmix64: Steele,
// Lea, Flood 2014.
#include <bit>
#include <cmath>
#include <numbers>

#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

class Stream {
 public:
  explicit Stream(const KernelContext& ctx) {
    const auto it = ctx.attrs.find("seed");
    if (it == ctx.attrs.end()) return;
    // Dropout's seed is an integer, all others' a float.
    key_ = std::holds_alternative<int64_t>(it->second) ? static_cast<uint64_t>(std::get<int64_t>(it->second))
                                                       : std::bit_cast<uint32_t>(ctx.get_float("seed", 0.0F));
  }
  double uniform(int64_t i) const {
    uint64_t z = key_ + (static_cast<uint64_t>(i) + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-53;
  }
  double normal(int64_t i) const {
    const double u = 1.0 - uniform(2 * i), v = uniform(2 * i + 1);  // u in (0, 1]
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  uint64_t key_ = 0;
};

/// Fills output 0 from fn(i).
template <class F>
void fill(KernelContext& ctx, const Shape& shape, F fn) {
  check_budget(ctx, DType::kF64, shape);
  Tensor values(DType::kF64, shape);
  for (int64_t i = 0, n = values.numel(); i < n; ++i) values.data<double>()[i] = fn(i);
  ctx.set_out(0, convert(values, ctx.out_dtypes[0]));
}

void uniform(KernelContext& ctx, const Shape& shape) {
  const Stream stream(ctx);
  const double low = ctx.get_float("low", 0.0F), high = ctx.get_float("high", 1.0F);
  fill(ctx, shape, [&](int64_t i) { return low + (high - low) * stream.uniform(i); });
}

void normal(KernelContext& ctx, const Shape& shape) {
  const Stream stream(ctx);
  const double mean = ctx.get_float("mean", 0.0F), scale = ctx.get_float("scale", 1.0F);
  fill(ctx, shape, [&](int64_t i) { return mean + scale * stream.normal(i); });
}

DType dtype_attr(const InferContext& ctx, DType fallback) {
  const int64_t t = ctx.node().get_int("dtype", 0);
  return t == 0 ? fallback : checked_dtype(ctx, t);
}

void shaped_infer(InferContext& ctx) {
  const std::vector<int64_t> shape = ctx.node().get_ints("shape");
  for (const int64_t d : shape) {
    if (d < 0) ctx.fail("negative dimension in shape");
  }
  ctx.set_output(0, dtype_attr(ctx, DType::kF32), ir::to_dims(shape));
}

void like_infer(InferContext& ctx) { ctx.set_output(0, dtype_attr(ctx, ctx.dtype(0)), ctx.input(0).shape); }

void bernoulli_kernel(KernelContext& ctx) {
  const Stream stream(ctx);
  const Tensor& p = ctx.in(0);
  fill(ctx, p.shape(), [&](int64_t i) { return stream.uniform(i) < p.at(i) ? 1.0 : 0.0; });
}

void multinomial_infer(InferContext& ctx) {
  const int64_t samples = ctx.node().get_int("sample_size", 1);
  if (samples < 0) ctx.fail("sample_size is negative");
  const Dim batch = ctx.has_shape(0) && ctx.shape(0).size() == 2 ? ctx.shape(0)[0] : ctx.fresh_symbol();
  ctx.set_output(0, dtype_attr(ctx, DType::kI32), Dims{batch, samples});
}

/// Inverse of the cumulative distribution of exp(x - max x).
void multinomial_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() != 2 || (x.dim(1) == 0 && x.dim(0) > 0))
    ctx.fail("input must be [batch, classes], not " + x.type_text());
  const Stream stream(ctx);
  const int64_t samples = ctx.get_int("sample_size", 1), classes = x.dim(1);
  std::vector<double> cumulative(static_cast<size_t>(classes));
  int64_t row = -1;
  fill(ctx, {x.dim(0), samples}, [&](int64_t i) {
    if (i / samples != row) {
      row = i / samples;
      double top = -INFINITY, sum = 0;
      for (int64_t c = 0; c < classes; ++c) top = std::max(top, x.at(row * classes + c));
      for (int64_t c = 0; c < classes; ++c)
        cumulative[static_cast<size_t>(c)] = sum += std::exp(x.at(row * classes + c) - top);
    }
    const double at = stream.uniform(i) * cumulative.back();
    int64_t c = 0;
    while (c + 1 < classes && cumulative[static_cast<size_t>(c)] <= at) ++c;
    return static_cast<double>(c);
  });
}

// --- Dropout: the identity unless training_mode says otherwise; then x * mask / (1 - ratio), mask drawn from
// the generator above ---

void dropout_infer(InferContext& ctx) {
  infer_same(ctx);
  ctx.set_output(1, DType::kBool, ctx.input(0).shape);
}

void dropout_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  bool training = false;
  if (ctx.has_input(2)) {
    if (ctx.in(2).numel() != 1 || ctx.in(2).dtype() != DType::kBool)
      ctx.fail("training_mode must be one bool");
    training = *ctx.in(2).data<uint8_t>() != 0;
  }
  double ratio = 0.5;
  if (ctx.has_input(1)) {
    if (ctx.in(1).numel() != 1) ctx.fail("ratio must be a scalar");
    ratio = ctx.in(1).at(0);
  }
  if (training && !(ratio >= 0 && ratio < 1)) ctx.fail("ratio must be in [0, 1)");
  if (!training) ratio = 0;
  const Stream stream(ctx);
  if (ctx.wants(0)) {
    if (ratio == 0) {
      ctx.set_out(0, x);
    } else {
      float_or_throw(ctx, x.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        Tensor& y = ctx.out(0, x.dtype(), x.shape());
        const double scale = 1 / (1 - ratio);
        for (int64_t i = 0; i < x.numel(); ++i) {
          y.data<T>()[i] =
              stream.uniform(i) >= ratio ? static_cast<T>(static_cast<double>(x.data<T>()[i]) * scale) : T{0};
        }
      });
    }
  }
  if (!ctx.wants(1)) return;
  Tensor& mask = ctx.out(1, DType::kBool, x.shape());
  for (int64_t i = 0; i < mask.numel(); ++i)
    mask.data<uint8_t>()[i] = ratio == 0 || stream.uniform(i) >= ratio ? 1 : 0;
}

/// Before opset 12 ratio was an attribute, and before opset 7 `is_test` = 0 (the default) meant training. The
/// mask had the data's type before opset 10.
void dropout_adapt(AdaptContext& ctx) {
  if (ctx.since >= 12) return;
  if (ctx.since < 10 && ctx.node.outputs.size() > 1 && ctx.node.outputs[1] != ir::kNoValue) {
    const ir::Value& mask = ctx.graph.value(ctx.node.outputs[1]);
    if (!mask.uses.empty() || ctx.graph.is_output(mask.id))
      ctx.fail("the mask of a Dropout before opset 10 cannot be used");
  }
  for (const char* name : {"ratio", "is_test", "consumed_inputs"})
    ctx.node.attrs.erase(name);  // inference ignores the ratio
}

OpDef random_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&)) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.cost = elementwise_cost;
  def.narrow = NarrowFloats::kNative;
  def.deterministic = false;
  return def;
}

}  // namespace

const OpDef& op_RandomUniform() {
  static const OpDef def = random_op("RandomUniform", shaped_infer,
                                     [](KernelContext& ctx) { uniform(ctx, ctx.get_ints("shape")); });
  return def;
}

const OpDef& op_RandomNormal() {
  static const OpDef def =
      random_op("RandomNormal", shaped_infer, [](KernelContext& ctx) { normal(ctx, ctx.get_ints("shape")); });
  return def;
}

const OpDef& op_RandomUniformLike() {
  static const OpDef def =
      random_op("RandomUniformLike", like_infer, [](KernelContext& ctx) { uniform(ctx, ctx.in(0).shape()); });
  return def;
}

const OpDef& op_RandomNormalLike() {
  static const OpDef def =
      random_op("RandomNormalLike", like_infer, [](KernelContext& ctx) { normal(ctx, ctx.in(0).shape()); });
  return def;
}

const OpDef& op_Bernoulli() {
  static const OpDef def = random_op("Bernoulli", like_infer, bernoulli_kernel);
  return def;
}

const OpDef& op_Multinomial() {
  static const OpDef def = random_op("Multinomial", multinomial_infer, multinomial_kernel);
  return def;
}

const OpDef& op_Dropout() {
  static const OpDef def = [] {
    OpDef d = random_op("Dropout", dropout_infer, dropout_kernel);
    d.adapt = dropout_adapt;
    d.narrow = NarrowFloats::kWiden;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
