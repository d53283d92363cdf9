// Text for people: aligned tables that fit the terminal, quantities with units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hone::cli {

/// `512 B`, `1.5 KiB`, `12.3 MiB`
std::string bytes_text(int64_t bytes);
/// Milliseconds in the unit that suits: `850 ns`, `12.3 us`, `4.56 ms`, `1.23 s`
std::string ms_text(double ms);
/// `12.3 %`
std::string percent_text(double share);
/// With this many significant digits.
std::string number_text(double v, int digits = 3);
/// `1 layer`, `12 layers`
std::string count_text(int64_t n, std::string_view what);
/// Control characters and bytes that are not UTF-8 as \xNN: names come from files that nobody vouched for.
/// Newlines stay when `lines`.
std::string printable(std::string_view s, bool lines = false);
/// At most `limit` columns, the middle replaced by an ellipsis.
std::string shortened(const std::string& s, size_t limit);

/// Columns of the terminal behind stdout; 120 when it is a file or a pipe.
int terminal_width();

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool flexible = false;  ///< gives way when the table is wider than the terminal
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// Header, rows, each line indented by two spaces and without trailing ones.
  std::string text(int width = terminal_width()) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace hone::cli
