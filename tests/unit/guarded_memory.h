// Reading the target's own memory where the address may be wrong.
//
// A read is one load, written in assembly so that its address is known, with an entry in a table: "a fault here goes on
// there". It costs nothing while all goes well. Who handles SIGSEGV and SIGBUS asks landing_of(rip) first: where the answer is
// not 0, that is the new rip, and the read returns false.
#pragma once

#include <stdint.h>

namespace weir::rt {

// Both relative to themselves: no relocations.
struct GuardedRead {
  int32_t load, landing;
};
extern "C" const GuardedRead __start_weir_reads[] __attribute__((visibility("hidden")));
extern "C" const GuardedRead __stop_weir_reads[] __attribute__((visibility("hidden")));

// Where to go on after a fault at `pc`; 0 where that is none of these reads.
inline uint64_t landing_of(uint64_t pc) {
  for (const GuardedRead* r = __start_weir_reads; r != __stop_weir_reads; r++)
    if (reinterpret_cast<uint64_t>(&r->load) + static_cast<int64_t>(r->load) == pc)
      return reinterpret_cast<uint64_t>(&r->landing) + static_cast<int64_t>(r->landing);
  return 0;
}

// What the walker's reads go through. Another one (a copy of a stack, bounds) has the same read().
struct GuardedMemory {
  [[gnu::always_inline]] bool read(uint64_t address, uint64_t& word) const {
    uint64_t value;
    asm goto(
        "1: movq (%1), %0\n"
        ".pushsection weir_reads, \"a?\", @progbits\n"
        ".balign 4\n"
        ".long 1b - ., %l[failed] - .\n"
        ".popsection"
        : "=r"(value)
        : "r"(address)
        : "memory"
        : failed);
    word = value;
    return true;
  failed:
    return false;
  }
};

}  // namespace weir::rt
