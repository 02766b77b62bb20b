// What code is mapped in a process, and how to unwind it: found by Weir, and told to the handler.
#pragma once

#include "process/program.h"
#include "sample/images.h"

namespace weir::sample {

class Code {
 public:
  // Reads the map of the process, and tells the handler (of process `index`) what is new. Returns whether anything is.
  bool look(pid_t pid, uint32_t index, Shared& shared, Images& images);
  // The same, as far as its images have got further.
  bool renew(uint32_t index, Shared& shared);

  // All images are ready.
  bool is_ready() const { return is_ready_; }
  // All are searched. Before that not all calls can be guarded.
  bool is_complete() const { return is_complete_; }
  // Those are searched that every program makes its calls by: its C library; without one, all.
  bool has_library() const { return has_library_; }

  // The dynamic linker is ready, or there is none.
  bool has_linker() const { return has_linker_; }

  // The stack that a stack pointer is on, if that is the thread's own. high 0: it is not.
  rt::KnownStack own_stack(pid_t pid, uint64_t sp, uint64_t fs, bool is_first_thread) const;

  // To be guarded, the most important ones first.
  const std::vector<Site>& sites() const { return sites_; }
  bool needs_any() const { return needs_any_; }  // all calls of syscall(2) must be guarded
  bool is_tracer() const { return is_tracer_; }  // it names ptrace
  bool has_ours() const { return has_ours_; }

  // As the walker needs it, in this process.
  std::vector<rt::CodeRange> local(const Shared& shared) const;

  struct Place {
    uint32_t image = UINT32_MAX;  // in names()
    uint64_t offset = 0;
  };
  // Of an address, now or at an earlier time.
  Place find(uint64_t address) const;
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::shared_ptr<const elf::Image>>& files() const { return files_; }  // of the names; null: it has none

 private:
  struct Range {
    uint64_t begin, end, bias;
    uint32_t image;
    uint64_t table;
    bool is_ready;  // to be unwound
    bool operator==(const Range&) const = default;
  };
  // Executable memory.
  struct Found {
    process::Region region;
    const Known* known;  // null: it was written at run time
  };
  uint32_t name(const std::string& path, const std::shared_ptr<elf::Image>& image);
  const Known* known_as(const process::Region& region) const;
  std::optional<Range> range_of(const Found& found);
  void tell(uint32_t index, Shared& shared);
  void find_sites();
  std::vector<process::Region> regions_;
  std::vector<Found> code_;              // by address
  std::vector<Range> ranges_, earlier_;  // earlier: what is no longer there, the latest last
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const elf::Image>> files_;
  std::map<std::string, uint32_t> by_name_;
  std::vector<Site> sites_;
  uint32_t generation_ = 0;
  size_t searched_ = 0;  // of code_
  bool has_ours_ = false, needs_any_ = false, is_tracer_ = false, is_complete_ = false, is_ready_ = false,
       has_library_ = false, has_linker_ = false;
};

}  // namespace weir::sample
