// What is true of functions that a program wrote, whatever a file says of them: they are apart, none is empty, and each is found.
#pragma once

#include "base/result.h"
#include "symbols/written_code.h"

inline void check_written_code(const weir::symbols::WrittenCode& code) {
  weir::AppPc end;
  for (auto i = code.entries().begin(); i != code.entries().end(); ++i) {
    CHECK(end <= i->first && i->first < i->second.end && !i->second.name.empty());
    end = i->second.end;
    CHECK(code.find(i->first) == i && code.find(end + -1) == i);
  }
}
