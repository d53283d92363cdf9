// Opening of external data files: the rules are in weights.h.
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "hone/error.h"
#include "onnx/weights.h"

namespace hone::onnx {
namespace {

[[noreturn]] void refuse(std::string_view location, const std::string& why) {
  throw Error(ErrorCode::kInvalidModel,
              "external data location " + quote(location.substr(0, 200)) + " is refused: " + why);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

}  // namespace

std::vector<std::string> check_location(std::string_view location) {
  if (location.empty()) refuse(location, "it is empty");
  if (location.size() > 4096) refuse(location, "it is longer than 4096 bytes");
  if (location.find('\0') != std::string_view::npos) refuse(location, "it holds a zero byte");
  if (location.find('\\') != std::string_view::npos) refuse(location, "it holds a backslash");
  if (location[0] == '/') refuse(location, "it is an absolute path");
  const char first = location[0];
  if (location.size() > 1 && location[1] == ':' &&
      ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z'))) {
    refuse(location, "it begins with a drive letter");
  }
  std::vector<std::string> parts;
  for (const std::string_view part : split(location, '/')) {
    if (part == "..") refuse(location, "it leaves the model's directory");
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  if (parts.empty() || location.back() == '/' || location.ends_with("/."))
    refuse(location, "it names no file");
  return parts;
}

ExternalFiles::~ExternalFiles() {
  if (directory_fd_ >= 0) close(directory_fd_);
}

const MappedFile& ExternalFiles::open(std::string_view location) {
  if (const auto it = files_.find(location); it != files_.end()) return it->second;
  const std::vector<std::string> parts = check_location(location);
  if (directory_.empty())
    refuse(location, "the model was not read from a file, so there is no directory to look in");
  if (directory_fd_ < 0) {
    directory_fd_ = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory_fd_ < 0)
      refuse(location, "the model's directory cannot be opened: " + std::string(std::strerror(errno)));
  }
  const auto cannot = [&](const std::string& part) {
    if (errno == ELOOP || errno == ENOTDIR)
      refuse(location, "'" + part + "' is a link or not a directory; put the file itself there");
    refuse(location, "cannot open '" + part + "': " + std::strerror(errno));
  };
  Descriptor at(-1);
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    // Not blocking and no terminal: what turns out to be a FIFO or a device must not hold us before it is
    // refused.
    const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK | O_NOCTTY : O_DIRECTORY);
    const int fd = openat(i == 0 ? directory_fd_ : at.get(), parts[i].c_str(), flags);
    if (fd < 0) cannot(parts[i]);
    at.reset(fd);
  }
  struct stat st {};
  if (fstat(at.get(), &st) != 0) refuse(location, std::strerror(errno));
  if (!S_ISREG(st.st_mode)) refuse(location, "it is not a regular file");
  if (st.st_nlink != 1) refuse(location, "the file has several names (hard links); copy it");
  return files_.emplace(std::string(location), map_descriptor(at.get(), std::string(location))).first->second;
}

}  // namespace hone::onnx
