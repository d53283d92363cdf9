#include "backends/cpu/packing.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "backends/cpu/kernels/conv.h"
#include "backends/cpu/kernels/deconv.h"
#include "backends/cpu/kernels/depthwise.h"
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

[[noreturn]] void unknown(const std::string& name) {
  throw Error(ErrorCode::kInternal, "unknown packing '" + name + "'");
}

/// Rows and columns of B for panels of a [k, n] or, transposed, [n, k] weight.
std::pair<int64_t, int64_t> matrix(const Shape& dims, bool transposed) {
  return transposed ? std::pair{dims[1], dims[0]} : std::pair{dims[0], dims[1]};
}

/// Panels of a [k, n] matrix into its transpose, [n, k].
void unpack_transposed(Isa isa, const float* packed, int64_t k, int64_t n, float* out) {
  std::vector<float> rows(static_cast<size_t>(k * n));
  hone::cpu::unpack_b(isa, packed, k, n, rows.data());
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j) out[j * k + i] = rows[static_cast<size_t>(i * n + j)];
}

/// Weights [oc][ic / groups][kernel...] of "conv<groups>".
hone::cpu::ConvShape conv_shape(std::string_view stem, const Shape& dims, const std::string& name) {
  hone::cpu::ConvShape s;
  const auto [end, ec] = std::from_chars(stem.data() + 4, stem.data() + stem.size(), s.groups);
  if (ec != std::errc() || end != stem.data() + stem.size() || s.groups < 1 || dims.size() < 3 ||
      dims.size() > 5 || dims[0] % s.groups != 0)
    unknown(name);
  s.oc = dims[0];
  s.ic = dims[1] * s.groups;
  for (size_t d = 2; d < dims.size(); ++d) s.kernel[3 - (dims.size() - d)] = dims[d];
  return s;
}

/// Recurrent weights [directions][n][k]: panels of each direction; "panels_gru" has the last third of n (the
/// candidate's gate) in panels of its own.
bool is_recurrent(std::string_view stem) { return stem == "panels_dirs" || stem == "panels_gru"; }

/// fn(first row of the plain weight, rows, first float of the packed one) for each matrix; returns the packed
/// floats.
template <class F>
int64_t each_recurrent(Isa isa, std::string_view stem, const Shape& dims, const std::string& name, F&& fn) {
  if (dims.size() != 3 || (stem == "panels_gru" && dims[1] % 3 != 0)) unknown(name);
  int64_t at = 0;
  for (int64_t d = 0; d < dims[0]; ++d) {
    const int64_t first = stem == "panels_gru" ? dims[1] / 3 * 2 : dims[1];
    for (const auto& [row, rows] : {std::pair{int64_t{0}, first}, std::pair{first, dims[1] - first}}) {
      if (rows == 0) continue;
      fn(d * dims[1] + row, rows, at);
      at += hone::cpu::packed_b_floats(isa, dims[2], rows);
    }
  }
  return at;
}

bool is_conv(std::string_view stem) { return stem.substr(0, 4) == "conv"; }
bool is_deconv(std::string_view stem) { return stem.substr(0, 6) == "deconv"; }

/// Weights [c][channels of a group][kernel...] of "depthwise".
hone::cpu::ConvShape depthwise_shape(const Shape& dims, const std::string& name) {
  if (dims.size() < 3 || dims.size() > 5 || dims[1] < 1 || dims[0] % dims[1] != 0) unknown(name);
  hone::cpu::ConvShape s;
  s.ic = s.oc = dims[0];
  s.groups = dims[0] / dims[1];
  for (size_t d = 2; d < dims.size(); ++d) s.kernel[3 - (dims.size() - d)] = dims[d];
  return s;
}

/// Weights [ic][oc / groups][kernel...] of "deconv_g1_s1x2x2_d1x1x1_p0x1x1".
hone::cpu::ConvShape deconv_shape(std::string_view stem, const Shape& dims, const std::string& name) {
  std::vector<int64_t> numbers;
  for (const char* at = stem.data(); at < stem.data() + stem.size();) {
    int64_t value = 0;
    const auto [end, ec] = std::from_chars(at, stem.data() + stem.size(), value);
    if (ec == std::errc()) numbers.push_back(value);
    at = ec == std::errc() ? end : at + 1;
  }
  if (numbers.size() != 10 || numbers[0] < 1 || dims.size() < 3 || dims.size() > 5) unknown(name);
  hone::cpu::ConvShape s;
  s.groups = numbers[0];
  s.ic = dims[0];
  s.oc = dims[1] * s.groups;
  for (size_t d = 0; d < 3; ++d) {
    s.stride[d] = numbers[1 + d];
    s.dilation[d] = numbers[4 + d];
    s.pad[d] = numbers[7 + d];
  }
  for (size_t d = 2; d < dims.size(); ++d) s.kernel[3 - (dims.size() - d)] = dims[d];
  if (deconv_packing(s) != stem || s.ic % s.groups != 0 ||
      *std::min_element(s.stride.begin(), s.stride.end()) < 1)
    unknown(name);
  return s;
}

}  // namespace

std::string deconv_packing(const hone::cpu::ConvShape& s) {
  const auto axes = [](const auto& v) {
    return std::to_string(v[0]) + "x" + std::to_string(v[1]) + "x" + std::to_string(v[2]);
  };
  return "deconv_g" + std::to_string(s.groups) + "_s" + axes(s.stride) + "_d" + axes(s.dilation) + "_p" +
         axes(s.pad);
}

Tensor pack_constant(const std::string& name, const Tensor& plain) {
  const Packing p = parse(name);
  if (p.stem == "panels" || p.stem == "panels_t") {
    const bool transposed = p.stem == "panels_t";
    const auto [k, n] = matrix(plain.shape(), transposed);
    Tensor out(DType::kF32, {hone::cpu::packed_b_floats(p.isa, k, n)});
    hone::cpu::pack_b(p.isa, plain.data<float>(), plain.dim(1), transposed, k, n, out.data<float>());
    return out;
  }
  if (is_recurrent(p.stem)) {
    const Shape& dims = plain.shape();
    Tensor out(DType::kF32, {each_recurrent(p.isa, p.stem, dims, name, [](int64_t, int64_t, int64_t) {})});
    each_recurrent(p.isa, p.stem, dims, name, [&](int64_t row, int64_t rows, int64_t at) {
      hone::cpu::pack_b(p.isa, plain.data<float>() + row * dims[2], dims[2], true, dims[2], rows,
                        out.data<float>() + at);
    });
    return out;
  }
  if (is_conv(p.stem)) {
    const hone::cpu::ConvShape shape = conv_shape(p.stem, plain.shape(), name);
    Tensor out(DType::kF32, {hone::cpu::packed_conv_floats(p.isa, shape)});
    hone::cpu::pack_conv_weights(p.isa, shape, plain.data<float>(), out.data<float>());
    return out;
  }
  if (p.stem == "depthwise") {
    Tensor out(DType::kF32, {plain.numel()});
    hone::cpu::pack_depthwise_weights(depthwise_shape(plain.shape(), name), plain.data<float>(),
                                      out.data<float>());
    return out;
  }
  if (is_deconv(p.stem)) {
    const hone::cpu::ConvShape shape = deconv_shape(p.stem, plain.shape(), name);
    Tensor out(DType::kF32, {hone::cpu::packed_deconv_floats(p.isa, shape)});
    hone::cpu::pack_deconv_weights(p.isa, shape, plain.data<float>(), out.data<float>());
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
    unpack_transposed(p.isa, packed.data<float>(), k, n, out.data<float>());
    return out;
  }
  if (is_recurrent(p.stem)) {
    each_recurrent(p.isa, p.stem, dims, name, [&](int64_t row, int64_t rows, int64_t at) {
      unpack_transposed(p.isa, packed.data<float>() + at, dims[2], rows, out.data<float>() + row * dims[2]);
    });
    return out;
  }
  if (is_conv(p.stem)) {
    hone::cpu::unpack_conv_weights(p.isa, conv_shape(p.stem, dims, name), packed.data<float>(),
                                   out.data<float>());
    return out;
  }
  if (p.stem == "depthwise") {
    hone::cpu::unpack_depthwise_weights(depthwise_shape(dims, name), packed.data<float>(), out.data<float>());
    return out;
  }
  if (is_deconv(p.stem)) {
    hone::cpu::unpack_deconv_weights(p.isa, deconv_shape(p.stem, dims, name), packed.data<float>(),
                                     out.data<float>());
    return out;
  }
  unknown(name);
}

}  // namespace hone::backends::cpu
