#include "base/contents.h"

#include <sys/stat.h>

#include "base/fd.h"

namespace weir {

std::optional<std::string> contents_of(const std::string& path) {
  constexpr off_t largest = 64 << 20;
  Fd file = open_to_read(path);
  struct stat st{};
  if (!file || fstat(file.get(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > largest) return std::nullopt;
  std::string text(static_cast<size_t>(st.st_size), '\0');
  ssize_t n = read(file.get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

}  // namespace weir
