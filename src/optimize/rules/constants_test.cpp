#include "optimize/testing.h"

namespace hone::optimize::testing {
namespace {

std::string twice(const std::string& op, const std::string& a, const std::string& b,
                  const std::string& outputs = "%y") {
  return "graph \"\" (%x: f32[N,2,3]) {\n  const %a: " + a + "\n  const %b: " + b + "\n  %m = " + op +
         "(%x, %a)\n  %y = " + op + "(%b, %m)\n  return " + outputs + "\n}\n";
}

TEST(Constants, InARowAreOne) {
  const std::vector<std::string> passes = {"combine_constants"};
  expect_ops(twice("Add", "f32[3] = {1, 2, 3}", "f32[2,1] = {4, 5}"), passes, "Add", {}, 1e-6);
  expect_ops(twice("Mul", "f32[] = {2}", "f32[3] = {4, 5, 6}"), passes, "Mul", {}, 1e-6);
  expect_unchanged(twice("Sub", "f32[] = {2}", "f32[3] = {4, 5, 6}"), passes);
  expect_unchanged(twice("Add", "f32[1,1,1,1] = {2}", "f32[3] = {4, 5, 6}"), passes);  // enlarges
  expect_unchanged(twice("Add", "f32[] = {2}", "f32[3] = {4, 5, 6}", "%y, %m"), passes);
}

TEST(Constants, MoveOutOfViews) {
  const auto text = [](const std::string& k) {
    return "graph \"\" (%x: f32[4,2,3]) {\n  const %in: i64[4] = {1, 4, 2, 3}\n  const %out: i64[3] = {4, 2, "
           "3}\n  const %k: " +
           k + "\n  %v = Reshape(%x, %in)\n  %m = Add(%v, %k)\n  %y = Reshape(%m, %out)\n  return %y\n}\n";
  };
  const std::vector<std::string> passes = {"constant_outside_views"};
  expect_ops(text("f32[1,4,1,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}"), passes, "Add");
  expect_ops(text("f32[3] = {1, 2, 3}"), passes, "Add");
  const std::string split =
      "graph \"\" (%x: f32[4,3]) {\n  const %in: i64[3] = {2, 2, 3}\n  const %out: i64[2] = {4, 3}\n  const "
      "%k: f32[2,1] = {1, 2}\n"
      "  %v = Reshape(%x, %in)\n  %m = Add(%v, %k)\n  %y = Reshape(%m, %out)\n  return %y\n}\n";
  expect_unchanged(split, passes);  // varies along a part of the first dimension
}

}  // namespace
}  // namespace hone::optimize::testing
