// What code is mapped in a process, and how to unwind it: found by Weir, and told to the handler.
#pragma once

#include <map>
#include <optional>

#include "process/program.h"
#include "sample/shared.h"
#include "sample/sites.h"
#include "symbols/mapped_image.h"

namespace weir::sample {

// Images are the same for all processes: each table is compiled, and put into the tables, once.
class Images {
 public:
  explicit Images(Shared& shared) : shared_(shared) {}
  struct Known {
    std::shared_ptr<elf::Image> image;
    uint64_t table = 0;  // in the tables; 0: it has none
    const Sites& sites();

   private:
    std::optional<Sites> sites_;  // once somebody has asked: all of the code is read for them
  };
  // Null where the region is of no image.
  Known* of(pid_t pid, const process::Region& region);

 private:
  Shared& shared_;
  std::map<const elf::Image*, Known> known_;
  std::shared_ptr<elf::Image> vdso_;
};

class Code {
 public:
  // Reads the map of the process, and tells the handler (of process `index`) what is new. Returns whether anything is.
  bool look(pid_t pid, uint32_t index, Shared& shared, Images& images);

  // The stack that a stack pointer is on, if that is the thread's own. high 0: it is not.
  rt::KnownStack own_stack(pid_t pid, uint64_t sp, uint64_t fs, bool is_first_thread) const;

  // To be guarded, the most important ones first.
  const std::vector<Site>& sites() const { return sites_; }
  bool needs_any() const { return needs_any_; }  // all calls of syscall(2) must be guarded
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

 private:
  struct Range {
    uint64_t begin, end, bias;
    uint32_t image;
    uint64_t table;
    bool operator==(const Range&) const = default;
  };
  struct Found {
    Range range;
    Images::Known* known;  // null: it was written at run time
  };
  uint32_t name(const std::string& path);
  std::vector<Found> find_code(pid_t pid, Images& images);
  void tell(uint32_t index, Shared& shared);
  void find_sites(const std::vector<Found>& code);
  std::vector<process::Region> regions_;
  std::vector<Range> ranges_, earlier_;  // earlier: what is no longer there, the latest last
  std::vector<std::string> names_;
  std::vector<Site> sites_;
  uint32_t generation_ = 0;
  bool has_ours_ = false, needs_any_ = false;
};

}  // namespace weir::sample
