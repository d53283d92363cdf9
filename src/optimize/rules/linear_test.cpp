#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::vector<std::string> linear() {
  return {"gemm_factors",    "gemm_rows", "batch_norm_fold", "batch_norm_affine", "scale_fold",
          "bias_scale_fold", "bias_fold", "scale_fold",      "dead_code"};
}

const char* kConvWeights = "  const %w: f32[2,2,1,1] = {1, 2, 3, 4}\n";
const char* kNorm =
    "  const %g: f32[2] = {2, 3}\n  const %h: f32[2] = {1, -1}\n  const %mean: f32[2] = {0.5, 1}\n  const "
    "%var: f32[2] = {4, 0.25}\n";

std::string picture(const std::string& constants, const std::string& body,
                    const std::string& outputs = "%y") {
  return "graph \"\" (%x: f32[N,2,3,3]) {\n" + constants + body + "  return " + outputs + "\n}\n";
}

TEST(Linear, BatchNormalizationIntoAConvolution) {
  const std::string c = std::string(kConvWeights) + kNorm;
  expect_ops(picture(c, "  %a = Conv(%x, %w)\n  %y = BatchNormalization(%a, %g, %h, %mean, %var)\n"),
             linear(), "Conv", {}, 1e-6);
  expect_ops(picture(c, "  %a = Conv(%x, %w, %h)\n  %y = BatchNormalization(%a, %g, %h, %mean, %var)\n"),
             linear(), "Conv", {}, 1e-6);
  expect_ops(
      picture(
          c + "  const %wt: f32[2,1,1,1] = {5, 7}\n",
          "  %a = ConvTranspose(%x, %wt) {group = 2}\n  %y = BatchNormalization(%a, %g, %h, %mean, %var)\n"),
      linear(), "ConvTranspose", {}, 1e-6);
  expect_ops(picture(c + "  const %wt: f32[2,3,2,1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}\n  const %k: "
                         "f32[3,1,1] = {1, 2, 4}\n",
                     "  %a = ConvTranspose(%x, %wt)\n  %y = Mul(%a, %k)\n"),
             linear(), "ConvTranspose", {}, 1e-6);
}

TEST(Linear, BatchNormalizationElsewhereIsMulAndAdd) {
  expect_ops(picture(kNorm, "  %a = Relu(%x)\n  %y = BatchNormalization(%a, %g, %h, %mean, %var)\n"),
             linear(), "Relu Mul Add", {}, 1e-6);
  // The convolution's result is read elsewhere.
  expect_ops(picture(std::string(kConvWeights) + kNorm,
                     "  %a = Conv(%x, %w)\n  %y = BatchNormalization(%a, %g, %h, %mean, %var)\n", "%y, %a"),
             linear(), "Conv Mul Add", {}, 1e-6);
}

TEST(Linear, ASharedWeightIsNotChanged) {  // case A13
  const std::string c = std::string(kConvWeights) + kNorm;
  const auto g = expect_ops(
      picture(
          c, "  %a = Conv(%x, %w)\n  %y = BatchNormalization(%a, %g, %h, %mean, %var)\n  %z = Conv(%x, %w)\n",
          "%y, %z"),
      {"batch_norm_fold"}, "Conv Conv", {}, 1e-6);
  EXPECT_EQ(g->value(g->find("w")).data->at(3), 4);
}

TEST(Linear, ComputedParametersStay) {
  expect_unchanged(
      "graph \"\" (%x: f32[1,2,3,3], %w: f32[2,2,1,1], %k: f32[2,1,1]) {\n  %a = Conv(%x, %w)\n  %y = "
      "Mul(%a, %k)\n  return %y\n}\n",
      linear());
  expect_unchanged(
      "graph \"\" (%x: f32[1,2,3,3], %w: f32[2,2,1,1]) {\n  const %k: f32[2,1,1] = {2, 3}\n  %a = Conv(%x, "
      "%w)\n  %y = Mul(%a, %k)\n  return %y\n}\n",
      linear());
}

TEST(Linear, ConstantsPerChannel) {
  const std::string c = kConvWeights;
  const std::string conv = "  %a = Conv(%x, %w)\n";
  expect_ops(picture(c + "  const %k: f32[1,2,1,1] = {2, 3}\n", conv + "  %y = Mul(%k, %a)\n"), linear(),
             "Conv", {}, 1e-6);
  expect_ops(
      picture(c + "  const %k: f32[2,1,1] = {2, 3}\n", conv + "  %b = Div(%a, %k)\n  %y = Sub(%b, %k)\n"),
      linear(), "Conv", {}, 1e-6);
  expect_ops(picture(c + "  const %k: f32[] = {2}\n", conv + "  %b = Add(%a, %k)\n  %y = Mul(%b, %k)\n"),
             linear(), "Conv", {}, 1e-6);
  expect_unchanged(picture(c + "  const %k: f32[3] = {2, 3, 4}\n", conv + "  %y = Mul(%a, %k)\n"),
                   linear());  // along the width
  expect_unchanged(picture(c + "  const %k: f32[1,1,2,1,1] = {2, 3}\n", conv + "  %y = Mul(%a, %k)\n"),
                   linear());  // enlarges
  expect_unchanged(picture(c + "  const %k: f32[] = {inf}\n", conv + "  %y = Mul(%a, %k)\n"), linear());
  expect_unchanged(picture(c + "  const %k: f32[] = {0}\n", conv + "  %y = Div(%a, %k)\n"), linear());
  expect_unchanged(picture(c + "  const %k: f32[] = {1}\n", conv + "  %y = Sub(%k, %a)\n"),
                   linear());  // the other way round
}

TEST(Linear, ConstantsIntoProducts) {
  const auto rows = [](const std::string& body) {
    return "graph \"\" (%x: f32[N,3,2]) {\n  const %w: f32[2,4] = {1, 2, 3, 4, 5, 6, 7, 8}\n  const %b: "
           "f32[4] = {1, 0, 2, 0}\n  const %k: f32[] = {0.125}\n" +
           body + "  return %y\n}\n";
  };
  expect_ops(rows("  %a = MatMul(%x, %w)\n  %y = Mul(%a, %k)\n"), linear(), "MatMul", {}, 1e-6);
  expect_ops(rows("  %a = MatMul(%x, %w)\n  %c = Add(%a, %b)\n  %y = Mul(%c, %k)\n"), linear(), "MatMul Add",
             {}, 1e-6);
  expect_unchanged(rows("  %a = MatMul(%x, %w)\n  %y = Add(%a, %b)\n"), linear());
  expect_unchanged(rows("  %a = MatMul(%x, %w)\n  %y = Mul(%x, %k)\n  %z = Neg(%a)\n"), {"scale_fold"});
}

TEST(Linear, Gemm) {
  const auto gemm = [](const std::string& body) {
    return "graph \"\" (%x: f32[3,2]) {\n  const %w: f32[4,2] = {1, 2, 3, 4, 5, 6, 7, 8}\n  const %b: f32[4] "
           "= {1, 0, 2, 0}\n"
           "  const %c: f32[3,1] = {1, 2, 3}\n  const %k: f32[4] = {2, 3, 4, 5}\n" +
           body + "  return %y\n}\n";
  };
  expect_ops(gemm("  %a = Gemm(%x, %w, %b) {alpha = 0.5, beta = 2.0, transB = 1}\n  %y = Mul(%a, %k)\n"),
             linear(), "Gemm", {}, 1e-6);
  expect_ops(gemm("  %a = Gemm(%x, %w) {transB = 1}\n  %y = Add(%a, %k)\n"), linear(), "Gemm", {}, 1e-6);
  expect_unchanged(gemm("  %a = Gemm(%x, %w, %c) {transB = 1}\n  %y = Mul(%a, %k)\n"),
                   linear());  // bias per row
}

TEST(Linear, GemmBetweenReshapesIsARowProduct) {
  const auto rows = [](const std::string& shape, const std::string& extra = "") {
    return "graph \"\" (%x: f32[N,3,2]) {\n  const %w: f32[4,2] = {1, 2, 3, 4, 5, 6, 7, 8}\n  const %b: "
           "f32[4] = {1, 0, 2, 0}\n"
           "  const %in: i64[2] = {-1, 2}\n  const %out: i64" +
           shape +
           "\n  %r = Reshape(%x, %in)\n  %a = Gemm(%r, %w, %b) {transB = 1}\n  %y = Reshape(%a, %out)" +
           extra + "\n  return %y\n}\n";
  };
  const std::vector<std::string> passes = {"gemm_rows", "view_merge", "noop_reshape", "dead_code"};
  expect_ops(rows("[3] = {-1, 3, 4}"), passes, "MatMul Add");
  expect_unchanged(rows("[3] = {-1, 6, 2}"), {"gemm_rows"});  // splits the columns
  expect_unchanged(rows("[1] = {-1}"), {"gemm_rows"});
}

}  // namespace
}  // namespace hone::optimize::testing
