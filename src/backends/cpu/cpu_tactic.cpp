#include "backends/cpu/cpu_tactic.h"

namespace hone::backends::cpu {

Support require_f32(const Problem& p) {
  const auto check = [](const std::vector<Operand>& list, const char* what) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].present() && list[i].dtype != DType::kF32)
        return Support::no("dtype: " + std::string(what) + " " + std::to_string(i) + " is " +
                           dtype_name(list[i].dtype) + ", not f32");
    return Support::yes();
  };
  const Support srcs = check(p.srcs, "source");
  return srcs ? check(p.dsts, "destination") : srcs;
}

void follow_layout(Problem& p, size_t src) {
  const size_t rank = p.dsts.empty() ? 0 : p.dsts[0].dims.size();
  const bool last =
      src < p.srcs.size() && p.srcs[src].layout == Layout::kChannelsLast && p.srcs[src].dims.size() >= 3;
  for (auto* list : {&p.srcs, &p.dsts})
    for (Operand& o : *list)
      o.layout = last && o.present() && !o.constant && o.dims.size() == rank && rank >= 3
                     ? Layout::kChannelsLast
                     : Layout::kPlain;
}

}  // namespace hone::backends::cpu
