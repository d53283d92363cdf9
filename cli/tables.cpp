#include "tables.h"

#include <algorithm>
#include <map>

#include "flags.h"
#include "text.h"

namespace hone::cli {
namespace {

using Align = Table::Align;

std::string dash(std::string s) { return s.empty() ? "-" : s; }

}  // namespace

std::string interface_text(const std::vector<TensorInfo>& tensors) {
  std::string s;
  for (const TensorInfo& t : tensors) s += (s.empty() ? "" : ", ") + printable(tensor_text(t));
  return s.empty() ? "none" : s;
}

std::string reason_text(const std::string& code) {
  if (code == "no-tactic") return "no kernel of this target runs it: the reference does";
  if (code == "data-dependent-shape") return "its size depends on data: the reference runs it";
  if (code == "control-flow") return "control flow: the reference interprets it";
  return code;
}

bool is_fallback(const LayerInfo& layer) { return !layer.reason.empty(); }

std::string steps_text(const std::vector<LayerInfo>& layers) {
  std::map<std::string, int64_t> kinds;
  for (const LayerInfo& l : layers) ++kinds[l.kind];
  std::string s;
  const auto add = [&](const char* kind, const char* what) {
    if (const auto it = kinds.find(kind); it != kinds.end())
      s += (s.empty() ? "" : ", ") + count_text(it->second, what);
  };
  add("tactic", "tactic");
  add("reorder", "reorder");
  add("host", "host step");
  if (const auto it = kinds.find("alias"); it != kinds.end())
    s += (s.empty() ? "" : ", ") + std::to_string(it->second) + (it->second == 1 ? " alias" : " aliases");
  return s.empty() ? "no steps" : s;
}

std::string layers_table(const std::vector<LayerInfo>& layers) {
  const bool timed =
      std::any_of(layers.begin(), layers.end(), [](const LayerInfo& l) { return l.tuned_time_ns > 0; });
  std::vector<Table::Column> columns = {{"layer", Align::kLeft, true},  {"op", Align::kLeft, true},
                                        {"asked", Align::kLeft},        {"runs", Align::kLeft},
                                        {"tactic", Align::kLeft, true}, {"moves", Align::kRight},
                                        {"weights", Align::kRight}};
  if (timed) columns.push_back({"tuned", Align::kRight});
  Table table(columns);
  for (const LayerInfo& l : layers) {
    std::vector<std::string> row = {l.name,
                                    dash(l.op),
                                    dash(l.requested),
                                    dash(l.actual),
                                    l.tactic.empty() ? "(" + l.kind + ")" : l.tactic,
                                    bytes_text(l.bytes_read + l.bytes_written),
                                    l.weight_bytes > 0 ? bytes_text(l.weight_bytes) : "-"};
    if (timed) row.push_back(l.tuned_time_ns > 0 ? ms_text(l.tuned_time_ns * 1e-6) : "-");
    table.row(std::move(row));
  }
  return table.text();
}

std::string precision_table(const std::vector<LayerInfo>& layers) {
  std::map<std::pair<std::string, std::string>, int64_t> pairs;
  for (const LayerInfo& l : layers)
    if (l.kind != "alias") ++pairs[{dash(l.requested), dash(l.actual)}];
  Table table({{"asked", Align::kLeft}, {"runs", Align::kLeft}, {"layers", Align::kRight}});
  for (const auto& [types, n] : pairs) table.row({types.first, types.second, std::to_string(n)});
  std::string s = "Precision, requested and actual\n" + table.text();
  Table fallbacks({{"layer", Align::kLeft, true},
                   {"op", Align::kLeft},
                   {"runs", Align::kLeft},
                   {"reason", Align::kLeft, true}});
  int64_t n = 0;
  for (const LayerInfo& l : layers) {
    if (!is_fallback(l)) continue;
    ++n;
    fallbacks.row({l.name, dash(l.op), dash(l.actual), reason_text(l.reason)});
  }
  return s + (n == 0 ? "No fallbacks: every layer runs on a kernel of this target\n"
                     : "Fallbacks (" + std::to_string(n) + ")\n" + fallbacks.text());
}

std::vector<LedgerSum> ledger_sums(const EngineInfo& info) {
  std::map<std::string, LedgerSum> by_pass;
  for (const LedgerInfo& l : info.ledger) {
    LedgerSum& sum = by_pass[l.pass];
    sum.pass = l.pass;
    ++sum.count;
    sum.nodes += static_cast<int64_t>(l.sources.size());
    sum.bytes += l.bytes_not_moved;
  }
  std::vector<LedgerSum> sums;
  for (auto& [name, sum] : by_pass) sums.push_back(sum);
  std::stable_sort(sums.begin(), sums.end(),
                   [](const LedgerSum& a, const LedgerSum& b) { return a.bytes > b.bytes; });
  return sums;
}

std::string ledger_table(const EngineInfo& info) {
  if (info.ledger.empty()) return "Ledger: no rewrite was made\n";
  Table table({{"rewrite", Align::kLeft, true},
               {"times", Align::kRight},
               {"nodes", Align::kRight},
               {"bytes not moved", Align::kRight}});
  for (const LedgerSum& s : ledger_sums(info))
    table.row({s.pass, std::to_string(s.count), std::to_string(s.nodes), bytes_text(s.bytes)});
  std::string sum = "  in all " + bytes_text(info.ledger_bytes) + " of activations are not moved";
  if (info.unfused_bytes > 0)
    sum += ", " +
           percent_text(static_cast<double>(info.ledger_bytes) / static_cast<double>(info.unfused_bytes)) +
           " of the unfused graph's " + bytes_text(info.unfused_bytes);
  return "Ledger (one inference)\n" + table.text() + sum + "\n";
}

std::string memory_text(const MemoryInfo& memory) {
  std::string s = "Memory: arena " + bytes_text(memory.arena_bytes) + " (no plan can do with less than " +
                  bytes_text(memory.peak_live_bytes) + "), weights " + bytes_text(memory.weights_bytes) +
                  "\n";
  return s;
}

std::string range_text(const Shape& shape) {
  std::string s;
  for (int64_t d : shape)
    s += (s.empty() ? "" : "x") + (d >= (int64_t{1} << 31) - 1 ? std::string("any") : std::to_string(d));
  return s.empty() ? "scalar" : s;
}

std::string profiles_table(const EngineInfo& info) {
  Table table({{"profile", Align::kRight},
               {"input", Align::kLeft, true},
               {"min", Align::kLeft},
               {"opt", Align::kLeft},
               {"max", Align::kLeft}});
  for (size_t i = 0; i < info.profiles.size(); ++i)
    for (const ProfileInfo& p : info.profiles[i])
      table.row({std::to_string(i), p.input, range_text(p.min), range_text(p.opt), range_text(p.max)});
  return "Optimization profiles\n" + table.text();
}

std::string issues_text(const std::vector<Issue>& issues) {
  std::string s;
  for (const Issue& i : issues) {
    s += i.severity + ": " + i.stage + ": ";
    if (!i.node.empty()) s += "node '" + i.node + "' ";
    if (!i.op.empty()) s += "op " + i.op + " ";
    if (i.opset != 0) s += "opset " + std::to_string(i.opset) + " ";
    if (s.back() == ' ' && s[s.size() - 2] != ':') s.insert(s.size() - 1, ":");
    s += i.message;
    if (!i.tensor.empty()) s += "; " + i.tensor;
    s += "\n";
    if (!i.remedy.empty()) s += "    remedy: " + i.remedy + "\n";
  }
  return printable(s, true);
}

}  // namespace hone::cli
