// LSTM, GRU and RNN in f32: the input part of every step as one matrix product, then a product with packed
// recurrent weights and a fused cell per step.
//
// Work split: where a step is small, one piece is a direction and a block of batch entries, which walks
// through time alone; where it is large, directions follow each other and each step's product is shared.
// Which of the two depends on sizes only.
#include <algorithm>
#include <cctype>
#include <cstring>

#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/kernels/gemm.h"
#include "backends/cpu/kernels/rnn.h"
#include "backends/cpu/parallel.h"
#include "hone/error.h"

namespace hone::backends::cpu {
namespace {

using hone::cpu::Carver;
using hone::cpu::CellAct;
using hone::cpu::CellArgs;
using hone::cpu::CellFunction;
using hone::cpu::Epilogue;
using hone::cpu::EpilogueOp;
using hone::cpu::EpilogueOperand;
using hone::cpu::Gemm;
using hone::cpu::GemmArgs;
using hone::cpu::GemmShape;

enum class Cell { kRnn, kGru, kLstm };

/// Positions of the operators' inputs.
enum Input : size_t { kX, kW, kR, kB, kLens, kH0, kC0, kP };

struct Layer {
  Cell cell = Cell::kLstm;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, gates = 0, directions = 1;
  bool reverse = false, batch_first = false, linear_before_reset = false, input_forget = false;
  float clip = 0;
  std::vector<CellFunction> functions;  ///< of all directions

  int64_t columns() const { return gates * hidden; }
  /// The candidate's product needs the reset gate first.
  bool two_products() const { return cell == Cell::kGru && !linear_before_reset; }
  bool backward(int64_t d) const { return reverse || d == 1; }
  int64_t x_row(int64_t t, int64_t b) const { return batch_first ? b * steps + t : t * batch + b; }
  int64_t state_row(int64_t d, int64_t b) const { return batch_first ? b * directions + d : d * batch + b; }
  int64_t y_row(int64_t t, int64_t d, int64_t b) const {
    return batch_first ? (b * steps + t) * directions + d : (t * directions + d) * batch + b;
  }
};

struct FunctionRow {
  const char* name;
  CellAct kind;
  int params;  ///< 0: none, 1: alpha, 2: alpha and beta
  float alpha, beta;
};
constexpr FunctionRow kFunctions[] = {
    {"relu", CellAct::kRelu, 0, 0, 0},
    {"tanh", CellAct::kTanh, 0, 0, 0},
    {"sigmoid", CellAct::kSigmoid, 0, 0, 0},
    {"affine", CellAct::kAffine, 2, 1, 0},
    {"leakyrelu", CellAct::kLeakyRelu, 1, 0.01F, 0},
    {"thresholdedrelu", CellAct::kThresholdedRelu, 1, 1, 0},
    {"scaledtanh", CellAct::kScaledTanh, 2, 1, 1},
    {"hardsigmoid", CellAct::kHardSigmoid, 2, 0.2F, 0.5F},
    {"elu", CellAct::kElu, 1, 1, 0},
    {"softsign", CellAct::kSoftsign, 0, 0, 0},
    {"softplus", CellAct::kSoftplus, 0, 0, 0},
};

/// activation_alpha and _beta are consumed in order by the functions that have such a parameter.
Support read_functions(const Problem& p, Layer* l) {
  std::vector<std::string> names;
  if (const auto it = p.attrs.find("activations"); it != p.attrs.end())
    if (const auto* list = std::get_if<std::vector<std::string>>(&it->second)) names = *list;
  const size_t each = l->cell == Cell::kLstm ? 3 : l->cell == Cell::kGru ? 2 : 1;
  const auto need = each * static_cast<size_t>(l->directions);
  if (names.empty())
    for (size_t i = 0; i < need; ++i)
      names.push_back(l->cell != Cell::kRnn && i % each == 0 ? "sigmoid" : "tanh");
  // RNN's schema default names two functions whatever the direction.
  if (l->cell == Cell::kRnn && need == 1 && names.size() == 2) names.resize(1);
  if (names.size() != need)
    return Support::no("activations: " + std::to_string(names.size()) + " functions, needs " +
                       std::to_string(need));
  const std::vector<float> alphas = ir::attr_floats(p.attrs, "activation_alpha"),
                           betas = ir::attr_floats(p.attrs, "activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  for (const std::string& given : names) {
    std::string name = given;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* row = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const FunctionRow& r) { return name == r.name; });
    if (row == std::end(kFunctions)) return Support::no("activations: unknown function '" + given + "'");
    CellFunction f{row->kind, row->alpha, row->beta};
    if (row->params >= 1 && next_alpha < alphas.size()) f.alpha = alphas[next_alpha++];
    if (row->params >= 2 && next_beta < betas.size()) f.beta = betas[next_beta++];
    l->functions.push_back(f);
  }
  return Support::yes();
}

bool has(const Problem& p, size_t i) { return i < p.num_anchor_srcs && p.srcs[i].present(); }
bool wants(const Problem& p, size_t i) { return i < p.dsts.size() && p.dsts[i].present(); }

Support read_layer(const Problem& p, Layer* l) {
  l->cell = p.op == "LSTM" ? Cell::kLstm : p.op == "GRU" ? Cell::kGru : Cell::kRnn;
  l->gates = l->cell == Cell::kLstm ? 4 : l->cell == Cell::kGru ? 3 : 1;
  const std::string direction = ir::attr_string(p.attrs, "direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return Support::no("direction: '" + direction + "'");
  l->reverse = direction == "reverse";
  l->directions = direction == "bidirectional" ? 2 : 1;
  l->batch_first = ir::attr_int(p.attrs, "layout", 0) != 0;
  l->linear_before_reset = ir::attr_int(p.attrs, "linear_before_reset", 0) != 0;
  l->input_forget = ir::attr_int(p.attrs, "input_forget", 0) != 0;
  l->clip = std::max(0.0F, ir::attr_float(p.attrs, "clip", 0.0F));
  for (const size_t i : {kX, kW, kR})
    if (!has(p, i) || p.srcs[i].dims.size() != 3) return Support::no("rank: X, W and R have rank 3");
  const Shape& x = p.srcs[kX].dims;
  l->steps = x[l->batch_first ? 1 : 0];
  l->batch = x[l->batch_first ? 0 : 1];
  l->input = x[2];
  l->hidden = p.srcs[kR].dims[2];
  const int64_t d = l->directions, n = l->columns(), h = l->hidden;
  const Shape state = l->batch_first ? Shape{l->batch, d, h} : Shape{d, l->batch, h};
  const std::pair<size_t, Shape> want[] = {{kW, {d, n, l->input}}, {kR, {d, n, h}}, {kB, {d, 2 * n}},
                                           {kLens, {l->batch}},    {kH0, state},    {kC0, state},
                                           {kP, {d, 3 * h}}};
  for (const auto& [i, dims] : want)
    if (has(p, i) && p.srcs[i].dims != dims)
      return Support::no("shape: source " + std::to_string(i) + " does not fit X and R");
  return read_functions(p, l);
}

/// Products of one block of batch entries in one step.
struct StepProducts {
  Gemm all;        ///< every gate, or update and reset
  Gemm candidate;  ///< where two_products()
};

class RnnPrepared final : public Prepared {
 public:
  RnnPrepared(const Problem& p, Isa isa)
      : isa_(isa),
        packs_w_(!p.srcs[kW].constant),
        packs_r_(!p.srcs[kR].constant),
        workers_(ThreadPool::process().n_threads()),
        lstm_(HONE_PICK_ISA(isa, lstm_row)),
        gru_(HONE_PICK_ISA(isa, gru_row)),
        gru_reset_(HONE_PICK_ISA(isa, gru_reset_row)),
        rnn_(HONE_PICK_ISA(isa, rnn_row)) {
    read_layer(p, &l_);
    for (size_t i = 0; i < std::size(has_); ++i) has_[i] = has(p, i);
    for (size_t i = 0; i < std::size(wants_); ++i) wants_[i] = wants(p, i);
    const int64_t n = l_.columns(), h = l_.hidden;
    first_columns_ = l_.two_products() ? 2 * h : n;
    w_floats_ = hone::cpu::packed_b_floats(isa, l_.input, n);
    r_first_floats_ = hone::cpu::packed_b_floats(isa, h, first_columns_);
    r_floats_ = r_first_floats_ + (l_.two_products() ? hone::cpu::packed_b_floats(isa, h, h) : 0);
    shared_steps_ = l_.batch * n * h >= kSharedStep;
    block_ = shared_steps_ ? std::max<int64_t>(1, l_.batch) : kBlock;
    blocks_ = (l_.batch + block_ - 1) / block_;
    const auto product = [&](int64_t m, int64_t columns, int64_t k) {
      GemmShape s;
      s.m = m;
      s.n = columns;
      s.k = k;
      return Gemm(isa, s);
    };
    project_.push_back(product(l_.steps * l_.batch, n, l_.input));
    for (const int64_t rows : {std::min(block_, l_.batch), l_.batch - (blocks_ - 1) * block_})
      products_.push_back({product(rows, first_columns_, h), product(l_.two_products() ? rows : 0, h, h)});
    workspace_bytes_ = carve(nullptr).bytes;
  }

  int64_t workspace_bytes() const override { return workspace_bytes_; }

  void run(const RunArgs& args) const override {
    const std::vector<int64_t> lens = read_lens(args);
    const Space s = carve(args.workspace);
    const int workers = std::min(args.max_threads, workers_);
    const auto* w = f32(args, kW);
    const auto* r = f32(args, kR);
    if (packs_w_) {
      for (int64_t d = 0; d < l_.directions; ++d)
        hone::cpu::pack_b(isa_, w + d * l_.columns() * l_.input, l_.input, true, l_.input, l_.columns(),
                          s.w + d * w_floats_);
      w = s.w;
    }
    if (packs_r_) {
      for (int64_t d = 0; d < l_.directions; ++d)
        pack_recurrent(r + d * l_.columns() * l_.hidden, s.r + d * r_floats_);
      r = s.r;
    }
    clear_ends(args, lens);
    for (int64_t d = 0; d < l_.directions; ++d) project(args, s, w + d * w_floats_, d, workers);
    if (shared_steps_) {
      for (int64_t d = 0; d < l_.directions; ++d) walk<true>(args, s, r + d * r_floats_, lens, d, 0, 0);
    } else {
      args.pool->parallel_for(
          l_.directions * blocks_,
          [&](int64_t chunk, int worker) {
            walk<false>(args, s, r + chunk / blocks_ * r_floats_, lens, chunk / blocks_, chunk % blocks_,
                        worker);
          },
          workers);
    }
  }

 private:
  static constexpr int64_t kBlock = 16;  ///< batch entries of a piece
  static constexpr int64_t kSharedStep =
      1024 * 1024;  ///< multiply-adds of a step that are worth a meeting of threads

  struct Space {
    float *w, *r;           ///< packed, where the weights are no constants
    float *xw, *bias;       ///< [directions][steps * batch][columns], [directions][columns]
    float *h, *c, *q, *rh;  ///< [directions][batch][hidden or columns]
    char *project, *step;   ///< the products' own
    int64_t bytes;
  };

  /// A worker's share of Space::step: products of different sizes take turns in it.
  int64_t step_bytes() const {
    int64_t bytes = 0;
    for (const StepProducts& p : products_)
      bytes = std::max({bytes, p.all.workspace_bytes(1), p.candidate.workspace_bytes(1)});
    return (bytes + 63) / 64 * 64;
  }

  Space carve(void* base) const {
    Carver carver(base);
    Space s{};
    const int64_t d = l_.directions, states = d * l_.batch * l_.hidden;
    s.w = carver.take<float>(packs_w_ ? d * w_floats_ : 0);
    s.r = carver.take<float>(packs_r_ ? d * r_floats_ : 0);
    s.xw = carver.take<float>(d * l_.steps * l_.batch * l_.columns());
    s.bias = carver.take<float>(d * l_.columns());
    s.h = carver.take<float>(states);
    s.c = carver.take<float>(l_.cell == Cell::kLstm ? states : 0);
    s.q = carver.take<float>(d * l_.batch * l_.columns());
    s.rh = carver.take<float>(l_.two_products() ? states : 0);
    s.project = carver.take<char>(project_[0].workspace_bytes(workers_));
    s.step = carver.take<char>(step_bytes() * workers_);
    s.bytes = carver.used();
    return s;
  }

  static const float* f32(const RunArgs& args, size_t i) { return static_cast<const float*>(args.srcs[i]); }
  float* out(const RunArgs& args, size_t i) const {
    return wants_[i] ? static_cast<float*>(args.dsts[i]) : nullptr;
  }

  std::vector<int64_t> read_lens(const RunArgs& args) const {
    std::vector<int64_t> lens(static_cast<size_t>(l_.batch), l_.steps);
    if (!has_[kLens]) return lens;
    for (size_t b = 0; b < lens.size(); ++b) {
      lens[b] = static_cast<const int32_t*>(args.srcs[kLens])[b];
      if (lens[b] < 0 || lens[b] > l_.steps)
        throw Error(ErrorCode::kInvalidData, "sequence_lens holds " + std::to_string(lens[b]) + " at " +
                                                 std::to_string(b) + ", the input has " +
                                                 std::to_string(l_.steps) + " steps");
    }
    return lens;
  }

  void pack_recurrent(const float* r, float* packed) const {
    const int64_t h = l_.hidden;
    hone::cpu::pack_b(isa_, r, h, true, h, first_columns_, packed);
    if (l_.two_products()) hone::cpu::pack_b(isa_, r + 2 * h * h, h, true, h, h, packed + r_first_floats_);
  }

  /// Y is 0 behind an entry's end.
  void clear_ends(const RunArgs& args, const std::vector<int64_t>& lens) const {
    float* y = out(args, 0);
    if (y == nullptr) return;
    for (int64_t b = 0; b < l_.batch; ++b)
      for (int64_t t = lens[static_cast<size_t>(b)]; t < l_.steps; ++t)
        for (int64_t d = 0; d < l_.directions; ++d)
          std::fill_n(y + l_.y_row(t, d, b) * l_.hidden, l_.hidden, 0.0F);
  }

  /// Both biases go into the input part, but for the one that linear_before_reset multiplies.
  void project(const RunArgs& args, const Space& s, const float* w, int64_t d, int workers) const {
    const int64_t n = l_.columns();
    EpilogueOp add;
    int ops = 0;
    if (has_[kB]) {
      const float* b = f32(args, kB) + d * 2 * n;
      float* sum = s.bias + d * n;
      const int64_t both = l_.linear_before_reset && l_.cell == Cell::kGru ? 2 * l_.hidden : n;
      for (int64_t i = 0; i < n; ++i) sum[i] = i < both ? b[i] + b[n + i] : b[i];
      add = EpilogueOp::add(EpilogueOperand::per_column(sum));
      ops = 1;
    }
    GemmArgs g;
    g.a = f32(args, kX);
    g.lda = l_.input;
    g.b = w;
    g.c = s.xw + d * l_.steps * l_.batch * n;
    g.ldc = n;
    g.epilogue = Epilogue(&add, ops);
    g.workspace = s.project;
    project_[0].run(g, *args.pool, workers);
  }

  /// One product of a step: shared by the pool, or all of it here.
  template <bool kShared>
  void multiply(const RunArgs& args, const Gemm& gemm, const float* a, const float* b, float* c,
                char* scratch, int worker) const {
    GemmArgs g;
    g.a = a;
    g.lda = l_.hidden;
    g.b = b;
    g.c = c;
    g.ldc = l_.columns();
    g.workspace = scratch + worker * step_bytes();
    if constexpr (kShared) {
      gemm.run(g, *args.pool, std::min(args.max_threads, workers_));
    } else {
      for (int64_t i = 0; i < gemm.n_chunks(); ++i) gemm.run_chunk(g, i, 0);
    }
  }

  /// All steps of one direction for one block of batch entries.
  template <bool kShared>
  void walk(const RunArgs& args, const Space& s, const float* r, const std::vector<int64_t>& lens, int64_t d,
            int64_t block, int worker) const {
    const int64_t h = l_.hidden, n = l_.columns(), b0 = block * block_,
                  rows = std::min(block_, l_.batch - b0), state = (d * l_.batch + b0) * h;
    const StepProducts& products = products_[block + 1 == blocks_ ? 1 : 0];
    float* hs = s.h + state;
    float* cs = l_.cell == Cell::kLstm ? s.c + state : nullptr;
    float* q = s.q + (d * l_.batch + b0) * n;
    float* rh = l_.two_products() ? s.rh + state : nullptr;
    const float* xw = s.xw + d * l_.steps * l_.batch * n;
    for (int64_t b = 0; b < rows; ++b) {
      load_state(args, kH0, d, b0 + b, hs + b * h);
      if (cs != nullptr) load_state(args, kC0, d, b0 + b, cs + b * h);
    }
    const CellArgs cell = cell_args(args, d);
    const int64_t longest = rows == 0 ? 0 : *std::max_element(lens.begin() + b0, lens.begin() + b0 + rows);
    float* y = out(args, 0);
    const auto each_row = [&](auto&& fn) {
      if constexpr (kShared) {
        parallel_ranges(args, rows, row_grain(n * 16, 65536), [&](int64_t begin, int64_t end) {
          for (int64_t b = begin; b < end; ++b) fn(b);
        });
      } else {
        for (int64_t b = 0; b < rows; ++b) fn(b);
      }
    };
    for (int64_t step = 0; step < longest; ++step) {
      /// Time of an entry in this step; -1 behind its end.
      const auto time = [&](int64_t b) {
        const int64_t len = lens[static_cast<size_t>(b0 + b)];
        return step >= len ? -1 : l_.backward(d) ? len - 1 - step : step;
      };
      multiply<kShared>(args, products.all, hs, r, q, s.step, worker);
      if (rh != nullptr) {
        each_row([&](int64_t b) {
          gru_reset_(cell, xw + l_.x_row(std::max<int64_t>(0, time(b)), b0 + b) * n, q + b * n, hs + b * h,
                     rh + b * h);
        });
        multiply<kShared>(args, products.candidate, rh, r + r_first_floats_, q + 2 * h, s.step, worker);
      }
      each_row([&](int64_t b) {
        const int64_t t = time(b);
        if (t < 0) return;
        const float* x = xw + l_.x_row(t, b0 + b) * n;
        switch (l_.cell) {
          case Cell::kLstm: lstm_(cell, x, q + b * n, hs + b * h, cs + b * h); break;
          case Cell::kGru: gru_(cell, x, q + b * n, hs + b * h); break;
          case Cell::kRnn: rnn_(cell, x, q + b * n, hs + b * h); break;
        }
        if (y != nullptr) std::copy_n(hs + b * h, h, y + l_.y_row(t, d, b0 + b) * h);
      });
    }
    for (int64_t b = 0; b < rows; ++b) {
      const int64_t to = l_.state_row(d, b0 + b) * h;
      if (float* y_h = out(args, 1)) std::copy_n(hs + b * h, h, y_h + to);
      if (float* y_c = out(args, 2)) std::copy_n(cs + b * h, h, y_c + to);
    }
  }

  void load_state(const RunArgs& args, size_t i, int64_t d, int64_t b, float* to) const {
    if (has_[i])
      std::copy_n(f32(args, i) + l_.state_row(d, b) * l_.hidden, l_.hidden, to);
    else
      std::fill_n(to, l_.hidden, 0.0F);
  }

  CellArgs cell_args(const RunArgs& args, int64_t d) const {
    CellArgs c;
    const size_t each = l_.functions.size() / static_cast<size_t>(l_.directions),
                 first = each * static_cast<size_t>(d);
    c.hidden = l_.hidden;
    c.f = l_.functions[first];
    if (each > 1) c.g = l_.functions[first + 1];
    if (each > 2) c.h = l_.functions[first + 2];
    c.clip = l_.clip;
    c.input_forget = l_.input_forget;
    c.linear_before_reset = l_.linear_before_reset;
    if (l_.cell == Cell::kLstm && has_[kP]) c.peephole = f32(args, kP) + d * 3 * l_.hidden;
    if (l_.cell == Cell::kGru && l_.linear_before_reset && has_[kB])
      c.bias_rh = f32(args, kB) + (d * 2 + 1) * l_.columns() + 2 * l_.hidden;
    return c;
  }

  Layer l_;
  Isa isa_;
  bool packs_w_, packs_r_;
  int workers_;
  decltype(&hone::cpu::portable::lstm_row) lstm_;
  decltype(&hone::cpu::portable::gru_row) gru_;
  decltype(&hone::cpu::portable::gru_reset_row) gru_reset_;
  decltype(&hone::cpu::portable::rnn_row) rnn_;
  bool has_[kP + 1] = {};
  bool wants_[3] = {};
  bool shared_steps_ = false;
  int64_t first_columns_ = 0, w_floats_ = 0, r_first_floats_ = 0, r_floats_ = 0, block_ = 1, blocks_ = 1;
  std::vector<Gemm> project_;
  std::vector<StepProducts> products_;  ///< of a full block and of the last one
  int64_t workspace_bytes_ = 0;
};

class Rnn final : public CpuTactic {
 public:
  explicit Rnn(Isa isa) : CpuTactic("rnn_f32_steps", isa, Numerics::kReassociates) {}

  Support supports(const Problem& p) const override {
    if (!p.post.empty()) return Support::no("post-op: recurrent layers take none");
    for (size_t i = 0; i < p.srcs.size(); ++i)
      if (p.srcs[i].present() && p.srcs[i].dtype != (i == kLens ? DType::kI32 : DType::kF32))
        return Support::no("dtype: source " + std::to_string(i) + " is " + dtype_name(p.srcs[i].dtype));
    for (const Operand& o : p.srcs)
      if (o.layout != Layout::kPlain) return Support::no("layout: recurrent layers take plain layouts");
    for (const Operand& o : p.dsts)
      if (o.present() && (o.dtype != DType::kF32 || o.layout != Layout::kPlain))
        return Support::no("destination: not plain f32");
    if (wants(p, 2) && p.op != "LSTM") return Support::no("outputs: only LSTM has a third");
    Layer l;
    return read_layer(p, &l);
  }

  std::string packing(const Problem& p, size_t src) const override {
    if ((src != kW && src != kR) || !p.srcs[src].constant) return "";
    const bool two = p.op == "GRU" && ir::attr_int(p.attrs, "linear_before_reset", 0) == 0;
    return std::string(src == kR && two ? "panels_gru__" : "panels_dirs__") + std::string(isa_name(isa()));
  }

  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<RnnPrepared>(p, isa());
  }
};

}  // namespace

std::unique_ptr<Tactic> make_rnn(Isa isa) { return std::make_unique<Rnn>(isa); }

}  // namespace hone::backends::cpu
