#include "backends/backend.h"

#include "base/cpu.h"
#include "hone/error.h"

namespace hone::backends {

#define HONE_BACKEND(name) const Backend& name##_backend();
#include "backends/backends.inc"
#undef HONE_BACKEND

std::vector<const Backend*> all_backends() {
  return {
#define HONE_BACKEND(name) &name##_backend(),
#include "backends/backends.inc"
#undef HONE_BACKEND
  };
}

const Backend* find_backend(std::string_view name) {
  for (const Backend* b : all_backends())
    if (b->name() == name) return b;
  return nullptr;
}

std::string Target::text() const {
  if (backend != "cpu") return backend;
  return backend + "-" + std::string(isa_name(isa));
}

Target Target::parse(std::string_view text) {
  Target t;
  const size_t dash = text.find('-');
  t.backend = std::string(text.substr(0, dash));
  t.isa = Isa::kPortable;
  if (dash != std::string_view::npos) {
    const auto isa = parse_isa(text.substr(dash + 1));
    if (!isa)
      throw Error(ErrorCode::kInvalidArgument, "unknown target '" + std::string(text) +
                                                   "'; targets are ref, cpu-portable, cpu-avx2, cpu-avx512");
    t.isa = *isa;
  } else if (t.backend == "cpu") {
    t.isa = current_isa();
  }
  return t;
}

Target Target::here(std::string_view backend) {
  Target t;
  t.backend = std::string(backend);
  t.isa = backend == "cpu" ? current_isa() : Isa::kPortable;
  return t;
}

void Tactic::choose_layouts(Problem& problem) const {
  for (Operand& o : problem.srcs) o.layout = Layout::kPlain;
  for (Operand& o : problem.dsts) o.layout = Layout::kPlain;
}

std::string Tactic::packing(const Problem&, size_t) const { return ""; }

bool Tactic::in_place(const Problem&, size_t) const { return false; }

}  // namespace hone::backends
