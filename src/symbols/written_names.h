// What a program says of the code that it writes while it runs: both of the files that just-in-time compilers leave for perf.
#pragma once

#include <memory>
#include <string_view>

#include "symbols/jit_dump.h"
#include "symbols/perf_map.h"

namespace weir::symbols {

// Is an image of this path code that a program wrote itself?
bool is_written(std::string_view image);

class WrittenNames {
 public:
  // What was added since the last time. `perf_map`: a descriptor, -1: there is none; `has_written`: an image of the process
  // is_written(), so that a jitdump file is looked for.
  void read(pid_t pid, int64_t started, int perf_map, bool has_written);
  // The same of two files that are open; -1: there is none.
  void read(int perf_map, int jit_dump);
  const std::shared_ptr<WrittenCode>& code() const { return code_; }

 private:
  std::shared_ptr<WrittenCode> code_ = std::make_shared<WrittenCode>();
  PerfMap perf_map_;
  JitDump jit_dump_;
  Fd jit_dump_file_;
};

}  // namespace weir::symbols
