#include "base/file_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "hone/error.h"

namespace hone {
namespace {
constexpr size_t kBuffer = 1 << 16;
}

void FileWriter::fail(const char* what) const {
  throw Error(ErrorCode::kDevice,
              std::string("cannot ") + what + " '" + path_ + "': " + std::strerror(errno));
}

FileWriter::FileWriter(std::string path) : path_(std::move(path)) {
  // Creation is exclusive: a name that exists already, link or file, is never written through.
  for (int attempt = 0; attempt < 100 && fd_ < 0; ++attempt) {
    temporary_ = path_ + ".tmp" + std::to_string(getpid()) + "_" + std::to_string(attempt);
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) {
    temporary_.clear();
    fail("create");
  }
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileWriter::flush() {
  const char* p = buffer_.data();
  for (size_t left = buffer_.size(); left != 0;) {
    const ssize_t n = ::write(fd_, p, left);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    p += n;
    left -= static_cast<size_t>(n);
  }
  buffer_.clear();
}

void FileWriter::write(const void* data, size_t size) {
  size_ += static_cast<int64_t>(size);
  if (buffer_.size() + size <= kBuffer) {
    buffer_.append(static_cast<const char*>(data), size);
    return;
  }
  flush();
  const char* p = static_cast<const char*>(data);
  while (size > kBuffer) {
    const ssize_t n = ::write(fd_, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    p += n;
    size -= static_cast<size_t>(n);
  }
  buffer_.append(p, size);
}

void FileWriter::align(int64_t alignment) {
  const int64_t rest = size_ % alignment;
  if (rest != 0) write(std::string(static_cast<size_t>(alignment - rest), '\0'));
}

void FileWriter::commit() {
  flush();
  if (close(std::exchange(fd_, -1)) != 0) fail("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("put into place");
  temporary_.clear();
}

}  // namespace hone
