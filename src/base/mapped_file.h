// Files mapped read-only into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hone {

/// The bytes of a file. Copies share the mapping, which lives as long as `owner`. An empty file maps to size
/// 0. The mapping is private: our process never changes the file. A file that another process truncates
/// meanwhile makes reads fault, as with every mapping; files that may change are copied first by whoever owns
/// them.
struct MappedFile {
  const uint8_t* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
};

/// Errors: kInvalidArgument when the file cannot be opened or is not a regular file; kDevice when mapping
/// fails.
MappedFile map_file(const std::string& path);
/// The same for an open descriptor, which is not closed. `name` is for messages.
MappedFile map_descriptor(int fd, const std::string& name);
/// Gives the pages of a range back; they are read again from the file when touched. A hint.
void drop_pages(const void* data, size_t size);

}  // namespace hone
