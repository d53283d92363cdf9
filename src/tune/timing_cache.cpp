#include "tune/timing_cache.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "hone/error.h"

namespace hone::tune {
namespace {

constexpr std::string_view kFirstLine = "# hone timing cache 1";
constexpr size_t kMaxLine = 1 << 16;

double number(std::string_view text, size_t line) {
  double v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (ec != std::errc() || end != text.data() + text.size() || !(v >= -1) || v > 1e15)
    throw Error(ErrorCode::kInvalidData,
                "timing cache, line " + std::to_string(line) + ": '" + std::string(text.substr(0, 40)) +
                    "' is no time or error",
                {.stage = "tune"});
  return v;
}

}  // namespace

TimingCache TimingCache::parse(std::string_view text) {
  TimingCache cache;
  size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line_number == 1 && line != kFirstLine)
      throw Error(ErrorCode::kInvalidData, "timing cache, line 1: expected '" + std::string(kFirstLine) + "'",
                  {.stage = "tune"});
    if (line.empty() || line.front() == '#') continue;
    if (line.size() > kMaxLine)
      throw Error(ErrorCode::kInvalidData, "timing cache, line " + std::to_string(line_number) + ": too long",
                  {.stage = "tune"});
    std::vector<std::string_view> fields;
    for (;;) {
      const size_t tab = line.find('\t');
      fields.push_back(line.substr(0, tab));
      if (tab == std::string_view::npos) break;
      line.remove_prefix(tab + 1);
    }
    if (fields.size() != 5)
      throw Error(ErrorCode::kInvalidData,
                  "timing cache, line " + std::to_string(line_number) +
                      ": expected 5 tab-separated fields, found " + std::to_string(fields.size()),
                  {.stage = "tune"});
    cache.put(std::string(fields[0]), std::string(fields[1]), std::string(fields[2]),
              {number(fields[3], line_number), number(fields[4], line_number)});
  }
  return cache;
}

TimingCache TimingCache::load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::ostringstream text;
  text << in.rdbuf();
  return parse(text.str());
}

std::string TimingCache::text() const {
  std::string out(kFirstLine);
  out += '\n';
  for (const auto& [key, t] : entries_) {
    char numbers[64];
    std::snprintf(numbers, sizeof numbers, "\t%.0f\t%.3g\n", t.time_ns, t.error);
    out += std::get<0>(key) + '\t' + std::get<1>(key) + '\t' + std::get<2>(key) + numbers;
  }
  return out;
}

void TimingCache::save(const std::string& path) const {
  const std::string tmp = path + ".tmp" + std::to_string(getpid());
  {
    std::ofstream out(tmp, std::ios::binary);
    out << text();
    if (!out.flush())
      throw Error(ErrorCode::kInvalidArgument, "cannot write the timing cache '" + path + "'",
                  {.stage = "tune"});
  }
  if (std::rename(tmp.c_str(), path.c_str()) != 0) {
    std::remove(tmp.c_str());
    throw Error(ErrorCode::kInvalidArgument, "cannot write the timing cache '" + path + "'",
                {.stage = "tune"});
  }
}

std::optional<Timing> TimingCache::find(const std::string& target, const std::string& problem,
                                        const std::string& tactic) const {
  const auto it = entries_.find({target, problem, tactic});
  if (it == entries_.end()) return std::nullopt;
  return it->second;
}

std::optional<std::pair<std::string, Timing>> TimingCache::best(const std::string& target,
                                                                const std::string& problem) const {
  std::optional<std::pair<std::string, Timing>> out;
  for (auto it = entries_.lower_bound({target, problem, std::string()}); it != entries_.end(); ++it) {
    if (std::get<0>(it->first) != target || std::get<1>(it->first) != problem) break;
    if (!out || it->second.time_ns < out->second.time_ns) out = {std::get<2>(it->first), it->second};
  }
  return out;
}

void TimingCache::put(const std::string& target, const std::string& problem, const std::string& tactic,
                      Timing timing) {
  entries_[{target, problem, tactic}] = timing;
}

void TimingCache::merge(const TimingCache& other) {
  for (const auto& [key, t] : other.entries_) {
    const auto [it, inserted] = entries_.emplace(key, t);
    if (!inserted &&
        (t.time_ns < it->second.time_ns || (t.time_ns == it->second.time_ns && t.error < it->second.error)))
      it->second = t;
  }
}

bool operator==(const TimingCache& a, const TimingCache& b) { return a.text() == b.text(); }

}  // namespace hone::tune
