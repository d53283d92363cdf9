// What an engine is, in memory: the plan, its constants and the optimised graph. format.h writes and reads it
// as one file.
//
// The plan is a list of steps over values. Everything whose size depends on the input shapes is a formula
// over symbols (ir::Dim); binding an engine to input shapes evaluates them once per distinct shape set and
// caches the result (runtime/session.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hone/tensor.h"
#include "ir/dim.h"
#include "ir/graph.h"
#include "ops/problem.h"

namespace hone::engine {

using PlanId = int32_t;
inline constexpr PlanId kNone = -1;

/// Where a value's bytes live.
enum class Place : uint8_t {
  kInput = 0,     ///< the caller's buffer
  kOutput = 1,    ///< the caller's buffer, or the session's when the caller gives none
  kConstant = 2,  ///< the weights section
  kArena = 3,     ///< planned memory, offset decided when shapes are bound
  kDynamic = 4,   ///< size known only after its step ran (NonZero); owned by the run
};

struct PlanValue {
  std::string name;  ///< tensor name in the model, or derived: `conv1_out@nhwc`
  DType dtype = DType::kUndefined;
  ir::Dims dims;  ///< logical, in ONNX order
  ops::Layout layout = ops::Layout::kPlain;
  Place place = Place::kArena;
  PlanId alias_of = kNone;  ///< shares the bytes of another value (Reshape, zero-copy transpose); chains are
                            ///< resolved at build
  int32_t constant = -1;    ///< index into Engine::constants
};

enum class StepKind : uint8_t {
  kTactic = 0,   ///< a prepared tactic
  kReorder = 1,  ///< layout change of one value, also a tactic
  kHostOp = 2,   ///< reference kernel through the interpreter: sizes may depend on data; subgraphs
  kAlias = 3,    ///< nothing runs: the output is its input under another type
};

/// Choice among tactics for one optimization-profile bucket.
struct TacticChoice {
  std::string tactic;
  double time_ns = 0;  ///< as measured by the tuner, 0 when untimed
  double error = -1;   ///< relative L2 against the oracle on the tuner's inputs, -1 when not measured
};

struct PlanStep {
  StepKind kind = StepKind::kTactic;
  std::string name;  ///< of the IR node
  ops::Problem
      problem;  ///< operand dims are those of the first bucket's opt shapes; replaced when shapes are bound
  std::vector<PlanId> srcs, dsts;     ///< follow the problem's operands; kNone for absent ones
  std::vector<TacticChoice> choices;  ///< one a bucket
  std::string requested, actual;      ///< precision asked for and run ("f32")
  std::string reason;  ///< why they differ or why this is a fallback, from one list of codes; empty otherwise
  std::vector<std::string> sources;  ///< model nodes it stands for
  std::vector<std::string> passes;
  int32_t host_node = -1;  ///< kHostOp: index into the optimised graph's nodes
};

struct Constant {
  std::string name;
  DType dtype = DType::kUndefined;  ///< of the logical weight
  Shape dims;                       ///< of the logical weight
  std::string packing;              ///< "" plain
  Tensor bytes;                     ///< as stored; a view of the mapped file after loading
};

/// Range of one input in one optimization profile.
struct ProfileRange {
  std::string input;
  Shape min, opt, max;
};
using Profile = std::vector<ProfileRange>;

/// A rewrite that the optimizer made, with the figures at the opt shapes.
struct LedgerEntry {
  std::string pass, node;
  std::vector<std::string> sources;
  ir::Dim bytes_not_moved;
};

struct Plan {
  std::vector<PlanValue> values;
  std::vector<PlanStep> steps;
  std::vector<PlanId> inputs, outputs;
  std::vector<Profile> profiles;  ///< at least one
  std::vector<LedgerEntry> ledger;
  ir::Dim unfused_traffic_bytes;  ///< activation bytes of the imported graph: every tensor written once and
                                  ///< read by each reader
};

struct Engine {
  virtual ~Engine() = default;
  Engine() = default;
  Engine(Engine&&) = default;
  Engine& operator=(Engine&&) = default;

  std::string target;  ///< backends::Target text: "cpu-avx512", "ref"
  Plan plan;
  std::vector<Constant> constants;
  std::string graph_text;  ///< the optimised graph (ir::print); external constant N is constants[N], unpacked
  std::string options_json;  ///< flags that shaped the build, canonical JSON
  std::string model_hash;    ///< XXH3-128 of the model file, hex
  bool timed = false;        ///< tactics were measured, not guessed
};

/// Structural soundness of a plan: ids in range, values defined before use, aliases resolved and typed,
/// problems match their operands, profiles name inputs. Empty when sound. Run on every load.
std::string check_plan(const Engine& engine);

}  // namespace hone::engine
