#include "onnx/reader.h"

#include <gmock/gmock.h>

#include "hone/error.h"
#include "onnx/testing.h"

namespace hone::onnx {
namespace {

using namespace test;
using testing::HasSubstr;

/// Views point into `bytes`, so they must outlive the result.
ModelProto read(const std::string& bytes, const ReadLimits& limits = {}) {
  return read_model(bytes.data(), bytes.size(), limits);
}

void expect_refused(const std::string& bytes, const std::string& message, const ReadLimits& limits = {}) {
  try {
    (void)read(bytes, limits);
    ADD_FAILURE() << message;
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidModel);
    EXPECT_EQ(e.context().stage, "import");
    EXPECT_THAT(e.what(), HasSubstr(message));
  }
}

std::string with_graph(const std::string& graph) { return int_field(1, 8) + bytes_field(7, graph); }

TEST(OnnxReader, PackedAndUnpackedNumbersAreTheSame) {
  const std::vector<int64_t> dims{2, 3, -1};
  const std::vector<float> f{1.5f, -2};
  const std::vector<double> d{0.1};
  const std::vector<int32_t> i{-7, 8};
  std::string packed = int_field(2, 1), unpacked = int_field(2, 1);
  {
    protozero::pbf_writer w(packed);
    w.add_packed_int64(1, dims.begin(), dims.end());
    w.add_packed_float(4, f.begin(), f.end());
    w.add_packed_double(10, d.begin(), d.end());
    w.add_packed_int32(5, i.begin(), i.end());
  }
  {
    protozero::pbf_writer w(unpacked);
    for (const auto v : dims) w.add_int64(1, v);
    for (const auto v : f) w.add_float(4, v);
    for (const auto v : d) w.add_double(10, v);
    for (const auto v : i) w.add_int32(5, v);
  }
  for (const std::string& text : {packed, unpacked}) {
    const std::string bytes = with_graph(bytes_field(5, text));
    const ModelProto m = read(bytes);
    const TensorProto& t = m.graph.initializer.at(0);
    EXPECT_EQ(t.dims, dims);
    EXPECT_EQ(t.float_data, f);
    EXPECT_EQ(t.double_data, d);
    EXPECT_EQ(t.int32_data, i);
  }
}

TEST(OnnxReader, UnknownFieldsAndWireTypesAreSkipped) {
  std::string extra;
  protozero::pbf_writer w(extra);
  w.add_fixed64(900, 1);
  w.add_fixed32(901, 1);
  w.add_int64(902, 1);
  w.add_string(903, "future");
  w.add_string(1, "ir_version as a string");
  const std::string bytes =
      extra + with_graph(bytes_field(1, node("Relu", {"x"}, {"y"}) + extra.substr(0, 16)));
  const ModelProto m = read(bytes);
  EXPECT_EQ(m.ir_version, 8);
  EXPECT_EQ(m.graph.node.at(0).op_type, "Relu");
}

TEST(OnnxReader, RepeatedFieldsFollowProtobuf) {
  // The last scalar wins; messages merge.
  const std::string first = bytes_field(2, "a") + bytes_field(1, node("Relu", {"x"}, {"y"}));
  const std::string second = bytes_field(2, "b") + bytes_field(1, node("Abs", {"y"}, {"z"}));
  const std::string bytes =
      int_field(1, 3) + int_field(1, 9) + bytes_field(7, first) + bytes_field(7, second);
  const ModelProto m = read(bytes);
  EXPECT_EQ(m.ir_version, 9);
  EXPECT_EQ(m.graph.name, "b");
  ASSERT_EQ(m.graph.node.size(), 2u);
  EXPECT_EQ(m.graph.node[1].op_type, "Abs");
}

TEST(OnnxReader, TypesOfContainersAreKnownButNotRead) {
  std::string nested = bytes_field(1, int_field(1, 1));
  for (int i = 0; i < 100000; ++i) nested = bytes_field(4, bytes_field(1, nested.substr(0, 64)));
  const std::string bytes = with_graph(bytes_field(11, bytes_field(1, "s") + bytes_field(2, nested)));
  const ModelProto m = read(bytes);
  EXPECT_EQ(m.graph.input.at(0).type.kind, TypeProto::Kind::kSequence);
}

TEST(OnnxReader, Budgets) {
  ReadLimits limits;
  limits.nodes = 3;
  Strings four(4, node("Relu", {"x"}, {"y"}));
  GraphText g;
  g.nodes = four;
  expect_refused(with_graph(g.bytes()), "more than 3 nodes", limits);
  limits = {};
  limits.node_inputs = 10;
  expect_refused(with_graph(bytes_field(1, node("Sum", Strings(11, "x"), {"y"}))), "more than 10 inputs",
                 limits);
  limits = {};
  limits.numbers = 5;
  expect_refused(with_graph(bytes_field(5, tensor_type("w", 1, {1, 1, 1, 1, 1, 1}))), "more than 5 numbers",
                 limits);
  expect_refused(with_graph(bytes_field(5, tensor_type("w", 1, std::vector<int64_t>(65, 1)))),
                 "more than 64 dimensions");
  expect_refused(with_graph(bytes_field(1, node(std::string(70000, 'x'), {}, {"y"}))),
                 "longer than 65536 bytes");
  Strings attrs(1100, attr("a", 1));
  expect_refused(with_graph(bytes_field(1, node("Relu", {"x"}, {"y"}, attrs))), "more than 1024 attributes");
}

TEST(OnnxReader, AMillionInputsOfOneNodeAreRefused) {
  expect_refused(with_graph(bytes_field(1, node("Sum", Strings(1000000, "x"), {"y"}))),
                 "more than 65536 inputs");
}

TEST(OnnxReader, NestingIsBoundedAtAnyDepth) {
  std::string graph = bytes_field(1, node("Relu", {"x"}, {"y"}));
  for (int depth = 1; depth <= 1000; ++depth) {
    graph = bytes_field(1, node("If", {"c"}, {"y"}, {attr_g("then_branch", graph)}));
    if (depth == 32) {
      EXPECT_NO_THROW(read(with_graph(graph)));
    }
    if (depth == 33 || depth == 1000) expect_refused(with_graph(graph), "nest deeper than 32");
  }
}

TEST(OnnxReader, NamesAreText) {
  expect_refused(with_graph(bytes_field(1, node("Relu\xff", {"x"}, {"y"}))), "not UTF-8: \"Relu\\xff\"");
  expect_refused(with_graph(bytes_field(1, node(std::string("Re\0lu", 5), {"x"}, {"y"}))), "zero byte");
  // Documentation may be anything.
  EXPECT_NO_THROW(read(with_graph(bytes_field(10, "\xff\xfe"))));
}

TEST(OnnxReader, WhatIsNoProtobufSaysSo) {
  expect_refused("PK\x03\x04 this is a zip archive", "no ONNX file, or a damaged one");
  expect_refused(std::string(64, '\0'), "no ONNX file");
  // Lengths that reach beyond the end, at every level.
  expect_refused(std::string("\x3a\xff\xff\xff\xff\x0f", 6), "no ONNX file");
  expect_refused(with_graph(std::string("\x0a\x7f", 2)), "no ONNX file");
  expect_refused(with_graph(bytes_field(5, std::string("\x0a\x03\xff\xff\xff", 5))), "no ONNX file");
}

}  // namespace
}  // namespace hone::onnx
