// LinearAttention: per key/value head a state S [dk, dv] runs over time, o_t = scale * S_t^T q_t:
//   linear        S += k (x) v
//   gated         S = exp(g) S + k (x) v
//   delta         S += beta k (x) (v - S^T k)
//   gated_delta   S = exp(g) S, then as delta
// The state stays in f64 between steps. chunk_size is a hint and changes nothing here.
#include <cmath>

#include "ops/conv.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"

namespace hone::ops {
namespace {

struct Options {
  int64_t q_heads = 0, kv_heads = 0;
  bool gated = false, delta = false;

  Options(const AttrMap& attrs, const Fail& fail)
      : q_heads(ir::attr_int(attrs, "q_num_heads", 0)), kv_heads(ir::attr_int(attrs, "kv_num_heads", 0)) {
    if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0) {
      fail("attribute 'q_num_heads' is " + std::to_string(q_heads) +
           ", must be a positive multiple of kv_num_heads " + std::to_string(kv_heads));
    }
    const std::string rule = ir::attr_string(attrs, "update_rule", "gated_delta");
    if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
      fail("attribute 'update_rule' is '" + rule + "', must be linear, gated, delta or gated_delta");
    }
    gated = rule.starts_with("gated");
    delta = rule.ends_with("delta");
  }
};

void infer(InferContext& ctx) {
  const Options o(ctx.node().attrs, failer(ctx));
  const DType state = ctx.has_input(3) ? ctx.dtype(3) : ctx.dtype(0);
  if (!ctx.has_shape(0) || !ctx.has_shape(1) || !ctx.has_shape(2)) {
    ctx.set_output(0, ctx.dtype(0), std::nullopt);
    return ctx.set_output(1, state, std::nullopt);
  }
  const Dims &q = ctx.shape(0), &k = ctx.shape(1), &v = ctx.shape(2);
  if (q.size() != 3 || k.size() != 3 || v.size() != 3) ctx.fail("query, key and value must have rank 3");
  const auto split = [&](const Dim& d, int64_t heads, const char* name) {
    if (d.is_const() && d.value() % heads != 0)
      ctx.fail(std::string(name) + " has " + d.text() + " features for " + std::to_string(heads) + " heads");
    return Dim::floordiv(d, Dim(heads));
  };
  split(q[2], o.q_heads, "query");
  const Dim dk = split(k[2], o.kv_heads, "key"), dv = split(v[2], o.kv_heads, "value");
  ctx.set_output(0, ctx.dtype(0), Dims{q[0], q[1], Dim(o.q_heads) * dv});
  ctx.set_output(1, state, Dims{q[0], Dim(o.kv_heads), dk, dv});
}

void kernel(KernelContext& ctx) {
  const Options o(ctx.attrs, failer(ctx));
  const Tensor &q = ctx.in(0), &k = ctx.in(1), &v = ctx.in(2);
  if (q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || q.dim(2) % o.q_heads != 0 ||
      k.dim(2) % o.kv_heads != 0 || v.dim(2) % o.kv_heads != 0) {
    ctx.fail("query " + q.type_text() + ", key " + k.type_text() + " or value " + v.type_text() +
             " does not split into heads");
  }
  const int64_t batch = q.dim(0), steps = q.dim(1), dk = k.dim(2) / o.kv_heads, dv = v.dim(2) / o.kv_heads,
                shared = o.q_heads / o.kv_heads;
  const auto leads = [&](const Tensor& t) { return t.rank() == 3 && t.dim(0) == batch && t.dim(1) == steps; };
  if (!leads(k) || !leads(v) || q.dim(2) / o.q_heads != dk)
    ctx.fail("query " + q.type_text() + ", key " + k.type_text() + " and value " + v.type_text() +
             " do not fit");
  const Shape state_shape = {batch, o.kv_heads, dk, dv};
  if (ctx.has_input(3) && ctx.in(3).shape() != state_shape)
    ctx.fail("past_state " + ctx.in(3).type_text() + " must be " + type_text(q.dtype(), state_shape));
  if (o.gated && (!ctx.has_input(4) || !leads(ctx.in(4)) ||
                  (ctx.in(4).dim(2) != o.kv_heads && ctx.in(4).dim(2) != o.kv_heads * dk))) {
    ctx.fail(
        "decay must be [batch, steps, kv heads] or [batch, steps, kv heads * key size] for this update rule");
  }
  if (o.delta &&
      (!ctx.has_input(5) || !leads(ctx.in(5)) || (ctx.in(5).dim(2) != o.kv_heads && ctx.in(5).dim(2) != 1))) {
    ctx.fail("beta must be [batch, steps, kv heads] or [batch, steps, 1] for this update rule");
  }
  double scale = ctx.get_float("scale", 0.0F);
  if (scale == 0) scale = 1.0 / std::sqrt(static_cast<double>(dk));
  const bool per_key = o.gated && ctx.in(4).dim(2) == o.kv_heads * dk && dk != 1;
  const std::vector<double> decay = o.gated ? to_doubles(ctx.in(4)) : std::vector<double>(),
                            beta = o.delta ? to_doubles(ctx.in(5)) : std::vector<double>();
  std::vector<double> states = ctx.has_input(3)
                                   ? to_doubles(ctx.in(3))
                                   : std::vector<double>(static_cast<size_t>(numel(state_shape)), 0.0);
  Tensor& out = ctx.out(0, {batch, steps, o.q_heads * dv});

  float_or_throw(ctx, q.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ref_parallel(batch * o.kv_heads, static_cast<double>(4 * steps * dk * dv), [&](int64_t plane) {
      const int64_t b = plane / o.kv_heads, h = plane % o.kv_heads;
      double* s = states.data() + plane * dk * dv;
      std::vector<double> change(static_cast<size_t>(dv));
      for (int64_t t = 0; t < steps; ++t) {
        const int64_t row = b * steps + t;
        const T *kp = k.data<T>() + (row * o.kv_heads + h) * dk,
                *vp = v.data<T>() + (row * o.kv_heads + h) * dv;
        if (o.gated) {
          for (int64_t i = 0; i < dk; ++i) {
            const double g = std::exp(
                decay[static_cast<size_t>(per_key ? (row * o.kv_heads + h) * dk + i : row * o.kv_heads + h)]);
            for (int64_t j = 0; j < dv; ++j) s[i * dv + j] *= g;
          }
        }
        for (int64_t j = 0; j < dv; ++j) {
          double e = static_cast<double>(vp[j]);
          if (o.delta) {
            double seen = 0;
            for (int64_t i = 0; i < dk; ++i) seen += s[i * dv + j] * static_cast<double>(kp[i]);
            e = beta[static_cast<size_t>(ctx.in(5).dim(2) == 1 ? row : row * o.kv_heads + h)] * (e - seen);
          }
          change[static_cast<size_t>(j)] = e;
        }
        for (int64_t i = 0; i < dk; ++i) {
          for (int64_t j = 0; j < dv; ++j)
            s[i * dv + j] += static_cast<double>(kp[i]) * change[static_cast<size_t>(j)];
        }
        for (int64_t m = 0; m < shared; ++m) {
          const int64_t head = row * o.q_heads + h * shared + m;
          const T* qp = q.data<T>() + head * dk;
          for (int64_t j = 0; j < dv; ++j) {
            double sum = 0;
            for (int64_t i = 0; i < dk; ++i) sum += static_cast<double>(qp[i]) * s[i * dv + j];
            out.data<T>()[head * dv + j] = static_cast<T>(scale * sum);
          }
        }
      }
    });
  });
  if (!ctx.wants(1)) return;
  Tensor& present = ctx.out(1, state_shape);
  float_or_throw(ctx, present.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < states.size(); ++i) present.data<T>()[i] = static_cast<T>(states[i]);
  });
}

Cost cost(const AttrMap& attrs, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (inputs.size() < 3 || inputs[2].size() != 3) return c;
  const auto heads = static_cast<double>(ir::attr_int(attrs, "kv_num_heads", 1));
  c.flops = 4.0 * (static_cast<double>(numel(inputs[0])) + static_cast<double>(numel(inputs[1]))) *
            static_cast<double>(inputs[2][2]) / heads;
  return c;
}

}  // namespace

const OpDef& op_LinearAttention() {
  static const OpDef def = [] {
    OpDef d;
    d.name = "LinearAttention";
    d.infer = infer;
    d.kernel = kernel;
    d.cost = cost;
    return d;
  }();
  return def;
}

}  // namespace hone::ops
