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
    return {file + ": is not an x86-64 program; Weir runs native 64-bit programs", ErrorKind::CannotRun};
  if (error == ENOEXEC && !is_elf(file))
    return {file + ": is neither a program nor a script with a #! line; try: weir run -- sh " + file, ErrorKind::CannotRun};
  if (error == ENOENT && access(file.c_str(), F_OK) == 0)
    return {file + ": its interpreter is missing", ErrorKind::NotFound};
  return {fmt::format("{}: {}", file, strerror(error)), error == ENOENT ? ErrorKind::NotFound : ErrorKind::CannotRun};
}

Result<std::string> find_program(const std::string& name) {
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
  auto kind = ErrorKind::NotFound;
  std::string why = "not found";
  auto cannot = [&](const char* reason) { kind = ErrorKind::CannotRun, why = reason; };
  for (const std::string& c : candidates) {
    struct stat st;
    if (stat(c.c_str(), &st)) {
      if (errno != ENOENT && errno != ENOTDIR && kind == ErrorKind::NotFound) cannot(strerror(errno));
      continue;
    }
    if (S_ISDIR(st.st_mode)) cannot("is a directory");
    else if (access(c.c_str(), X_OK)) cannot("not executable; make it so with chmod +x");
    else if ((st.st_mode & (S_ISUID | S_ISGID)) && geteuid() != 0 && st.st_uid != geteuid())
      return fail(ErrorKind::CannotRun, "{}: is a setuid program, which the kernel does not let us watch; run weir as root",
                  name);
    else return is_foreign(c) ? Result<std::string>(std::unexpected(exec_error(c, ENOEXEC))) : c;
  }
  if (name.empty()) return fail(ErrorKind::NotFound, ": no program given");
  return fail(kind, "{}: {}", name, why);
}

}  // namespace weir::process
