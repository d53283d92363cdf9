#include "hone/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "hone/error.h"

namespace hone {
namespace {

TEST(Tensor, SizesAreChecked) {
  EXPECT_EQ(numel({2, 3, 4}), 24);
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({int64_t{1} << 40, int64_t{1} << 40, 0}), 0) << "a zero decides, whatever is beside it";
  EXPECT_THROW(numel({int64_t{1} << 32, int64_t{1} << 32}), Error);
  EXPECT_THROW(numel({-4}), Error);
  EXPECT_THROW(numel({0, -1}), Error);
  EXPECT_EQ(dtype_bytes(DType::kI4, 3), 2);
  EXPECT_EQ(dtype_bytes(DType::kU2, 5), 2);
  EXPECT_EQ(dtype_bytes(DType::kI4, INT64_MAX), (int64_t{1} << 62));
  EXPECT_THROW(dtype_bytes(DType::kF32, int64_t{1} << 61), Error);
  EXPECT_THROW(Tensor(DType::kF32, {int64_t{1} << 61}), Error);
  EXPECT_EQ(type_text(DType::kF32, {1, 3}), "f32[1,3]");
}

TEST(Tensor, AnImpossibleAllocationIsOutOfMemory) {
  try {
    Tensor t(DType::kU8, {int64_t{1} << 60});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory);
  }
}

TEST(Tensor, BlocksAreAlignedAndShared) {
  Tensor a(DType::kF32, {3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.raw()) % 64, 0u);
  Tensor b = a;
  a.data<float>()[0] = 5;
  EXPECT_EQ(b.data<float>()[0], 5);
  Tensor c = a.clone();
  a.data<float>()[0] = 6;
  EXPECT_EQ(c.data<float>()[0], 5);
  Tensor empty(DType::kF32, {0});
  EXPECT_NE(empty.raw(), nullptr);
  EXPECT_EQ(empty.nbytes(), 0);
  EXPECT_FALSE(Tensor().defined());
}

TEST(Tensor, ViewsKeepTheirOwnerAlive) {
  auto owner = std::make_shared<std::vector<int32_t>>(std::vector<int32_t>{1, 2, 3});
  const std::weak_ptr<std::vector<int32_t>> watch = owner;
  Tensor t = Tensor::view(DType::kI32, {3}, owner->data(), owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(t.to_i64(), (std::vector<int64_t>{1, 2, 3}));
  t = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(Tensor, ReshapeSharesBytes) {
  const Tensor t = Tensor::i64_vector({1, 2, 3, 4});
  const Tensor r = t.reshaped({2, 2});
  EXPECT_EQ(r.raw(), t.raw());
  EXPECT_EQ(r.type_text(), "i64[2,2]");
  EXPECT_THROW(t.reshaped({3}), Error);
}

TEST(Tensor, ElementsOfEveryKind) {
  EXPECT_EQ(Tensor::of<uint8_t>(DType::kI4, {4}, {0xf8}).to_i64().size(), 4u);
  const uint8_t packed[] = {0x8f, 0x72};
  EXPECT_EQ(Tensor::view(DType::kI4, {4}, packed).to_i64(), (std::vector<int64_t>{-1, -8, 2, 7}));
  EXPECT_EQ(Tensor::view(DType::kU4, {3}, packed).to_i64(), (std::vector<int64_t>{15, 8, 2}));
  EXPECT_EQ(Tensor::view(DType::kI2, {4}, packed).to_i64(), (std::vector<int64_t>{-1, -1, 0, -2}));
  EXPECT_EQ(Tensor::view(DType::kF4E2M1, {2}, packed).at(0), -6);
  EXPECT_EQ(Tensor::view(DType::kF4E2M1, {2}, packed).at(1), -0.0);
  const uint16_t half[] = {0x3c00, 0xbf80};
  EXPECT_EQ(Tensor::view(DType::kF16, {2}, half).at(0), 1);
  EXPECT_EQ(Tensor::view(DType::kBF16, {2}, half).at(1), -1);
  const uint64_t big[] = {UINT64_MAX};
  EXPECT_EQ(Tensor::view(DType::kU64, {1}, big).at(0), 18446744073709551615.0);
  const uint8_t truth[] = {0, 7};
  EXPECT_EQ(Tensor::view(DType::kBool, {2}, truth).to_i64(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(Tensor::f32_scalar(2.5f).at(0), 2.5);
  EXPECT_THROW(Tensor::f32_scalar(1).to_i64(), Error);
}

}  // namespace
}  // namespace hone
