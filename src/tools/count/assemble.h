// From what the count tool left of each program to one profile, with names and lines.
#pragma once

#include <map>
#include <memory>

#include "base/index_table.h"
#include "profile/profile.h"
#include "symbols/symbols.h"
#include "tools/count/count.h"

namespace weir::count {

// A program that has ended: a process from one exec to the next.
struct Program {
  uint32_t pid = 0, parent = 0;
  std::vector<std::string> command;
  int64_t started = 0, ended = 0;
  std::optional<int> exit_status;
  std::vector<std::string> images;  // by the index that the tool was given
};

class Assembler {
 public:
  explicit Assembler(profile::Profile& profile) : p_(profile) {}
  void add(Count& tool, const Program& program);
  // Names and lines, when all programs are there.
  void finish();

 private:
  struct ImageState {
    std::unique_ptr<symbols::Symbols> symbols;
    std::vector<uint32_t> functions;                  // by their place in symbols->functions()
    std::map<uint64_t, uint32_t> unlisted_functions;  // by offset
  };
  // The instructions of a block in the pools: they say how many cycles passed since an earlier one.
  struct Insns {
    uint32_t first = 0, before = 0;
  };
  class Cutter;
  uint32_t image(const std::string& path);
  uint32_t function(uint32_t image, uint64_t offset, uint64_t size);
  std::vector<uint32_t> add_functions(const Count& tool, const Program& program);
  std::vector<uint32_t> add_blocks(const Count& tool, std::span<const uint32_t> functions);
  std::vector<uint32_t> add_sites(const Count& tool, std::span<const uint32_t> functions);
  void add_thread(const Count& tool, const Thread& thread, uint32_t process, std::span<const uint32_t> functions,
                  std::span<const uint32_t> blocks, std::span<const uint32_t> sites);
  void find_parents();
  void cut_blocks();
  void name_functions(uint32_t image);
  void find_lines(uint32_t image);

  profile::Profile& p_;
  std::vector<ImageState> images_;
  std::map<std::string, uint32_t> image_by_path_;
  IndexTable known_blocks_;        // by function, offset and size
  IndexTable known_sites_;         // by function, offset and kind
  std::vector<uint32_t> parents_;  // by process: a pid
  std::vector<Insns> insns_;       // by block
  std::vector<uint8_t> lengths_;   // the pools, as in Pool
  std::vector<uint32_t> so_far_;
  std::vector<bool> ran_;  // functions
};

}  // namespace weir::count
