#include <algorithm>
#include <cmath>

#include "commands.h"
#include "errors.h"
#include "flags.h"
#include "hone/io.h"
#include "hone/session.h"
#include "json_reports.h"
#include "open.h"
#include "tables.h"
#include "text.h"

namespace hone::cli {
namespace {

using Align = Table::Align;

// --- tensors ---

struct Limits {
  std::optional<double> rtol, atol, rel_l2;
  bool elementwise() const { return rtol || atol; }
};

bool has_range(const Tensor& t) {
  return dtype_bits(t.dtype()) > 0 && t.dtype() != DType::kC64 && t.dtype() != DType::kC128;
}

/// Figures over the elements that are finite in both; NaN and infinities must sit at the same places with the
/// same sign.
void measure(const Tensor& a, const Tensor& b, const Limits& limits, ArrayDiff* d) {
  double aa = 0, bb = 0, ab = 0, dd = 0;
  int64_t misplaced = 0, beyond = 0;
  const double rtol = limits.rtol.value_or(0), atol = limits.atol.value_or(0);
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double x = a.at(i), y = b.at(i);
    d->nan_a += std::isnan(x);
    d->nan_b += std::isnan(y);
    if (!std::isfinite(x) || !std::isfinite(y)) {
      if (!(x == y || (std::isnan(x) && std::isnan(y)))) ++misplaced;
      continue;
    }
    const double off = std::fabs(x - y);
    if (off != 0) ++d->mismatched;
    if (off > d->max_abs || d->worst_index < 0) {
      d->max_abs = off;
      d->worst_index = i;
    }
    if (y != 0) d->max_rel = std::max(d->max_rel, off / std::fabs(y));
    if (off > atol + rtol * std::fabs(y)) ++beyond;
    aa += x * x;
    bb += y * y;
    ab += x * y;
    dd += off * off;
  }
  d->mismatched += misplaced;
  d->rel_l2 = bb > 0 ? std::sqrt(dd / bb) : std::sqrt(dd);
  d->cosine = aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : (aa == bb ? 1 : 0);
  d->equal = d->mismatched == 0;
  const auto fail = [&](const std::string& why) { d->why += (d->why.empty() ? "" : "; ") + why; };
  if (misplaced > 0) fail("NaN or infinity differs at " + count_text(misplaced, "element"));
  if (!is_float(a.dtype())) {
    if (!d->equal && !limits.elementwise())
      fail(std::to_string(d->mismatched) + " of " + count_text(d->elements, "element") + " differ");
  } else if (limits.rel_l2 && !(d->rel_l2 <= *limits.rel_l2)) {
    fail("relative L2 " + number_text(d->rel_l2) + " is above " + number_text(*limits.rel_l2));
  }
  if (limits.elementwise() && beyond > 0) fail(count_text(beyond, "element") + " beyond atol + rtol |b|");
}

TensorDiff diff_tensors(const Request& request) {
  TensorDiff diff;
  diff.path_a = request.path;
  diff.path_b = request.other;
  Limits limits{request.rtol, request.atol, request.rel_l2};
  if (!limits.elementwise() && !limits.rel_l2) limits.rel_l2 = 1e-5;
  if (limits.rel_l2) diff.limits = "relative L2 at most " + number_text(*limits.rel_l2);
  if (limits.elementwise())
    diff.limits += (diff.limits.empty() ? "" : " and ") + std::string("|a - b| <= ") +
                   number_text(limits.atol.value_or(0)) + " + " + number_text(limits.rtol.value_or(0)) +
                   " |b|";
  const std::vector<NamedTensor> a = read_npz(request.path), b = read_npz(request.other);
  const auto find = [](const std::vector<NamedTensor>& arrays, const std::string& name) {
    return std::find_if(arrays.begin(), arrays.end(), [&](const NamedTensor& t) { return t.name == name; });
  };
  for (const NamedTensor& x : a) {
    ArrayDiff d;
    d.name = x.name;
    d.type_a = x.tensor.type_text();
    d.elements = x.tensor.numel();
    const auto y = find(b, x.name);
    if (y == b.end()) {
      d.why = "only in the first file";
    } else {
      d.type_b = y->tensor.type_text();
      const bool types_differ = x.tensor.dtype() != y->tensor.dtype() &&
                                !(is_float(x.tensor.dtype()) && is_float(y->tensor.dtype()));
      if (x.tensor.shape() != y->tensor.shape())
        d.why = "shapes differ";
      else if (types_differ)
        d.why = "types differ";
      else if (!has_range(x.tensor))
        d.why = "this type cannot be compared";
      d.compared = d.why.empty();
      if (d.compared) measure(x.tensor, y->tensor, limits, &d);
    }
    d.pass = d.why.empty();
    diff.arrays.push_back(std::move(d));
  }
  for (const NamedTensor& y : b) {
    if (find(a, y.name) != a.end()) continue;
    ArrayDiff d;
    d.name = y.name;
    d.type_b = y.tensor.type_text();
    d.elements = y.tensor.numel();
    d.why = "only in the second file";
    diff.arrays.push_back(std::move(d));
  }
  for (const ArrayDiff& d : diff.arrays) diff.pass &= d.pass;
  return diff;
}

std::string text_of(const TensorDiff& diff) {
  Table table({{"array", Align::kLeft, true},
               {"type", Align::kLeft, true},
               {"max abs", Align::kRight},
               {"rel. L2", Align::kRight},
               {"1 - cosine", Align::kRight},
               {"NaN", Align::kRight},
               {"verdict", Align::kLeft, true}});
  for (const ArrayDiff& d : diff.arrays) {
    std::string type = d.type_a.empty() ? d.type_b : d.type_a;
    if (!d.type_a.empty() && !d.type_b.empty() && d.type_a != d.type_b) type += " / " + d.type_b;
    const std::string nan = d.nan_a == d.nan_b ? std::to_string(d.nan_a)
                                               : std::to_string(d.nan_a) + " / " + std::to_string(d.nan_b);
    if (d.compared)
      table.row({d.name, type, number_text(d.max_abs), number_text(d.rel_l2),
                 number_text(std::max(0.0, 1 - d.cosine), 2), nan,
                 d.pass ? (d.equal ? "equal" : "ok") : d.why});
    else
      table.row({d.name, type, "-", "-", "-", "-", d.why});
  }
  return table.text() + (diff.pass ? "same" : "different") + ": " + diff.limits + ", integers equal\n";
}

// --- engines ---

/// Does anything that a reader would call a difference stand between two steps?
bool differ(const LayerInfo& a, const LayerInfo& b) {
  return a.kind != b.kind || a.op != b.op || a.tactic != b.tactic || a.problem != b.problem ||
         a.requested != b.requested || a.actual != b.actual || a.reason != b.reason;
}

/// Layers are matched by name, and repeated names by their order.
EngineDiff diff_engines(const Request& request) {
  EngineDiff diff;
  diff.path_a = request.path;
  diff.path_b = request.other;
  diff.a = Engine::load(request.path).info();
  diff.b = Engine::load(request.other).info();
  std::map<std::string, std::vector<const LayerInfo*>> by_name;
  for (const LayerInfo& l : diff.b.layers) by_name[l.name].push_back(&l);
  for (const LayerInfo& l : diff.a.layers) {
    auto& candidates = by_name[l.name];
    if (candidates.empty()) {
      diff.layers.push_back({l.name, &l, nullptr});
      continue;
    }
    const LayerInfo* other = candidates.front();
    candidates.erase(candidates.begin());
    if (differ(l, *other))
      diff.layers.push_back({l.name, &l, other});
    else
      ++diff.same_layers;
  }
  for (const LayerInfo& l : diff.b.layers) {
    const auto& rest = by_name[l.name];
    if (std::find(rest.begin(), rest.end(), &l) != rest.end()) diff.layers.push_back({l.name, nullptr, &l});
  }
  return diff;
}

double tuned_ms(const EngineInfo& e) {
  double ns = 0;
  for (const LayerInfo& l : e.layers) ns += l.tuned_time_ns;
  return ns * 1e-6;
}

std::string side(const LayerInfo* l) {
  if (l == nullptr) return "(absent)";
  std::string s = l->tactic.empty() ? "(" + l->kind + ")" : l->tactic;
  if (!l->actual.empty()) s += " " + l->actual;
  if (l->tuned_time_ns > 0) s += " " + ms_text(l->tuned_time_ns * 1e-6);
  return s;
}

std::string text_of(const EngineDiff& d) {
  Table head({{""}, {"A", Align::kLeft, true}, {"B", Align::kLeft, true}});
  const auto row = [&](const char* what, const std::string& a, const std::string& b) {
    head.row({what, a, a == b ? "same" : b});
  };
  row("file", d.path_a, d.path_b);
  row("engine", d.a.body_hash, d.b.body_hash);
  row("model", d.a.model_hash, d.b.model_hash);
  row("target", d.a.target, d.b.target);
  row("options", d.a.options_json, d.b.options_json);
  row("tactics", d.a.timed ? "timed" : "untimed", d.b.timed ? "timed" : "untimed");
  row("steps", steps_text(d.a.layers), steps_text(d.b.layers));
  row("tuned layers take", ms_text(tuned_ms(d.a)), ms_text(tuned_ms(d.b)));
  row("file size", bytes_text(d.a.file_bytes), bytes_text(d.b.file_bytes));
  row("arena", bytes_text(d.a.memory.arena_bytes), bytes_text(d.b.memory.arena_bytes));
  row("weights", bytes_text(d.a.memory.weights_bytes), bytes_text(d.b.memory.weights_bytes));
  row("bytes not moved", bytes_text(d.a.ledger_bytes), bytes_text(d.b.ledger_bytes));
  std::string text = head.text() + "\n";
  std::map<std::string, std::pair<LedgerSum, LedgerSum>> ledger;
  for (const LedgerSum& s : ledger_sums(d.a)) ledger[s.pass].first = s;
  for (const LedgerSum& s : ledger_sums(d.b)) ledger[s.pass].second = s;
  Table rewrites({{"rewrite that differs", Align::kLeft, true},
                  {"times in A", Align::kRight},
                  {"in B", Align::kRight},
                  {"bytes in A", Align::kRight},
                  {"in B", Align::kRight}});
  for (const auto& [pass, sums] : ledger)
    if (sums.first.count != sums.second.count || sums.first.bytes != sums.second.bytes)
      rewrites.row({pass, std::to_string(sums.first.count), std::to_string(sums.second.count),
                    bytes_text(sums.first.bytes), bytes_text(sums.second.bytes)});
  if (!rewrites.empty()) text += rewrites.text() + "\n";
  if (d.layers.empty()) return text + "All " + count_text(d.same_layers, "layer") + " are the same\n";
  Table layers(
      {{"layer that differs", Align::kLeft, true}, {"A", Align::kLeft, true}, {"B", Align::kLeft, true}});
  for (const LayerDiff& l : d.layers) layers.row({l.name, side(l.a), side(l.b)});
  return text + layers.text() + count_text(d.same_layers, "layer") + " the same, " +
         std::to_string(d.layers.size()) + " different\n";
}

}  // namespace

int diff_command(const Request& request) {
  if (request.path.empty() || request.other.empty()) usage("diff needs two files, A and B");
  const bool a = Engine::is_engine(request.path), b = Engine::is_engine(request.other);
  if (a != b)
    usage("'" + (a ? request.path : request.other) +
          "' is an engine and the other file is not; diff compares two of a kind");
  if (a) {
    const EngineDiff diff = diff_engines(request);
    print(request.json ? engine_diff_json(diff) + "\n" : text_of(diff));
    return 0;
  }
  const TensorDiff diff = diff_tensors(request);
  print(request.json ? tensor_diff_json(diff) + "\n" : text_of(diff));
  return diff.pass ? 0 : 1;
}

}  // namespace hone::cli
