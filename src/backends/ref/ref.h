// The tactic that ends every list: the operator's reference kernel.
#pragma once

#include "backends/tactic.h"

namespace hone::backends {

/// Runs any problem through ops::run_problem, on plain layouts. Refuses only what is no operator or whose
/// output sizes depend on data.
const Tactic& ref_tactic();

}  // namespace hone::backends
