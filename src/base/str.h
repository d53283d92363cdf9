// Small string helpers: splitting, joining, globs, quoting, numbers to text and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

/// Parts between separators; empty parts are kept, so there is always at least one.
std::vector<std::string_view> split(std::string_view s, char separator);
/// `a, b, c`
std::string join(const std::vector<std::string>& parts, std::string_view separator);
/// At most `limit` parts, then `... (N more)`.
std::string join_some(const std::vector<std::string>& parts, std::string_view separator, size_t limit);
/// Without leading and trailing spaces, tabs and line ends.
std::string_view trim(std::string_view s);
/// True when `pattern` matches all of `s`: `*` any run of characters, `?` any one character. Linear in
/// practice, no recursion.
bool glob_match(std::string_view pattern, std::string_view s);

/// In double quotes; `\` `"`, controls and bytes that are not UTF-8 are escaped as \\ \" \n \t \r \xNN.
std::string quote(std::string_view s);
/// Reads a quoted string at the start of `s`; advances `s` past it. nullopt (and `s` unchanged) when
/// malformed.
std::optional<std::string> unquote(std::string_view* s);

/// Shortest text that reads back to the same value: `0.1`, `1e-05`, `inf`, `-inf`, `nan`.
std::string number_text(float v);
std::string number_text(double v);
/// With this many digits after the point: `3.142`.
std::string fixed_text(double v, int digits);
/// `512 B`, `1.5 KiB`, `12.3 MiB`, `4.0 GiB`
std::string bytes_text(int64_t bytes);
/// `850 ns`, `12.3 us`, `4.56 ms`, `1.23 s`
std::string time_text(double ns);
/// Lower-case hexadecimal, 16 digits.
std::string hex_text(uint64_t v);

/// The whole of `s` as a decimal integer; nullopt for anything else, overflow included. No leading `+` or
/// space.
std::optional<int64_t> parse_i64(std::string_view s);
/// The whole of `s` as a number (`inf`, `nan` included).
std::optional<double> parse_f64(std::string_view s);
std::optional<float> parse_f32(std::string_view s);

/// True when `s` is valid UTF-8.
bool is_utf8(std::string_view s);

}  // namespace hone
