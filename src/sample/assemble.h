// From the trees of call paths that sampling left, by address, to one profile, with names and lines.
//
// A frame is a function, and the place where it goes on a call site in it. Inlined code belongs to the function that holds it, as
// in an exact profile: lines say where it came from. What is a frame of no function of the program:
//
//   the end of a whole stack    no frame: what stands below it was called by nobody ("[start]")
//   what cut a walk off         a function in no image, "[cut off: no unwind rule]", which has called what was seen
//   the kernel's way back from a signal handler (rt::is_restorer)
//                               no frame: the handler was called by the instruction that the signal interrupted
#pragma once

#include <map>
#include <span>
#include <vector>

#include "base/index_table.h"
#include "profile/profile.h"
#include "sample/collected.h"
#include "symbols/profile_code.h"

namespace weir::sample {

class Assembler {
 public:
  Assembler(profile::Profile& profile, const profile::SampledBy& by);
  // A program that has ended, or was let go. What it says may be anything: it comes from memory that the program could write to.
  void add(const Program& program);
  // Names and lines, when all programs are there.
  void finish();

 private:
  // What an address means, in an image of the profile.
  struct Place {
    uint32_t image = profile::none;
    uint64_t offset = 0;
    bool is_leaf = false;
    uint32_t function = profile::none;
    uint64_t call = 0;  // of a caller: where the call is, or the address itself where there is none before it
    profile::SiteKind kind = profile::SiteKind::Call;
    bool is_restorer = false;
  };
  class ThreadTree;

  void add_up(const Thread& thread);
  uint32_t place(std::span<const uint32_t> images, const Node& node);
  void look_at(Place& place);
  uint32_t site(uint32_t function, uint64_t offset, profile::SiteKind kind);
  uint32_t block(const Place& place);
  uint32_t nameless(const std::string& name);
  void find_lines(uint32_t image);

  profile::Profile& p_;
  symbols::ProfileCode code_;
  std::vector<uint32_t> parents_;  // by process: a pid
  std::vector<Place> places_;
  IndexTable known_places_, known_sites_, known_blocks_;
  std::map<std::string, uint32_t> nameless_;  // functions in no image
  std::map<std::string, uint64_t> truncated_by_, differences_by_;
};

// All at once.
profile::Profile assemble(const profile::SampledBy& by, std::span<const Program> programs);

}  // namespace weir::sample
