// What `weir run --tool=memory` shows.
#pragma once

#include <map>
#include <string>

#include "profile/program_run.h"
#include "tools/memory/memory.h"

namespace weir::cli {

class MemoryCounts {
 public:
  // Of a program that has ended.
  void add(memory::Memory& tool, const profile::LiveRun& run);
  std::string json() const;
  void print() const;

 private:
  memory::Totals total_;
  std::map<std::string, memory::Totals> images_;
};

}  // namespace weir::cli
