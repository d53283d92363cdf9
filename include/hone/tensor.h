// A dense, row-major tensor in host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hone/dtype.h"

namespace hone {

using Shape = std::vector<int64_t>;

/// Product of the dimensions; throws kInvalidModel when it overflows or a dimension is negative.
int64_t numel(const Shape& shape);
/// Bytes of `count` elements, sub-byte types packed; throws on overflow.
int64_t dtype_bytes(DType t, int64_t count);
/// `f32[1,3,224,224]`
std::string type_text(DType t, const Shape& shape);

/// Dtype, shape and a reference to bytes. Copies share the bytes; `clone()` does not.
/// Threads: reading shared bytes from several threads is safe, writing is not.
/// Owns: either its own 64-byte aligned block, or a view whose owner the caller keeps alive (or passes
/// along).
class Tensor {
 public:
  Tensor() = default;
  /// Allocates uninitialised bytes. Errors: kOutOfMemory, kInvalidModel (size overflow).
  Tensor(DType dtype, Shape shape);

  static Tensor zeros(DType dtype, Shape shape);
  /// A view of foreign bytes; `owner` (may be null) is kept alive as long as any copy of the view.
  static Tensor view(DType dtype, Shape shape, const void* data, std::shared_ptr<const void> owner = nullptr);
  template <class T>
  static Tensor of(DType dtype, Shape shape, const std::vector<T>& values);
  static Tensor i64_vector(const std::vector<int64_t>& values);
  static Tensor i64_scalar(int64_t value);
  static Tensor f32_scalar(float value);

  bool defined() const { return dtype_ != DType::kUndefined; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  int64_t dim(int i) const { return shape_[static_cast<size_t>(i)]; }
  int64_t numel() const { return numel_; }
  int64_t nbytes() const { return dtype_bytes(dtype_, numel_); }

  const void* raw() const { return data_.get(); }
  void* raw() { return data_.get(); }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(raw());
  }
  template <class T>
  T* data() {
    return static_cast<T*>(raw());
  }

  /// The same bytes under another shape of equal element count.
  Tensor reshaped(Shape shape) const;
  Tensor clone() const;
  /// Elements as integers; the dtype must be an integer type or bool (kInternal otherwise).
  std::vector<int64_t> to_i64() const;
  /// Element `i` as a double, any numeric dtype.
  double at(int64_t i) const;
  std::string type_text() const { return hone::type_text(dtype_, shape_); }

 private:
  DType dtype_ = DType::kUndefined;
  Shape shape_;
  int64_t numel_ = 0;
  std::shared_ptr<void> data_;
};

template <class T>
Tensor Tensor::of(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor t(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = values[i];
  return t;
}

}  // namespace hone
