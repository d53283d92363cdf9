#include "flags.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "hone/error.h"

namespace hone::cli {
namespace {

[[noreturn]] void bad(const std::string& what) { throw Error(ErrorCode::kInvalidArgument, what); }

/// Parts of `text` between commas that stand outside quotes.
std::vector<std::string> split_quoted(const std::string& text, const std::string& flag) {
  std::vector<std::string> parts(1);
  char quote = 0;
  for (char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
      parts.back() += c;
    } else if ((c == '\'' || c == '"') && parts.back().empty()) {
      quote = c;
      parts.back() += c;
    } else if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (quote != 0) bad(flag + ": the quote in '" + text + "' is not closed");
  return parts;
}

std::string unquoted(const std::string& s) {
  if (s.size() >= 2 && (s.front() == '\'' || s.front() == '"') && s.back() == s.front())
    return s.substr(1, s.size() - 2);
  return s;
}

Shape parse_dims(const std::string& text, const std::string& part, const std::string& flag) {
  Shape shape;
  if (text == "scalar") return shape;
  std::string digits;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : 'x';
    if (std::isdigit(static_cast<unsigned char>(c))) {
      digits += c;
    } else if ((c == 'x' || c == 'X') && !digits.empty() && digits.size() < 16) {
      shape.push_back(std::stoll(digits));
      digits.clear();
    } else {
      bad(flag + ": '" + part + "' is not NAME:1x3x224x224 (a scalar is NAME:scalar)");
    }
  }
  return shape;
}

std::string lower(std::string_view s) {
  std::string out;
  for (char c : s) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Insertions, deletions, replacements and swaps of neighbours from a to b.
size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// `pattern` holds at most one `*`.
bool matches(const std::string& pattern, const std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == name;
  const std::string head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.compare(0, head.size(), head) == 0 &&
         name.compare(name.size() - tail.size(), tail.size(), tail) == 0;
}

}  // namespace

std::map<std::string, Shape> parse_shapes(const std::string& text, const std::string& flag) {
  std::map<std::string, Shape> shapes;
  for (const std::string& part : split_quoted(text, flag)) {
    if (part.empty()) continue;
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0)
      bad(flag + ": '" + part + "' names no input; write NAME:1x3x224x224, several with commas");
    const std::string name = unquoted(part.substr(0, colon));
    if (std::count(name.begin(), name.end(), '*') > 1) bad(flag + ": '" + name + "' holds more than one *");
    if (!shapes.emplace(name, parse_dims(part.substr(colon + 1), part, flag)).second)
      bad(flag + ": '" + name + "' is given twice");
  }
  return shapes;
}

bool has_wildcard(const std::map<std::string, Shape>& shapes) {
  return std::any_of(shapes.begin(), shapes.end(),
                     [](const auto& s) { return s.first.find('*') != std::string::npos; });
}

std::map<std::string, Shape> expand_shapes(const std::map<std::string, Shape>& shapes,
                                           const std::vector<TensorInfo>& inputs) {
  std::map<std::string, Shape> out;
  for (const auto& [pattern, shape] : shapes) {  // a name given in full wins
    if (pattern.find('*') == std::string::npos) out.emplace(pattern, shape);
  }
  for (const auto& [pattern, shape] : shapes) {
    if (pattern.find('*') == std::string::npos) continue;
    bool any = false;
    for (const TensorInfo& t : inputs) {
      if (!matches(pattern, t.name)) continue;
      any = true;
      out.emplace(t.name, shape);
    }
    if (any) continue;
    std::string known;
    for (const TensorInfo& t : inputs) known += (known.empty() ? "" : ", ") + t.name;
    bad("'" + pattern + "' matches no input; the inputs are: " + known);
  }
  return out;
}

int64_t parse_bytes(const std::string& text, const std::string& flag) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  std::string unit = lower(end == nullptr ? "" : end);
  if (end == text.c_str() || !std::isdigit(static_cast<unsigned char>(text[0])) || !std::isfinite(value) ||
      value < 0)
    bad(flag + ": '" + text + "' is not a size; write 64M, 1.5G or a number of MiB");
  if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
  if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
  int shift = 20;
  if (unit == "b")
    shift = 0;
  else if (unit == "k")
    shift = 10;
  else if (unit == "g")
    shift = 30;
  else if (unit == "t")
    shift = 40;
  else if (unit != "m" && !unit.empty())
    bad(flag + ": '" + text + "' has an unknown unit; the units are B, K, M, G, T");
  const double bytes = std::ldexp(value, shift);
  if (bytes > 9e18) bad(flag + ": '" + text + "' is more than any machine has");
  return static_cast<int64_t>(bytes);
}

int64_t parse_pools(const std::string& text, const std::string& flag, std::vector<std::string>* ignored) {
  int64_t workspace = 0;
  for (const std::string& part : parse_list(text)) {
    const size_t colon = part.find(':');
    const std::string pool = part.substr(0, colon);
    if (colon == std::string::npos) bad(flag + ": '" + part + "' names no pool; write workspace:64M");
    const int64_t bytes = parse_bytes(part.substr(colon + 1), flag);
    if (pool == "workspace") {
      if (bytes == 0)
        bad(flag +
            ": a workspace of 0 bytes allows no tactic that needs one; leave the flag out for no limit");
      workspace = bytes;
    } else if (pool == "dlaSRAM" || pool == "dlaLocalDRAM" || pool == "dlaGlobalDRAM" ||
               pool == "tacticSharedMem") {
      if (ignored != nullptr) ignored->push_back(pool);
    } else {
      const std::string near =
          nearest(pool, {"workspace", "dlaSRAM", "dlaLocalDRAM", "dlaGlobalDRAM", "tacticSharedMem"});
      bad(flag + ": unknown pool '" + pool + "'" +
          (near.empty() ? "; the pool is workspace" : "; did you mean " + near + "?"));
    }
  }
  return workspace;
}

std::vector<std::string> parse_list(const std::string& text) {
  std::vector<std::string> parts;
  size_t start = 0;
  while (start <= text.size()) {
    const size_t comma = std::min(text.find(',', start), text.size());
    if (comma > start) parts.push_back(text.substr(start, comma - start));
    start = comma + 1;
  }
  return parts;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  const auto bare = [](std::string_view s) {
    while (!s.empty() && s.front() == '-') s.remove_prefix(1);
    return lower(s.substr(0, s.find('=')));
  };
  const std::string a = bare(word);
  std::string best;
  size_t least = a.size() / 3 + 2;  // one letter wrong in a short word, a third in a long one
  for (const std::string& candidate : known) {
    const std::string b = bare(candidate);
    if (b.size() < 2) continue;
    const size_t d = edit_distance(a, b);
    if (d < least && d < b.size()) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string s;
  for (int64_t d : shape) s += (s.empty() ? "" : "x") + std::to_string(d);
  return s;
}

std::string tensor_text(const TensorInfo& t) {
  std::string s = t.name + " " + dtype_name(t.dtype);
  if (!t.ranked) return s + " of any rank";
  s += "[";
  for (size_t i = 0; i < t.dims.size(); ++i) s += (i ? "," : "") + t.dims[i];
  return s + "]";
}

}  // namespace hone::cli
