// Where an image makes system calls that must be seen before they are made: those that set signals' actions, execute programs, lock all memory,
// trace processes, or have system calls dispatched.
#pragma once

#include <vector>

#include "elf/image.h"

namespace weir::sample {

// A `syscall` instruction.
struct Site {
  uint64_t at;
  enum Call : uint8_t {
    Action,     // rt_sigaction
    Execute,    // execve
    ExecuteAt,  // execveat
    Any,        // of syscall(2), which makes all calls
    Lock,       // mlockall
    Trace,      // of ptrace(2)
    Dispatch,   // of prctl(2)
  } call;
};

// Programs die where these are not seen in time; the others come second.
constexpr bool is_needed(Site::Call call) { return call < Site::Lock; }

struct Sites {
  std::vector<Site> list;       // as the file has them
  bool hides_calls = false;     // it makes such a call by syscall(2), or one with a number that its code does not tell
  bool names_execveat = false;  // it has the name of a function that makes execveat,
  bool names_ptrace = false;    // … or ptrace,
  bool names_mlockall = false;  // … or mlockall
};

// As they were found in an earlier run, where they were: all of the code is read for them.
Sites sites_of(const elf::Image& image);
Sites find_sites(const elf::Image& image);

}  // namespace weir::sample
