// The parts of reports that several commands print: layers, fallbacks, precision, ledger, memory, profiles,
// problems.
#pragma once

#include <string>
#include <vector>

#include "hone/builder.h"
#include "hone/engine.h"

namespace hone::cli {

/// `name f32[N,3,224,224]`, several with commas.
std::string interface_text(const std::vector<TensorInfo>& tensors);
/// A reason code of LayerInfo::reason in words.
std::string reason_text(const std::string& code);
/// Every step: operator, requested and actual type, tactic, time, bytes.
std::string layers_table(const std::vector<LayerInfo>& layers);
/// Requested and actual types with numbers of layers, then every fallback with its reason.
std::string precision_table(const std::vector<LayerInfo>& layers);
/// Rewrites by rule: how many, nodes, bytes not moved; then the sum against the unfused graph.
std::string ledger_table(const EngineInfo& info);
std::string memory_text(const MemoryInfo& memory);
/// `1x3x224x224`; a dimension without an upper bound is `any`.
std::string range_text(const Shape& shape);
std::string profiles_table(const EngineInfo& info);
/// Warnings and errors, one block each.
std::string issues_text(const std::vector<Issue>& issues);
/// How many steps of each kind: `52 tactics, 2 reorders, 7 aliases`.
std::string steps_text(const std::vector<LayerInfo>& layers);

/// Rewrites by rule, largest sum first.
struct LedgerSum {
  std::string pass;
  int64_t count = 0, nodes = 0, bytes = 0;
};
std::vector<LedgerSum> ledger_sums(const EngineInfo& info);
bool is_fallback(const LayerInfo& layer);

}  // namespace hone::cli
