#include <unistd.h>

#include <cstdio>

#include "commands.h"
#include "hone/error.h"

namespace hone::cli {

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void write_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part" + std::to_string(getpid());
  std::FILE* file = std::fopen(part.c_str(), "wb");
  bool ok = file != nullptr;
  if (ok) {
    ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    ok = std::fclose(file) == 0 && ok;
    ok = ok && std::rename(part.c_str(), path.c_str()) == 0;
    if (!ok) std::remove(part.c_str());
  }
  if (!ok) throw Error(ErrorCode::kDevice, "cannot write '" + path + "'", {.stage = "write"});
}

}  // namespace hone::cli
