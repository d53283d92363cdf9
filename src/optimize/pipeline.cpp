// The optimizer as one straight list of passes.
//
// Phases run in order; a phase repeats until a round changes nothing (kMaxRounds at most). Every pass goes
// through one wrapper, which skips it by name, times it, logs it, checks the structure, and hands before and
// after to --verify.
#include <chrono>
#include <cstdlib>
#include <set>

#include "base/log.h"
#include "base/str.h"
#include "hone/error.h"
#include "ir/verify.h"
#include "ops/infer.h"
#include "optimize/passes.h"
#include "optimize/rules/rules.h"

namespace hone::optimize {

using ir::Graph;
using ir::Node;

namespace {

constexpr int kMaxRounds = 12;

using Phase = std::vector<Pass>;

void append(Phase& to, const std::vector<Pass>& more) { to.insert(to.end(), more.begin(), more.end()); }

const std::vector<Phase>& phases() {
  static const std::vector<Phase> all = [] {
    const Pass dead{"dead_code", "remove nodes whose results nobody reads", Numerics::kExact, dead_code};
    const Phase clean_up = {
        {"captured_constants", "constants that a subgraph captures are constants inside", Numerics::kExact,
         captured_constants},
        {"fold_contents", "integer tensors whose elements are known by inference", Numerics::kExact,
         fold_contents},
        {"fold_constants", "run nodes whose inputs are constants", Numerics::kExact, fold_constants},
        {"merge_constants", "equal constants are one", Numerics::kExact, merge_constants},
        {"common_subexpressions", "nodes that compute the same are one", Numerics::kExact,
         common_subexpressions},
        dead,
    };
    std::vector<Phase> p;
    // Simplify: no-ops, shapes, folding.
    Phase simplify;
    append(simplify, as_passes(noop_rules()));
    append(simplify, as_passes(view_rules()));
    append(simplify,
           {{"needless_expand", "Expand that broadcasting does anyway", Numerics::kExact, needless_expand}});
    append(simplify, clean_up);
    p.push_back(simplify);
    // Recognise what exporters spell out, fold into weights, move transposes.
    Phase recognise;
    append(recognise, as_passes(activation_rules()));
    append(recognise, as_passes(softmax_rules()));
    append(recognise, as_passes(norm_rules()));
    append(recognise, as_passes(pool_rules()));
    append(recognise, as_passes(linear_rules()));
    append(recognise, as_passes(constant_rules()));
    append(recognise, as_passes(attention_rules()));
    append(recognise, as_passes(transpose_rules()));
    append(recognise,
           {{"slices_to_split", "pieces that cover a dimension are one Split", Numerics::kExact,
             slices_to_split},
            {"transpose_sink_split", "Transpose below Split", Numerics::kExact, transpose_sink_split}});
    append(recognise, simplify);
    p.push_back(recognise);
    p.push_back({{"merge_products", "products of one tensor with several constant matrices are one",
                  Numerics::kReassociates, merge_products},
                 dead});
    // Layers last: nothing looks into their bodies.
    p.push_back(
        {{"fuse_layers", "convolution or product with what follows: bias, scale, residual, activation",
          Numerics::kExact, fuse_layers},
         {"fuse_pointwise", "elementwise operators that remain become programs", Numerics::kExact,
          fuse_pointwise},
         dead});
    return p;
  }();
  return all;
}

bool disabled(const std::vector<std::string>& patterns, const std::string& name) {
  for (const std::string& p : patterns)
    if (glob_match(p, name)) return true;
  return false;
}

std::vector<std::string> disabled_by_environment() {
  std::vector<std::string> out;
  const char* v = std::getenv("HONE_DISABLE");
  if (v == nullptr) return out;
  for (const std::string_view part : split(v, ',')) {
    const std::string_view name = trim(part);
    if (!name.empty()) out.emplace_back(name);
  }
  return out;
}

// Rewrites name their nodes after what they replace; where that gave one name twice, the later one is told
// apart.
void unique_node_names(Graph& graph) {
  std::set<std::string> seen;
  for (const auto& node : graph.nodes()) {
    if (node->name.empty()) node->name = node->op;
    if (seen.insert(node->name).second) continue;
    const std::string base = node->name + "/" + node->op;
    std::string name = base;
    for (int k = 1; !seen.insert(name).second; ++k) name = base + "_" + std::to_string(k);
    node->name = std::move(name);
  }
}

class Runner {
 public:
  Runner(const PipelineOptions& options, std::vector<LedgerRow>* ledger)
      : options_(options), ledger_(ledger), off_(options.disable) {
    for (std::string& name : disabled_by_environment()) off_.push_back(std::move(name));
  }

  void run(Graph& graph) {
    ops::infer_graph(graph);
    for (const Phase& phase : phases()) {
      for (int round = 0; round < kMaxRounds; ++round) {
        int changes = 0;
        for (const Pass& pass : phase) changes += apply(pass, graph);
        if (changes == 0) break;
      }
    }
    unique_node_names(graph);
    subgraphs(graph);
  }

 private:
  int apply(const Pass& pass, Graph& graph) {
    if (disabled(off_, pass.name)) return 0;
    std::unique_ptr<Graph> before;
    if (options_.check) before = graph.clone();
    PassContext ctx{graph};
    ctx.ledger = ledger_;
    ctx.enabled = [this](const std::string& name) { return !disabled(off_, name); };
    const auto start = std::chrono::steady_clock::now();
    pass.run(ctx);
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (ctx.changes == 0) return 0;
#ifdef NDEBUG
    const bool verify = options_.verify_structure;
#else
    const bool verify = true;
#endif
    if (verify) ir::verify_or_throw(graph, std::string("optimize/") + pass.name);
    if (options_.check) options_.check(pass, *before, graph);
    if (options_.log) options_.log(pass, ctx.changes, ms);
    if (log_enabled(Log::kPass))
      log(Log::kPass, std::string(pass.name) + ": " + std::to_string(ctx.changes) + " rewrites, " +
                          fixed_text(ms, 2) + " ms");
    return ctx.changes;
  }

  void subgraphs(Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (auto& [name, attr] : node->attrs) {
        if (auto* one = std::get_if<std::shared_ptr<Graph>>(&attr); one != nullptr && *one != nullptr)
          run(**one);
        if (auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attr); many != nullptr)
          for (const auto& g : *many) run(*g);
      }
    }
  }

  const PipelineOptions& options_;
  std::vector<LedgerRow>* ledger_;
  std::vector<std::string> off_;
};

}  // namespace

std::vector<Pass> all_passes() {
  std::vector<Pass> passes;
  std::set<std::string_view> seen;
  for (const Phase& phase : phases())
    for (const Pass& pass : phase)
      if (seen.insert(pass.name).second) passes.push_back(pass);
  return passes;
}

void run_pipeline(Graph& graph, const PipelineOptions& options, std::vector<LedgerRow>* ledger) {
  Runner(options, ledger).run(graph);
}

}  // namespace hone::optimize
