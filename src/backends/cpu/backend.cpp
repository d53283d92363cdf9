#include <algorithm>
#include <map>
#include <regex>

#include "backends/backend.h"
#include "backends/cpu/cpu_tactic.h"
#include "backends/cpu/packing.h"
#include "backends/ref/ref.h"
#include "base/cpu.h"
#include "hone/error.h"

namespace hone::backends {
namespace cpu {

#define HONE_CPU_TACTIC(op, maker) std::unique_ptr<Tactic> maker(Isa isa);
#include "backends/cpu/tactics.inc"
#undef HONE_CPU_TACTIC

namespace {

/// HONE_TACTIC, a regular expression on tactic names; an invalid one keeps everything.
const std::regex* tactic_filter() {
  static const std::unique_ptr<const std::regex> filter = []() -> std::unique_ptr<const std::regex> {
    const char* text = std::getenv("HONE_TACTIC");
    if (text == nullptr || *text == '\0') return nullptr;
    try {
      return std::make_unique<const std::regex>(text);
    } catch (const std::regex_error&) {
      return nullptr;
    }
  }();
  return filter.get();
}

class CpuBackend final : public Backend {
 public:
  CpuBackend() {
    const auto add = [this](const char* op, std::unique_ptr<Tactic> (*maker)(Isa)) {
      for (Isa isa : {Isa::kAvx512, Isa::kAvx2, Isa::kPortable}) {
        std::unique_ptr<Tactic> t = maker(isa);
        if (!t) continue;
        const auto [it, inserted] = by_name_.emplace(t->name(), nullptr);
        if (inserted) {
          it->second = t.get();
          owned_.push_back(std::move(t));
        }
        by_op_[op].push_back(it->second);
      }
    };
#define HONE_CPU_TACTIC(op, maker) add(#op, maker);
#include "backends/cpu/tactics.inc"
#undef HONE_CPU_TACTIC
    // The highest level first; within a level the order of the rows.
    for (auto& [op, list] : by_op_)
      std::stable_sort(list.begin(), list.end(),
                       [](const Tactic* a, const Tactic* b) { return a->isa() > b->isa(); });
    by_name_.emplace(ref_tactic().name(), &ref_tactic());
  }

  std::string_view name() const override { return "cpu"; }

  std::vector<const Tactic*> tactics(const Problem& problem, const Target& target) const override {
    std::vector<const Tactic*> out;
    if (const auto it = by_op_.find(problem.op); it != by_op_.end())
      for (const Tactic* t : it->second) {
        if (t->isa() > target.isa) continue;
        if (tactic_filter() != nullptr && problem.op != "Reorder" &&
            !std::regex_search(t->name(), *tactic_filter()))
          continue;
        out.push_back(t);
      }
    out.push_back(&ref_tactic());
    return out;
  }

  const Tactic* find(std::string_view tactic_name) const override {
    const auto it = by_name_.find(tactic_name);
    return it == by_name_.end() ? nullptr : it->second;
  }

  Tensor pack(const std::string& packing, const Tensor& plain) const override {
    return pack_constant(packing, plain);
  }
  Tensor unpack(const std::string& packing, const Tensor& packed, DType dtype,
                const Shape& dims) const override {
    return unpack_constant(packing, packed, dtype, dims);
  }

  std::string refuse(const Target& target) const override {
    if (isa_supported(target.isa)) return "";
    return "engine built for cpu-" + std::string(isa_name(target.isa)) + ", found cpu-" +
           std::string(isa_name(detected_isa())) + " (" + std::string(cpu_model_name()) +
           "): rebuild with --target=cpu-" + std::string(isa_name(detected_isa()));
  }

 private:
  std::vector<std::unique_ptr<Tactic>> owned_;
  std::map<std::string, const Tactic*, std::less<>> by_name_;
  std::map<std::string, std::vector<const Tactic*>, std::less<>> by_op_;
};

}  // namespace
}  // namespace cpu

const Backend& cpu_backend() {
  static const cpu::CpuBackend backend;
  return backend;
}

}  // namespace hone::backends
