// A profile is written into a new file beside the old one, without a journal, brought to the disk, and only then given its name. At every instant `path` is the old file or the new one, each whole.
#include "store/write.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <vector>

#include "base/fd.h"
#include "base/temporary_file.h"
#include "store/fill.h"
#include "store/tables.h"

namespace weir::store {
namespace {

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// What is there already must be something that a file may take the place of: not /dev/null.
Result<> check_place(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) != 0 || S_ISREG(st.st_mode)) return {};
  if (S_ISDIR(st.st_mode)) return fail("{}: is a directory; name a file: -o {}/NAME.weir", path, path);
  return fail("{}: is not a file, and a profile has to be one; name another: -o NAME.weir", path);
}

// An older file than this run: what it wrote itself, before some of its processes had ended, is replaced.
bool is_older(const struct stat& file, const profile::Run& run) {
  return !run.started || file.st_mtim.tv_sec * int64_t{1'000'000} + file.st_mtim.tv_nsec / 1000 < run.started;
}

// `path` gets a second name, `path`.old; it keeps its first until the new file takes it. Where the file system has no hard
// links there is an instant with the old name only.
Result<> keep_old(const std::string& path, const profile::Run& run) {
  struct stat st;
  if (lstat(path.c_str(), &st) != 0) return {};
  TRY_VOID(check_place(path));
  if (!is_older(st, run)) return {};
  std::string old = path + ".old";
  unlink(old.c_str());
  if (link(path.c_str(), old.c_str()) == 0 || rename(path.c_str(), old.c_str()) == 0) return {};
  return fail_errno("{}: cannot be kept as {}", path, old);
}

}  // namespace

Result<> check_writable(const std::string& path) {
  TRY_VOID(check_place(path));
  // A file without a name: nothing is left of it, whatever happens to us.
  Fd nameless(open(directory_of(path).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (!nameless && errno == ENOENT)
    return fail("{0}: cannot be written: there is no directory {1}; make it first: mkdir -p {1}", path, directory_of(path));
  if (!nameless && errno != EOPNOTSUPP) return cannot_write(path);
  if (access(TemporaryFile::part_of(path, getpid()).c_str(), F_OK) && errno != ENOENT) return cannot_write(path);
  return {};
}

namespace {

// The profile as a file that has no place yet, and is on the disk.
Result<TemporaryFile> file_of(const profile::Profile& profile, const std::string& path, pid_t run) {
  // (What a program does, and with what arguments, is its user's.)
  TRY(TemporaryFile file, TemporaryFile::beside(path, run, 0600));
  Result<> filled = [&]() -> Result<> {
    TRY(Tables tables, Tables::create(file.name(), file.fd()));
    fill(tables, profile);
    if (Result<> written = tables.finish(); !written) return fail("{}: {}", path, written.error().what);
    return file.sync();
  }();
  if (filled) return file;
  std::string what = filled.error().what;  // the user knows no temporary file
  if (what.starts_with(file.name())) what.replace(0, file.name().size(), path);
  return std::unexpected(Error{what});
}

void sync_directory_of(const std::string& path) {
  if (Fd directory{open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)}) fsync(directory.get());
}

// Where a profile goes that its own place has no room for. Disks come before memory, and what was named for the purpose before all.
std::vector<std::string> other_directories() {
  std::vector<std::string> all;
  auto add = [&](const char* variable, const char* below) {
    if (const char* value = getenv(variable); value && *value == '/') all.push_back(std::string(value) + below);
  };
  add("TMPDIR", "");
  add("XDG_CACHE_HOME", "");
  add("HOME", "/.cache");
  add("HOME", "");
  for (const char* directory : {"/var/tmp", "/tmp", "/dev/shm"}) all.push_back(directory);
  return all;
}

// "run.1234.weir", and with another number behind it where there is such a file: none is replaced.
Result<std::string> write_into(const std::string& directory, const profile::Profile& profile, const std::string& path,
                               pid_t run) {
  std::string name = path.substr(path.rfind('/') + 1), kind = ".weir";
  if (name.ends_with(kind)) name.resize(name.size() - kind.size());
  std::string begin = fmt::format("{}/{}.{}", directory, name, run);
  TRY(TemporaryFile file, file_of(profile, begin, run));
  constexpr int attempts = 100;
  for (int i = 1; i < attempts; i++) {
    std::string place = begin + (i > 1 ? fmt::format(".{}", i) : "") + kind;
    TRY(bool is_there, file.move_to_new(place));
    if (!is_there) continue;
    sync_directory_of(place);
    return place;
  }
  return fail("{}: there are too many", begin);
}

}  // namespace

Result<> write(const profile::Profile& profile, const std::string& path, pid_t run) {
  TRY(TemporaryFile file, file_of(profile, path, run));
  TRY_VOID(keep_old(path, profile.run));
  TRY_VOID(file.move_to(path));
  sync_directory_of(path);
  return {};
}

Result<Place> write_somewhere(const profile::Profile& profile, const std::string& path, pid_t run) {
  Result<> written = write(profile, path, run);
  if (written) return Place{path, ""};
  for (const std::string& directory : other_directories())
    if (auto place = write_into(directory, profile, path, run)) return Place{*place, written.error().what};
  return fail("{}; nor has any of these room for it: {}", written.error().what, fmt::join(other_directories(), ", "));
}

}  // namespace weir::store
