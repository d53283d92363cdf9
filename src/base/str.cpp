#include "base/str.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace hone {
namespace {

// Length of the UTF-8 sequence at s[i], 0 when it is malformed (overlong, surrogate or beyond U+10FFFF
// included).
size_t utf8_length(std::string_view s, size_t i) {
  const auto byte = [&](size_t k) -> unsigned {
    return i + k < s.size() ? static_cast<unsigned char>(s[i + k]) : 0;
  };
  const auto tail = [&](size_t k) { return (byte(k) & 0xc0u) == 0x80u; };
  const unsigned b = byte(0);
  if (b < 0x80) return 1;
  if (b >= 0xc2 && b <= 0xdf) return tail(1) ? 2 : 0;
  if (b >= 0xe0 && b <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (b == 0xe0 && byte(1) < 0xa0) return 0;
    if (b == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (b >= 0xf0 && b <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (b == 0xf0 && byte(1) < 0x90) return 0;
    if (b == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

template <class T>
std::string shortest(T v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buf[64];
  const auto r = std::to_chars(buf, buf + sizeof buf, v);
  return std::string(buf, r.ptr);
}

template <class T>
std::optional<T> parse_number(std::string_view s) {
  T v{};
  const auto r = std::from_chars(s.data(), s.data() + s.size(), v);
  if (r.ec != std::errc{} || r.ptr != s.data() + s.size()) return std::nullopt;
  return v;
}

}  // namespace

std::vector<std::string_view> split(std::string_view s, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = s.find(separator);
    parts.push_back(s.substr(0, at));
    if (at == std::string_view::npos) return parts;
    s.remove_prefix(at + 1);
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return join_some(parts, separator, parts.size());
}

std::string join_some(const std::vector<std::string>& parts, std::string_view separator, size_t limit) {
  std::string s;
  for (size_t i = 0; i < parts.size() && i < limit; ++i) {
    if (i != 0) s += separator;
    s += parts[i];
  }
  if (parts.size() > limit) s += " ... (" + std::to_string(parts.size() - limit) + " more)";
  return s;
}

std::string_view trim(std::string_view s) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = s.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(kBlank) - first + 1);
}

bool glob_match(std::string_view pattern, std::string_view s) {
  size_t p = 0, i = 0;
  size_t star = std::string_view::npos,
         resume = 0;  // the last `*` seen, and where its match may be made longer
  while (i < s.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = i;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == s[i])) {
      ++p;
      ++i;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string quote(std::string_view s) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < s.size();) {
    const size_t n = utf8_length(s, i);
    const auto c = static_cast<unsigned char>(s[i]);
    if (n > 1) {
      out += s.substr(i, n);
      i += n;
      continue;
    }
    ++i;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (n == 0 || c < 0x20 || c == 0x7f) {
          out += "\\x";
          out += kHex[c >> 4];
          out += kHex[c & 15];
        } else {
          out += static_cast<char>(c);
        }
    }
  }
  return out + '"';
}

std::optional<std::string> unquote(std::string_view* s) {
  if (s->empty() || s->front() != '"') return std::nullopt;
  std::string out;
  for (size_t i = 1; i < s->size(); ++i) {
    const char c = (*s)[i];
    if (c == '"') {
      s->remove_prefix(i + 1);
      return out;
    }
    if (c != '\\') {
      out += c;
      continue;
    }
    if (++i == s->size()) return std::nullopt;
    switch ((*s)[i]) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case 'r': out += '\r'; break;
      case '"': out += '"'; break;
      case '\\': out += '\\'; break;
      case 'x': {
        if (i + 2 >= s->size()) return std::nullopt;
        const int hi = hex_digit((*s)[i + 1]);
        const int lo = hex_digit((*s)[i + 2]);
        if (hi < 0 || lo < 0) return std::nullopt;
        out += static_cast<char>(hi * 16 + lo);
        i += 2;
        break;
      }
      default: return std::nullopt;
    }
  }
  return std::nullopt;
}

std::string number_text(float v) { return shortest(v); }
std::string number_text(double v) { return shortest(v); }

std::string fixed_text(double v, int digits) {
  char buf[400];
  std::snprintf(buf, sizeof buf, "%.*f", digits, v);
  return buf;
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 1024 && bytes > -1024) return std::to_string(bytes) + " B";
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double v = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (std::fabs(v) >= 1023.95 && unit < 5) {
    v /= 1024;
    ++unit;
  }
  return fixed_text(v, 1) + " " + kUnits[unit];
}

std::string time_text(double ns) {
  constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  int unit = 0;
  double v = ns;
  while (std::fabs(v) >= 1000 && unit < 3) {
    v /= 1000;
    ++unit;
  }
  const double a = std::fabs(v);
  return fixed_text(v, a >= 100 || unit == 0 ? 0 : a >= 10 ? 1 : 2) + " " + kUnits[unit];
}

std::string hex_text(uint64_t v) {
  char buf[17];
  std::snprintf(buf, sizeof buf, "%016llx", static_cast<unsigned long long>(v));
  return buf;
}

std::optional<int64_t> parse_i64(std::string_view s) { return parse_number<int64_t>(s); }
std::optional<double> parse_f64(std::string_view s) { return parse_number<double>(s); }
std::optional<float> parse_f32(std::string_view s) { return parse_number<float>(s); }

bool is_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const size_t n = utf8_length(s, i);
    if (n == 0) return false;
    i += n;
  }
  return true;
}

}  // namespace hone
