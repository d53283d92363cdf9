#include "onnx/weights.h"

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/str.h"
#include "hone/error.h"

namespace hone::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX data is little-endian and is used in place");

[[noreturn]] void invalid(const std::string& what,
                          std::source_location where = std::source_location::current()) {
  throw Error(ErrorCode::kInvalidModel, what, {}, where);
}

/// How many numbers the typed fields hold for a tensor: complex types two an element, types below a byte
/// several in one.
int64_t typed_count(DType t, int64_t elements) {
  if (t == DType::kC64 || t == DType::kC128) return checked_mul(elements, 2);
  return dtype_bits(t) < 8 ? dtype_bytes(t, elements) : elements;
}

/// Which typed field a type uses.
enum class Field : uint8_t { kFloat, kInt32, kInt64, kDouble, kUint64 };
Field typed_field(DType t) {
  switch (t) {
    case DType::kF32:
    case DType::kC64: return Field::kFloat;
    case DType::kF64:
    case DType::kC128: return Field::kDouble;
    case DType::kI64: return Field::kInt64;
    case DType::kU32:
    case DType::kU64: return Field::kUint64;
    default: return Field::kInt32;
  }
}

template <class To, class From>
void narrow(const std::vector<From>& from, Tensor* t) {
  for (size_t i = 0; i < from.size(); ++i) {
    const auto v = static_cast<To>(from[i]);
    if (static_cast<From>(v) != from[i]) {
      invalid("element " + std::to_string(i) + " is " + std::to_string(from[i]) + ", which " +
              dtype_name(t->dtype()) + " cannot hold");
    }
    t->data<To>()[i] = v;
  }
}

/// The vector's bytes as they are.
template <class T>
void fill(const std::vector<T>& from, Tensor* t) {
  if (!from.empty()) std::memcpy(t->raw(), from.data(), from.size() * sizeof(T));
}

void fill_from_int32(const std::vector<int32_t>& from, Tensor* t) {
  switch (t->dtype()) {
    case DType::kI32: fill(from, t); break;
    case DType::kI16: narrow<int16_t>(from, t); break;
    case DType::kI8: narrow<int8_t>(from, t); break;
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16: narrow<uint16_t>(from, t); break;
    default: narrow<uint8_t>(from, t);
  }
}

/// bool is 0 or 1 here, whatever nonzero byte a file has.
Tensor normalize_bool(Tensor t, bool ours) {
  const auto* p = t.data<uint8_t>();
  bool plain = true;
  for (int64_t i = 0; i < t.numel(); ++i) plain = plain && p[i] <= 1;
  if (plain) return t;
  if (!ours) t = t.clone();
  for (int64_t i = 0; i < t.numel(); ++i) t.data<uint8_t>()[i] = t.data<uint8_t>()[i] != 0 ? 1 : 0;
  return t;
}

/// Bytes in a file as a tensor: a view where elements are aligned, else a copy.
Tensor from_bytes(DType dtype, const Shape& shape, const uint8_t* data, size_t size,
                  const std::shared_ptr<const void>& owner) {
  const size_t alignment =
      std::max<size_t>(1, std::min<size_t>(8, static_cast<size_t>(dtype_bits(dtype)) / 8));
  if (size != 0 && reinterpret_cast<uintptr_t>(data) % alignment == 0 && owner) {
    Tensor t = Tensor::view(dtype, shape, data, owner);
    return dtype == DType::kBool ? normalize_bool(std::move(t), false) : t;
  }
  Tensor t(dtype, shape);
  if (size != 0) std::memcpy(t.raw(), data, size);
  // The file's pages would stay resident beside the copy.
  if (owner && size >= (1u << 20)) drop_pages(data, size);
  return dtype == DType::kBool ? normalize_bool(std::move(t), true) : t;
}

struct ExternalInfo {
  std::string_view location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

ExternalInfo parse_external(const std::vector<KeyValue>& entries) {
  ExternalInfo info;
  uint32_t seen = 0;
  constexpr std::string_view kKeys[] = {"location", "offset", "length", "checksum"};
  for (const KeyValue& kv : entries) {
    size_t k = 0;
    while (k < std::size(kKeys) && kKeys[k] != kv.key) ++k;
    if (k == std::size(kKeys)) invalid("external data has the unknown key " + quote(kv.key));
    if ((seen >> k & 1u) != 0) invalid("external data gives " + std::string(kv.key) + " twice");
    seen |= 1u << k;
    if (k == 0) info.location = kv.value;
    if (k == 1 || k == 2) {
      const auto v = parse_i64(kv.value);
      if (!v || *v < 0)
        invalid("external data has the " + std::string(kv.key) + " " + quote(kv.value) +
                ", which is no size");
      if (k == 1) info.offset = *v;
      if (k == 2) info.length = *v;
    }
  }
  if ((seen & 1u) == 0) invalid("external data has no location");
  return info;
}

Tensor load_external(const TensorProto& p, DType dtype, const Shape& shape, int64_t bytes,
                     const WeightSource& source) {
  const ExternalInfo info = parse_external(p.external_data);
  if (source.external == nullptr) invalid("external data is not allowed here");
  const MappedFile& file = source.external->open(info.location);
  const auto size = static_cast<int64_t>(file.size);
  if (info.length && *info.length != bytes) {
    invalid("external data has " + std::to_string(*info.length) + " bytes, " + type_text(dtype, shape) +
            " needs " + std::to_string(bytes));
  }
  if (info.offset > size || bytes > size - info.offset) {
    invalid("external data reaches beyond the end of " + quote(info.location) + ": offset " +
            std::to_string(info.offset) + ", " + std::to_string(bytes) + " bytes, file size " +
            std::to_string(size));
  }
  if (bytes == 0) return Tensor(dtype, shape);
  return from_bytes(dtype, shape, file.data + info.offset, static_cast<size_t>(bytes), file.owner);
}

}  // namespace

DType element_type(int64_t onnx_type) {
  if (onnx_type == 27 || onnx_type == 28) {
    throw Error(ErrorCode::kUnsupported,
                std::string("element type ") + (onnx_type == 27 ? "FLOAT6E2M3" : "FLOAT6E3M2"));
  }
  if (onnx_type == static_cast<int64_t>(DType::kString))
    throw Error(ErrorCode::kUnsupported, "element type STRING");
  if (onnx_type < 1 || onnx_type > static_cast<int64_t>(DType::kI2)) {
    invalid(onnx_type == 0 ? "the element type is missing"
                           : "unknown element type " + std::to_string(onnx_type));
  }
  return static_cast<DType>(onnx_type);
}

Tensor load_tensor(const TensorProto& p, const WeightSource& source) {
  const DType dtype = element_type(p.data_type);
  const int64_t count = numel(p.dims);
  const int64_t bytes = dtype_bytes(dtype, count);
  if (p.has_segment) invalid("segmented tensors are not defined by ONNX");

  const Field field = typed_field(dtype);
  const size_t sizes[] = {p.float_data.size(), p.int32_data.size(), p.int64_data.size(), p.double_data.size(),
                          p.uint64_data.size()};
  constexpr const char* kNames[] = {"float_data", "int32_data", "int64_data", "double_data", "uint64_data"};
  bool typed = false;
  for (size_t f = 0; f < std::size(sizes); ++f) {
    if (sizes[f] == 0) continue;
    if (f != static_cast<size_t>(field))
      invalid(std::string(kNames[f]) + " is not where " + dtype_name(dtype) + " elements are kept");
    typed = true;
  }
  if (!p.string_data.empty()) invalid(std::string("string_data in a tensor of type ") + dtype_name(dtype));
  const bool external = p.data_location == 1;
  if (p.data_location != 0 && p.data_location != 1)
    invalid("unknown data location " + std::to_string(p.data_location));
  if (!external && !p.external_data.empty()) invalid("external data is described but not used");
  const bool raw = p.has_raw && !(p.raw_data.empty() && (typed || external));
  if (typed + raw + external > 1) invalid("data is given in more than one place (raw, typed, external)");

  if (external) return load_external(p, dtype, p.dims, bytes, source);
  if (raw) {
    if (static_cast<int64_t>(p.raw_data.size()) != bytes) {
      invalid("raw data has " + std::to_string(p.raw_data.size()) + " bytes, " + type_text(dtype, p.dims) +
              " needs " + std::to_string(bytes));
    }
    return from_bytes(dtype, p.dims, reinterpret_cast<const uint8_t*>(p.raw_data.data()), p.raw_data.size(),
                      source.model.owner);
  }
  const auto found = static_cast<int64_t>(sizes[static_cast<size_t>(field)]);
  const int64_t wanted = typed_count(dtype, count);
  if (found != wanted) {
    invalid(std::string(kNames[static_cast<size_t>(field)]) + " has " + std::to_string(found) + " numbers, " +
            type_text(dtype, p.dims) + " needs " + std::to_string(wanted));
  }
  Tensor t(dtype, p.dims);
  switch (field) {
    case Field::kFloat: fill(p.float_data, &t); break;
    case Field::kDouble: fill(p.double_data, &t); break;
    case Field::kInt64: fill(p.int64_data, &t); break;
    case Field::kInt32: fill_from_int32(p.int32_data, &t); break;
    case Field::kUint64:
      if (dtype == DType::kU32) {
        narrow<uint32_t>(p.uint64_data, &t);
      } else {
        fill(p.uint64_data, &t);
      }
      break;
  }
  return dtype == DType::kBool ? normalize_bool(std::move(t), true) : t;
}

Tensor load_sparse(const SparseTensorProto& p, const WeightSource& source) {
  const Tensor values = load_tensor(p.values, source);
  const Tensor indices = load_tensor(p.indices, source);
  const int64_t bytes = dtype_bytes(values.dtype(), numel(p.dims));
  if (bytes > source.dense_budget) {
    invalid("the sparse tensor " + type_text(values.dtype(), p.dims) + " would take " + bytes_text(bytes) +
            " dense, more than the budget of " + bytes_text(source.dense_budget));
  }
  const int bits = dtype_bits(values.dtype());
  if (bits < 8) invalid("sparse tensors of elements below a byte are not defined");
  const auto rank = static_cast<int64_t>(p.dims.size());
  if (values.rank() != 1)
    invalid("the values of a sparse tensor are " + values.type_text() + ", not of rank 1");
  const int64_t count = values.numel();
  const bool linear = indices.rank() == 1;
  if (indices.dtype() != DType::kI64 ||
      (linear ? indices.numel() != count : indices.shape() != Shape{count, rank})) {
    invalid("the indices of a sparse tensor are " + indices.type_text() + ", not i64[" +
            std::to_string(count) + "] or i64[" + std::to_string(count) + "," + std::to_string(rank) + "]");
  }
  Tensor dense = Tensor::zeros(values.dtype(), p.dims);
  const int64_t total = dense.numel();
  const auto width = static_cast<size_t>(bits / 8);
  const std::vector<int64_t> index = indices.to_i64();
  int64_t last = -1;
  for (int64_t k = 0; k < count; ++k) {
    int64_t at = 0;
    if (linear) {
      at = index[static_cast<size_t>(k)];
    } else {
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t i = index[static_cast<size_t>(k * rank + d)];
        if (i < 0 || i >= p.dims[static_cast<size_t>(d)])
          invalid("a sparse tensor's index is outside its shape");
        at = at * p.dims[static_cast<size_t>(d)] + i;  // below total, which fits
      }
    }
    if (at < 0 || at >= total) invalid("a sparse tensor's index is outside its shape");
    if (at <= last) invalid("a sparse tensor's indices are not in ascending order");
    last = at;
    std::memcpy(dense.data<uint8_t>() + static_cast<size_t>(at) * width,
                values.data<uint8_t>() + static_cast<size_t>(k) * width, width);
  }
  return dense;
}

}  // namespace hone::onnx
