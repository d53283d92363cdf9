#include <gtest/gtest.h>

#include "backends/cpu/packing.h"
#include "backends/cpu/tactic_check.h"
#include "hone/error.h"

namespace hone::backends::cpu {
std::unique_ptr<Tactic> make_rnn(Isa isa);

namespace {

using check::f32_operand;
using check::random_f32;

/// A tactic whose constants arrive packed, as in a plan.
class Packed final : public Tactic {
 public:
  explicit Packed(std::unique_ptr<Tactic> inner) : inner_(std::move(inner)) {}
  const std::string& name() const override { return inner_->name(); }
  Isa isa() const override { return inner_->isa(); }
  Numerics numerics() const override { return inner_->numerics(); }
  void choose_layouts(Problem& p) const override { inner_->choose_layouts(p); }
  Support supports(const Problem& p) const override { return inner_->supports(p); }
  std::unique_ptr<Prepared> prepare(const Problem& p) const override {
    return std::make_unique<Run>(p, *inner_);
  }

 private:
  struct Run final : Prepared {
    Run(const Problem& problem, const Tactic& tactic)
        : p(problem), t(tactic), inner(tactic.prepare(problem)) {}
    int64_t workspace_bytes() const override { return inner->workspace_bytes(); }
    void run(const RunArgs& args) const override {
      std::vector<Tensor> packed(p.srcs.size());
      std::vector<const void*> srcs(args.srcs, args.srcs + p.srcs.size());
      for (size_t i = 0; i < p.srcs.size(); ++i) {
        const std::string packing = t.packing(p, i);
        if (packing.empty()) continue;
        const Tensor plain = Tensor::view(p.srcs[i].dtype, p.srcs[i].dims, args.srcs[i]);
        packed[i] = pack_constant(packing, plain);
        srcs[i] = packed[i].raw();
        const Tensor back = unpack_constant(packing, packed[i], plain.dtype(), plain.shape());
        EXPECT_EQ(std::memcmp(back.raw(), plain.raw(), static_cast<size_t>(plain.nbytes())), 0)
            << packing << " does not come back";
      }
      RunArgs inside = args;
      inside.srcs = srcs.data();
      inner->run(inside);
    }
    const Problem& p;
    const Tactic& t;
    std::unique_ptr<Prepared> inner;
  };
  std::unique_ptr<Tactic> inner_;
};
std::unique_ptr<Tactic> make_packed(Isa isa) { return std::make_unique<Packed>(make_rnn(isa)); }

struct Case {
  std::string op = "LSTM";
  int64_t steps = 4, batch = 3, input = 5, hidden = 7;
  std::string direction = "forward";
  bool bias = true, lens = false, states = false, peephole = false, batch_first = false;
  bool y = true, y_h = true, y_c = true;
  bool constant = false;
};

int64_t gates(const std::string& op) { return op == "LSTM" ? 4 : op == "GRU" ? 3 : 1; }

struct Made {
  Problem p;
  std::vector<Tensor> tensors;
  std::vector<const Tensor*> srcs() const {
    std::vector<const Tensor*> out;
    for (const Tensor& t : tensors) out.push_back(t.defined() ? &t : nullptr);
    return out;
  }
};

Made make(const Case& c, uint32_t seed = 1) {
  Made m;
  const int64_t d = c.direction == "bidirectional" ? 2 : 1, n = gates(c.op) * c.hidden;
  const Shape state = c.batch_first ? Shape{c.batch, d, c.hidden} : Shape{d, c.batch, c.hidden};
  const auto add = [&](bool present, const Shape& dims, float range, bool constant) {
    m.tensors.push_back(present ? random_f32(dims, seed++, -range, range) : Tensor());
    m.p.srcs.push_back(present ? f32_operand(dims, Layout::kPlain, constant) : Operand{});
  };
  m.p.op = c.op;
  m.p.attrs["direction"] = c.direction;
  m.p.attrs["hidden_size"] = c.hidden;
  if (c.batch_first) m.p.attrs["layout"] = int64_t{1};
  const float range = 2.0F / std::sqrt(static_cast<float>(c.hidden));
  add(true, c.batch_first ? Shape{c.batch, c.steps, c.input} : Shape{c.steps, c.batch, c.input}, 1, false);
  add(true, {d, n, c.input}, range, c.constant);
  add(true, {d, n, c.hidden}, range, c.constant);
  add(c.bias, {d, 2 * n}, 0.5F, c.constant);
  m.tensors.emplace_back();
  m.p.srcs.emplace_back();
  if (c.lens) {
    Tensor lens(DType::kI32, {c.batch});
    for (int64_t b = 0; b < c.batch; ++b)
      lens.data<int32_t>()[b] = static_cast<int32_t>((b * 2 + 1) % (c.steps + 1));
    m.tensors.back() = lens;
    m.p.srcs.back() = {DType::kI32, {c.batch}};
  }
  add(c.states, state, 1, false);
  if (c.op == "LSTM") {
    add(c.states, state, 1, false);
    add(c.peephole, {d, 3 * c.hidden}, 1, c.constant);
  }
  m.p.num_anchor_srcs = m.p.srcs.size();
  const Shape y = c.batch_first ? Shape{c.batch, c.steps, d, c.hidden} : Shape{c.steps, d, c.batch, c.hidden};
  m.p.dsts = {c.y ? f32_operand(y) : Operand{}, c.y_h ? f32_operand(state) : Operand{}};
  if (c.op == "LSTM") m.p.dsts.push_back(c.y_c ? f32_operand(state) : Operand{});
  return m;
}

void expect_right(const Made& m, bool packed = false) {
  SCOPED_TRACE(m.p.text());
  EXPECT_GT(check::check_tactic(packed ? make_packed : make_rnn, m.p, m.srcs(), check::oracle, 4e-6), 0);
}

TEST(Rnn, every_cell_direction_and_option) {
  uint32_t seed = 1;
  for (const char* op : {"LSTM", "GRU", "RNN"})
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (const bool options : {false, true})
        for (const bool batch_first : {false, true}) {
          Case c{.op = op,
                 .direction = direction,
                 .bias = options,
                 .lens = options,
                 .states = options,
                 .peephole = options,
                 .batch_first = batch_first};
          c.constant = batch_first != options;
          expect_right(make(c, seed += 20), true);
        }
}

TEST(Rnn, sizes_that_are_no_multiple_of_a_vector) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    for (const int64_t hidden : {1, 2, 16, 31, 33, 100})
      for (const int64_t batch : {1, 2, 17, 40})
        expect_right(make({.op = op,
                           .steps = 3,
                           .batch = batch,
                           .input = hidden % 5 + 1,
                           .hidden = hidden,
                           .direction = "bidirectional",
                           .lens = batch > 2,
                           .constant = batch > 1}),
                     true);
}

TEST(Rnn, steps_large_enough_to_share) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    expect_right(make({.op = op,
                       .steps = 3,
                       .batch = 13,
                       .input = 9,
                       .hidden = 290,
                       .direction = "bidirectional",
                       .lens = true,
                       .states = true,
                       .constant = true}),
                 true);
}

TEST(Rnn, weights_that_are_no_constants) {
  for (const char* op : {"LSTM", "GRU", "RNN"})
    expect_right(make({.op = op, .direction = "bidirectional", .peephole = true}));
}

TEST(Rnn, linear_before_reset_input_forget_and_clip) {
  for (const bool bias : {false, true}) {
    Made m = make({.op = "GRU",
                   .direction = "bidirectional",
                   .bias = bias,
                   .lens = true,
                   .states = true,
                   .constant = bias});
    m.p.attrs["linear_before_reset"] = int64_t{1};
    expect_right(m, true);
    m.p.attrs["clip"] = 0.2F;
    expect_right(m, true);
  }
  Made m = make({.op = "LSTM", .states = true, .peephole = true});
  m.p.attrs["input_forget"] = int64_t{1};
  expect_right(m);
  m.p.attrs["clip"] = 0.3F;
  expect_right(m);
}

TEST(Rnn, every_function) {
  const char* kNames[] = {"Relu",       "tanh",        "SIGMOID", "Affine",   "LeakyRelu", "ThresholdedRelu",
                          "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
  uint32_t seed = 7;
  for (const char* name : kNames) {
    Made m = make({.op = "RNN", .steps = 2, .hidden = 19, .direction = "bidirectional"}, seed += 20);
    m.p.attrs["activations"] = std::vector<std::string>{name, "Tanh"};
    expect_right(m);
    m.p.attrs["activation_alpha"] = std::vector<float>{0.7F};
    m.p.attrs["activation_beta"] = std::vector<float>{0.4F};
    expect_right(m);
    m = make({.op = "LSTM", .steps = 2, .hidden = 19}, seed += 20);
    m.p.attrs["activations"] = std::vector<std::string>{"HardSigmoid", name, "Softsign"};
    m.p.attrs["activation_alpha"] = std::vector<float>{0.3F, 0.9F};
    m.p.attrs["activation_beta"] = std::vector<float>{0.4F, 0.8F};
    expect_right(m);
  }
}

TEST(Rnn, outputs_that_nobody_wants) {
  for (int mask = 1; mask < 8; ++mask) {
    const Made m = make({.y = (mask & 1) != 0, .y_h = (mask & 2) != 0, .y_c = (mask & 4) != 0});
    for (const Isa isa : supported_isas()) {
      const auto tactic = make_rnn(isa);
      ASSERT_TRUE(tactic->supports(m.p));
      const std::vector<Tensor> got = check::execute(*tactic, m.p, m.srcs(), 1);
      const std::vector<Tensor> all = check::execute(*tactic, make({}).p, m.srcs(), 1);
      for (size_t i = 0; i < 3; ++i) {
        if (!got[i].defined()) continue;
        EXPECT_EQ(std::memcmp(got[i].raw(), all[i].raw(), static_cast<size_t>(all[i].nbytes())), 0)
            << "output " << i;
      }
    }
  }
}

TEST(Rnn, no_steps_and_no_entries) {
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    expect_right(make({.op = op, .steps = 0, .states = true}));
    expect_right(make({.op = op, .batch = 0}));
  }
}

TEST(Rnn, a_length_beyond_the_input_is_refused) {
  Made m = make({.lens = true});
  m.tensors[4].data<int32_t>()[1] = 9;
  const auto tactic = make_rnn(supported_isas().back());
  try {
    check::execute(*tactic, m.p, m.srcs(), 1);
    FAIL() << "ran";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidData);
    EXPECT_NE(std::string(e.what()).find("9 at 1"), std::string::npos) << e.what();
  }
}

TEST(Rnn, refusals_have_reasons) {
  const auto tactic = make_rnn(Isa::kPortable);
  const auto reason = [&](const Made& m) { return tactic->supports(m.p).reason; };
  Made m = make({});
  m.p.attrs["activations"] = std::vector<std::string>{"Sigmoid", "Tanh", "Cosine"};
  EXPECT_NE(reason(m).find("'Cosine'"), std::string::npos);
  m.p.attrs["activations"] = std::vector<std::string>{"Sigmoid"};
  EXPECT_NE(reason(m).find("1 functions, needs 3"), std::string::npos);
  m = make({});
  m.p.srcs[2].dims[1] = 3;
  EXPECT_NE(reason(m).find("shape: source 2"), std::string::npos);
  m = make({});
  m.p.srcs[0].dtype = DType::kF16;
  EXPECT_NE(reason(m).find("dtype: source 0"), std::string::npos);
}

}  // namespace
}  // namespace hone::backends::cpu
