// Random graphs through the whole pipeline: same values, sound structure, a ledger that adds up, whichever
// pass is switched off.
#include <random>
#include <set>

#include "hone/error.h"
#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

class Maker {
 public:
  explicit Maker(unsigned seed) : rng_(seed) {}

  std::unique_ptr<ir::Graph> make() {
    graph_ = std::make_unique<ir::Graph>();
    for (int i = 0; i < 2; ++i)
      pool_.push_back(graph_->add_input("x" + std::to_string(i), {DType::kF32, ir::Dims{2, 4, 3, 6}}));
    const int nodes = 6 + pick(14);
    for (int i = 0; i < nodes; ++i) {
      const size_t before = graph_->num_nodes();
      step();
      for (size_t k = 0; graph_->num_nodes() > before && k < graph_->nodes().back()->outputs.size(); ++k)
        pool_.push_back(graph_->nodes().back()->outputs[k]);
    }
    const int outputs = 1 + pick(3);
    for (int i = 0; i < outputs; ++i) {
      const ir::ValueId id =
          pool_[pool_.size() - 1 -
                static_cast<size_t>(pick(std::min<int>(5, static_cast<int>(pool_.size()))))];
      if (graph_->value(id).producer != nullptr && !graph_->is_output(id)) graph_->add_output(id);
    }
    if (graph_->outputs().empty()) graph_->add_output(graph_->nodes().back()->outputs[0]);
    return std::move(graph_);
  }

 private:
  int pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  ir::ValueId any() { return pool_[static_cast<size_t>(pick(static_cast<int>(pool_.size())))]; }
  ir::ValueId recent() { return pick(3) != 0 ? pool_.back() : any(); }
  Shape shape(ir::ValueId id) { return *ir::const_dims(*graph_->value(id).type.shape); }

  ir::ValueId floats(const Shape& s) {
    Tensor t(DType::kF32, s);
    std::normal_distribution<float> normal(0.0F, 1.0F);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = normal(rng_);
    return graph_->add_constant("k", t);
  }
  ir::ValueId scalar(float v) { return graph_->add_constant("s", Tensor::f32_scalar(v)); }
  ir::ValueId ints(const std::vector<int64_t>& v) { return graph_->add_constant("i", Tensor::i64_vector(v)); }

  void node(const char* op, std::vector<ir::ValueId> inputs, ir::AttrMap attrs = {}, int outputs = 1) {
    ir::Node* n = graph_->add_node(op, std::move(inputs), std::move(attrs), "", nullptr,
                                   "n" + std::to_string(count_++), outputs);
    try {
      ops::infer_node(*graph_, *n);
    } catch (const Error&) {
      graph_->remove_node(n);
    }
  }

  void step() {
    const ir::ValueId x = recent();
    const Shape s = shape(x);
    const int rank = static_cast<int>(s.size());
    switch (pick(18)) {
      case 0: {
        const char* kUnary[] = {"Relu",      "Sigmoid",  "Tanh",     "Neg", "Abs",
                                "HardSwish", "Softplus", "Identity", "Gelu"};
        return node(kUnary[pick(9)], {x});
      }
      case 1:
      case 2: {
        const char* kBinary[] = {"Add", "Sub", "Mul"};
        const ir::ValueId y = any();
        if (shape(y) != s && shape(y).size() == s.size()) return node("Add", {x, floats(Shape{s.back()})});
        return node(kBinary[pick(3)], {x, y});
      }
      case 3: {
        const char* kBinary[] = {"Add", "Sub", "Mul", "Max", "Min"};
        Shape k;
        for (int i = pick(rank + 1); i < rank; ++i) k.push_back(pick(2) != 0 ? s[static_cast<size_t>(i)] : 1);
        const ir::ValueId c = pick(3) == 0 ? scalar(static_cast<float>(pick(3))) : floats(k);
        return pick(2) != 0 ? node(kBinary[pick(5)], {x, c}) : node(kBinary[pick(3)], {c, x});
      }
      case 4:
      case 5:
      case 6: {
        std::vector<int64_t> perm(s.size());
        for (size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<int64_t>(i);
        std::shuffle(perm.begin(), perm.end(), rng_);
        return node("Transpose", {x}, {{"perm", perm}});
      }
      case 7:
      case 8: {
        Shape to;
        if (rank >= 2 && pick(2) != 0) {  // merge two neighbours
          const int at = pick(rank - 1);
          for (int i = 0; i < rank; ++i) {
            if (i == at + 1)
              to.back() *= s[static_cast<size_t>(i)];
            else
              to.push_back(s[static_cast<size_t>(i)]);
          }
        } else {  // split one
          const int at = pick(std::max(rank, 1));
          for (int i = 0; i < rank; ++i) {
            const int64_t d = s[static_cast<size_t>(i)];
            if (i == at && d % 2 == 0)
              to.insert(to.end(), {2, d / 2});
            else
              to.push_back(d);
          }
        }
        return node("Reshape", {x, ints(to)});
      }
      case 9: return node("Unsqueeze", {x, ints({pick(rank + 1)})});
      case 10: {
        for (int i = 0; i < rank; ++i)
          if (s[static_cast<size_t>(i)] == 1) return node("Squeeze", {x, ints({i})});
        return node("Neg", {x});
      }
      case 11: {
        if (rank < 2) return;
        return node("MatMul", {x, floats({s.back(), 1 + pick(4)})});
      }
      case 12: {
        if (rank < 1) return;
        const char* kReduce[] = {"ReduceMean", "ReduceSum", "ReduceMax"};
        return node(kReduce[pick(3)], {x, ints({pick(rank)})}, {{"keepdims", static_cast<int64_t>(pick(2))}});
      }
      case 13:
        return rank < 1 ? void()
                        : node("Softmax", {x},
                               {{"axis", static_cast<int64_t>(pick(rank)) - (pick(2) != 0 ? rank : 0)}});
      case 14: {
        if (rank < 1) return;
        const int axis = pick(rank);
        const int64_t d = s[static_cast<size_t>(axis)];
        if (d < 2) return;
        const int64_t cut = 1 + pick(static_cast<int>(d) - 1);
        node("Slice", {x, ints({0}), ints({cut}), ints({axis})});
        pool_.push_back(graph_->nodes().back()->outputs[0]);
        return node("Slice", {x, ints({cut}), ints({INT64_MAX}), ints({axis})});
      }
      case 15: {
        if (rank < 1) return;
        return node("Concat", {x, x}, {{"axis", static_cast<int64_t>(pick(rank))}});
      }
      case 16: {
        if (rank != 4) return;
        return node("Conv", {x, floats({3, s[1], 1, 1})}, {});
      }
      default: {
        if (rank < 1) return;
        return node("Gather", {x, graph_->add_constant("g", Tensor::i64_scalar(0))},
                    {{"axis", static_cast<int64_t>(pick(rank))}});
      }
    }
  }

  std::mt19937 rng_;
  std::unique_ptr<ir::Graph> graph_;
  std::vector<ir::ValueId> pool_;
  int count_ = 0;
};

void check(const ir::Graph& before, const std::vector<std::string>& off, unsigned seed,
           std::vector<std::string>* fired) {
  auto after = before.clone();
  std::vector<LedgerRow> ledger;
  PipelineOptions options;
  options.verify_structure = true;
  options.disable = off;
  options.log = [&](const Pass& p, int, double) {
    if (fired != nullptr) fired->emplace_back(p.name);
  };
  run_pipeline(*after, options, &ledger);
  const auto inputs = random_inputs(before, seed);
  ops::InterpretOptions oracle;
  oracle.oracle = true;
  const auto x = ops::interpret(before, inputs, oracle), y = ops::interpret(*after, inputs, oracle);
  ASSERT_LE(distance(x, y), 1e-5) << "seed " << seed << " without " << (off.empty() ? "" : off[0]) << "\n"
                                  << ir::print(before) << "\n"
                                  << ir::print(*after);
  ir::Dim sum = 0;
  for (const LedgerRow& row : ledger) sum = sum + row.bytes_not_moved;
  ASSERT_EQ(sum.text(), (graph_traffic(before) - graph_traffic(*after)).text()) << "seed " << seed;
  for (size_t i = 0; i < before.outputs().size(); ++i)
    ASSERT_EQ(before.value(before.outputs()[i]).name, after->value(after->outputs()[i]).name)
        << "seed " << seed;
}

TEST(Random, GraphsComputeTheSame) {
  std::set<std::string> all;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const auto graph = Maker(seed).make();
    ASSERT_EQ(ir::verify(*graph), std::vector<std::string>());
    std::vector<std::string> fired;
    check(*graph, {}, seed, &fired);
    if (HasFatalFailure()) return;
    all.insert(fired.begin(), fired.end());
    if (seed % 8 != 0) continue;
    for (const std::string& name : fired) check(*graph, {name}, seed, nullptr);
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(all.size(), 25U) << "the graphs reach too few passes";
}

}  // namespace
}  // namespace hone::optimize::testing
