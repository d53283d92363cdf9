// RNN, GRU, LSTM: one layer, forward, reverse or both. States stay in f64 from step to step; outputs are
// rounded once.
//
// The recurrence runs per direction over time; sequence_lens[b] steps for batch entry b, the reverse
// direction starting at each entry's own end. Y is 0 behind an entry's end; Y_h and Y_c are the states after
// its last step. Version 1 and 3 have output_sequence, which only says whether Y is wanted; `layout` came
// with 14.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "ops/conv.h"
#include "ops/dispatch.h"
#include "ops/ref_gemm.h"
#include "ops/scalar_math.h"

namespace hone::ops {
namespace {

enum class Cell { kRnn, kGru, kLstm };

Cell cell_of(std::string_view op) {
  return op == "LSTM" ? Cell::kLstm : op == "GRU" ? Cell::kGru : Cell::kRnn;
}
int64_t gates_of(Cell c) { return c == Cell::kLstm ? 4 : c == Cell::kGru ? 3 : 1; }
size_t functions_of(Cell c) { return c == Cell::kLstm ? 3 : c == Cell::kGru ? 2 : 1; }

// --- activations of the cells ---

struct Function {
  enum class Kind {
    kRelu,
    kTanh,
    kSigmoid,
    kAffine,
    kLeakyRelu,
    kThresholdedRelu,
    kScaledTanh,
    kHardSigmoid,
    kElu,
    kSoftsign,
    kSoftplus
  };
  Kind kind = Kind::kTanh;
  double alpha = 0, beta = 0;

  double operator()(double x) const {
    switch (kind) {
      case Kind::kRelu: return fn_relu(x);
      case Kind::kTanh: return std::tanh(x);
      case Kind::kSigmoid: return fn_sigmoid(x);
      case Kind::kAffine: return alpha * x + beta;
      case Kind::kLeakyRelu: return fn_leaky_relu(x, alpha);
      case Kind::kThresholdedRelu:
        return x >= alpha || x != x ? x : 0.0;  // >= here, > in the operator of that name
      case Kind::kScaledTanh: return alpha * std::tanh(beta * x);
      case Kind::kHardSigmoid: return fn_hard_sigmoid(x, alpha, beta);
      case Kind::kElu: return fn_elu(x, alpha);
      case Kind::kSoftsign: return fn_softsign(x);
      case Kind::kSoftplus: return fn_softplus(x);
    }
    return x;
  }
};

struct FunctionRow {
  const char* name;
  Function::Kind kind;
  int params;  ///< 0: none, 1: alpha, 2: alpha and beta
  double alpha, beta;
};
constexpr FunctionRow kFunctions[] = {{"relu", Function::Kind::kRelu, 0, 0, 0},
                                      {"tanh", Function::Kind::kTanh, 0, 0, 0},
                                      {"sigmoid", Function::Kind::kSigmoid, 0, 0, 0},
                                      {"affine", Function::Kind::kAffine, 2, 1, 0},
                                      {"leakyrelu", Function::Kind::kLeakyRelu, 1, 0.01F, 0},
                                      {"thresholdedrelu", Function::Kind::kThresholdedRelu, 1, 1, 0},
                                      {"scaledtanh", Function::Kind::kScaledTanh, 2, 1, 1},
                                      {"hardsigmoid", Function::Kind::kHardSigmoid, 2, 0.2F, 0.5F},
                                      {"elu", Function::Kind::kElu, 1, 1, 0},
                                      {"softsign", Function::Kind::kSoftsign, 0, 0, 0},
                                      {"softplus", Function::Kind::kSoftplus, 0, 0, 0}};

/// The functions of all directions. Values of activation_alpha and _beta are consumed in order by the
/// functions that have such a parameter.
std::vector<Function> read_functions(const AttrMap& attrs, Cell cell, size_t directions,
                                     const std::function<void(const std::string&)>& fail) {
  std::vector<std::string> names;
  if (const auto it = attrs.find("activations"); it != attrs.end()) {
    if (!std::holds_alternative<std::vector<std::string>>(it->second))
      fail("attribute 'activations' is not a list of strings");
    names = std::get<std::vector<std::string>>(it->second);
  }
  if (names.empty()) {
    for (size_t d = 0; d < directions; ++d) {
      if (cell == Cell::kRnn) names.insert(names.end(), {"Tanh"});
      if (cell == Cell::kGru) names.insert(names.end(), {"Sigmoid", "Tanh"});
      if (cell == Cell::kLstm) names.insert(names.end(), {"Sigmoid", "Tanh", "Tanh"});
    }
  }
  const size_t need = functions_of(cell) * directions;
  // RNN's schema default names two functions whatever the direction.
  if (cell == Cell::kRnn && names.size() == 2 && directions == 1) names.resize(1);
  if (names.size() != need)
    fail("attribute 'activations' has " + std::to_string(names.size()) + " functions, needs " +
         std::to_string(need));
  const std::vector<float> alphas = ir::attr_floats(attrs, "activation_alpha"),
                           betas = ir::attr_floats(attrs, "activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Function> out;
  for (std::string name : names) {
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto row = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                  [&](const FunctionRow& r) { return name == r.name; });
    if (row == std::end(kFunctions)) {
      fail("attribute 'activations': unknown function '" + name + "'");
      return out;
    }
    Function f{row->kind, row->alpha, row->beta};
    if (row->params >= 1 && next_alpha < alphas.size()) f.alpha = alphas[next_alpha++];
    if (row->params >= 2 && next_beta < betas.size()) f.beta = betas[next_beta++];
    out.push_back(f);
  }
  return out;
}

size_t read_directions(const AttrMap& attrs, bool* reverse,
                       const std::function<void(const std::string&)>& fail) {
  const std::string direction = ir::attr_string(attrs, "direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    fail("attribute 'direction' is '" + direction + "', must be forward, reverse or bidirectional");
  }
  *reverse = direction == "reverse";
  return direction == "bidirectional" ? 2 : 1;
}

// --- inference ---

void infer(InferContext& ctx) {
  const ir::Node& node = ctx.node();
  const Cell cell = cell_of(node.op);
  const auto fail = [&ctx](const std::string& m) { ctx.fail(m); };
  bool reverse = false;
  const size_t directions = read_directions(node.attrs, &reverse, fail);
  read_functions(node.attrs, cell, directions, fail);
  const bool batch_first = node.get_int("layout", 0) != 0;
  Dim hidden;
  if (node.has("hidden_size")) {
    hidden = Dim(node.get_int("hidden_size", 0));
    if (hidden.value() < 1) ctx.fail("attribute 'hidden_size' is " + hidden.text() + ", must be at least 1");
    if (ctx.has_shape(2) && ctx.shape(2).size() == 3 && ctx.shape(2)[2].is_const() &&
        !(ctx.shape(2)[2] == hidden)) {
      ctx.fail("attribute 'hidden_size' is " + hidden.text() + ", R is " + ctx.input(2).text());
    }
  } else {
    hidden = ctx.has_shape(2) && ctx.shape(2).size() == 3 ? ctx.shape(2)[2] : ctx.fresh_symbol();
  }
  if (!ctx.has_shape(0)) {
    for (size_t i = 0; i < 3; ++i) ctx.set_output(i, ctx.dtype(0), std::nullopt);
    return;
  }
  const Dims& x = ctx.shape(0);
  if (x.size() != 3) ctx.fail("input X must have rank 3, is " + ctx.input(0).text());
  for (size_t i = 1; i <= 2; ++i) {
    if (ctx.has_shape(i) && ctx.shape(i).size() != 3)
      ctx.fail(std::string(i == 1 ? "W" : "R") + " must have rank 3, is " + ctx.input(i).text());
  }
  const Dim steps = x[batch_first ? 1 : 0], batch = x[batch_first ? 0 : 1],
            d(static_cast<int64_t>(directions));
  const Dims state = batch_first ? Dims{batch, d, hidden} : Dims{d, batch, hidden};
  ctx.set_output(0, ctx.dtype(0),
                 batch_first ? Dims{batch, steps, d, hidden} : Dims{steps, d, batch, hidden});
  ctx.set_output(1, ctx.dtype(0), state);
  ctx.set_output(2, ctx.dtype(0), state);
}

// --- kernel ---

using Values = std::vector<double>;

/// y[m][n] = a[m][k] * w[n][k]^T with w in the order it is stored, all f64 but w.
template <class T>
void multiply(const double* a, int64_t m, int64_t k, const T* w, int64_t n, double* y) {
  RefGemm g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.pack_a = [=](int64_t, int64_t i0, int64_t rows, int64_t p0, int64_t kc, double* dst, int64_t width) {
    pack_strided(a + i0 * k + p0, 1, k, rows, kc, dst, width);
  };
  g.pack_b = [=](int64_t, int64_t j0, int64_t cols, int64_t p0, int64_t kc, double* dst, int64_t width) {
    pack_strided(w + j0 * k + p0, 1, k, cols, kc, dst, width);
  };
  g.store = [=](int64_t, int64_t i0, int64_t rows, int64_t j0, int64_t cols, const double* acc, int64_t ld) {
    for (int64_t r = 0; r < rows; ++r) std::copy(acc + r * ld, acc + r * ld + cols, y + (i0 + r) * n + j0);
  };
  ref_gemm(g);
}

/// Sizes and options of one call.
struct Layer {
  Cell cell;
  int64_t steps, batch, input, hidden, gates;
  bool batch_first, linear_before_reset, input_forget;
  double clip;
  std::vector<int64_t> lens;

  double clipped(double x) const { return clip > 0 ? fn_clip(x, -clip, clip) : x; }
  /// Row (t, b) of X; offsets of state (d, b) and of Y (t, d, b).
  int64_t x_row(int64_t t, int64_t b) const { return batch_first ? b * steps + t : t * batch + b; }
  int64_t state_row(int64_t d, int64_t b, int64_t directions) const {
    return batch_first ? b * directions + d : d * batch + b;
  }
  int64_t y_row(int64_t t, int64_t d, int64_t b, int64_t directions) const {
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
};

/// One direction: parameters, states, and a step.
template <class T>
struct Direction {
  const Layer& layer;
  const T *w, *r;
  Values bias_w, bias_r, peephole;  ///< [gates * hidden], peephole [3 * hidden] or empty
  const Function* f;
  Values h, c;  ///< [batch, hidden]
  Values xw, hr, tmp;

  /// Input part of all steps: rows of X in their own order.
  void project(const Values& x) {
    const int64_t n = layer.gates * layer.hidden;
    xw.resize(static_cast<size_t>(layer.steps * layer.batch * n));
    multiply(x.data(), layer.steps * layer.batch, layer.input, w, n, xw.data());
  }

  void step(const std::vector<int64_t>& rows) {
    const int64_t hidden = layer.hidden, n = layer.gates * hidden, batch = layer.batch;
    hr.resize(static_cast<size_t>(batch * n));
    multiply(h.data(), batch, hidden, r, n, hr.data());
    if (layer.cell == Cell::kGru && !layer.linear_before_reset) reset_before_linear(rows);
    for (int64_t b = 0; b < batch; ++b) {
      if (rows[static_cast<size_t>(b)] < 0) continue;
      const double* x = xw.data() + rows[static_cast<size_t>(b)] * n;
      const double* q = hr.data() + b * n;
      double* hp = h.data() + b * hidden;
      for (int64_t i = 0; i < hidden; ++i) {
        switch (layer.cell) {
          case Cell::kRnn: hp[i] = f[0](layer.clipped(gate(x, q, 0, i))); break;
          case Cell::kGru: hp[i] = gru(x, q, i, hp[i]); break;
          case Cell::kLstm: hp[i] = lstm(x, q, i, c.data() + b * hidden + i); break;
        }
      }
    }
  }

 private:
  double gate(const double* x, const double* q, int64_t g, int64_t i) const {
    const auto at = static_cast<size_t>(g * layer.hidden + i);
    return x[at] + q[at] + bias_w[at] + bias_r[at];
  }

  /// The hidden gate's recurrent part is (r . h) * Rh^T: replaces that part of hr.
  void reset_before_linear(const std::vector<int64_t>& rows) {
    const int64_t hidden = layer.hidden, n = 3 * hidden;
    tmp.assign(h.size(), 0.0);
    for (int64_t b = 0; b < layer.batch; ++b) {
      if (rows[static_cast<size_t>(b)] < 0) continue;
      const double* x = xw.data() + rows[static_cast<size_t>(b)] * n;
      const double* q = hr.data() + b * n;
      for (int64_t i = 0; i < hidden; ++i) {
        const auto at = static_cast<size_t>(b * hidden + i);
        tmp[at] = f[0](layer.clipped(gate(x, q, 1, i))) * h[at];
      }
    }
    Values part(static_cast<size_t>(layer.batch * hidden));
    multiply(tmp.data(), layer.batch, hidden, r + 2 * hidden * hidden, hidden, part.data());
    for (int64_t b = 0; b < layer.batch; ++b) {
      std::copy(part.data() + b * hidden, part.data() + b * hidden + hidden, hr.data() + b * n + 2 * hidden);
    }
  }

  double gru(const double* x, const double* q, int64_t i, double before) const {
    const double z = f[0](layer.clipped(gate(x, q, 0, i)));
    const auto at = static_cast<size_t>(2 * layer.hidden + i);
    double candidate;
    if (layer.linear_before_reset) {
      const double reset = f[0](layer.clipped(gate(x, q, 1, i)));
      candidate = x[at] + reset * (q[at] + bias_r[at]) + bias_w[at];
    } else {
      candidate = x[at] + q[at] + bias_r[at] + bias_w[at];
    }
    return (1 - z) * f[1](layer.clipped(candidate)) + z * before;
  }

  double lstm(const double* x, const double* q, int64_t i, double* cell) const {
    const int64_t hidden = layer.hidden;
    const auto peep = [&](int64_t g, double state) {
      return peephole.empty() ? 0.0 : peephole[static_cast<size_t>(g * hidden + i)] * state;
    };
    const double in = f[0](layer.clipped(gate(x, q, 0, i) + peep(0, *cell)));
    const double forget =
        layer.input_forget ? 1 - in : f[0](layer.clipped(gate(x, q, 2, i) + peep(2, *cell)));
    const double candidate = f[1](layer.clipped(gate(x, q, 3, i)));
    *cell = forget * *cell + in * candidate;
    const double out = f[0](layer.clipped(gate(x, q, 1, i) + peep(1, *cell)));
    return out * f[2](layer.clipped(*cell));
  }
};

void check_shape(const KernelContext& ctx, size_t i, const char* name, const Shape& want) {
  if (ctx.has_input(i) && ctx.in(i).shape() != want)
    ctx.fail(std::string(name) + " is " + ctx.in(i).type_text() + ", must be " +
             type_text(ctx.in(i).dtype(), want));
}

Values slice(const Tensor& t, int64_t from, int64_t count) {
  Values v(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) v[static_cast<size_t>(i)] = t.at(from + i);
  return v;
}

template <class T>
void run(KernelContext& ctx, const Layer& l, size_t directions, bool reverse,
         const std::vector<Function>& functions) {
  const auto D = static_cast<int64_t>(directions);
  const int64_t hidden = l.hidden, n = l.gates * hidden;
  const Shape state = l.batch_first ? Shape{l.batch, D, hidden} : Shape{D, l.batch, hidden};
  const Shape full = l.batch_first ? Shape{l.batch, l.steps, D, hidden} : Shape{l.steps, D, l.batch, hidden};
  Tensor* y = ctx.wants(0) ? &ctx.out(0, full) : nullptr;
  Tensor* y_h = ctx.wants(1) ? &ctx.out(1, state) : nullptr;
  Tensor* y_c = ctx.wants(2) ? &ctx.out(2, state) : nullptr;
  if (y != nullptr) std::fill(y->data<T>(), y->data<T>() + y->numel(), T{0});
  const Values x = to_doubles(ctx.in(0));

  for (int64_t d = 0; d < D; ++d) {
    Direction<T> dir{l,
                     ctx.in(1).data<T>() + d * n * l.input,
                     ctx.in(2).data<T>() + d * n * hidden,
                     {},
                     {},
                     {},
                     nullptr,
                     {},
                     {},
                     {},
                     {},
                     {}};
    dir.bias_w = ctx.has_input(3) ? slice(ctx.in(3), d * 2 * n, n) : Values(static_cast<size_t>(n), 0.0);
    dir.bias_r = ctx.has_input(3) ? slice(ctx.in(3), d * 2 * n + n, n) : Values(static_cast<size_t>(n), 0.0);
    if (l.cell == Cell::kLstm && ctx.has_input(7))
      dir.peephole = slice(ctx.in(7), d * 3 * hidden, 3 * hidden);
    dir.f = functions.data() + static_cast<size_t>(d) * functions_of(l.cell);
    dir.h.assign(static_cast<size_t>(l.batch * hidden), 0.0);
    dir.c = dir.h;
    for (int64_t b = 0; b < l.batch; ++b) {
      const int64_t from = l.state_row(d, b, D) * hidden;
      for (int64_t i = 0; i < hidden; ++i) {
        if (ctx.has_input(5)) dir.h[static_cast<size_t>(b * hidden + i)] = ctx.in(5).at(from + i);
        if (l.cell == Cell::kLstm && ctx.has_input(6))
          dir.c[static_cast<size_t>(b * hidden + i)] = ctx.in(6).at(from + i);
      }
    }
    dir.project(x);
    const bool backward = reverse || d == 1;
    for (int64_t s = 0; s < l.steps; ++s) {
      std::vector<int64_t> rows(static_cast<size_t>(l.batch), -1), times(static_cast<size_t>(l.batch), -1);
      for (int64_t b = 0; b < l.batch; ++b) {
        const int64_t len = l.lens[static_cast<size_t>(b)];
        if (s >= len) continue;
        times[static_cast<size_t>(b)] = backward ? len - 1 - s : s;
        rows[static_cast<size_t>(b)] = l.x_row(times[static_cast<size_t>(b)], b);
      }
      dir.step(rows);
      for (int64_t b = 0; y != nullptr && b < l.batch; ++b) {
        if (times[static_cast<size_t>(b)] < 0) continue;
        T* to = y->data<T>() + l.y_row(times[static_cast<size_t>(b)], d, b, D) * hidden;
        for (int64_t i = 0; i < hidden; ++i)
          to[i] = static_cast<T>(dir.h[static_cast<size_t>(b * hidden + i)]);
      }
    }
    for (int64_t b = 0; b < l.batch; ++b) {
      for (int64_t i = 0; i < hidden; ++i) {
        const int64_t to = l.state_row(d, b, D) * hidden + i;
        if (y_h != nullptr) y_h->data<T>()[to] = static_cast<T>(dir.h[static_cast<size_t>(b * hidden + i)]);
        if (y_c != nullptr) y_c->data<T>()[to] = static_cast<T>(dir.c[static_cast<size_t>(b * hidden + i)]);
      }
    }
  }
}

template <Cell kCell>
void kernel(KernelContext& ctx) {
  const Tensor &x = ctx.in(0), &w = ctx.in(1), &r = ctx.in(2);
  const auto fail = [&ctx](const std::string& m) { ctx.fail(m); };
  bool reverse = false;
  const size_t directions = read_directions(ctx.attrs, &reverse, fail);
  const std::vector<Function> functions = read_functions(ctx.attrs, kCell, directions, fail);
  if (x.rank() != 3 || w.rank() != 3 || r.rank() != 3)
    ctx.fail("X " + x.type_text() + ", W " + w.type_text() + " and R " + r.type_text() + " must have rank 3");
  Layer l{};
  l.cell = kCell;
  l.batch_first = ctx.get_int("layout", 0) != 0;
  l.steps = x.dim(l.batch_first ? 1 : 0);
  l.batch = x.dim(l.batch_first ? 0 : 1);
  l.input = x.dim(2);
  l.hidden = r.dim(2);
  l.gates = gates_of(kCell);
  l.linear_before_reset = ctx.get_int("linear_before_reset", 0) != 0;
  l.input_forget = ctx.get_int("input_forget", 0) != 0;
  l.clip = ctx.get_float("clip", 0.0F);
  if (ctx.get_int("hidden_size", l.hidden) != l.hidden)
    ctx.fail("attribute 'hidden_size' differs from R " + r.type_text());
  const auto d = static_cast<int64_t>(directions);
  const int64_t n = l.gates * l.hidden;
  const Shape state = l.batch_first ? Shape{l.batch, d, l.hidden} : Shape{d, l.batch, l.hidden};
  check_shape(ctx, 1, "W", {d, n, l.input});
  check_shape(ctx, 2, "R", {d, n, l.hidden});
  check_shape(ctx, 3, "B", {d, 2 * n});
  check_shape(ctx, 4, "sequence_lens", {l.batch});
  check_shape(ctx, 5, "initial_h", state);
  if (kCell == Cell::kLstm) {
    check_shape(ctx, 6, "initial_c", state);
    check_shape(ctx, 7, "P", {d, 3 * l.hidden});
  }
  l.lens =
      ctx.has_input(4) ? ctx.in(4).to_i64() : std::vector<int64_t>(static_cast<size_t>(l.batch), l.steps);
  for (const int64_t len : l.lens) {
    if (len < 0 || len > l.steps)
      ctx.fail("sequence_lens holds " + std::to_string(len) + ", the input has " + std::to_string(l.steps) +
               " steps");
  }
  float_or_throw(ctx, x.dtype(), [&](auto tag) {
    run<typename decltype(tag)::type>(ctx, l, directions, reverse, functions);
  });
}

void adapt(AdaptContext& ctx) {
  ctx.node.attrs.erase("output_sequence");
  // GRU-1's schema spells its own default "foward".
  if (ctx.since < 3 && ctx.node.get_string("direction", "forward") == "foward")
    ctx.node.attrs["direction"] = std::string("forward");
}

Cost cost(const AttrMap&, std::span<const Shape> inputs, std::span<const Shape>) {
  Cost c;
  if (inputs.size() < 3 || inputs[0].size() != 3 || inputs[2].empty()) return c;
  const double rows = static_cast<double>(inputs[0][0]) * static_cast<double>(inputs[0][1]);
  c.flops = 2.0 * rows * (static_cast<double>(numel(inputs[1])) + static_cast<double>(numel(inputs[2])));
  c.transcendentals = rows * static_cast<double>(inputs[2][0] * inputs[2][1]);
  return c;
}

OpDef make(const char* name, void (*run_kernel)(KernelContext&)) {
  OpDef d;
  d.name = name;
  d.infer = infer;
  d.kernel = run_kernel;
  d.adapt = adapt;
  d.cost = cost;
  return d;
}

}  // namespace

const OpDef& op_LSTM() {
  static const OpDef def = make("LSTM", kernel<Cell::kLstm>);
  return def;
}
const OpDef& op_GRU() {
  static const OpDef def = make("GRU", kernel<Cell::kGru>);
  return def;
}
const OpDef& op_RNN() {
  static const OpDef def = make("RNN", kernel<Cell::kRnn>);
  return def;
}

}  // namespace hone::ops
