#include "ops/spread.h"

#include <algorithm>

#include "ops/broadcast.h"

namespace hone::ops {

Spread spread_over(const KernelContext& ctx, const char* name, const Tensor& t, const Shape& as) {
  const auto merged = broadcast_shapes(t.shape(), as);
  if (!merged || *merged != as)
    ctx.fail(std::string(name) + " " + t.type_text() + " does not broadcast to " + type_text(t.dtype(), as));
  Spread s;
  s.values.resize(static_cast<size_t>(t.numel()));
  for (size_t i = 0; i < s.values.size(); ++i) s.values[i] = t.at(static_cast<int64_t>(i));
  // Leading ones aside, equal trailing dimensions repeat with the operand's size as period.
  Shape core = t.shape();
  while (!core.empty() && core.front() == 1) core.erase(core.begin());
  if (std::equal(core.rbegin(), core.rend(), as.rbegin())) {
    s.period = std::max<int64_t>(1, t.numel());
    return s;
  }
  std::vector<double> all(static_cast<size_t>(numel(as)));
  const BroadcastLoop<1> loop(as, {&t.shape()});
  loop.each_row([&](int64_t at, const std::array<int64_t, 1>& off) {
    for (int64_t i = 0; i < loop.inner(); ++i)
      all[static_cast<size_t>(at + i)] = s.values[static_cast<size_t>(off[0] + (loop.steps(0) ? i : 0))];
  });
  s.values = std::move(all);
  s.period = std::max<int64_t>(1, numel(as));
  return s;
}

}  // namespace hone::ops
