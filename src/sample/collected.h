// What a sampled run leaves behind, before anything has a name: for each thread the tree of call paths, by address.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profile/program_run.h"
#include "rt/walk.h"

namespace weir::elf {
class Image;
}

namespace weir::sample {

inline constexpr uint32_t none = UINT32_MAX;

// A node of a thread's tree of call paths: a frame, below the frame that called it. Parents come before their children.
struct Node {
  enum Kind : uint8_t {
    Root,    // `end` says why walks ended here: Stop::Complete is the end of a whole stack, all others cut it off
    Caller,  // the frame goes on at the address: behind a call, or (of one that a signal interrupted) at the instruction
    Leaf,    // the sample was taken at the address
    Full,    // a root for samples that found no more room in the tree
  };
  Kind kind = Root;
  rt::Stop end = rt::Stop::None;  // of a root
  uint32_t parent = none;         // none: a root
  uint32_t image = none;          // in Program::images; none: the address was in no known code
  uint64_t offset = 0;            // the address as the image's file has it; without an image, as it was
  uint64_t samples = 0;           // that ended here
};

struct Thread {
  uint32_t tid = 0;
  std::string name;
  std::vector<Node> nodes;
  rt::Counts counts = {};
  uint64_t differences[8] = {};  // by rt::Difference: what --verify has found
  uint64_t lost = 0;             // samples that were due, and were not taken
  uint64_t late = 0;  // that came when a blocked signal was let through, not where the thread was when they were due
};

struct Program : profile::LiveRun {
  std::vector<std::shared_ptr<const elf::Image>> files;  // of the images, where they are open; may be shorter
  std::vector<Thread> threads;
};

}  // namespace weir::sample
