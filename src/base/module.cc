#include "base/module.h"

#include <array>

namespace weir {

Result<std::string> module_path(const std::string& name) {
  std::array<char, 4096> self;
  ssize_t size = readlink("/proc/self/exe", self.data(), self.size());
  if (size <= 0) return fail_errno("/proc/self/exe");
  std::string program(self.data(), static_cast<size_t>(size));
  std::string directory = program.substr(0, program.rfind('/') + 1);
  for (const char* place : {"", "../", "../lib/weir/"})
    if (std::string path = directory + place + name; !access(path.c_str(), R_OK)) return path;
  return fail("{}{}: not found; it belongs beside {}", directory, name, program);
}

}  // namespace weir
