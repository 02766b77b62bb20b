#include "base/write_file.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "base/temporary_file.h"

namespace weir {

std::unexpected<Error> cannot_write(const std::string& path) {
  int error = errno;
  const char* remedy = error == ENOSPC || error == EDQUOT    ? "make room, or name another place"
                       : error == EACCES || error == EPERM   ? "name a place that is yours, or become the user whose it is"
                       : error == EROFS                      ? "nothing there can be written; name another place"
                       : error == ENOENT || error == ENOTDIR ? "make its directory first"
                                                             : "name another place";
  return fail("{}: cannot be written: {}; {}", path, strerror(error), remedy);
}

namespace {

struct Closer {
  void operator()(FILE* file) const { fclose(file); }
};

// `open` is called when there is something to write.
Result<> write_into(const std::string& name, const std::function<FILE*()>& open, const Writer& write) {
  std::unique_ptr<FILE, Closer> file;
  int error = 0;  // of the first write that failed
  auto sink = [&](std::string_view text) {
    if (error) return;
    if (!file) file.reset(open());
    if (!file || fwrite(text.data(), 1, text.size(), file.get()) != text.size()) error = errno;
  };
  TRY_VOID(write(sink));
  sink("");  // (an empty file is one, too)
  if (!error && fflush(file.get()) != 0) error = errno;
  errno = error;
  if (error) return cannot_write(name);
  return {};
}

// /dev/stdout may lead to a file, which others have open, too.
bool is_open_already(const std::string& path) {
  return path.starts_with("/dev/std") || path.starts_with("/dev/fd/") || path.starts_with("/proc/");
}

}  // namespace

Result<> write_file(const std::string& path, pid_t run, const Writer& write) {
  std::error_code none;
  std::filesystem::path place = std::filesystem::weakly_canonical(path, none);  // (a link stays one)
  if (none) place = path;
  struct stat st{};
  bool is_there = stat(place.c_str(), &st) == 0;
  if (is_there && access(place.c_str(), W_OK) != 0) return cannot_write(path);
  std::filesystem::path directory = place.has_parent_path() ? place.parent_path() : ".";
  if ((is_there && !S_ISREG(st.st_mode)) || is_open_already(path) || access(directory.c_str(), W_OK) != 0)
    return write_into(path, [&] { return fopen(path.c_str(), "we"); }, write);
  TRY(TemporaryFile file, TemporaryFile::beside(place, run, 0666));
  if (is_there) fchmod(file.fd(), st.st_mode & 07777);
  TRY_VOID(write_into(path, [&] { return fdopen(dup(file.fd()), "w"); }, write));
  TRY_VOID(file.sync());
  return file.move_to(place);
}

Result<> write_stdout(const Writer& write) {
  return write_into("-", [] { return fdopen(dup(STDOUT_FILENO), "w"); }, write);
}

}  // namespace weir
