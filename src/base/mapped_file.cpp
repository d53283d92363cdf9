#include "base/mapped_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hone/error.h"

namespace hone {

MappedFile map_descriptor(int fd, const std::string& name) {
  struct stat st {};
  if (fstat(fd, &st) != 0)
    throw Error(ErrorCode::kDevice, "cannot examine '" + name + "': " + std::strerror(errno));
  if (!S_ISREG(st.st_mode)) throw Error(ErrorCode::kInvalidArgument, "'" + name + "' is not a regular file");
  MappedFile file;
  file.size = static_cast<size_t>(st.st_size);
  if (file.size == 0) return file;
  void* p = mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED) throw Error(ErrorCode::kDevice, "cannot map '" + name + "': " + std::strerror(errno));
  file.data = static_cast<const uint8_t*>(p);
  file.owner = std::shared_ptr<const void>(
      p, [size = file.size](const void* q) { munmap(const_cast<void*>(q), size); });
  return file;
}

MappedFile map_file(const std::string& path) {
  // Not blocking, so that a FIFO is refused rather than waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) throw Error(ErrorCode::kInvalidArgument, "cannot open '" + path + "': " + std::strerror(errno));
  const std::shared_ptr<void> closer(nullptr, [fd](void*) { close(fd); });
  return map_descriptor(fd, path);
}

void drop_pages(const void* data, size_t size) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + size) / page * page;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace hone
