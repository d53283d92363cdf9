#include "text.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace hone::cli {
namespace {

/// Bytes of the UTF-8 character that starts at `i`, or 0 when none does.
size_t utf8_length(std::string_view s, size_t i) {
  const auto c = static_cast<unsigned char>(s[i]);
  const size_t n = c < 0x80                ? 1
                   : c >= 0xC2 && c < 0xE0 ? 2
                   : c >= 0xE0 && c < 0xF0 ? 3
                   : c >= 0xF0 && c < 0xF5 ? 4
                                           : 0;
  if (n == 0 || i + n > s.size()) return 0;
  for (size_t k = 1; k < n; ++k)
    if ((static_cast<unsigned char>(s[i + k]) & 0xC0) != 0x80) return 0;
  return n;
}

/// Columns on a terminal, taking every character for one.
size_t columns_of(const std::string& s) {
  return static_cast<size_t>(std::count_if(
      s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string format(const char* form, double v) {
  char text[64];
  std::snprintf(text, sizeof text, form, v);
  return text;
}

}  // namespace

std::string bytes_text(int64_t bytes) {
  const double b = static_cast<double>(bytes);
  if (std::llabs(bytes) < 1024) return std::to_string(bytes) + " B";
  if (std::fabs(b) < 1048576.0) return format("%.1f KiB", b / 1024);
  if (std::fabs(b) < 1073741824.0) return format("%.1f MiB", b / 1048576);
  return format("%.2f GiB", b / 1073741824);
}

std::string number_text(double v, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, v);
  return text;
}

std::string ms_text(double ms) {
  const double a = std::fabs(ms);
  const auto three = [](double v) { return format(v < 10 ? "%.2f" : v < 100 ? "%.1f" : "%.0f", v); };
  if (a == 0) return "0 ms";
  if (a < 1e-3) return three(ms * 1e6) + " ns";
  if (a < 1) return three(ms * 1e3) + " us";
  if (a < 1000) return three(ms) + " ms";
  return three(ms / 1000) + " s";
}

std::string percent_text(double share) { return format("%.1f %%", share * 100); }

std::string count_text(int64_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

std::string printable(std::string_view s, bool lines) {
  std::string out;
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const size_t n = utf8_length(s, i);
    const bool c1 = n == 2 && c == 0xC2 && static_cast<unsigned char>(s[i + 1]) < 0xA0;
    if (n == 0 || c1 || c == 0x7F || (c < 0x20 && !(lines && c == '\n'))) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", c);
      out += escaped;
      ++i;
    } else {
      out.append(s.substr(i, n));
      i += n;
    }
  }
  return out;
}

std::string shortened(const std::string& s, size_t limit) {
  if (columns_of(s) <= limit || limit < 4) return s;
  const size_t keep = limit - 1, head = keep / 2, tail = keep - head;
  std::vector<size_t> starts;
  for (size_t i = 0; i < s.size(); ++i)
    if ((static_cast<unsigned char>(s[i]) & 0xC0) != 0x80) starts.push_back(i);
  return s.substr(0, starts[head]) + "…" + s.substr(starts[starts.size() - tail]);
}

int terminal_width() {
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
    return size.ws_col;
  return 120;
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& c : cells) c = printable(c);
  rows_.push_back(std::move(cells));
}

std::string Table::text(int width) const {
  std::vector<size_t> widths;
  for (size_t k = 0; k < columns_.size(); ++k) {
    size_t w = columns_of(columns_[k].title);
    for (const auto& r : rows_) w = std::max(w, columns_of(r[k]));
    widths.push_back(w);
  }
  // The widest flexible column gives way, one column at a time.
  const auto total = [&] {
    size_t sum = 2;
    for (size_t w : widths) sum += w + 2;
    return sum - 2;
  };
  while (total() > static_cast<size_t>(width)) {
    size_t widest = columns_.size();
    for (size_t k = 0; k < columns_.size(); ++k)
      if (columns_[k].flexible && widths[k] > 12 && (widest == columns_.size() || widths[k] > widths[widest]))
        widest = k;
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  std::string out;
  const auto line = [&](const auto& cell) {
    std::string s = "  ";
    for (size_t k = 0; k < columns_.size(); ++k) {
      const std::string text = shortened(cell(k), widths[k]);
      const std::string gap(widths[k] - std::min(widths[k], columns_of(text)), ' ');
      s += columns_[k].align == Align::kRight ? gap + text : text + gap;
      s += "  ";
    }
    s.erase(s.find_last_not_of(' ') + 1);
    out += s + "\n";
  };
  line([&](size_t k) { return columns_[k].title; });
  for (const auto& r : rows_) line([&](size_t k) { return r[k]; });
  return out;
}

}  // namespace hone::cli
