// Einsum and Det. Source: ONNX, opsets 28 and 22.
//
// Einsum: out[output indices] = sum over the other indices of the product of the operands, products and sums
// in f64 (integers: wrapping, in their type), summed in the order of the indices' first appearance. Ellipses
// broadcast against each other from the right.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/checked.h"
#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/infer_util.h"
#include "ops/movement.h"

namespace hone::ops {
namespace {

/// A parsed equation over operands of known rank. Letters are 'A'..'z'; ellipsis dimensions are -1, -2, ...
/// counted from the right.
struct Equation {
  std::vector<std::vector<int>> terms;
  std::vector<int> out;
};

/// Errors: the returned text; empty when fine.
std::string parse_equation(const std::string& text, const std::vector<size_t>& ranks, Equation* eq) {
  std::string s;
  for (const char c : text) {
    if (c != ' ') s.push_back(c);
  }
  const size_t arrow = s.find("->");
  const bool is_explicit = arrow != std::string::npos;
  const std::string left = s.substr(0, arrow);
  std::vector<std::string> parts(1);
  for (const char c : left) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back().push_back(c);
  }
  if (parts.size() != ranks.size())
    return "the equation has " + std::to_string(parts.size()) + " terms for " + std::to_string(ranks.size()) +
           " inputs";
  int widest = 0;
  const auto read = [&](const std::string& part, size_t rank, bool known,
                        std::vector<int>* out) -> std::string {
    int ellipses = 0;
    size_t letters = 0;
    for (size_t i = 0; i < part.size(); ++i) {
      if (std::isalpha(static_cast<unsigned char>(part[i])) != 0)
        ++letters;
      else if (part.compare(i, 3, "...") == 0)
        i += 2, ++ellipses;
      else
        return std::string("'") + part[i] + "' has no meaning in an equation";
    }
    if (ellipses > 1) return "a term has two ellipses";
    if (known && (letters > rank || (ellipses == 0 && letters != rank)))
      return "term '" + part + "' does not fit an operand of rank " + std::to_string(rank);
    const int dots = known ? static_cast<int>(rank - letters) : widest;
    if (known) widest = std::max(widest, ellipses > 0 ? dots : 0);
    for (size_t i = 0; i < part.size(); ++i) {
      if (part[i] == '.') {
        for (int d = dots; d > 0; --d) out->push_back(-d);
        i += 2;
      } else {
        out->push_back(part[i]);
      }
    }
    return {};
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    eq->terms.emplace_back();
    const std::string error = read(parts[i], ranks[i], true, &eq->terms.back());
    if (!error.empty()) return error;
  }
  if (is_explicit) {
    const std::string error = read(s.substr(arrow + 2), 0, false, &eq->out);
    if (!error.empty()) return error;
  } else {
    std::map<int, int> count;
    for (const auto& term : eq->terms) {
      for (const int c : term) ++count[c];
    }
    for (int d = widest; d > 0; --d) eq->out.push_back(-d);
    for (const auto& [c, n] : count) {
      if (c > 0 && n == 1) eq->out.push_back(c);
    }
  }
  for (size_t i = 0; i < eq->out.size(); ++i) {
    const int c = eq->out[i];
    if (std::count(eq->out.begin(), eq->out.end(), c) > 1) return "an output index is repeated";
    const bool found = std::any_of(eq->terms.begin(), eq->terms.end(), [c](const auto& t) {
      return std::find(t.begin(), t.end(), c) != t.end();
    });
    if (!found) return "an output index occurs in no term";
  }
  return {};
}

void einsum_infer(InferContext& ctx) {
  std::vector<size_t> ranks;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    if (!ctx.has_shape(i)) {
      ctx.set_output(0, ctx.dtype(0), std::nullopt);
      return;
    }
    ranks.push_back(ctx.shape(i).size());
  }
  Equation eq;
  const std::string error = parse_equation(ctx.node().get_string("equation", ""), ranks, &eq);
  if (!error.empty()) ctx.fail(error);
  std::map<int, Dim> extent;
  for (size_t i = 0; i < eq.terms.size(); ++i) {
    for (size_t d = 0; d < eq.terms[i].size(); ++d) {
      const Dim& have = ctx.shape(i)[d];
      const auto [it, is_new] = extent.emplace(eq.terms[i][d], have);
      if (is_new || it->second == have || have == Dim(1)) continue;
      if (it->second.is_const() && have.is_const() && it->second.value() != 1)
        ctx.fail("one index stands for " + it->second.text() + " and " + have.text());
      if (it->second == Dim(1) || have.is_const()) it->second = have;
    }
  }
  Dims out;
  for (const int c : eq.out) out.push_back(extent.at(c));
  ctx.set_output(0, ctx.dtype(0), std::move(out));
}

/// Sums over `inner` of the operands' products. Offsets advance by per-index strides; the innermost sum is a
/// plain loop.
template <class T, class Acc>
void contract(const std::vector<const T*>& src, const std::vector<std::vector<int64_t>>& out_strides,
              const Shape& out_shape, const std::vector<std::vector<int64_t>>& sum_strides,
              const Shape& sum_shape, T* dst) {
  const size_t n = src.size();
  const int64_t total = numel(out_shape), terms = numel(sum_shape);
  const int64_t run = sum_shape.empty() ? 1 : sum_shape.back();
  std::vector<int64_t> index(out_shape.size(), 0), base(n, 0), at(n), step(n, 0);
  for (size_t k = 0; k < n; ++k) step[k] = sum_shape.empty() ? 0 : sum_strides[k].back();
  std::vector<int64_t> sum_index(sum_shape.size(), 0);
  for (int64_t o = 0; o < total; ++o) {
    Acc sum = 0;
    at = base;
    std::fill(sum_index.begin(), sum_index.end(), 0);
    for (int64_t done = 0; done < terms; done += run) {
      if (n == 2) {
        const T *a = src[0] + at[0], *b = src[1] + at[1];
        for (int64_t i = 0; i < run; ++i)
          sum = wrap_add<Acc>(
              sum, wrap_mul<Acc>(static_cast<Acc>(a[i * step[0]]), static_cast<Acc>(b[i * step[1]])));
      } else {
        for (int64_t i = 0; i < run; ++i) {
          Acc product = static_cast<Acc>(src[0][at[0] + i * step[0]]);
          for (size_t k = 1; k < n; ++k)
            product = wrap_mul<Acc>(product, static_cast<Acc>(src[k][at[k] + i * step[k]]));
          sum = wrap_add<Acc>(sum, product);
        }
      }
      for (size_t d = sum_shape.size() > 0 ? sum_shape.size() - 1 : 0; d-- > 0;) {
        for (size_t k = 0; k < n; ++k) at[k] += sum_strides[k][d];
        if (++sum_index[d] < sum_shape[d]) break;
        for (size_t k = 0; k < n; ++k) at[k] -= sum_strides[k][d] * sum_shape[d];
        sum_index[d] = 0;
      }
    }
    dst[o] = static_cast<T>(sum);
    for (size_t d = out_shape.size(); d-- > 0;) {
      for (size_t k = 0; k < n; ++k) base[k] += out_strides[k][d];
      if (++index[d] < out_shape[d]) break;
      for (size_t k = 0; k < n; ++k) base[k] -= out_strides[k][d] * out_shape[d];
      index[d] = 0;
    }
  }
}

void einsum_kernel(KernelContext& ctx) {
  std::vector<size_t> ranks;
  for (const Tensor* t : ctx.inputs) {
    if (t->dtype() != ctx.in(0).dtype()) ctx.fail("inputs differ in type");
    ranks.push_back(t->shape().size());
  }
  Equation eq;
  const std::string error = parse_equation(ctx.get_string("equation", ""), ranks, &eq);
  if (!error.empty()) ctx.fail(error);
  std::map<int, int64_t> extent;
  std::vector<int> order;  // indices by first appearance
  for (size_t i = 0; i < eq.terms.size(); ++i) {
    for (size_t d = 0; d < eq.terms[i].size(); ++d) {
      const int c = eq.terms[i][d];
      const int64_t have = ctx.in(i).shape()[d];
      const auto [it, is_new] = extent.emplace(c, have);
      if (is_new) order.push_back(c);
      if (it->second == have || have == 1) continue;
      if (it->second != 1)
        ctx.fail("one index stands for " + std::to_string(it->second) + " and " + std::to_string(have));
      it->second = have;
    }
  }
  Shape out_shape, sum_shape;
  std::vector<int> sums;
  for (const int c : eq.out) out_shape.push_back(extent[c]);
  for (const int c : order) {
    if (std::find(eq.out.begin(), eq.out.end(), c) != eq.out.end()) continue;
    sums.push_back(c);
    sum_shape.push_back(extent[c]);
  }
  check_budget(ctx, ctx.in(0).dtype(), out_shape);
  // A repeated index walks the diagonal: its strides add up. An extent of 1 stands still.
  std::vector<std::vector<int64_t>> out_strides, sum_strides;
  for (size_t i = 0; i < eq.terms.size(); ++i) {
    const std::vector<int64_t> dense = dense_strides(ctx.in(i).shape());
    const auto stride = [&](int c) {
      int64_t s = 0;
      for (size_t d = 0; d < eq.terms[i].size(); ++d) {
        if (eq.terms[i][d] == c && ctx.in(i).shape()[d] != 1) s += dense[d];
      }
      return s;
    };
    out_strides.emplace_back();
    sum_strides.emplace_back();
    for (const int c : eq.out) out_strides.back().push_back(stride(c));
    for (const int c : sums) sum_strides.back().push_back(stride(c));
  }
  number_or_throw(ctx, ctx.in(0).dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    std::vector<const T*> src;
    for (const Tensor* t : ctx.inputs) src.push_back(t->data<T>());
    contract<T, Acc>(src, out_strides, out_shape, sum_strides, sum_shape,
                     ctx.out(0, ctx.in(0).dtype(), out_shape).template data<T>());
  });
}

Cost einsum_cost(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost cost;
  std::vector<size_t> ranks;
  for (const Shape& s : inputs) ranks.push_back(s.size());
  Equation eq;
  if (!parse_equation(ir::attr_string(attrs, "equation", ""), ranks, &eq).empty()) return cost;
  std::map<int, int64_t> extent;
  for (size_t i = 0; i < eq.terms.size(); ++i) {
    for (size_t d = 0; d < eq.terms[i].size(); ++d)
      extent[eq.terms[i][d]] = std::max(extent[eq.terms[i][d]], inputs[i][d]);
  }
  cost.flops = static_cast<double>(inputs.size());
  for (const auto& [c, n] : extent) cost.flops *= static_cast<double>(n);
  return cost;
}

// --- Det: determinant of the last two dimensions, by elimination with partial pivoting in f64 ---

void det_infer(InferContext& ctx) {
  if (!ctx.has_shape(0)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return;
  }
  const Dims& x = ctx.shape(0);
  if (x.size() < 2 || (x.back().is_const() && x[x.size() - 2].is_const() && !(x.back() == x[x.size() - 2])))
    ctx.fail("input must end in a square matrix, not " + ctx.input(0).text());
  ctx.set_output(0, ctx.dtype(0), Dims(x.begin(), x.end() - 2));
}

double determinant(std::vector<double>* m, int64_t n) {
  const auto at = [&](int64_t r, int64_t c) -> double& { return (*m)[static_cast<size_t>(r * n + c)]; };
  double det = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t r = k + 1; r < n; ++r) {
      if (std::fabs(at(r, k)) > std::fabs(at(pivot, k))) pivot = r;
    }
    if (at(pivot, k) == 0) return 0;
    if (pivot != k) {
      for (int64_t c = 0; c < n; ++c) std::swap(at(k, c), at(pivot, c));
      det = -det;
    }
    det *= at(k, k);
    for (int64_t r = k + 1; r < n; ++r) {
      const double f = at(r, k) / at(k, k);
      for (int64_t c = k + 1; c < n; ++c) at(r, c) -= f * at(k, c);
    }
  }
  return det;
}

void det_kernel(KernelContext& ctx) {
  const Tensor& x = ctx.in(0);
  if (x.rank() < 2 || x.dim(x.rank() - 1) != x.dim(x.rank() - 2))
    ctx.fail("input must end in a square matrix, not " + x.type_text());
  const int64_t n = x.dim(x.rank() - 1);
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    Tensor& y = ctx.out(0, x.dtype(), Shape(x.shape().begin(), x.shape().end() - 2));
    const T* src = x.data<T>();
    for (int64_t b = 0; b < y.numel(); ++b) {
      std::vector<double> m(src + b * n * n, src + (b + 1) * n * n);
      y.data<T>()[b] = static_cast<T>(determinant(&m, n));
    }
  });
}

}  // namespace

const OpDef& op_Einsum() {
  static const OpDef def{
      .name = "Einsum", .infer = einsum_infer, .kernel = einsum_kernel, .cost = einsum_cost};
  return def;
}

const OpDef& op_Det() {
  static const OpDef def{.name = "Det", .infer = det_infer, .kernel = det_kernel, .cost = elementwise_cost};
  return def;
}

}  // namespace hone::ops
