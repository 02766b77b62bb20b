// Names of code that was written at run time, as just-in-time compilers leave them for perf in /tmp/perf-PID.map: lines of
// "begin size name", both numbers hexadecimal (tools/perf/Documentation/jit-interface.txt). They are appended while the program
// runs. Anybody may have written the file.
#pragma once

#include <string_view>

#include "symbols/written_code.h"

namespace weir::symbols {

class PerfMap {
 public:
  // What was appended to the file since the last time.
  void read(int file, WrittenCode& code);
  static void parse(std::string_view lines, WrittenCode& code);

 private:
  size_t read_ = 0;  // bytes of the file
};

}  // namespace weir::symbols
