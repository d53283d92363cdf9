// A backend: a device with its tactics and packings. One folder and one row in backends.inc each.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/tactic.h"

namespace hone::backends {

/// What an engine is built for.
struct Target {
  std::string backend = "cpu";  ///< "cpu", "ref", "cuda"
  Isa isa = Isa::kPortable;     ///< CPU targets: highest level the engine may use
  std::string text() const;     ///< "cpu-avx512"
  static Target parse(std::string_view text);
  static Target here(std::string_view backend = "cpu");  ///< this machine, HONE_ISA honoured
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// Tactics for a problem's operator on a target, fastest first by heuristic, `ref` last. HONE_TACTIC (a
  /// regular expression on names) keeps only matching ones, and `ref`.
  virtual std::vector<const Tactic*> tactics(const Problem& problem, const Target& target) const = 0;
  virtual const Tactic* find(std::string_view tactic_name) const = 0;  ///< nullptr when unknown
  /// Rewrites constant bytes into a packing and back. Errors: kInternal for an unknown name.
  virtual Tensor pack(const std::string& packing, const Tensor& plain) const = 0;
  virtual Tensor unpack(const std::string& packing, const Tensor& packed, DType dtype,
                        const Shape& dims) const = 0;
  /// Why an engine for `target` cannot run on this machine, or empty.
  virtual std::string refuse(const Target& target) const = 0;
};

/// Every backend of this build, in the order of backends.inc.
std::vector<const Backend*> all_backends();
const Backend* find_backend(std::string_view name);  ///< nullptr when absent from this build

}  // namespace hone::backends
