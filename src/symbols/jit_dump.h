// Names of code that was written at run time, from a jitdump file (tools/perf/Documentation/jitdump-specification.txt), which
// just-in-time compilers append to while the program runs: jit-PID.dump. Anybody may have written it.
//
//   header   magic "JiTD", version, size of the header, machine, padding, pid: 4 bytes each; time, flags: 8 each
//   record   kind, size of all of it: 4 each; time: 8;
//     load   pid, thread: 4 each; address twice, size of the code, index: 8 each; name, 0, the code
//     move   pid, thread: 4 each; new address, old address, new address, size of the code, index: 8 each
//
// The other records (lines, unwinding, the end) are stepped over.
#pragma once

#include <sys/types.h>

#include "base/fd.h"
#include "symbols/written_code.h"

namespace weir::symbols {

class JitDump {
 public:
  // What was appended to the file since the last time.
  void read(int file, WrittenCode& code);

 private:
  uint64_t read_ = 0;  // bytes of the file
  uint32_t records_ = 0;
};

// The file of a process, if there is one. As long as the process lives, its memory map tells: a program maps the file executable so that
// perf finds it. After that, it is looked for where compilers leave it, and must have been written since `started`
// (microseconds since 1970).
Fd find_jit_dump(pid_t pid, int64_t started);

}  // namespace weir::symbols
