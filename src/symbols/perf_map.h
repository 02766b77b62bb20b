// Names of code that was written at run time, as just-in-time compilers leave them for perf in /tmp/perf-PID.map: lines of
// "begin size name", both numbers hexadecimal (tools/perf/Documentation/jit-interface.txt). They are appended while the program
// runs: what comes later is true where it overlaps what came before. Anybody may have written the file.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/address.h"

namespace weir::symbols {

class PerfMap {
 public:
  struct Entry {
    AppPc end;
    std::string name;
  };
  using Place = std::map<AppPc, Entry>::const_iterator;  // by their begin; they are apart

  // What was appended to the file since the last time.
  void read(int file);
  void parse(std::string_view lines);
  // The one that holds `pc`, or entries().end().
  Place find(AppPc pc) const;
  const std::map<AppPc, Entry>& entries() const { return entries_; }

 private:
  void add(AppPc begin, Entry entry);

  std::map<AppPc, Entry> entries_;
  size_t read_ = 0;  // bytes of the file
};

}  // namespace weir::symbols
