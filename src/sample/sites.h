// Where an image makes system calls that must be seen before they are made: rt_sigaction, execve and execveat.
#pragma once

#include <vector>

#include "elf/image.h"

namespace weir::sample {

// A `syscall` instruction.
struct Site {
  uint64_t at;
  enum Call : uint8_t { Action, Execute, ExecuteAt, Any } call;  // Any: of syscall(2), which makes all calls
};

struct Sites {
  std::vector<Site> list;       // as the file has them
  bool hides_calls = false;     // it makes such a call by syscall(2), or one with a number that its code does not tell
  bool names_execveat = false;  // it has the name of a function that makes execveat
};

Sites find_sites(const elf::Image& image);

}  // namespace weir::sample
