#include "process/executable.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/fd.h"

namespace weir::process {

namespace {

// The first bytes of the file; zeros where there are none.
std::array<unsigned char, 20> head_of(const std::string& file) {
  std::array<unsigned char, 20> head{};
  Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || read(fd.get(), head.data(), head.size()) < 0) return {};
  return head;
}

bool is_elf(const std::string& file) { return !memcmp(head_of(file).data(), "\177ELF", 4); }

// An ELF file, and not one of 64 bits for x86-64.
bool is_foreign(const std::string& file) {
  auto head = head_of(file);
  constexpr unsigned char class_64 = 2, machine_x86_64 = 62;
  return is_elf(file) && (head[4] != class_64 || head[18] != machine_x86_64 || head[19] != 0);
}

}  // namespace

Error exec_error(const std::string& file, int error) {
  if (error == ENOEXEC && is_foreign(file))
    return {file + ": is not an x86-64 program; Weir runs native 64-bit programs", 126};
  if (error == ENOEXEC && !is_elf(file))
    return {file + ": is neither a program nor a script with a #! line; try: weir run -- sh " + file, 126};
  if (error == ENOENT && access(file.c_str(), F_OK) == 0) return {file + ": its interpreter is missing", 127};
  return {fmt::format("{}: {}", file, strerror(error)), error == ENOENT ? 127 : 126};
}

Result<std::string> find_program(const std::string& name) {
  auto cannot = [&](int status, const std::string& why) {
    return std::unexpected(Error{fmt::format("{}: {}", name, why), status});
  };
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else {
    std::string path = getenv("PATH") ? getenv("PATH") : "/bin:/usr/bin";
    for (size_t begin = 0; begin <= path.size();) {
      size_t end = std::min(path.find(':', begin), path.size());
      candidates.push_back((end == begin ? "." : path.substr(begin, end - begin)) + "/" + name);
      begin = end + 1;
    }
  }
  int status = 127;
  std::string why = "not found";
  for (const std::string& c : candidates) {
    struct stat st;
    if (stat(c.c_str(), &st)) {
      if (errno != ENOENT && errno != ENOTDIR && status == 127) status = 126, why = strerror(errno);
      continue;
    }
    if (S_ISDIR(st.st_mode)) status = 126, why = "is a directory";
    else if (access(c.c_str(), X_OK)) status = 126, why = "not executable; make it so with chmod +x";
    else if ((st.st_mode & (S_ISUID | S_ISGID)) && geteuid() != 0 && st.st_uid != geteuid())
      return cannot(126, "is a setuid program, which the kernel does not let us watch; run weir as root");
    else return is_foreign(c) ? Result<std::string>(std::unexpected(exec_error(c, ENOEXEC))) : c;
  }
  if (name.empty()) return cannot(127, "no program given");
  return cannot(status, why);
}

}  // namespace weir::process
