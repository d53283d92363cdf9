// Measured times and errors of tactics: readable, mergeable, editable text.
//
// File: a line `# hone timing cache 1`, then one line an entry, tab-separated, sorted:
//   target <TAB> problem string <TAB> tactic <TAB> time_ns <TAB> relative L2 error
// Lines that start with # are comments. Entries for other targets are kept and ignored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace hone::tune {

struct Timing {
  double time_ns = 0;
  double error = -1;  ///< relative L2 against the oracle on the tuner's inputs; -1: not measured
};

class TimingCache {
 public:
  /// Errors: kInvalidData with line number for a malformed line. An absent file is an empty cache.
  static TimingCache load(const std::string& path);
  static TimingCache parse(std::string_view text);
  std::string text() const;
  void save(const std::string& path) const;  ///< by rename

  std::optional<Timing> find(const std::string& target, const std::string& problem,
                             const std::string& tactic) const;
  /// The fastest entry of a problem, with its tactic's name.
  std::optional<std::pair<std::string, Timing>> best(const std::string& target,
                                                     const std::string& problem) const;
  void put(const std::string& target, const std::string& problem, const std::string& tactic, Timing timing);
  /// Union; where both have an entry the faster one is kept, so merging is associative and commutative.
  void merge(const TimingCache& other);
  size_t size() const { return entries_.size(); }
  friend bool operator==(const TimingCache&, const TimingCache&);

 private:
  std::map<std::tuple<std::string, std::string, std::string>, Timing> entries_;
};

}  // namespace hone::tune
