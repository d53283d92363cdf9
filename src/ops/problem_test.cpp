// Problem strings, reduction of fused bodies, reference execution.
#include "ops/problem.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "ops/infer.h"
#include "support/op_expect.h"

namespace hone::ops {
namespace {

using testing::expect_values;
using testing::f32;
using ::testing::HasSubstr;

// --- strings ---

/// Random problems: every field takes part.
class Generator {
 public:
  explicit Generator(uint32_t seed) : rng_(seed) {}

  Problem next() {
    Problem p;
    const bool pointwise = pick(5) == 0;
    p.op =
        pointwise ? "Pointwise" : std::vector<std::string>{"Conv", "MatMul", "LayerNormalization"}[pick(3)];
    if (pointwise)
      p.domain = ir::kHoneDomain;
    else if (pick(4) == 0)
      p.domain = "com.microsoft";
    if (!pointwise) {
      for (size_t i = pick(4); i > 0; --i) p.srcs.push_back(operand(true));
      p.num_anchor_srcs = p.srcs.size();
      for (size_t i = pick(9); i > 0; --i) p.attrs["a" + std::to_string(pick(50))] = attr();
      for (size_t i = pick(5); i > 0; --i) p.post.push_back(post(&p, 1));
    } else {
      PostOp program;
      program.kind = PostOp::Kind::kProgram;
      for (size_t i = 1 + pick(3); i > 0; --i) program.srcs.push_back(fresh(&p));
      program.program = instructions(static_cast<int>(program.srcs.size()));
      p.post.push_back(program);
    }
    // The order in which sources are first used is free.
    for (size_t i = 1 + pick(2); i > 0; --i) p.dsts.push_back(operand(false));
    return p;
  }

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(rng_); }
  float number() {
    const float values[] = {0.0F,      1.0F,     -0.5F,       6.0F, 1e-30F, 3.14159274F,
                            -INFINITY, INFINITY, 16777216.0F, 0.1F, -1e20F};
    return values[pick(std::size(values))];
  }
  Operand operand(bool maybe_absent) {
    Operand o;
    if (maybe_absent && pick(6) == 0) return o;
    const DType types[] = {DType::kF32, DType::kF16,  DType::kBF16,    DType::kI8,
                           DType::kI64, DType::kBool, DType::kF8E4M3FN};
    o.dtype = types[pick(std::size(types))];
    for (size_t i = pick(5); i > 0; --i) o.dims.push_back(static_cast<int64_t>(pick(300)));
    if (pick(3) == 0) o.layout = Layout::kChannelsLast;
    o.constant = pick(2) == 0;
    if (o.constant && o.dtype == DType::kI64)
      o.contents = std::vector<int64_t>{-1, static_cast<int64_t>(pick(9))};
    if (o.constant && o.dtype == DType::kI8) o.contents = std::vector<int64_t>{};
    return o;
  }
  ir::Attr attr() {
    switch (pick(10)) {
      case 0: return static_cast<int64_t>(pick(100)) - 50;
      case 1: return number();
      case 2: return std::string("NOT \"SET\"\\\n{}=+ ") + std::to_string(pick(9));
      case 3: return std::vector<int64_t>{INT64_MIN, INT64_MAX, 0};
      case 4: return std::vector<int64_t>{};
      case 5: return std::vector<float>{number(), number()};
      case 6: return std::vector<float>{};
      case 7: return std::vector<std::string>{"", "Tanh"};
      case 8: return std::vector<std::string>{};
      default: return Tensor::of<float>(DType::kF32, {2}, {number(), 7});
    }
  }
  int fresh(Problem* p) {
    p->srcs.push_back(operand(false));
    return static_cast<int>(p->srcs.size()) - 1;
  }
  PwProgram instructions(int num_srcs) {
    PwProgram program;
    program.num_srcs = num_srcs;
    const auto reg = [&] {
      return static_cast<int>(pick(static_cast<size_t>(num_srcs) + program.instrs.size()));
    };
    for (size_t i = 1 + pick(5); i > 0; --i) {
      PwInstr instr;
      instr.op = static_cast<PwOp>(pick(9));
      if (instr.op == PwOp::kConst) {
        instr.alpha = number();
      } else {
        instr.a = reg();
        if (instr.op == PwOp::kAct)
          act(&instr.act, &instr.alpha, &instr.beta);
        else
          instr.b = reg();
      }
      program.instrs.push_back(instr);
    }
    return program;
  }
  void act(Act* a, float* alpha, float* beta) {
    *a = static_cast<Act>(pick(static_cast<size_t>(Act::kIdentity) + 1));
    if (pick(2) == 0) *alpha = number();
    if (pick(2) == 0) *beta = number();
  }
  PostOp post(Problem* p, int running) {
    PostOp o;
    o.kind = static_cast<PostOp::Kind>(pick(7));
    switch (o.kind) {
      case PostOp::Kind::kAct: act(&o.act, &o.alpha, &o.beta); break;
      case PostOp::Kind::kProgram:
        for (size_t i = pick(3); i > 0; --i) o.srcs.push_back(fresh(p));
        if (!p->srcs.empty() && pick(2) == 0) o.srcs.push_back(0);
        o.program = instructions(static_cast<int>(o.srcs.size()) + running);
        break;
      case PostOp::Kind::kConvert:
        for (size_t i = pick(3); i > 0; --i) o.srcs.push_back(fresh(p));
        break;
      default: o.srcs = {fresh(p)};
    }
    return o;
  }
  std::mt19937 rng_;
};

TEST(ProblemText, ParseIsTheInverseOfText) {
  Generator generator(1);
  for (int i = 0; i < 3000; ++i) {
    const Problem p = generator.next();
    const std::string text = p.text();
    const Problem back = Problem::parse(text);
    ASSERT_TRUE(back == p) << text << "\n" << back.text();
    ASSERT_EQ(back.text(), text);
  }
}

TEST(ProblemText, TheExampleOfTheHeader) {
  const std::string text =
      "Conv(f32[1,64,56,56]:nhwc, f32[64,64,3,3]*) {pads=[1,1,1,1] strides=[1,1]} +bias(f32[64]*) "
      "+add(f32[1,64,56,56]:nhwc) +relu -> "
      "f32[1,64,56,56]:nhwc";
  const Problem p = Problem::parse(text);
  EXPECT_EQ(p.text(), text);
  EXPECT_EQ(p.num_anchor_srcs, 2u);
  ASSERT_EQ(p.post.size(), 3u);
  EXPECT_EQ(p.post[0].kind, PostOp::Kind::kBias);
  EXPECT_EQ(p.post[0].srcs, std::vector<int>{2});
  EXPECT_EQ(p.post[1].srcs, std::vector<int>{3});
  EXPECT_EQ(p.post[2].act, Act::kRelu);
  EXPECT_TRUE(p.srcs[1].constant);
  EXPECT_EQ(p.srcs[0].layout, Layout::kChannelsLast);
}

TEST(ProblemText, ErrorsNameTheColumn) {
  const auto error = [](const char* text) -> std::string {
    try {
      Problem::parse(text);
    } catch (const Error& e) {
      return e.code() == ErrorCode::kInvalidArgument ? e.message() : "another code";
    }
    return "none";
  };
  EXPECT_THAT(error("Conv(f32[1]"), HasSubstr("column 12"));
  EXPECT_THAT(error("Conv(f33[1]) -> f32[1]"), HasSubstr("unknown element type"));
  EXPECT_THAT(error("Conv(f32[-1]) -> f32[1]"), HasSubstr("negative"));
  EXPECT_THAT(error("Conv(f32[1]) +frob -> f32[1]"), HasSubstr("frob"));
  EXPECT_THAT(error("Conv(f32[1]) +program(; add(0,1)) -> f32[1]"), HasSubstr("register 1"));
  EXPECT_THAT(error("Conv(f32[1]) +add(%1) -> f32[1]"), HasSubstr("not given"));
  EXPECT_THAT(error("Conv(f32[1]) +add(%4=f32[1]) -> f32[1]"), HasSubstr("never given"));
  EXPECT_THAT(error("Conv() {a=1 a=2} -> f32[1]"), HasSubstr("twice"));
  EXPECT_THAT(error("Conv() {a=f32[9999999999]#00} -> f32[1]"), HasSubstr("cut short"));
  EXPECT_THAT(error("Conv() -> f32[1] "), HasSubstr("trailing"));
  EXPECT_THAT(error(""), HasSubstr("column 1"));
}

TEST(ProblemText, SurvivesAnyByte) {
  Generator generator(2);
  std::mt19937 rng(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text = generator.next().text();
    text[rng() % text.size()] = static_cast<char>(rng() % 256);
    if (rng() % 2 == 0) text.resize(rng() % text.size());
    try {
      const Problem p = Problem::parse(text);
      EXPECT_EQ(Problem::parse(p.text()).text(), p.text());
    } catch (const Error& e) {
      EXPECT_TRUE(e.code() == ErrorCode::kInvalidArgument || e.code() == ErrorCode::kInvalidModel)
          << e.what();
    }
  }
}

TEST(Act, NamesAndValues) {
  for (int i = 0; i <= static_cast<int>(Act::kIdentity); ++i)
    EXPECT_EQ(parse_act(act_name(static_cast<Act>(i))), static_cast<Act>(i));
  EXPECT_EQ(parse_act("nothing"), std::nullopt);
  EXPECT_EQ(apply_act(Act::kClip, 7, 0, 6), 6);
  EXPECT_TRUE(std::isnan(apply_act(Act::kRelu, NAN, 0, 0)));
  EXPECT_EQ(apply_act(Act::kHardSwish, 3, 0, 0), 3);
  EXPECT_NEAR(apply_act(Act::kGeluErf, 1, 0, 0), 0.841345, 1e-6);
  EXPECT_NEAR(apply_act(Act::kSelu, -1, 1.67326F, 1.0507F), -1.111331, 1e-5);
}

// --- bodies ---

/// A layer over a body that a test writes: inputs become values of an outer graph.
struct Layer {
  std::unique_ptr<ir::Graph> outer = std::make_unique<ir::Graph>();
  std::shared_ptr<ir::Graph> body = std::make_shared<ir::Graph>();
  std::vector<ir::ValueId> outer_inputs, in;

  ir::ValueId input(Shape shape, bool constant = false) {
    const std::string name = "i" + std::to_string(in.size());
    const TypeInfo type{DType::kF32, ir::to_dims(shape)};
    outer_inputs.push_back(
        constant ? outer->add_constant(
                       name, f32(shape, testing::noise(numel(shape), static_cast<uint32_t>(in.size()) + 5)))
                 : outer->add_input(name, type));
    in.push_back(body->add_input(name, type));
    return in.back();
  }
  ir::ValueId scalar(float v) { return body->add_constant("", Tensor::f32_scalar(v)); }
  ir::ValueId op(const char* name, std::vector<ir::ValueId> inputs, AttrMap attrs = {}) {
    return body->add_node(name, std::move(inputs), std::move(attrs))->outputs[0];
  }

  const ir::Node* finish(ir::ValueId result, int anchor = 0) {
    body->add_output(result);
    infer_graph(*body);
    ir::Node node;
    node.name = "layer";
    node.domain = ir::kHoneDomain;
    node.op = "Fused";
    node.inputs = outer_inputs;
    node.outputs = {outer->add_value("y", body->value(result).type)};
    node.body = body;
    node.anchor = anchor;
    const ir::Node* made = outer->add_node(std::move(node));
    outer->add_output(made->outputs[0]);
    return made;
  }
  static Operand operand(const ir::Graph& g, ir::ValueId id) {
    const ir::Value& v = g.value(id);
    return {v.type.dtype, *ir::const_dims(*v.type.shape), Layout::kPlain, v.is_const(), std::nullopt};
  }
  /// The problem, run on random inputs, must give the body's bits.
  Problem derive(const ir::Node* node) const {
    const Problem p = derive_problem(*outer, *node, operand);
    EXPECT_TRUE(Problem::parse(p.text()) == p) << p.text();
    std::vector<Tensor> given;
    std::vector<const Tensor*> srcs;
    for (const ir::ValueId id : outer_inputs) {
      const ir::Value& v = outer->value(id);
      const Shape shape = *ir::const_dims(*v.type.shape);
      given.push_back(
          v.is_const() ? *v.data : f32(shape, testing::noise(numel(shape), static_cast<uint32_t>(id) + 40)));
    }
    for (const Tensor& t : given) srcs.push_back(&t);
    for (const bool oracle : {false, true}) {
      const Tensor want = run_node(*outer, *node, srcs, oracle)[0], got = run_problem(p, srcs, oracle)[0];
      EXPECT_EQ(got.type_text(), want.type_text());
      EXPECT_EQ(0, std::memcmp(got.raw(), want.raw(), static_cast<size_t>(want.nbytes()))) << p.text();
    }
    return p;
  }
};

std::string post_text(const Problem& p) {
  const std::string text = p.text();
  const size_t from = text.find(" +"), to = text.find(" -> ");
  return from == std::string::npos ? "" : text.substr(from + 1, to - from - 1);
}

TEST(Body, ConvWithBiasResidualAndRelu) {
  Layer l;
  const auto x = l.input({1, 3, 5, 5}), w = l.input({4, 3, 1, 1}, true), b = l.input({4, 1, 1}, true),
             r = l.input({1, 4, 5, 5});
  const auto conv = l.op("Conv", {x, w});
  const ir::Node* n = l.finish(l.op("Relu", {l.op("Add", {r, l.op("Add", {conv, b})})}));
  EXPECT_EQ(check_body(*l.outer, *n), "");
  EXPECT_EQ(post_text(l.derive(n)), "+bias(f32[4,1,1]*) +add(f32[1,4,5,5]) +relu");
}

TEST(Body, MatMulWithScaleAndClip) {
  Layer l;
  const auto x = l.input({2, 3}), w = l.input({3, 4}, true), s = l.input({4}, true);
  const auto y = l.op("Mul", {l.op("MatMul", {x, w}), s});
  const ir::Node* n = l.finish(l.op("Clip", {y, l.scalar(0), l.scalar(6)}));
  EXPECT_EQ(post_text(l.derive(n)), "+scale(f32[4]*) +clip(0.0,6.0)");
}

TEST(Body, AnActivationVectorIsNoBias) {
  Layer l;
  const auto x = l.input({2, 3}), w = l.input({3, 4}, true), v = l.input({4});
  const ir::Node* n = l.finish(l.op("Add", {l.op("MatMul", {x, w}), v}));
  EXPECT_EQ(post_text(l.derive(n)), "+add(f32[4])");
}

TEST(Body, AValueUsedTwiceMakesAProgram) {
  Layer l;
  const auto x = l.input({2, 3}), w = l.input({3, 4}, true);
  const auto y = l.op("MatMul", {x, w});
  const ir::Node* n = l.finish(l.op("Mul", {y, l.op("Sigmoid", {y})}));
  EXPECT_EQ(post_text(l.derive(n)), "+program(; sigmoid(0); mul(0,1))");
}

TEST(Body, NeighbouringProgramsAreOne) {
  Layer l;
  const auto x = l.input({2, 3}), w = l.input({3, 4}, true), a = l.input({2, 4}), b = l.input({1, 4});
  const auto y = l.op("Sub", {a, l.op("MatMul", {x, w})});  // running value on the right
  const auto z = l.op("Div", {l.op("Mul", {y, l.scalar(0.5F)}), b});
  const ir::Node* n = l.finish(l.op("Sub", {z, a}));
  EXPECT_EQ(post_text(l.derive(n)),
            "+program(f32[2,4], f32[1,4]; sub(1,0); const(0.5); mul(3,4); div(5,2); sub(6,1))");
}

TEST(Body, NoAnchorIsOneProgram) {
  Layer l;
  const auto a = l.input({2, 3}), b = l.input({3});
  const ir::Node* n = l.finish(l.op("Tanh", {l.op("Add", {l.op("Mul", {a, b}), a})}), -1);
  const Problem p = l.derive(n);
  EXPECT_EQ(p.text(),
            "hone::Pointwise() +program(f32[2,3], f32[3]; mul(0,1); add(2,0); tanh(3)) -> f32[2,3]");
}

TEST(Body, SourcesMayComeInAnyOrder) {
  Layer l;
  const auto x = l.input({2, 3}), w = l.input({3, 4}, true), a = l.input({2, 4}), b = l.input({2, 4});
  const ir::Node* n = l.finish(l.op("Add", {l.op("Add", {l.op("MatMul", {x, w}), b}), a}));
  EXPECT_EQ(post_text(l.derive(n)), "+add(%3=f32[2,4]) +add(f32[2,4])");
}

TEST(Body, WhatDoesNotReduceSaysWhy) {
  const auto why = [](auto&& build, int anchor = 0) {
    Layer l;
    const ir::Node* n = l.finish(build(l), anchor);
    const std::string reason = check_body(*l.outer, *n);
    if (!reason.empty()) {
      EXPECT_THROW(derive_problem(*l.outer, *n, Layer::operand), Error);
    }
    return reason;
  };
  EXPECT_THAT(why([](Layer& l) {
                const auto x = l.input({2, 3}), w = l.input({3, 4});
                return l.op("Softmax", {l.op("MatMul", {x, w})});
              }),
              HasSubstr("is not a post-op"));
  EXPECT_THAT(why([](Layer& l) {
                const auto x = l.input({2, 3}), w = l.input({3, 1}), wide = l.input({2, 4});
                return l.op("Add", {l.op("MatMul", {x, w}), wide});
              }),
              HasSubstr("changes the anchor's shape"));
  EXPECT_THAT(why([](Layer& l) {
                const auto x = l.input({2, 3}), w = l.input({3, 4}), low = l.input({});
                return l.op("Clip", {l.op("MatMul", {x, w}), low});
              }),
              HasSubstr("bound of Clip"));
  EXPECT_THAT(why([](Layer& l) {
                const auto w = l.input({3, 4}), x = l.input({2, 3});
                return l.op("MatMul", {x, w});
              }),
              HasSubstr("input 0 of the anchor"));
  EXPECT_THAT(why([](Layer& l) {
                const auto x = l.input({2, 3}), w = l.input({3, 4});
                l.input({5});
                return l.op("MatMul", {x, w});
              }),
              HasSubstr("input 2 of the layer is not used"));
  EXPECT_THAT(why([](Layer& l) {
                const auto x = l.input({2, 3}), w = l.input({3, 4});
                const auto y = l.op("MatMul", {x, w});
                l.op("Relu", {y});
                return y;
              }),
              HasSubstr("body"));
  EXPECT_THAT(why(
                  [](Layer& l) {
                    const auto x = l.input({2, 3});
                    return l.op("Add", {x, l.body->add_constant("c", f32({3}, {1, 2, 3}))});
                  },
                  -1),
              HasSubstr("scalar constant"));
}

TEST(Problem, OfAPlainNodeKeepsSmallIntegerOperands) {
  ir::Graph g;
  const auto x = g.add_input("x", {DType::kF32, Dims{2, 3}});
  const auto axes = g.add_constant("axes", Tensor::i64_vector({1}));
  ir::Node* n = g.add_node("ReduceMean", {x, axes}, {{"keepdims", int64_t{0}}});
  infer_graph(g);
  const Problem p = derive_problem(g, *n, Layer::operand);
  EXPECT_EQ(p.text(), "ReduceMean(f32[2,3], i64[1]*{1}) {keepdims=0} -> f32[2]");
}

TEST(RunProblem, ConvertAndRankOneBias) {
  const Problem conv = Problem::parse(
      "Conv(f32[1,1,2,2], f32[2,1,1,1]*) +bias(f32[2]*) +convert(f32[]*, u8[]*) -> u8[1,2,2,2]");
  const Tensor x = f32({1, 1, 2, 2}, {1, 2, 3, 4}), w = f32({2, 1, 1, 1}, {1, 10}), b = f32({2}, {0.5F, 0}),
               s = f32({}, {0.5F}), z = testing::u8({}, {100});
  const Tensor y = run_problem(conv, {&x, &w, &b, &s, &z})[0];
  EXPECT_EQ(y.dtype(), DType::kU8);
  expect_values(y, {103, 105, 107, 109, 120, 140, 160, 180});
}

}  // namespace
}  // namespace hone::ops
