// Functions that a program wrote while it ran, by address, with the names that its just-in-time compiler left for them (perf_map.h,
// jit_dump.h). What comes later is true where it overlaps what came before.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/address.h"

namespace weir::symbols {

class WrittenCode {
 public:
  struct Entry {
    AppPc end;
    std::string name;
  };
  using Place = std::map<AppPc, Entry>::const_iterator;  // by their begin; they are apart

  // Anybody may have written the name and the numbers: what is empty, or goes beyond all addresses, is left out.
  void add(AppPc begin, uint64_t size, std::string_view name);
  // The one that holds `pc`, or entries().end().
  Place find(AppPc pc) const;
  const std::map<AppPc, Entry>& entries() const { return entries_; }

 private:
  std::map<AppPc, Entry> entries_;
};

}  // namespace weir::symbols
