#include "ops/window.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace hone::ops {
namespace {

constexpr int64_t kMaxAttribute = int64_t{1} << 31;
/// Elements of one window: what a table of taps may take.
constexpr int64_t kMaxTaps = int64_t{1} << 24;

std::vector<int64_t> read_ints(const AttrMap& attrs, const char* name, size_t count, int64_t fallback,
                               int64_t least, const Fail& fail) {
  std::vector<int64_t> v = ir::attr_ints(attrs, name);
  if (v.empty()) return std::vector<int64_t>(count, fallback);
  if (v.size() != count) {
    fail("attribute '" + std::string(name) + "' has " + std::to_string(v.size()) + " values, needs " +
         std::to_string(count));
  }
  for (const int64_t x : v) {
    if (x < least || x > kMaxAttribute) {
      fail("attribute '" + std::string(name) + "' holds " + std::to_string(x) + ", must be in [" +
           std::to_string(least) + ", 2^31]");
    }
  }
  return v;
}

int64_t same_total(const Window& w, int d, int64_t in, int64_t out) {
  const auto i = static_cast<size_t>(d);
  return std::max<int64_t>(0, (out - 1) * w.strides[i] + w.extent(d) - in);
}

}  // namespace

int64_t Window::extent(int d) const {
  const auto i = static_cast<size_t>(d);
  return checked_add(checked_mul(kernel[i] - 1, dilations[i]), 1);
}

Window read_window(const AttrMap& attrs, int rank, const std::vector<int64_t>& kernel, const Fail& fail) {
  if (rank < 1) fail("the input needs at least one spatial dimension");
  const auto n = static_cast<size_t>(rank);
  Window w;
  if (kernel.empty()) {
    if (ir::attr_ints(attrs, "kernel_shape").empty()) fail("missing attribute 'kernel_shape'");
    w.kernel = read_ints(attrs, "kernel_shape", n, 1, 1, fail);
  } else {
    w.kernel = kernel;
    for (const int64_t k : kernel) {
      if (k < 1 || k > kMaxAttribute) fail("the weights have a kernel dimension of " + std::to_string(k));
    }
    const std::vector<int64_t> said = ir::attr_ints(attrs, "kernel_shape");
    if (!said.empty() && said != kernel)
      fail("attribute 'kernel_shape' differs from the shape of the weights");
  }
  w.strides = read_ints(attrs, "strides", n, 1, 1, fail);
  w.dilations = read_ints(attrs, "dilations", n, 1, 1, fail);
  const std::vector<int64_t> pads = read_ints(attrs, "pads", 2 * n, 0, 0, fail);
  w.pad_begin.assign(pads.begin(), pads.begin() + rank);
  w.pad_end.assign(pads.begin() + rank, pads.end());
  const std::string pad = ir::attr_string(attrs, "auto_pad", "NOTSET");
  if (pad == "VALID")
    w.auto_pad = Window::AutoPad::kValid;
  else if (pad == "SAME_UPPER")
    w.auto_pad = Window::AutoPad::kSameUpper;
  else if (pad == "SAME_LOWER")
    w.auto_pad = Window::AutoPad::kSameLower;
  else if (pad != "NOTSET" && !pad.empty())
    fail("attribute 'auto_pad' is '" + pad + "', must be NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  if (w.auto_pad != Window::AutoPad::kNotSet) {
    w.pad_begin.assign(n, 0);
    w.pad_end.assign(n, 0);
  }
  w.ceil_mode = ir::attr_int(attrs, "ceil_mode", 0) != 0;
  return w;
}

Dim window_out(const Window& w, int d, const Dim& in) {
  const auto i = static_cast<size_t>(d);
  const Dim stride(w.strides[i]);
  Dim out;
  if (w.auto_pad == Window::AutoPad::kSameUpper || w.auto_pad == Window::AutoPad::kSameLower) {
    out = Dim::ceildiv(in, stride);
  } else {
    const Dim room = in + Dim(w.pad_begin[i]) + Dim(w.pad_end[i]) - Dim(w.extent(d));
    const bool ceil = w.ceil_mode && w.auto_pad == Window::AutoPad::kNotSet;
    out = (ceil ? Dim::ceildiv(room, stride) : Dim::floordiv(room, stride)) + Dim(1);
    // A window may run over the right edge but not start behind it: (out - 1) * stride < in + pad_begin.
    if (ceil) out = Dim::min(out, Dim::floordiv(in + Dim(w.pad_begin[i]) - Dim(1), stride) + Dim(1));
  }
  return out.is_const() ? Dim(std::max<int64_t>(0, out.value())) : out;
}

int64_t window_out(const Window& w, int d, int64_t in, const Fail& fail) {
  const auto i = static_cast<size_t>(d);
  const int64_t room = checked_sub(checked_add(in, w.pad_begin[i] + w.pad_end[i]), w.extent(d));
  const bool same = w.auto_pad == Window::AutoPad::kSameUpper || w.auto_pad == Window::AutoPad::kSameLower;
  if (!same && in > 0 && room < 0 && !(w.ceil_mode && -room < w.strides[i])) {
    fail("attribute 'kernel_shape': a window of " + std::to_string(w.extent(d)) + " does not fit into " +
         std::to_string(in) + " padded by " + std::to_string(w.pad_begin[i]) + " and " +
         std::to_string(w.pad_end[i]) + " (spatial dimension " + std::to_string(d) + ")");
  }
  return window_out(w, d, Dim(in)).value();
}

int64_t window_pad_begin(const Window& w, int d, int64_t in, int64_t out) {
  if (w.auto_pad == Window::AutoPad::kSameUpper) return same_total(w, d, in, out) / 2;
  if (w.auto_pad == Window::AutoPad::kSameLower)
    return same_total(w, d, in, out) - same_total(w, d, in, out) / 2;
  return w.pad_begin[static_cast<size_t>(d)];
}

int64_t window_pad_end(const Window& w, int d, int64_t in, int64_t out) {
  if (w.auto_pad == Window::AutoPad::kSameUpper || w.auto_pad == Window::AutoPad::kSameLower) {
    return same_total(w, d, in, out) - window_pad_begin(w, d, in, out);
  }
  return w.pad_end[static_cast<size_t>(d)];
}

Dims window_dims(const Window& w, const Dims& x, const Dim& channels) {
  Dims out = {x[0], channels};
  for (int d = 0; d < w.rank(); ++d) out.push_back(window_out(w, d, x[static_cast<size_t>(d) + 2]));
  return out;
}

Shape window_shape(const Window& w, const Shape& x, int64_t channels, const Fail& fail) {
  Shape out = {x[0], channels};
  for (int d = 0; d < w.rank(); ++d) out.push_back(window_out(w, d, x[static_cast<size_t>(d) + 2], fail));
  return out;
}

void adapt_float_order(AdaptContext& ctx) {
  const auto it = ctx.node.attrs.find("p");
  if (it == ctx.node.attrs.end() || !std::holds_alternative<float>(it->second)) return;
  const float p = std::get<float>(it->second);
  if (!(p >= 1) || p != std::floor(p) || p > 1024)
    ctx.fail("attribute 'p' is " + std::to_string(p) + "; only whole orders are defined from opset 2 on");
  it->second = static_cast<int64_t>(p);
}

WindowWalk::WindowWalk(const Window& w, std::vector<int64_t> in, std::vector<int64_t> out,
                       std::vector<int64_t> pad)
    : rank_(w.rank()), in_(std::move(in)), out_(std::move(out)), pad_(std::move(pad)), stride_(w.strides) {
  int64_t taps = 1;
  for (int d = 0; d < rank_; ++d) {
    const auto i = static_cast<size_t>(d);
    taps = checked_mul(taps, w.kernel[i]);
    positions_ = checked_mul(positions_, out_[i]);
    plane_ = checked_mul(plane_, in_[i]);
  }
  if (taps > kMaxTaps)
    throw Error(ErrorCode::kOutOfMemory, "a window of " + std::to_string(taps) +
                                             " elements exceeds the budget of " + std::to_string(kMaxTaps));
  tap_.resize(static_cast<size_t>(taps * rank_));
  for (int64_t t = 0; t < taps; ++t) {
    int64_t rest = t;
    for (int d = rank_ - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      tap_[static_cast<size_t>(t * rank_ + d)] = rest % w.kernel[i] * w.dilations[i];
      rest /= w.kernel[i];
    }
  }
}

void WindowWalk::origin(int64_t position, int64_t* coords) const {
  for (int d = rank_ - 1; d >= 0; --d) {
    const auto i = static_cast<size_t>(d);
    coords[d] = position % out_[i] * stride_[i] - pad_[i];
    position /= out_[i];
  }
}

}  // namespace hone::ops
