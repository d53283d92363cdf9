// The passes that are not rule tables. Each file's header comment says what, when legal, why, with a small
// example.
#pragma once

#include "optimize/rewrite.h"

namespace hone::optimize {

void dead_code(PassContext& ctx);              ///< dead_code.cpp
void fold_constants(PassContext& ctx);         ///< fold.cpp
void fold_contents(PassContext& ctx);          ///< fold.cpp
void captured_constants(PassContext& ctx);     ///< fold.cpp
void merge_constants(PassContext& ctx);        ///< cse.cpp
void common_subexpressions(PassContext& ctx);  ///< cse.cpp
void needless_expand(PassContext& ctx);        ///< broadcast.cpp
void slices_to_split(PassContext& ctx);        ///< splits.cpp
void transpose_sink_split(PassContext& ctx);   ///< splits.cpp
void merge_products(PassContext& ctx);         ///< products.cpp
void fuse_layers(PassContext& ctx);            ///< layers.cpp
void fuse_pointwise(PassContext& ctx);         ///< layers.cpp

}  // namespace hone::optimize
