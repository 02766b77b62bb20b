// From a lifted function and a plan to machine code.
//
// Where the code is placed is asked of a Placement (placement.h). Rules that everything else relies on:
//  - At the begin of every block, and before every instruction that is copied, the program's state is exact.
//  - In the code cache, a transfer through the table (return, indirect jump or call) leaves the program's rcx in the slot `rcx` of the thread
//    block; the place that the table names takes it back if it is live there. Direct transfers do not.
//  - A call there pushes the cache address that follows it, for the processor's return prediction; its thunk then puts the
//    program's return address in its place. A return looks its address up in the table, and returns to what it finds.
//  - Nothing is pushed on the program's stack that the program does not push, and no flag or register is changed that
//    is live.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/address.h"
#include "instrument/tool.h"
#include "x86/liveness.h"

namespace weir::instrument {

// A place where translated code must ask: a direct transfer whose target is not translated yet, or an indirect one that
// missed the table.
struct Exit {
  enum Kind : uint8_t { Direct, Jump, Call, Return, FarReturn, InterruptReturn };
  Kind kind;
  bool linked;        // Direct: the displacement leads to the target
  uint16_t pops;      // Return: `ret n`
  uint32_t offset;    // Direct: of the 32-bit displacement to patch
  AppPc target;       // Direct; of the others: where they stand
  uint32_t stub = 0;  // Direct: where the stub is, which an unlinked displacement points to; 0: none yet
  Version version = 0;  // Direct: of the target
};

// How to find the program's pc and registers from a cache pc: for offsets from `offset` up to the next mark.
struct Mark {
  enum Kind : uint8_t {
    Run,     // copied instructions: pc = app + (offset in the run)
    Exact,   // at `offset` itself, the program's state is that before `app` once `restore` is done; behind it: Middle
    Middle,  // of a translated instruction, or of a probe before it
  };
  uint32_t offset;
  uint32_t app;     // from the begin of the function's bounds
  uint32_t resume;  // offset at which to go on when the state has been put right
  Kind kind;
  uint8_t restore;  // rt::Restore bits
  uint16_t spilled;  // the registers in spill[0] to spill[3], four bits each
};
static_assert(sizeof(Mark) == 16);

struct TableEntry {
  AppPc app;
  uint32_t offset;
  bool is_return_site = false;  // with the probes of one; they stand behind the entry, before what jump tables name
};

struct BlockPlace {
  AppPc app;
  uint32_t offset;       // direct transfers go here
  bool is_entry = true;  // from other units too: a tool may rely on a block being entered only from those before it
};

struct Lowered {
  uint32_t size = 0;
  uint32_t entry = 0;              // where direct calls of the function go
  std::vector<BlockPlace> blocks;  // by app pc
  std::vector<TableEntry> table;
  std::vector<Exit> exits;     // in the order of their numbers
  std::vector<Mark> marks;     // by offset
  uint32_t not_supported = 0;  // instructions that could not be translated
  struct Scratch;
  std::shared_ptr<Scratch> scratch;  // reused from one function to the next
};

class Placement;

struct Input {
  const x86::Function& function;
  const x86::Liveness& liveness;
  const Plan& plan;
  const x86::ReadMemory& code;
  std::span<std::byte> out;
  CachePc base;  // where `out` will be executed; in an object file, from the begin of its section
  Placement& placement;
  bool has_clock = false;  // Services::clock
  const InlineCode* inline_code = nullptr;
};

// The stub that a direct exit goes through while it is not linked (at most 32 bytes).
constexpr size_t stub_size = 32;
void write_stub(std::span<std::byte> out, uint32_t exit_id);
// A jump to any address. Written again, it leads to the old one or to the new one, for those that are just there.
constexpr size_t far_jump_size = 16;
void write_far_jump(std::span<std::byte> out, CachePc to);
// An entry for the table that takes rcx back and goes to `to` (at most 32 bytes).
void write_table_entry(std::span<std::byte> out, CachePc at, CachePc to);
// Two entries that have the runtime look at the rt::Guard at `record` first: for direct transfers at `at`, and, returned, for
// the table.
constexpr size_t guard_size = 32;
CachePc write_guard(std::span<std::byte> out, CachePc at, CachePc record);
// The same for processors that compare 64 bytes at once, which look themselves, and go on at `to` if all is as it was; else the runtime looks.
struct Compared {
  CachePc code, was;  // of the program, as an address that `at` reaches; and as it was translated
  uint64_t size;
};
constexpr size_t wide_guard_size = 160, wide_compare_size = 48;
CachePc write_wide_guard(std::span<std::byte> out, CachePc at, CachePc record, CachePc to, std::span<const Compared> code);
// An upper bound of the number of its exits, and of the size that lower() needs for code near `base`.
uint32_t exits_bound(const x86::Function& function, const Plan& plan);
size_t size_bound(const x86::Function& function, const Plan& plan, CachePc base);
// Writes the code to input.out; `result` is overwritten (its vectors are reused).
void lower(const Input& input, Lowered& result);

}  // namespace weir::instrument
