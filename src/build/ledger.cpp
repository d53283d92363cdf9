#include "build/ledger.h"

namespace hone::builder {

ir::Dim activation_traffic(const ir::Graph& graph, int64_t small) {
  ir::Dim total = 0;
  for (size_t i = 0; i < graph.num_values(); ++i) {
    const ir::Value& v = graph.value(static_cast<ir::ValueId>(i));
    if (v.is_const() || !v.type.shape) continue;
    const ir::Dim elements = ir::product(*v.type.shape);
    if (is_integer(v.type.dtype) && elements.is_const() && elements.value() <= small) continue;
    const int64_t transfers = static_cast<int64_t>(v.uses.size()) + (v.producer != nullptr ? 1 : 0);
    if (transfers == 0) continue;
    const int bits = dtype_bits(v.type.dtype);
    total = total + ir::Dim::ceildiv(elements * ir::Dim(bits), 8) * ir::Dim(transfers);
  }
  return total;
}

}  // namespace hone::builder
