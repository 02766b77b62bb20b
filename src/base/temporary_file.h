// A file that takes the place of another when it is whole, and is removed if it never is: at every instant `path` is the old one or the new one.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>

#include "base/fd.h"
#include "base/write_file.h"

namespace weir {

class TemporaryFile {
 public:
  // What `path` is called until it is whole.
  static std::string part_of(const std::string& path, pid_t run) { return fmt::format("{}.{}.part", path, run); }
  static Result<TemporaryFile> beside(const std::string& path, pid_t run, mode_t mode) {
    TemporaryFile file;
    file.name_ = part_of(path, run);
    unlink(file.name_.c_str());
    file.fd_ = Fd(open(file.name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.fd_) return file;
    file.name_.clear();
    return cannot_write(path);
  }
  TemporaryFile(TemporaryFile&& o) noexcept : name_(std::exchange(o.name_, {})), fd_(std::move(o.fd_)) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) unlink(name_.c_str());
  }

  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }
  Result<> sync() {
    if (fsync(fd_.get()) != 0) return cannot_write(name_);
    return {};
  }
  Result<> move_to(const std::string& path) {
    if (rename(name_.c_str(), path.c_str()) != 0) return cannot_write(path);
    name_.clear();
    return {};
  }
  // The same where no file is yet; false: there is one, which stays.
  Result<bool> move_to_new(const std::string& path) {
    if (link(name_.c_str(), path.c_str()) == 0) return true;  // (the first name goes with us)
    if (errno == EEXIST) return false;
    if (renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0)
      return errno == EEXIST ? Result<bool>(false) : cannot_write(path);
    name_.clear();
    return true;
  }

 private:
  TemporaryFile() = default;
  std::string name_;
  Fd fd_;
};

}  // namespace weir
