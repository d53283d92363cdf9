// Pad: adds elements before and after along axes, or removes them where a pad is negative (removal comes
// first, then padding). Modes: constant; edge repeats the border; reflect mirrors without repeating it, as
// often as needed (a single element repeats); wrap is periodic. Padding an empty axis in any mode but
// constant is an error. Source: ONNX Pad-25, NumPy's pad.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/legacy.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

void pad_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  Dims out = ctx.shape(0);
  std::vector<int64_t> axes;
  bool known = true;
  if (ctx.has_input(3)) {
    const auto given = ctx.const_ints(3);
    known = given.has_value();
    if (given) axes = *given;
  } else {
    for (size_t i = 0; i < out.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  const auto pads = ctx.contents(1);
  if (!known) {
    ctx.set_output(0, ctx.dtype(0), unknown_dims(ctx, out.size()));
    return;
  }
  const std::vector<int> at = ctx.axes(axes, static_cast<int>(out.size()));
  if (pads && pads->size() != 2 * at.size()) {
    ctx.fail("pads has " + std::to_string(pads->size()) + " entries for " + std::to_string(at.size()) +
             " axes");
  }
  for (size_t i = 0; i < at.size(); ++i) {
    Dim& d = out[static_cast<size_t>(at[i])];
    if (!pads) {
      d = ctx.fresh_symbol();
      continue;
    }
    d = d + (*pads)[i] + (*pads)[i + at.size()];
    if (d.is_const() && d.value() < 0)
      ctx.fail("pads remove more than dimension " + std::to_string(at[i]) + " has");
  }
  ctx.set_output(0, ctx.dtype(0), std::move(out));
}

enum class Mode : uint8_t { kConstant, kEdge, kReflect, kWrap };

/// Source coordinate of each output coordinate along one axis; -1 means the constant.
std::vector<int64_t> source_map(const KernelContext& ctx, Mode mode, int64_t extent, int64_t begin,
                                int64_t end) {
  const int64_t low = std::max<int64_t>(0, -begin), high = extent - std::max<int64_t>(0, -end);
  const int64_t n = high - low;                                                  // what is left after removal
  check_budget(ctx, DType::kI64, {std::max<int64_t>(0, extent + begin + end)});  // the map itself
  const int64_t before = std::max<int64_t>(0, begin), after = std::max<int64_t>(0, end);
  if (n < 0) ctx.fail("pads remove more than a dimension of " + std::to_string(extent) + " has");
  if (n == 0 && before + after > 0 && mode != Mode::kConstant)
    ctx.fail("nothing to pad an empty dimension with");
  std::vector<int64_t> map(static_cast<size_t>(before + n + after));
  for (int64_t o = 0; o < static_cast<int64_t>(map.size()); ++o) {
    int64_t c = o - before;
    if (c < 0 || c >= n) {
      switch (mode) {
        case Mode::kConstant: c = -1; break;
        case Mode::kEdge: c = c < 0 ? 0 : n - 1; break;
        case Mode::kWrap: c = ((c % n) + n) % n; break;
        case Mode::kReflect: {
          const int64_t period = n == 1 ? 1 : 2 * (n - 1);
          c = ((c % period) + period) % period;
          if (c >= n) c = period - c;
          break;
        }
      }
    }
    map[static_cast<size_t>(o)] = c < 0 ? -1 : c + low;
  }
  return map;
}

struct Bytes16 {
  uint64_t lo, hi;
};

template <class T>
void pad_rows(const std::vector<std::vector<int64_t>>& maps, const Tensor& x, T value, Tensor* y) {
  const size_t rank = maps.size();
  const std::vector<int64_t>& inner = maps[rank - 1];
  const std::vector<int64_t> strides = dense_strides(x.shape());
  const auto width = static_cast<int64_t>(inner.size());
  // The run of consecutive source columns is copied at once; borders go one by one.
  int64_t run = 0, run_begin = 0;
  for (int64_t j = 0; j < width;) {
    int64_t k = j + 1;
    while (inner[static_cast<size_t>(j)] >= 0 && k < width &&
           inner[static_cast<size_t>(k)] == inner[static_cast<size_t>(k - 1)] + 1)
      ++k;
    if (inner[static_cast<size_t>(j)] >= 0 && k - j > run) {
      run = k - j;
      run_begin = j;
    }
    j = k;
  }
  std::vector<size_t> index(rank - 1, 0);
  const T* src = x.data<T>();
  T* dst = y->data<T>();
  for (int64_t done = 0; done < y->numel(); done += width) {
    int64_t base = 0;
    bool outside = false;
    for (size_t d = 0; d + 1 < rank; ++d) {
      const int64_t c = maps[d][index[d]];
      outside = outside || c < 0;
      base += c * strides[d];
    }
    T* row = dst + done;
    if (outside) {
      std::fill(row, row + width, value);
    } else {
      const auto one = [&](int64_t j) {
        const int64_t c = inner[static_cast<size_t>(j)];
        row[j] = c < 0 ? value : src[base + c];
      };
      for (int64_t j = 0; j < run_begin; ++j) one(j);
      if (run > 0)
        std::memcpy(row + run_begin, src + base + inner[static_cast<size_t>(run_begin)],
                    static_cast<size_t>(run) * sizeof(T));
      for (int64_t j = run_begin + run; j < width; ++j) one(j);
    }
    for (size_t d = rank - 1; d-- > 0;) {
      if (++index[d] < maps[d].size()) break;
      index[d] = 0;
    }
  }
}

void pad_kernel(KernelContext& ctx) {
  if (has_subbyte_input(ctx)) return run_unpacked(ctx, pad_kernel);
  const Tensor& x = ctx.in(0);
  const std::vector<int64_t> pads = input_ints(ctx, 1);
  std::vector<int64_t> axes;
  if (ctx.has_input(3)) {
    axes = input_ints(ctx, 3);
  } else {
    for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
  }
  if (pads.size() != 2 * axes.size())
    ctx.fail("pads has " + std::to_string(pads.size()) + " entries for " + std::to_string(axes.size()) +
             " axes");
  const std::string name = ctx.get_string("mode", "constant");
  Mode mode = Mode::kConstant;
  if (name == "edge")
    mode = Mode::kEdge;
  else if (name == "reflect")
    mode = Mode::kReflect;
  else if (name == "wrap")
    mode = Mode::kWrap;
  else if (name != "constant")
    ctx.fail("mode must be constant, edge, reflect or wrap, not '" + name + "'");

  std::vector<std::pair<int64_t, int64_t>> around(x.shape().size(), {0, 0});
  std::vector<bool> seen(x.shape().size(), false);
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<size_t>(ctx.axis(axes[i], x.rank()));
    if (seen[a]) ctx.fail("axes name dimension " + std::to_string(a) + " twice");
    seen[a] = true;
    around[a] = {pads[i], pads[i + axes.size()]};
  }
  Shape shape;
  for (size_t d = 0; d < around.size(); ++d) {
    shape.push_back(checked_add(checked_add(x.shape()[d], around[d].first), around[d].second));
  }
  check_budget(ctx, x.dtype(), shape);
  if (x.rank() == 0) {
    ctx.set_out(0, x);
    return;
  }
  std::vector<std::vector<int64_t>> maps;
  for (size_t d = 0; d < shape.size(); ++d)
    maps.push_back(source_map(ctx, mode, x.shape()[d], around[d].first, around[d].second));
  Tensor value = Tensor::zeros(x.dtype(), {1});
  if (ctx.has_input(2)) {
    if (ctx.in(2).numel() != 1 || ctx.in(2).dtype() != x.dtype())
      ctx.fail("constant_value must be one element of the data's type");
    value = ctx.in(2);
  }
  Tensor& y = ctx.out(0, x.dtype(), shape);
  if (y.numel() == 0) return;
  const auto rows = [&]<class T>(Tag<T>) { pad_rows<T>(maps, x, *std::as_const(value).data<T>(), &y); };
  switch (element_bytes(x)) {
    case 1: return rows(Tag<uint8_t>{});
    case 2: return rows(Tag<uint16_t>{});
    case 4: return rows(Tag<uint32_t>{});
    case 8: return rows(Tag<uint64_t>{});
    default: return rows(Tag<Bytes16>{});
  }
}

/// Pad-1 called the attribute `paddings`, Pad-2 `pads`; the value was a float attribute.
void pad_adapt(AdaptContext& ctx) {
  if (ctx.since >= 11) return;
  if (ctx.node.has("paddings")) {
    ctx.node.attrs["pads"] = ctx.node.get_ints("paddings");
    ctx.node.attrs.erase("paddings");
  }
  attr_to_input(ctx, "pads", 1);
  if (ctx.node.has("value")) {
    const float value = ctx.node.get_float("value", 0);
    ctx.node.attrs.erase("value");
    put_input(ctx, 2, scalar_like_input(ctx, "value", value));
  }
}

}  // namespace

const OpDef& op_Pad() {
  static const OpDef def{.name = "Pad",
                         .infer = pad_infer,
                         .kernel = pad_kernel,
                         .adapt = pad_adapt,
                         .cost = elementwise_cost,
                         .narrow = NarrowFloats::kNative};
  return def;
}

}  // namespace hone::ops
