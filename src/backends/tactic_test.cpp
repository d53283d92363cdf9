// Every tactic of the CPU backend that accepts a problem of bench/problems/check.txt agrees with the oracle,
// on every ISA level of this machine, with the same bits for one and two threads, and leaves guard bytes
// alone.
#include <gtest/gtest.h>

#include <fstream>

#include "backends/backend.h"
#include "backends/cpu/tactic_check.h"
#include "ops/op.h"
#include "support/paths.h"

namespace hone::backends {
namespace {

std::vector<std::string> problem_lines() {
  std::ifstream in(test::source_dir() / "bench/problems/check.txt");
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  return lines;
}

std::vector<Tensor> inputs_of(const Problem& p, uint32_t seed) {
  std::vector<Tensor> out;
  for (const Operand& o : p.srcs) {
    if (!o.present())
      out.emplace_back();
    else if (o.contents)
      out.push_back(Tensor::i64_vector(*o.contents).reshaped(o.dims));
    else
      out.push_back(cpu::check::random_f32(o.dims, seed++, -1, 1));
  }
  return out;
}

/// Inputs are uniform in [-1, 1]: a sum of K products walks to about sqrt(K) / 3, and each of its K roundings
/// errs by up to 2^-24 of where it stands. Four standard deviations of that, and a floor for epilogues.
double tolerance(const Problem& p) {
  const ops::OpDef* op = ops::find_op(p.domain, p.op);
  if (op == nullptr || op->cost == nullptr) return 1e-5;
  std::vector<Shape> in;
  for (size_t i = 0; i < p.num_anchor_srcs; ++i) in.push_back(p.srcs[i].dims);
  const std::vector<Shape> out = {p.dsts[0].dims};
  const double k =
      op->cost(p.attrs, in, out).flops / 2 / static_cast<double>(std::max<int64_t>(1, numel(out[0])));
  return 0x1p-24 * (64 + 0.5 * k);
}

TEST(Tactics, ParseAndPrintTheProblems) {
  const auto lines = problem_lines();
  ASSERT_GT(lines.size(), 20U);
  for (const std::string& line : lines)
    EXPECT_EQ(Problem::parse(Problem::parse(line).text()), Problem::parse(line)) << line;
}

TEST(Tactics, AgreeWithTheOracle) {
  const Backend& backend = *find_backend("cpu");
  uint32_t seed = 1;
  for (const std::string& line : problem_lines()) {
    const Problem logical = Problem::parse(line);
    const std::vector<Tensor> inputs = inputs_of(logical, seed += 100);
    std::vector<const Tensor*> srcs;
    for (const Tensor& t : inputs) srcs.push_back(t.defined() ? &t : nullptr);
    const std::vector<Tensor> want = ops::run_problem(logical, srcs, /*oracle=*/true);
    int own = 0;
    for (const Tactic* t : backend.tactics(logical, {.backend = "cpu", .isa = detected_isa()})) {
      Problem p = logical;
      t->choose_layouts(p);
      const Support ok = t->supports(p);
      if (!ok) {
        EXPECT_FALSE(ok.reason.empty()) << t->name() << " refuses without a reason: " << line;
        continue;
      }
      own += t->name() != "ref";
      const std::vector<Tensor> one = cpu::check::execute(*t, p, srcs, 1),
                                two = cpu::check::execute(*t, p, srcs, 2);
      EXPECT_EQ(std::memcmp(one[0].raw(), two[0].raw(), static_cast<size_t>(one[0].nbytes())), 0)
          << t->name() << ": threads change the bits: " << line;
      cpu::check::expect_close(one[0], want[0], tolerance(logical), t->name() + " on " + line);
      for (size_t i = 0; i < p.srcs.size(); ++i) {
        if (!p.srcs[i].constant) continue;
        const std::string packing = t->packing(p, i);
        if (packing.empty()) continue;
        const Tensor back =
            backend.unpack(packing, backend.pack(packing, inputs[i]), p.srcs[i].dtype, p.srcs[i].dims);
        EXPECT_EQ(std::memcmp(back.raw(), inputs[i].raw(), static_cast<size_t>(back.nbytes())), 0)
            << packing << " does not unpack: " << line;
      }
    }
    EXPECT_GE(own, detected_isa() == Isa::kPortable ? 1 : 2) << "only the reference runs " << line;
  }
}

}  // namespace
}  // namespace hone::backends
