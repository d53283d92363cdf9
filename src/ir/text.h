// Readable text of a graph: what tests, logs and the engine file use. parse(print(g)) prints the same text
// again.
//
//   graph "resnet" (%x: f32[N,3,224,224]) {
//     const %w: f32[64,3,7,7] = @3                         // external: number 3 of the caller's constants
//     const %axes: i64[2] = {1, 2}                          // inline
//     %y: f32[N,64,112,112] = Conv(%x, %w) {pads = [3, 3, 3, 3], strides = [2, 2]} "layer/Conv_0"
//     %z = hone::Fused(%y, %b) "f" sources ["a", "b"] passes ["p"] anchor 0 body graph "" (%0, %1) { ... }
//     %i: f32[2] = If(%c; %y) {then_branch = graph "t" () captures (%y: f32[2]) { ... }, ...}
//     return %z
//   }
//
// Inputs after `;` are captures. An absent optional input or output is `_`; an unknown type is left out, an
// unknown rank is `[?]`. Names that are not [A-Za-z0-9_.:/]+ or end in `:` are quoted: %"a b". Attributes: 1
// is an integer, 1.0 a float, "s" a string, i64[2] {1, 2} a tensor, [..] a list (empty lists of other kinds:
// floats [], strings [], graphs []). Floats print the shortest text that reads back to the same bits; NaNs
// other than the default one print their bits (0x7fc00001).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace hone::ir {

struct PrintOptions {
  /// Constants of at most this many bytes are printed inline; larger ones go through `external`, or are
  /// elided as `@?` without it.
  int64_t inline_bytes = 256;
  /// Returns the number under which the caller stores a constant.
  std::function<int(const Value&)> external;
  bool types = true;       ///< print result types
  bool provenance = true;  ///< print names, sources, passes
};

std::string print(const Graph& graph, const PrintOptions& options = {});

struct ParseOptions {
  /// Bytes of external constant `number` of the given type. Without it an external constant is an error.
  std::function<Tensor(int number, DType dtype, const Shape& shape)> external;
};

/// Errors: kInvalidModel with line and column. Trusts nothing: sizes, depth and names are checked.
std::unique_ptr<Graph> parse(std::string_view text, const ParseOptions& options = {});

}  // namespace hone::ir
