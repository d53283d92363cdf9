// Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hone {

/// Writes to a new temporary file beside `path`; commit() renames it into place, so a reader never sees half
/// a file and a link at `path` is replaced, not followed. Destruction without commit() removes the temporary
/// file. Errors: kDevice (cannot create, write or rename), naming the path.
class FileWriter {
 public:
  explicit FileWriter(std::string path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t size);
  void write(std::string_view s) { write(s.data(), s.size()); }
  /// Zero bytes up to the next multiple of `alignment`.
  void align(int64_t alignment);
  int64_t size() const { return size_; }  ///< bytes written so far
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  void flush();

  std::string path_, temporary_, buffer_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace hone
