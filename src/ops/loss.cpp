// NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss. Source: ONNX, opsets 13 and 22.
//
// loss[n, d..] = -x[n, t, d..] * weight[t] with t the target, 0 where t is ignore_index; mean divides by the
// sum of the weights that took part (their count without weights). Cross entropy takes x =
// log_softmax(scores) over axis 1, which is its second output.
#include <cmath>

#include "ops/dispatch.h"
#include "ops/indices.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"

namespace hone::ops {
namespace {

void loss_infer(InferContext& ctx) {
  const std::string reduction = ctx.node().get_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    ctx.fail("reduction must be none, sum or mean, not '" + reduction + "'");
  ctx.set_output(0, ctx.dtype(0), reduction == "none" ? ctx.input(1).shape : Dims{});
  ctx.set_output(1, ctx.dtype(0), ctx.input(0).shape);
}

/// The loss of log-probabilities, in f64, to output 0.
void likelihood(KernelContext& ctx, const Shape& shape, const std::vector<double>& log_p) {
  const std::string reduction = ctx.get_string("reduction", "mean");
  const std::vector<int64_t> target = read_indices(ctx, 1);
  Shape expected = shape;
  expected.erase(expected.begin() + 1);
  if (ctx.in(1).shape() != expected)
    ctx.fail("targets are " + ctx.in(1).type_text() + ", the input asks for " +
             type_text(DType::kI64, expected));
  const int64_t classes = shape[1], inner = numel(Shape(shape.begin() + 2, shape.end()));
  const bool weighted = ctx.has_input(2);
  if (weighted && (ctx.in(2).rank() != 1 || ctx.in(2).numel() != classes))
    ctx.fail("weight must have one entry a class");
  const bool ignores = ctx.attrs.contains("ignore_index");
  const int64_t ignored = ctx.get_int("ignore_index", 0);
  Tensor loss(DType::kF64, expected);
  double sum = 0, weights = 0;
  for (size_t k = 0; k < target.size(); ++k) {
    const int64_t t = target[k], n = static_cast<int64_t>(k) / inner, i = static_cast<int64_t>(k) % inner;
    double v = 0;
    if (!ignores || t != ignored) {
      if (t < 0 || t >= classes)
        ctx.fail("target " + std::to_string(t) + " is outside [0, " + std::to_string(classes) + ")");
      const double w = weighted ? ctx.in(2).at(t) : 1.0;
      v = -log_p[static_cast<size_t>((n * classes + t) * inner + i)] * w;
      sum += v;
      weights += w;
    }
    loss.data<double>()[k] = v;
  }
  if (reduction == "none") {
    ctx.set_out(0, convert(loss, ctx.out_dtypes[0]));
    return;
  }
  ctx.set_out(0, convert(Tensor::of<double>(DType::kF64, {}, {reduction == "sum" ? sum : sum / weights}),
                         ctx.out_dtypes[0]));
}

std::vector<double> as_doubles(const KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() < 2) ctx.fail("input must be [N, C, ...], not " + x.type_text());
  const Tensor wide = convert(x, DType::kF64);
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

void nll_kernel(KernelContext& ctx) { likelihood(ctx, ctx.in(0).shape(), as_doubles(ctx)); }

void cross_entropy_kernel(KernelContext& ctx) {
  std::vector<double> x = as_doubles(ctx);
  const Shape& shape = ctx.in(0).shape();
  const int64_t classes = shape[1], inner = numel(Shape(shape.begin() + 2, shape.end()));
  for (int64_t n = 0; n < shape[0] && classes > 0; ++n) {
    for (int64_t i = 0; i < inner; ++i) {
      double* line = x.data() + n * classes * inner + i;
      double top = line[0], sum = 0;
      for (int64_t c = 1; c < classes; ++c) top = std::max(top, line[c * inner]);
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(line[c * inner] - top);
      const double shift = top + std::log(sum);
      for (int64_t c = 0; c < classes; ++c) line[c * inner] -= shift;
    }
  }
  if (ctx.wants(1)) {
    ctx.set_out(1, convert(Tensor::view(DType::kF64, shape, x.data()).clone(), ctx.out_dtypes[1]));
  }
  likelihood(ctx, shape, x);
}

}  // namespace

const OpDef& op_NegativeLogLikelihoodLoss() {
  static const OpDef def{.name = "NegativeLogLikelihoodLoss",
                         .infer = loss_infer,
                         .kernel = nll_kernel,
                         .cost = elementwise_cost};
  return def;
}

const OpDef& op_SoftmaxCrossEntropyLoss() {
  static const OpDef def{.name = "SoftmaxCrossEntropyLoss",
                         .infer = loss_infer,
                         .kernel = cross_entropy_kernel,
                         .cost = elementwise_cost};
  return def;
}

}  // namespace hone::ops
