// From what the count tool left of each program to one profile, with names and lines.
#pragma once

#include <map>

#include "base/index_table.h"
#include "profile/profile.h"
#include "symbols/profile_code.h"
#include "symbols/written_names.h"
#include "tools/count/count.h"
#include "tools/count/graph.h"

namespace weir::count {

class Assembler {
 public:
  explicit Assembler(profile::Profile& profile) : p_(profile), code_(profile) {}
  // Threads of a program that have ended: a long run has more of them than should be kept by the tool.
  void add_threads(Count& tool, const profile::LiveRun& program);
  // All that is left of a program that has ended.
  void add(Count& tool, const profile::LiveRun& program);
  // Names and lines, when all programs are there.
  void finish();

 private:
  // A program that goes on, and what it says of code that it wrote itself.
  struct Open {
    uint32_t process = 0;
    symbols::WrittenNames written = {};
  };
  // The instructions of a block in the pools: they say how many cycles passed since an earlier one.
  struct Insns {
    uint32_t first = 0, before = 0;
  };
  class Cutter;
  Open& open(const profile::LiveRun& program);
  void add_functions(Count& tool, const profile::LiveRun& program);
  void add_blocks(Count& tool);
  void add_sites(Count& tool);
  void add_thread(const Count& tool, const Thread& thread, uint32_t process);
  void add_to_others(const profile::Thread& thread);
  void add_up_others();
  uint32_t add_process(const profile::LiveRun& program);
  void cut_blocks();
  void spread_wall_time();
  void note_what_ran();
  void find_lines(uint32_t image);
  class Entries;
  void count_entries();
  class Visits;
  void mark_visits();
  CodeOf code_of(uint32_t function) const;
  std::vector<uint8_t> last_lengths(const CodeOf& code) const;  // of instructions, by block

  profile::Profile& p_;
  symbols::ProfileCode code_;
  bool is_by_wall_ = false;
  std::map<uint32_t, Open> open_;  // by pid
  // Threads that are too many to be kept apart are one, in a process of its own.
  uint32_t others_process_ = profile::none, others_ = profile::none;
  uint64_t others_count_ = 0;
  size_t others_size_ = 0;         // of its counts, when they were last added up
  IndexTable others_contexts_;     // by parent, site and function
  IndexTable known_blocks_;        // by function, offset and size
  IndexTable known_sites_;         // by function, offset and kind
  std::vector<uint32_t> parents_;  // by process: a pid
  std::vector<Insns> insns_;       // by block
  std::vector<uint8_t> lengths_;   // the pools, as in Pool
  std::vector<uint32_t> so_far_;
  std::vector<bool> ran_;  // functions
  std::vector<bool> block_ran_, site_ran_;
};

}  // namespace weir::count
