// DFT STFT, the window functions and MelWeightMatrix. Transforms in f64: a radix-2 FFT for powers of two,
// else the sum itself. Source: ONNX, opsets 17 and 20.
#include <cmath>
#include <complex>
#include <numbers>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/interpreter.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

using Complex = std::complex<double>;

/// exp(sign * 2 pi j k / n), k reduced first so that the argument stays exact.
Complex root(int64_t k, int64_t n, double sign) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), sign * std::sin(angle)};
}

/// In place; not normalised.
void transform(std::vector<Complex>* x, bool inverse) {
  const auto n = static_cast<int64_t>(x->size());
  const double sign = inverse ? 1 : -1;
  if (n <= 1) return;
  std::vector<Complex> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) roots[static_cast<size_t>(k)] = root(k, n, sign);
  std::vector<Complex>& v = *x;
  if ((n & (n - 1)) != 0) {
    std::vector<Complex> y(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) {
      Complex sum = 0;
      int64_t at = 0;
      for (int64_t i = 0; i < n; ++i) {
        sum += v[static_cast<size_t>(i)] * roots[static_cast<size_t>(at)];
        at += k;
        if (at >= n) at -= n;
      }
      y[static_cast<size_t>(k)] = sum;
    }
    v = std::move(y);
    return;
  }
  for (int64_t i = 1, j = 0; i < n; ++i) {  // bit reversal
    int64_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(v[static_cast<size_t>(i)], v[static_cast<size_t>(j)]);
  }
  for (int64_t half = 1; half < n; half *= 2) {
    const int64_t step = n / (2 * half);
    for (int64_t block = 0; block < n; block += 2 * half) {
      for (int64_t i = 0; i < half; ++i) {
        Complex &a = v[static_cast<size_t>(block + i)], &b = v[static_cast<size_t>(block + i + half)];
        const Complex t = b * roots[static_cast<size_t>(i * step)];
        b = a - t;
        a += t;
      }
    }
  }
}

// --- DFT ---

int dft_axis(const InferContext& ctx, int rank) {
  int64_t axis = -2;
  if (const auto given = ctx.const_ints(2); given && given->size() == 1) axis = (*given)[0];
  const int a = ctx.axis(axis, rank);
  if (a == rank - 1) ctx.fail("axis must not be the one of real and imaginary parts");
  return a;
}

void dft_infer(InferContext& ctx) {
  if (!ctx.has_shape(0) || (ctx.has_input(2) && !ctx.const_ints(2))) {
    ctx.set_output(
        0, ctx.dtype(0),
        ctx.has_shape(0) ? std::optional<Dims>(unknown_dims(ctx, ctx.shape(0).size())) : std::nullopt);
    return;
  }
  Dims out = ctx.shape(0);
  if (out.size() < 2)
    ctx.fail("input must have a signal and a complex dimension, not " + ctx.input(0).text());
  const auto axis = static_cast<size_t>(dft_axis(ctx, static_cast<int>(out.size())));
  const bool onesided = ctx.node().get_int("onesided", 0) != 0,
             inverse = ctx.node().get_int("inverse", 0) != 0;
  Dim n = onesided && inverse ? Dim(2) * (out[axis] - Dim(1)) : out[axis];
  if (ctx.has_input(1)) {
    const auto length = ctx.contents(1);
    n = length && length->size() == 1 ? (*length)[0] : ctx.fresh_symbol();
  }
  out[axis] = onesided && !inverse ? Dim::floordiv(n, Dim(2)) + Dim(1) : n;
  out.back() = onesided && inverse ? 1 : 2;
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, std::move(out)));
}

void dft_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() < 2 || x.dim(x.rank() - 1) < 1 || x.dim(x.rank() - 1) > 2)
    ctx.fail("input must end in a dimension of 1 or 2, not " + x.type_text());
  const auto axis = static_cast<size_t>(ctx.axis(input_int(ctx, 2, -2), x.rank()));
  if (static_cast<int>(axis) == x.rank() - 1)
    ctx.fail("axis must not be the one of real and imaginary parts");
  const bool onesided = ctx.get_int("onesided", 0) != 0, inverse = ctx.get_int("inverse", 0) != 0;
  const int64_t have = x.shape()[axis], parts = x.dim(x.rank() - 1);
  const int64_t n = input_int(ctx, 1, onesided && inverse ? 2 * (have - 1) : have);
  if (n < 1) ctx.fail("the transform's length must be positive, not " + std::to_string(n));
  if (onesided && !inverse && parts == 2) ctx.fail("a one-sided transform takes real input");
  const int64_t out_n = onesided && !inverse ? n / 2 + 1 : n, out_parts = onesided && inverse ? 1 : 2;
  Shape shape = x.shape();
  shape[axis] = out_n;
  shape.back() = out_parts;
  check_budget(ctx, DType::kF64, shape);
  check_budget(ctx, DType::kC128, {n});
  const int64_t outer =
      numel(Shape(x.shape().begin(), x.shape().begin() + static_cast<std::ptrdiff_t>(axis)));
  const int64_t inner =
      numel(Shape(x.shape().begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape().end() - 1));
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), shape);
    std::vector<Complex> line(static_cast<size_t>(n));
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        std::fill(line.begin(), line.end(), Complex(0));
        for (int64_t k = 0; k < std::min(n, have); ++k) {
          const T* p = x.data<T>() + ((o * have + k) * inner + i) * parts;
          line[static_cast<size_t>(k)] = {static_cast<double>(p[0]),
                                          parts == 2 ? static_cast<double>(p[1]) : 0.0};
        }
        if (onesided && inverse) {  // the other half is the conjugate
          for (int64_t k = n / 2 + 1; k < n; ++k)
            line[static_cast<size_t>(k)] = std::conj(line[static_cast<size_t>(n - k)]);
        }
        transform(&line, inverse);
        for (int64_t k = 0; k < out_n; ++k) {
          const Complex v =
              inverse ? line[static_cast<size_t>(k)] / static_cast<double>(n) : line[static_cast<size_t>(k)];
          T* p = y.data<T>() + ((o * out_n + k) * inner + i) * out_parts;
          p[0] = static_cast<T>(v.real());
          if (out_parts == 2) p[1] = static_cast<T>(v.imag());
        }
      }
    }
  });
}

/// DFT-17 had the axis as an attribute, default 1.
void dft_adapt(AdaptContext& ctx) {
  if (ctx.since >= 20) return;
  const int64_t axis = ctx.node.get_int("axis", 1);
  ctx.node.attrs.erase("axis");
  put_input(ctx, 2, ctx.graph.add_constant(ctx.node.name + "/axis", Tensor::i64_scalar(axis)));
}

// --- STFT: frames of the signal, windowed and transformed ---

void stft_infer(InferContext& ctx) {
  if (!ctx.has_shape(0) || ctx.shape(0).size() < 2) {
    ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, 4));
    return;
  }
  const Dims& x = ctx.shape(0);
  std::optional<Dim> length, step;
  if (ctx.has_input(3)) {
    if (const auto v = ctx.contents(3); v && v->size() == 1) length = (*v)[0];
  } else if (ctx.has_input(2)) {
    if (ctx.has_shape(2) && ctx.shape(2).size() == 1) length = ctx.shape(2)[0];
  } else {
    length = x[1];
  }
  if (const auto v = ctx.contents(1); v && v->size() == 1) step = (*v)[0];
  if (step && step->is_const() && step->value() < 1) ctx.fail("frame_step must be positive");
  const Dim frames = length && step ? Dim::floordiv(x[1] - *length, *step) + Dim(1) : ctx.fresh_symbol();
  Dim bins = ctx.fresh_symbol();
  if (length)
    bins = ctx.node().get_int("onesided", 1) != 0 ? Dim::floordiv(*length, Dim(2)) + Dim(1) : *length;
  ctx.set_output(0, ctx.dtype(0), checked_dims(ctx, {x[0], frames, bins, 2}));
}

void stft_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() != 2 && x.rank() != 3)
    ctx.fail("signal must be [batch, length, 1 or 2], not " + x.type_text());
  const int64_t batch = x.dim(0), total = x.dim(1), parts = x.rank() == 3 ? x.dim(2) : 1,
                step = input_int(ctx, 1, 0);
  const bool has_window = ctx.has_input(2);
  const int64_t n = input_int(ctx, 3, has_window ? ctx.in(2).numel() : total);
  if (parts < 1 || parts > 2) ctx.fail("signal must be real or complex, not " + x.type_text());
  if (step < 1 || n < 1 || n > total)
    ctx.fail("frame_step " + std::to_string(step) + " and frame_length " + std::to_string(n) +
             " must be positive and fit the signal");
  if (has_window && ctx.in(2).numel() != n) ctx.fail("the window's length differs from frame_length");
  const bool onesided = ctx.get_int("onesided", 1) != 0;
  if (onesided && parts == 2) ctx.fail("a one-sided transform takes a real signal");
  const int64_t frames = (total - n) / step + 1, bins = onesided ? n / 2 + 1 : n;
  const Shape shape{batch, frames, bins, 2};
  check_budget(ctx, DType::kF64, shape);
  const Tensor window = has_window ? convert(ctx.in(2), DType::kF64) : Tensor();
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), shape);
    T* dst = y.data<T>();
    std::vector<Complex> line(static_cast<size_t>(n));
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t f = 0; f < frames; ++f) {
        line.resize(static_cast<size_t>(n));
        for (int64_t k = 0; k < n; ++k) {
          const T* p = x.data<T>() + (b * total + f * step + k) * parts;
          const double w = has_window ? window.data<double>()[k] : 1.0;
          line[static_cast<size_t>(k)] = {static_cast<double>(p[0]) * w,
                                          parts == 2 ? static_cast<double>(p[1]) * w : 0.0};
        }
        transform(&line, false);
        for (int64_t k = 0; k < bins; ++k) {
          *dst++ = static_cast<T>(line[static_cast<size_t>(k)].real());
          *dst++ = static_cast<T>(line[static_cast<size_t>(k)].imag());
        }
      }
    }
  });
}

// --- windows: a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n), n = size (periodic) or size - 1 ---

void window_infer(InferContext& ctx) {
  const auto size = ctx.contents(0);
  const Dim n = size && size->size() == 1 ? (*size)[0] : ctx.fresh_symbol();
  if (n.is_const() && n.value() < 0) ctx.fail("size is negative");
  ctx.set_output(0, checked_dtype(ctx, ctx.node().get_int("output_datatype", 1)), Dims{n});
}

void window(KernelContext& ctx, double a0, double a1, double a2) {
  const int64_t size = input_int(ctx, 0, 0);
  check_budget(ctx, DType::kF64, {size});
  const int64_t n = ctx.get_int("periodic", 1) != 0 ? size : size - 1;
  Tensor w(DType::kF64, {size});
  for (int64_t k = 0; k < size; ++k) {
    const double angle = n < 1 ? 0.0 : 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    w.data<double>()[k] = n < 1 ? 1.0 : a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle);
  }
  ctx.set_out(0, convert(w, ctx.out_dtypes[0]));
}

// --- MelWeightMatrix: triangles of peak 1 between mel-spaced bins ---

void mel_infer(InferContext& ctx) {
  const auto mels = ctx.contents(0), length = ctx.contents(1);
  const Dim bins =
      length && length->size() == 1 ? Dim::floordiv((*length)[0], Dim(2)) + Dim(1) : ctx.fresh_symbol();
  ctx.set_output(0, checked_dtype(ctx, ctx.node().get_int("output_datatype", 1)),
                 checked_dims(ctx, {bins, mels && mels->size() == 1 ? (*mels)[0] : ctx.fresh_symbol()}));
}

void mel_kernel(KernelContext& ctx) {
  const int64_t mels = input_int(ctx, 0, 0), length = input_int(ctx, 1, 0), rate = input_int(ctx, 2, 0);
  if (mels < 1 || length < 1 || rate < 1 || ctx.in(3).numel() != 1 || ctx.in(4).numel() != 1)
    ctx.fail("sizes and rate must be positive, edges scalars");
  const auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double low = mel(ctx.in(3).at(0)), high = mel(ctx.in(4).at(0));
  if (!std::isfinite(low) || !std::isfinite(high)) ctx.fail("the edges must be finite frequencies");
  const int64_t bins = length / 2 + 1;
  const Shape shape{bins, mels};
  check_budget(ctx, DType::kF64, shape);
  std::vector<int64_t> edge;  // bins of the mels + 2 edges
  for (int64_t i = 0; i < mels + 2; ++i) {
    const double m = low + static_cast<double>(i) * (high - low) / static_cast<double>(mels + 2);
    const double f = 700 * (std::pow(10.0, m / 2595) - 1);
    edge.push_back(
        to_integer<int64_t>(std::floor(static_cast<double>(length + 1) * f / static_cast<double>(rate))));
  }
  Tensor w = Tensor::zeros(DType::kF64, shape);
  const auto set = [&](int64_t bin, int64_t m, double v) {
    if (bin >= 0 && bin < bins) w.data<double>()[bin * mels + m] = v;
  };
  for (int64_t m = 0; m < mels; ++m) {
    const auto i = static_cast<size_t>(m);
    const int64_t left = std::max<int64_t>(edge[i], 0), center = edge[i + 1],
                  right = std::min(edge[i + 2], bins);
    if (center == edge[i]) {
      set(center, m, 1);
    } else {
      for (int64_t b = left; b <= std::min(center, bins - 1); ++b)
        set(b, m, static_cast<double>(b - edge[i]) / static_cast<double>(center - edge[i]));
    }
    for (int64_t b = std::max<int64_t>(center, 0); b < right; ++b) {
      set(b, m, static_cast<double>(edge[i + 2] - b) / static_cast<double>(edge[i + 2] - center));
    }
  }
  ctx.set_out(0, convert(w, ctx.out_dtypes[0]));
}

OpDef signal_op(const char* name, void (*infer)(InferContext&), void (*kernel)(KernelContext&),
                NarrowFloats narrow) {
  OpDef def;
  def.name = name;
  def.infer = infer;
  def.kernel = kernel;
  def.cost = elementwise_cost;
  def.narrow = narrow;
  return def;
}

}  // namespace

const OpDef& op_DFT() {
  static const OpDef def = [] {
    OpDef d = signal_op("DFT", dft_infer, dft_kernel, NarrowFloats::kWiden);
    d.adapt = dft_adapt;
    return d;
  }();
  return def;
}

const OpDef& op_STFT() {
  static const OpDef def = signal_op("STFT", stft_infer, stft_kernel, NarrowFloats::kWiden);
  return def;
}

const OpDef& op_HannWindow() {
  static const OpDef def = signal_op(
      "HannWindow", window_infer, [](KernelContext& ctx) { window(ctx, 0.5, 0.5, 0); },
      NarrowFloats::kNative);
  return def;
}

const OpDef& op_HammingWindow() {
  static const OpDef def = signal_op(
      "HammingWindow", window_infer, [](KernelContext& ctx) { window(ctx, 25.0 / 46, 1 - 25.0 / 46, 0); },
      NarrowFloats::kNative);
  return def;
}

const OpDef& op_BlackmanWindow() {
  static const OpDef def = signal_op(
      "BlackmanWindow", window_infer, [](KernelContext& ctx) { window(ctx, 0.42, 0.5, 0.08); },
      NarrowFloats::kNative);
  return def;
}

const OpDef& op_MelWeightMatrix() {
  static const OpDef def = signal_op("MelWeightMatrix", mel_infer, mel_kernel, NarrowFloats::kNative);
  return def;
}

}  // namespace hone::ops
