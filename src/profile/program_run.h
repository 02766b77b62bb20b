// A program's run: what one process did from one exec to the next. Drivers fill it in as they come to know it; profiles and the store
// have it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::profile {

struct ProgramRun {
  uint32_t pid = 0;
  std::vector<std::string> command = {};
  int64_t started = 0, ended = 0;       // microseconds since 1970
  std::optional<int> exit_status = {};  // as a shell sees it (128+n for a signal); none: not known, or it goes on
  std::string ended_by = {};  // "exit", "signal", "exec" (of another program), "detach"; empty: not known, or it goes on
  std::vector<std::string> notes = {};  // what could not be seen, one line each: the data's quality
  std::string program = {};             // the path of its image; empty: not known
  bool operator==(const ProgramRun&) const = default;
};

// With what only its driver knows, and no profile keeps.
struct LiveRun : ProgramRun {
  uint32_t parent_pid = 0;  // 0: it is the one that Weir started
  std::vector<std::string>
      images;  // paths, by the index that tools and samples have; "[vdso]", "[code written at run time]"
  int perf_map = -1, jit_dump = -1;  // descriptors: names of code that the program wrote (symbols/written_names.h)
};

}  // namespace weir::profile
