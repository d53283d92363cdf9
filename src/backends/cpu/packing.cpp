#include "backends/cpu/packing.h"

#include <string_view>

#include "backends/cpu/kernels/gemm.h"
#include "hone/error.h"

namespace hone::backends::cpu {
namespace {

struct Packing {
  std::string_view stem;
  Isa isa = Isa::kPortable;
};

Packing parse(const std::string& name) {
  const size_t at = name.rfind("__");
  const auto isa = at == std::string::npos ? std::nullopt : parse_isa(std::string_view(name).substr(at + 2));
  if (!isa) throw Error(ErrorCode::kInternal, "unknown packing '" + name + "'");
  return {std::string_view(name).substr(0, at), *isa};
}

[[noreturn]] void unknown(const std::string& name) { throw Error(ErrorCode::kInternal, "unknown packing '" + name + "'"); }

/// Rows and columns of B for panels of a [k, n] or, transposed, [n, k] weight.
std::pair<int64_t, int64_t> matrix(const Shape& dims, bool transposed) {
  return transposed ? std::pair{dims[1], dims[0]} : std::pair{dims[0], dims[1]};
}

}  // namespace

Tensor pack_constant(const std::string& name, const Tensor& plain) {
  const Packing p = parse(name);
  if (p.stem == "panels" || p.stem == "panels_t") {
    const bool transposed = p.stem == "panels_t";
    const auto [k, n] = matrix(plain.shape(), transposed);
    Tensor out(DType::kF32, {hone::cpu::packed_b_floats(p.isa, k, n)});
    hone::cpu::pack_b(p.isa, plain.data<float>(), plain.dim(1), transposed, k, n, out.data<float>());
    return out;
  }
  unknown(name);
}

Tensor unpack_constant(const std::string& name, const Tensor& packed, DType dtype, const Shape& dims) {
  const Packing p = parse(name);
  Tensor out(dtype, dims);
  if (p.stem == "panels" || p.stem == "panels_t") {
    const auto [k, n] = matrix(dims, p.stem == "panels_t");
    if (p.stem == "panels") {
      hone::cpu::unpack_b(p.isa, packed.data<float>(), k, n, out.data<float>());
      return out;
    }
    std::vector<float> rows(static_cast<size_t>(k * n));
    hone::cpu::unpack_b(p.isa, packed.data<float>(), k, n, rows.data());
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) out.data<float>()[j * k + i] = rows[static_cast<size_t>(i * n + j)];
    return out;
  }
  unknown(name);
}

}  // namespace hone::backends::cpu
