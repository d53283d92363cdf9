// What adapters from older opsets share.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace hone::ops {

/// Puts an Unsqueeze before input `i`.
void unsqueeze_input(AdaptContext& ctx, size_t i, const std::vector<int64_t>& axes);
/// Opset < 7: `broadcast` and `axis` say where B's dimensions stand in A; trailing ones are added so that
/// NumPy's rule says the same. Also drops `consumed_inputs`.
void adapt_legacy_broadcast(AdaptContext& ctx);
/// Appends an input at position `i`, absent ones before it included.
void put_input(AdaptContext& ctx, size_t i, ir::ValueId value);
/// Moves an int-list (or int) attribute to a constant i64 vector input at position `i`; nothing when absent.
void attr_to_input(AdaptContext& ctx, std::string_view attr, size_t i);
/// A float constant of the type of input 0, through CastLike where that type is not known yet.
ir::ValueId scalar_like_input(AdaptContext& ctx, const std::string& name, float value);

}  // namespace hone::ops
