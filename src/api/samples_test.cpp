#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "hone/error.h"
#include "hone/io.h"
#include "support/program.h"

namespace hone {
namespace {

using test::Scratch;
using ::testing::HasSubstr;

const std::vector<TensorInfo> kInputs = {{"x", DType::kF32, {"N", "3"}}, {"n", DType::kI64, {}}};

Tensor ramp(const Shape& shape, float first = 0) {
  Tensor t(DType::kF32, shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = first + static_cast<float>(i);
  return t;
}

/// Message of the kInvalidData that reading ends in.
std::string refusal(const std::string& path, const std::vector<TensorInfo>& inputs = kInputs) {
  try {
    (void)read_samples(path, inputs);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidData) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

std::string base64(const std::string& bytes) {
  static const char* const kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t v = 0;
    for (size_t k = 0; k < 3; ++k)
      v = v << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kAlphabet[v >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// The bytes of a version 1.0 .npy file.
std::string npy(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  dict.resize(117, ' ');
  dict += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(dict.size()) + '\0' + dict + data;
}

std::string floats(const std::vector<float>& v) {
  return std::string(reinterpret_cast<const char*>(v.data()), v.size() * 4);
}

TEST(Samples, AnArrayOfTheInputsRankIsOneSample) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"n", Tensor::i64_scalar(4)}, {"x", ramp({2, 3})}});
  bool stacked = true;
  const auto samples = read_samples(scratch / "x.npz", kInputs, &stacked);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_FALSE(stacked);
  EXPECT_EQ(samples[0][0].name, "x") << "in the order of the inputs";
  EXPECT_EQ(samples[0][1].tensor.to_i64()[0], 4);
}

TEST(Samples, OneRankMoreIsOneSamplePerIndexAndOthersAreShared) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"x", ramp({4, 2, 3})}, {"n", Tensor::i64_scalar(7)}});
  bool stacked = false;
  const auto samples = read_samples(scratch / "x.npz", kInputs, &stacked);
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_TRUE(stacked);
  EXPECT_EQ(samples[3][0].tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(samples[3][0].tensor.at(0), 18);
  EXPECT_EQ(samples[3][1].tensor.to_i64()[0], 7);
}

TEST(Samples, AFolderIsReadInOrder) {
  const Scratch scratch;
  for (const char* name : {"b", "a", "c"})
    write_npz(scratch / (std::string(name) + ".npz"),
              {{"x", ramp({1, 3}, static_cast<float>(name[0]))}, {"n", Tensor::i64_scalar(1)}});
  test::write_file(scratch / "notes.txt", "ignored");
  bool stacked = false;
  const auto samples = read_samples(scratch / ".", kInputs, &stacked);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_TRUE(stacked);
  EXPECT_EQ(samples[0][0].tensor.at(0), 'a');
  EXPECT_EQ(samples[2][0].tensor.at(0), 'c');
}

TEST(Samples, EverythingThatDoesNotFitIsNamedAtOnce) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"x", ramp({2, 4})}, {"y", ramp({1})}});
  const std::string text = refusal(scratch / "x.npz");
  EXPECT_THAT(text, HasSubstr("'y' is not an input"));
  EXPECT_THAT(text, HasSubstr("f32[2,4]"));
  EXPECT_THAT(text, HasSubstr("'n' i64[] is missing"));
}

TEST(Samples, CountsMustAgreeAndTypesToo) {
  const Scratch scratch;
  write_npz(scratch / "a.npz", {{"x", ramp({4, 2, 3})}, {"n", Tensor::i64_vector({1, 2})}});
  EXPECT_THAT(refusal(scratch / "a.npz"), HasSubstr("2 samples"));
  write_npz(scratch / "b.npz", {{"x", Tensor::zeros(DType::kF64, {2, 3})}, {"n", Tensor::i64_scalar(1)}});
  EXPECT_THAT(refusal(scratch / "b.npz"), HasSubstr("f64"));
  write_npz(scratch / "c.npz", {{"x", ramp({0, 2, 3})}, {"n", Tensor::i64_scalar(1)}});
  EXPECT_THAT(refusal(scratch / "c.npz"), HasSubstr("no samples"));
}

TEST(Samples, NarrowFloatsComeAsF32) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"x", ramp({2, 3})}});
  const auto samples = read_samples(scratch / "x.npz", {{"x", DType::kBF16, {"2", "3"}}});
  EXPECT_EQ(samples[0][0].tensor.dtype(), DType::kBF16);
  EXPECT_EQ(samples[0][0].tensor.at(5), 5);
}

TEST(Samples, AnInputWithoutRankTakesAnyArrayAsOneSample) {
  const Scratch scratch;
  write_npz(scratch / "x.npz", {{"x", ramp({2, 3, 4})}});
  const auto samples = read_samples(scratch / "x.npz", {{"x", DType::kF32, {}, false}});
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0][0].tensor.shape(), (Shape{2, 3, 4}));
}

TEST(Samples, PolygraphyFeedsInEverySpelling) {
  const Scratch scratch;
  const std::string array = base64(npy("<f4", "(1, 3)", floats({1, 2, 3})));
  const std::string n = base64(npy("<i8", "()", std::string("\x05\0\0\0\0\0\0\0", 8)));
  const std::string count = R"(, "n": {"array": ")" + n + R"(", "polygraphy_class": "ndarray"}})";
  test::write_file(scratch / "f.json",
                   R"([{"x": {"array": ")" + array + R"(", "polygraphy_class": "ndarray"})" + count +
                       R"(, {"x": {"values": {"array": ")" + array +
                       R"(", "polygraphy_class": "ndarray"}, "polygraphy_class": "LazyNumpyArray"})" + count +
                       R"(, {"x": {"array": ")" + array +
                       R"(", "__polygraphy_encoded_ndarray": "polygraphy_serialized_json_type"})" + count +
                       "]");
  bool stacked = false;
  const auto samples = read_samples(scratch / "f.json", kInputs, &stacked);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_TRUE(stacked);
  for (const auto& s : samples) {
    EXPECT_EQ(s[0].tensor.at(2), 3);
    EXPECT_EQ(s[1].tensor.to_i64()[0], 5);
  }
}

TEST(Samples, PolygraphyArraysAsLatin1Text) {
  const Scratch scratch;
  std::string escaped;
  for (const char c : npy("<f4", "(1, 3)", floats({1, -2, 3}))) {
    char code[8];
    std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned char>(c));
    escaped += code;
  }
  test::write_file(scratch / "f.json",
                   R"([{"x": {"array": ")" + escaped +
                       R"(", "__polygraphy_encoded_ndarray": "polygraphy_serialized_json_type"}}])");
  const auto samples = read_samples(scratch / "f.json", {kInputs[0]});
  EXPECT_EQ(samples[0][0].tensor.at(1), -2);
}

TEST(Samples, HostileJsonIsRefused) {
  const Scratch scratch;
  const std::pair<const char*, const char*> cases[] = {
      {"[", "JSON"},
      {"[1]", "not an object"},
      {R"([{"x": {"array": "@@@@"}}])", "base64"},
      {R"([{"x": {"array": "AAAA"}}])", ".npy"},
      {R"([{"x": {"tensor": "AA", "polygraphy_class": "Tensor"}}])", "torch"},
      {R"({"lst": [], "polygraphy_class": "RunResults"})", "outputs"},
      {"[]", "no feed"},
      {R"([{"x": {"values": {"values": {"values": {"values": {"values": {"values": 1}}}}}}}])", "deep"}};
  for (const auto& [text, words] : cases) {
    test::write_file(scratch / "f.json", text);
    EXPECT_THAT(refusal(scratch / "f.json"), HasSubstr(words)) << text;
  }
}

TEST(Samples, AMissingFileIsTheCallersMistake) {
  try {
    (void)read_samples("/nowhere/x.npz", kInputs);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
  }
}

TEST(Outputs, StackAlongANewAxis) {
  const Scratch scratch;
  write_outputs(scratch / "y.npz", {{{"y", ramp({2})}}, {{"y", ramp({2}, 5)}}}, true);
  const auto y = read_npz(scratch / "y.npz");
  EXPECT_EQ(y[0].tensor.shape(), (Shape{2, 2}));
  EXPECT_EQ(y[0].tensor.at(3), 6);
  write_outputs(scratch / "one.npz", {{{"y", ramp({2})}}}, false);
  EXPECT_EQ(read_npz(scratch / "one.npz")[0].tensor.shape(), (Shape{2}));
  write_outputs(scratch / "axis.npz", {{{"y", ramp({2})}}}, true);
  EXPECT_EQ(read_npz(scratch / "axis.npz")[0].tensor.shape(), (Shape{1, 2}));
}

TEST(Outputs, DifferentShapesCannotBeStacked) {
  const Scratch scratch;
  EXPECT_THROW(write_outputs(scratch / "y.npz", {{{"y", ramp({2})}}, {{"y", ramp({3})}}}, true), Error);
  EXPECT_FALSE(std::filesystem::exists(scratch / "y.npz"));
}

}  // namespace
}  // namespace hone
