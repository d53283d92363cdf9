#include "onnx/weights.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

#include "hone/error.h"
#include "onnx/testing.h"

namespace hone::onnx {
namespace {

using namespace test;
using testing::HasSubstr;
namespace fs = std::filesystem;

TensorProto proto(int64_t dtype, std::vector<int64_t> dims) {
  TensorProto t;
  t.data_type = dtype;
  t.dims = std::move(dims);
  return t;
}

void expect_refused(const TensorProto& t, const std::string& message, const WeightSource& source = {},
                    ErrorCode code = ErrorCode::kInvalidModel) {
  try {
    (void)load_tensor(t, source);
    ADD_FAILURE() << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(message));
  }
}

TEST(Weights, RawDataIsAViewWhenAlignedAndACopyOtherwise) {
  auto block = std::make_shared<std::vector<float>>(std::vector<float>{0, 1, 2, 3});
  WeightSource source;
  source.model.owner = block;
  TensorProto t = proto(1, {2});
  t.has_raw = true;
  const char* bytes = reinterpret_cast<const char*>(block->data());
  t.raw_data = {bytes + 4, 8};
  Tensor view = load_tensor(t, source);
  EXPECT_EQ(view.raw(), block->data() + 1);
  std::memmove(const_cast<char*>(bytes) + 1, bytes + 4, 8);
  t.raw_data = {bytes + 1, 8};
  Tensor copy = load_tensor(t, source);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(copy.raw()) % 64, 0u);
  EXPECT_EQ(copy.data<float>()[0], 1);
  EXPECT_EQ(copy.data<float>()[1], 2);
  source.model.owner.reset();
  t.raw_data = {bytes + 4, 8};
  EXPECT_NE(load_tensor(t, source).raw(), block->data() + 1) << "without an owner the bytes may go away";
}

TEST(Weights, TypedDataOfEveryType) {
  const auto i32 = [](int64_t dtype, std::vector<int64_t> dims, std::vector<int32_t> data) {
    TensorProto t = proto(dtype, std::move(dims));
    t.int32_data = std::move(data);
    return load_tensor(t, {});
  };
  EXPECT_EQ(i32(6, {2}, {-5, 7}).to_i64(), (std::vector<int64_t>{-5, 7}));
  EXPECT_EQ(i32(3, {2}, {-128, 127}).to_i64(), (std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(i32(2, {2}, {0, 255}).to_i64(), (std::vector<int64_t>{0, 255}));
  EXPECT_EQ(i32(4, {1}, {65535}).to_i64(), std::vector<int64_t>{65535});
  EXPECT_EQ(i32(5, {1}, {-32768}).to_i64(), std::vector<int64_t>{-32768});
  EXPECT_EQ(i32(9, {3}, {0, 1, 5}).data<uint8_t>()[2], 1) << "true is 1";
  EXPECT_EQ(i32(10, {1}, {0x3c00}).at(0), 1) << "f16 as bits";
  EXPECT_EQ(i32(16, {1}, {0xbf80}).at(0), -1) << "bf16 as bits";
  EXPECT_EQ(i32(17, {1}, {0x38}).at(0), 1) << "f8e4m3fn as bits";
  EXPECT_EQ(i32(22, {3}, {0x1f, 0x08}).to_i64(), (std::vector<int64_t>{-1, 1, -8}))
      << "i4, two in one number";
  EXPECT_EQ(i32(25, {4}, {0xe4}).to_i64(), (std::vector<int64_t>{0, 1, 2, 3})) << "u2, four in one number";
  TensorProto t = proto(7, {2});
  t.int64_data = {INT64_MIN, 3};
  EXPECT_EQ(load_tensor(t, {}).to_i64(), (std::vector<int64_t>{INT64_MIN, 3}));
  t = proto(13, {1});
  t.uint64_data = {UINT64_MAX};
  EXPECT_EQ(load_tensor(t, {}).at(0), 18446744073709551615.0);
  t = proto(12, {1});
  t.uint64_data = {4294967295u};
  EXPECT_EQ(load_tensor(t, {}).at(0), 4294967295.0);
  t = proto(11, {1});
  t.double_data = {0.1};
  EXPECT_EQ(load_tensor(t, {}).at(0), 0.1);
  t = proto(14, {1});
  t.float_data = {1, 2};
  EXPECT_EQ(load_tensor(t, {}).nbytes(), 8) << "complex: two numbers an element";
  t = proto(1, {0, 5});
  EXPECT_EQ(load_tensor(t, {}).numel(), 0) << "empty tensors need no data";
}

TEST(Weights, DataThatDoesNotFitIsRefused) {  // S04
  TensorProto t = proto(1, {4});
  t.has_raw = true;
  t.raw_data = "12345678";
  expect_refused(t, "raw data has 8 bytes, f32[4] needs 16");
  t = proto(1, {-4});
  t.has_raw = true;
  t.raw_data = "1234567812345678";
  expect_refused(t, "negative dimension -4");
  expect_refused(proto(1, {int64_t{1} << 32, int64_t{1} << 32}), "overflows 64 bits");
  expect_refused(proto(1, {int64_t{1} << 61}), "overflows 64 bits");
  expect_refused(proto(1, {int64_t{1} << 40}), "float_data has 0 numbers, f32[1099511627776] needs");
  t = proto(1, {2});
  t.has_raw = true;
  t.raw_data = "12345678";
  t.float_data = {1, 2};
  expect_refused(t, "more than one place");
  t = proto(1, {2});
  t.int32_data = {1, 2};
  expect_refused(t, "int32_data is not where f32 elements are kept");
  t = proto(3, {1});
  t.int32_data = {128};
  expect_refused(t, "element 0 is 128, which i8 cannot hold");
  t = proto(1, {1});
  t.has_segment = true;
  expect_refused(t, "segmented");
  expect_refused(proto(999, {1}), "unknown element type 999");
  expect_refused(proto(0, {1}), "the element type is missing");
  expect_refused(proto(8, {1}), "element type STRING", {}, ErrorCode::kUnsupported);
  expect_refused(proto(27, {1}), "FLOAT6E2M3", {}, ErrorCode::kUnsupported);
}

SparseTensorProto sparse(std::vector<int64_t> dims, std::vector<float> values, std::vector<int64_t> indices,
                         bool coordinates) {
  SparseTensorProto s;
  s.dims = std::move(dims);
  const auto n = static_cast<int64_t>(values.size());
  s.values = proto(1, {n});
  s.values.float_data = std::move(values);
  s.indices = proto(7, coordinates ? std::vector<int64_t>{n, static_cast<int64_t>(s.dims.size())}
                                   : std::vector<int64_t>{n});
  s.indices.int64_data = std::move(indices);
  return s;
}

TEST(Weights, SparseTensorsAreMadeDense) {
  for (const SparseTensorProto& s :
       {sparse({2, 3}, {5, 7}, {1, 5}, false), sparse({2, 3}, {5, 7}, {0, 1, 1, 2}, true)}) {
    const Tensor t = load_sparse(s, {});
    EXPECT_EQ(t.type_text(), "f32[2,3]");
    const float want[] = {0, 5, 0, 0, 0, 7};
    EXPECT_EQ(std::memcmp(t.raw(), want, sizeof want), 0);
  }
  EXPECT_THROW(load_sparse(sparse({2, 3}, {5}, {6}, false), {}), Error);
  EXPECT_THROW(load_sparse(sparse({2, 3}, {5}, {-1}, false), {}), Error);
  EXPECT_THROW(load_sparse(sparse({2, 3}, {5}, {0, 3}, true), {}), Error);
  EXPECT_THROW(load_sparse(sparse({2, 3}, {5, 6}, {3, 3}, false), {}), Error) << "an index twice";
  EXPECT_THROW(load_sparse(sparse({2, 3}, {5}, {1, 2}, false), {}), Error) << "counts differ";
  EXPECT_THROW(load_sparse(sparse({int64_t{1} << 40}, {5}, {1}, false), {}), Error) << "the dense budget";
  EXPECT_THROW(load_sparse(sparse({int64_t{1} << 33, int64_t{1} << 33}, {5}, {1}, false), {}), Error);
}

// Files of section 3 of the cases: what a model may not reach.
class External : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("hone_external_" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "model" / "sub");
    write(root_ / "secret.bin");
    write(root_ / "model" / "w.bin");
    write(root_ / "model" / "sub" / "w.bin");
  }
  void TearDown() override { fs::remove_all(root_); }
  static void write(const fs::path& path) {
    const float values[] = {1, 2, 3, 4};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  }
  Tensor load(const std::vector<KeyValue>& entries, std::vector<int64_t> dims = {4}) {
    TensorProto t = proto(1, std::move(dims));
    t.data_location = 1;
    t.external_data = entries;
    ExternalFiles files((root_ / "model").string());
    WeightSource source;
    source.external = &files;
    return load_tensor(t, source);
  }
  void refused(const std::vector<KeyValue>& entries, const std::string& message,
               std::vector<int64_t> dims = {4}) {
    try {
      (void)load(entries, std::move(dims));
      ADD_FAILURE() << message;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidModel);
      EXPECT_THAT(e.what(), HasSubstr(message));
    }
  }
  fs::path root_;
};

TEST_F(External, PlainFilesAreReadInPlace) {
  EXPECT_EQ(load({{"location", "w.bin"}}).at(3), 4);
  EXPECT_EQ(load({{"location", "./sub//w.bin"}, {"offset", "8"}, {"length", "8"}}, {2}).at(0), 3);
  EXPECT_EQ(load({{"location", "w.bin"}, {"offset", "12"}}, {1}).at(0), 4)
      << "without a length, what the type needs";
  EXPECT_EQ(load({{"location", "w.bin"}, {"checksum", "abc"}}).at(0), 1);
  const Tensor view = load({{"location", "w.bin"}});
  fs::remove(root_ / "model" / "w.bin");
  EXPECT_EQ(view.at(1), 2) << "the mapping outlives the name";
}

TEST_F(External, LocationsOutsideTheDirectoryAreNotOpened) {  // S01, S02
  for (const char* bad :
       {"../secret.bin", "sub/../../secret.bin", "a/../../secret.bin", "..", "sub/..", "/etc/passwd",
        "//etc/passwd", "..\\secret.bin", "sub\\w.bin", "C:x", "c:/x", "", ".", "./", "sub/", "sub/."}) {
    refused({{"location", bad}}, "is refused");
  }
  refused({{"location", std::string_view("w.bin\0x", 7)}}, "zero byte");
  refused({{"location", std::string_view("/dev/zero")}}, "absolute");
  refused({{"location", "sub"}}, "not a regular file");
  refused({{"location", "none.bin"}}, "cannot open");
  ASSERT_EQ(mkfifo((root_ / "model" / "pipe").c_str(), 0600), 0);
  refused({{"location", "pipe"}}, "not a regular file");
}

TEST_F(External, LinksAreNotFollowed) {  // S03
  fs::create_symlink(root_ / "secret.bin", root_ / "model" / "link.bin");
  refused({{"location", "link.bin"}}, "is a link");
  fs::create_directory_symlink(root_, root_ / "model" / "up");
  refused({{"location", "up/secret.bin"}}, "is a link");
  fs::create_symlink("w.bin", root_ / "model" / "inside.bin");
  refused({{"location", "inside.bin"}}, "is a link");
  fs::create_hard_link(root_ / "secret.bin", root_ / "model" / "hard.bin");
  refused({{"location", "hard.bin"}}, "several names");
}

// The descriptor that was checked is the one that is read: a file put in its place afterwards changes
// nothing.
TEST_F(External, AFileSwappedAfterTheCheckIsNotRead) {  // S03
  ExternalFiles files((root_ / "model").string());
  const MappedFile& first = files.open("w.bin");
  fs::remove(root_ / "model" / "w.bin");
  fs::create_symlink(root_ / "secret.bin", root_ / "model" / "w.bin");
  EXPECT_EQ(files.open("w.bin").data, first.data);
  ExternalFiles again((root_ / "model").string());
  EXPECT_THROW(again.open("w.bin"), Error);
}

TEST_F(External, OffsetsAndLengthsStayInTheFile) {  // F09
  refused({{"location", "w.bin"}, {"offset", "8"}, {"length", "16"}}, "beyond the end");
  refused({{"location", "w.bin"}, {"length", "8"}}, "external data has 8 bytes, f32[4] needs 16");
  refused({{"location", "w.bin"}, {"length", "20"}}, "external data has 20 bytes");
  refused({{"location", "w.bin"}, {"offset", "9223372036854775807"}}, "beyond the end");
  refused({{"location", "w.bin"}}, "beyond the end", {5});
}

TEST_F(External, KeysAreTheKnownOnesOnceEach) {  // S10
  for (const char* key : {"basepath", "__class__", "Location", ""})
    refused({{"location", "w.bin"}, {key, "x"}}, "unknown key");
  refused({{"location", "w.bin"}, {"offset", "0"}, {"offset", "4"}}, "gives offset twice");
  refused({{"location", "w.bin"}, {"location", "w.bin"}}, "gives location twice");
  refused({{"offset", "0"}}, "no location");
  for (const char* bad : {"-1", "1e9", " 8", "8 ", "+8", "0x8", "", "99999999999999999999"}) {
    refused({{"location", "w.bin"}, {"offset", bad}}, "which is no size");
    refused({{"location", "w.bin"}, {"length", bad}}, "which is no size");
  }
}

TEST_F(External, OnlyForTensorsThatSaySo) {
  TensorProto t = proto(1, {4});
  t.external_data = {{"location", "w.bin"}};
  t.has_raw = true;
  t.raw_data = "1234567812345678";
  expect_refused(t, "described but not used");
  t.data_location = 1;
  expect_refused(t, "more than one place");
  t.data_location = 7;
  expect_refused(t, "unknown data location 7");
  t = proto(1, {4});
  t.data_location = 1;
  t.external_data = {{"location", "w.bin"}};
  expect_refused(t, "not allowed here");
  ExternalFiles nowhere("");
  WeightSource source;
  source.external = &nowhere;
  expect_refused(t, "the model was not read from a file", source);
}

}  // namespace
}  // namespace hone::onnx
