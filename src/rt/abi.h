// The one header that both sides share: where things lie in the target, and what the runtime and Weir say to each other.
//
// The runtime is mapped into the target and speaks with the Weir process through shared memory only. Every thread of the
// target has a *thread block* (`%gs` points at it): a slot of one big sparse file. Weir reads what the target writes there
// as hostile input: it copies a request once (rt/requests.h), and looks up every index in tables of its own.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "rt/buffer.h"
#include "rt/clock.h"
#include "rt/frames.h"
#include "rt/open_calls.h"
#include "rt/requests.h"

namespace weir::rt {

constexpr uint32_t abi_version = 15;

// ---- Where things lie in the target -------------------------------------------------------------------------------
// The table maps the low 32 bits of a program address to its place in the cache: 8 bytes an entry, 32 GiB of address
// space, sparse. It begins below 2 GiB so that [rcx*8 + table] needs no base register.
constexpr uint64_t table_base = 0x7000'0000;
constexpr uint64_t table_size = uint64_t{8} << 32;
// Where a program needs that range itself (AddressSanitizer's shadow), the table is here, and look-ups are longer.
// All else of Weir's is at addresses that programs have no reason to ask for: no round ones, above the 46 bits that some choose at random, and
// below those that the kernel gives programs and libraries; one piece, so that there is room for large ones on both sides.
constexpr uint64_t high_table_base = 0x53f9'4000'0000;
// Programs at fixed low addresses get their code cache here.
constexpr uint64_t low_arena_begin = 0x5000'0000;
// Images of position-independent code are placed here, each at the same address in every run (engine/home.h).
constexpr uint64_t home_base = 0x4be7'0000'0000;
constexpr uint32_t home_slots = 2048;  // of 4 GiB
// The vDSO is moved here: no home has these low 32 bits.
constexpr uint64_t vdso_base = 0x53f0'f000'0000;
// Up to the runtime: code caches for code that has no room near it.
constexpr uint64_t far_arenas_begin = 0x43cd'0000'0000;
// The runtime's own code, and the page that says which ranges of the program are translated.
constexpr uint64_t runtime_base = 0x43d5'0000'0000;
constexpr uint64_t space_base = 0x43d5'1000'0000;
constexpr uint64_t twins_base = 0x43d5'2000'0000;  // TwinTable
// What Weir has said about places in the cache: see PlaceRecord.
constexpr uint64_t places_base = 0x43d5'3000'0000;
// The thread blocks. Slot 0 is the control block.
constexpr uint64_t blocks_base = 0x43d6'2000'0000;
constexpr uint64_t block_stride = 512 << 20;
constexpr uint32_t max_slots = 16384;
constexpr uint64_t blocks_size = block_stride * max_slots;

// Of the translations of a function: see instrument::Version. Each has a table of its own.
constexpr uint32_t max_versions = 4;

// What a limit on address space (RLIMIT_AS) must leave room for, beside the program: thread blocks, table, and code cache.
// (Each further table comes on top: SpacePage::own_address_space.)
constexpr uint64_t own_address_space = blocks_size + table_size + (uint64_t{16} << 30);

// ---- Registers ----------------------------------------------------------------------------------------------------
struct Registers {
  uint64_t gpr[16];  // in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15
  uint64_t flags;
  uint64_t pc;  // a cache pc, or a program pc where Weir says so
};
static_assert(sizeof(Registers) == 144);

// Spinning for an answer, or for the next request, is right while the other side runs on another processor, and wrong when it waits
// for this one: so both sides adapt.
constexpr uint32_t min_spins = 32, max_spins = 4096;  // of `pause`: some 0.5 to 50 µs
constexpr uint32_t work_spins = 1 << 15;              // while Weir works on the answer
inline uint32_t adapted_spins(uint32_t spins, bool succeeded) {
  spins = succeeded ? spins * 2 : spins / 2;
  return spins < min_spins ? min_spins : spins > max_spins ? max_spins : spins;
}

// ---- Places in the cache -------------------------------------------------------------------------------------------
// What WhereAnswer tells, for a line of the cache, at places_base in the target: who has asked once need not ask again. A signal then costs no request.
constexpr uint32_t place_line = 64;
struct PlaceAnswer {
  uint64_t app;
  int32_t resume;  // less the cache pc
  uint8_t place, restore;
  uint16_t spilled;
};
struct PlaceRecord {
  uint64_t line;  // the cache pc of its first byte; 0 while it is being written
  PlaceAnswer at[place_line];
};
// The index: a line is in one of `place_ways` entries (the number of its record and one), or it is not there.
constexpr uint32_t place_index_bits = 16, place_ways = 4, place_records = 1 << 15;
struct Places {
  uint32_t index[(1 << place_index_bits) + place_ways];
  PlaceRecord records[place_records];
};
constexpr uint64_t places_size = (sizeof(Places) + 4095) / 4096 * 4096;
constexpr uint32_t place_hash(uint64_t line) {
  return static_cast<uint32_t>(line / place_line * 0x9E37'79B9'7F4A'7C15 >> (64 - place_index_bits));
}

// ---- System calls --------------------------------------------------------------------------------------------------
// The calls that the runtime must see (rt/syscalls.cc); all others run natively where they stand.
constexpr bool is_engine_call(int64_t nr) {
  switch (nr) {
    case 9:
    case 10:
    case 11:
    case 25:
    case 329:  // mmap mprotect munmap mremap pkey_mprotect
    case 12:
    case 28:
    case 30:
    case 67:   // brk madvise shmat shmdt
    case 151:  // mlockall
    case 13:
    case 15:  // rt_sigaction rt_sigreturn
    case 56:
    case 57:
    case 58:
    case 435:  // clone fork vfork clone3
    case 59:
    case 322:
    case 60:  // execve execveat exit
    case 157:
    case 158:
    case 317:
    case 334:  // prctl arch_prctl seccomp rseq
    case 97:
    case 160:
    case 302: return true;  // getrlimit setrlimit prlimit64
    default: return false;
  }
}

// ---- Signals ------------------------------------------------------------------------------------------------------
// The kernel's struct sigaction.
struct KernelSigaction {
  uint64_t handler;
  uint64_t flags;
  uint64_t restorer;
  uint64_t mask;
};

// What the kernel is given in place of a handler of the program: the runtime's, with all signals blocked.
constexpr KernelSigaction instead_of(const KernelSigaction& action, uint64_t entry) {
  constexpr uint64_t siginfo = 4, kept = 0x1c00'0003;  // NOCLDSTOP, NOCLDWAIT, RESTORER, ONSTACK, RESTART
  return {entry, (action.flags & kept) | siginfo, action.restorer, ~uint64_t{0}};
}

struct Interrupted {  // a context that a signal handler of the program interrupted
  uint64_t frame;     // address of its ucontext
  uint64_t app_pc;
  uint64_t cache_pc;
  uint64_t stack;  // where the alternate stack begins that the handler has; 0: it has that of what it interrupted
  uint64_t version;
};

constexpr uint32_t interrupted_count = 16;
// While a thread is on its way to a boundary every signal is blocked, but for five that its own instructions may raise. Those can also be
// sent, to the thread and to the process; further ones would be merged with those.
constexpr uint32_t max_kept = 11;

// Where the handler of a signal begins in the cache. It is so as long as the table's cell for it does not change.
struct HandlerEntry {
  uint64_t handler, cell, cache_pc;
};

// The program's own single-steps. Between two instructions of the program there may be several exact places: a step has ended when the
// program's pc is another one, or when a place is met again.
constexpr uint32_t max_step_places = 8;
struct OwnSteps {
  uint64_t app_pc;  // where the instruction that is under way stands; 0: none
  uint64_t count;   // places that were met since it began
  uint64_t places[max_step_places];
};

// Syscall user dispatch, as the program has asked for it: calls from elsewhere than [begin, begin + size) are dispatched. (The kernel looks
// at the selector.)
struct Dispatch {
  uint64_t is_on, begin, size, selector;
};
constexpr uint32_t rt_stack_size = 12 << 10;
constexpr uint32_t signal_stack_size = 8 << 10;

// ---- Tools ---------------------------------------------------------------------------------------------------------
// The routines of a tool's runtime part (rt/hooks.h) are called by number. The first come up often, and have doors of their own.
constexpr uint32_t light_routines = 5;
constexpr uint32_t no_routine = light_routines;  // what a light routine leaves that has done all
// For every tool: counter number A += B; the thread's buffer is emptied (rt/buffer.h).
constexpr uint32_t add_to_counter = 1 << 16, empty_buffer = add_to_counter + 1;
// Around a system call (rt/told_calls.h). A, B: the low and the high half of the address behind it.
constexpr uint32_t call_begins_routine = add_to_counter + 5, call_ends_routine = add_to_counter + 6;
static_assert(StackMiddleJump < light_routines && StackResync > no_routine);
constexpr uint32_t door_count = 6 + light_routines;  // ThreadBlock::enter_link and those behind it
struct Hooks;
using LightRoutine = void();

// ---- The thread block ---------------------------------------------------------------------------------------------
// What translated code touches comes first.
struct ThreadBlock {
  ThreadBlock* self;
  uint64_t rcx;       // the program's rcx while a transfer through the table is under way
  uint64_t spill[4];  // for probes and glue
  uint64_t target;    // program address of an indirect jump, call or return that missed
  uint32_t exit_id;
  uint32_t spins;   // how long to spin for an answer: longer while that succeeds
  uint64_t app_gs;  // the program's own %gs base
  uint64_t routine_args[6];
  FrameState frames;

  // Entry points of the runtime, for `jmp gs:[…]`.
  uint64_t enter_link;
  uint64_t enter_indirect;
  uint64_t enter_syscall;
  uint64_t enter_guard;
  uint64_t enter_routine;
  uint64_t enter_probe;
  uint64_t enter_light[light_routines];

  Registers regs;  // the program's, while the runtime runs
  RequestBlock request;

  uint32_t version;
  uint32_t slot;
  uint32_t pid, tid;
  uint64_t fault_pc;         // of a transfer that faults itself
  uint64_t dead;             // set by the thread's last instruction but one
  KernelSigaction* actions;  // the program's signal actions, 64 of them: in the block of the process' first thread

  // Signals that came at a bad moment: the first is delivered when the program's state is exact.
  uint32_t signal_pending;   // how many are kept
  uint32_t stepping;         // single-stepping to a boundary
  uint64_t pending_mask;     // the program's signal mask at that moment
  uint64_t exit_mask;        // the mask to set when the runtime is left
  uint32_t exit_unmask;      // … if so
  uint32_t quiet;            // a seccomp filter is on: no system calls of our own
  uint32_t elsewhere;        // in another pid namespace than Weir
  uint32_t has_wrgsbase;     // the processor and the kernel allow it
  uint32_t misses, signals;  // statistics
  uint32_t interrupted_next;
  uint32_t has_rseq;        // the program began natively, and may have registered it
  uint32_t has_trap;        // SIGTRAP is ours
  uint32_t has_places;      // see PlaceRecord
  uint32_t guarded;         // the doors are those that block signals: see guard_doors()
  uint32_t flags_pc;        // behind the last popf: the low half of its address
  uint32_t is_inside;       // of the program's own steps: its flags were saved by the door that led into the runtime
  uint32_t standstills;     // how often in a row a handler returned, and a signal came before a single instruction
  uint64_t returned_to;     // … where
  uint64_t allowed_pc;      // of a system call that the runtime makes in place of the cache: see rt_allowed,
  uint64_t allowed_return;  // … and the cache pc behind it
  OwnSteps steps;
  Dispatch dispatch;
  uint64_t door_registers[7];
  HandlerEntry handlers[64];
  uint8_t kept[max_kept][128];  // SigInfo

  const Hooks* hooks;  // of the tool
  LightRoutine* light[light_routines];
  ClockState clock;
  uint8_t zmm30[64];  // the program's, while a guard compares,
  uint64_t k7;        // … and this
  uint64_t tool[32];  // what the tool's probes touch

  Interrupted interrupted[interrupted_count];
  KernelSigaction own_actions[64];

  Call calls[max_calls];
  Range taking;  // addresses that the program is about to change; `end` is written last, and is 0 where there are none
  uint32_t code_version;  // of the translations that the thread runs in
  uint32_t is_wanted;     // in another version: it asks where to go on when it leaves the runtime behind a system call
  uint64_t sent_from;     // the program's pc of a thread that Weir has sent to rt_sent or rt_sent_back
  uint64_t more_spills[5];  // the program's rax, while a probe has the flags there; what one operation borrows
  uint64_t app_fs;          // the base of the program's %fs, kept where nothing else tells it (arch_prctl, clone)
  uint8_t indices[64];      // of a gather
  BufferState buffer;
  Awaited awaited;
  // Their tops are not near a multiple of 4 KiB from what translated code touches: loads there would seem to depend on what was pushed.
  uint8_t room[80 - sizeof(Awaited)];
  alignas(64) uint8_t signal_stack[signal_stack_size];
  alignas(64) uint8_t stack[rt_stack_size];
};
static_assert((offsetof(ThreadBlock, stack) + rt_stack_size) % 4096 >= 0x800);
static_assert(offsetof(ThreadBlock, rcx) == 8);
static_assert(offsetof(ThreadBlock, regs) == 224);
static_assert(sizeof(ThreadBlock) <= 32 << 10);

// ---- Behind the thread block, for tools ---------------------------------------------------------------------------
// Counters: 8-byte cells. Then the parallel stack (rt/frames.h), and what the tool itself has there.
constexpr uint32_t told_calls_offset = 56 << 10;  // rt/told_calls.h
constexpr uint32_t counters_offset = 64 << 10;
static_assert(steps_offset + step_count * 8 <= told_calls_offset);
constexpr uint32_t max_counters = (frames_offset - counters_offset) / 8;
static_assert(stack_state_offset + sizeof(StackState) <= open_calls_offset);
constexpr uint32_t tool_offset = open_calls_end, tool_end = 508 << 20;
constexpr uint32_t faults_offset = tool_end;  // rt/faults.h

// What guards a place in a unit of volatile code: all that is executed from there on, until the next guard.
struct GuardedCode {
  uint64_t begin, size;
  uint64_t was;  // where it is as it was translated
};
struct Guard {
  uint64_t cache_pc;  // where to go if it is the same, with rcx in its slot
  uint64_t app_pc;
  uint64_t is_locked;  // execute-only, by a protection key: it is opened to be read
  GuardedCode code[];  // one with a size of 0 ends them
};
static_assert(sizeof(Guard) == 24 && sizeof(GuardedCode) == 24);

// ---- The control block (slot 0) -----------------------------------------------------------------------------------
struct ControlBlock {
  uint32_t doorbell;                // changes when there is something to do for Weir: a futex
  uint32_t sleeping;                // Weir waits on the doorbell
  uint32_t weir_pid;                // 0: Weir was killed, and nobody will answer any more
  uint64_t posted[max_slots / 64];  // slots with a request
};

// ---- The space page: what the runtime must know of the translated program, read-only in the target ----------------
constexpr uint32_t max_ranges = 1024, max_own = 2048, max_code = 2048, max_given = 64, max_tool_regions = 8;
struct SpacePage {
  uint64_t id;               // of the space: no two of a run have the same
  uint32_t version;          // odd while it is being changed
  uint32_t count;            // more than max_ranges: ask about every change
  Range ranges[max_ranges];  // translated ranges of the program
  uint32_t own_count;
  Range own[max_own];    // Weir's memory, by address,
  Range claim;           // … and what will be, if no thread is faster
  uint32_t code_count;   // more than max_code: ask about all that becomes executable
  Range code[max_code];  // memory that Weir knows to be executable
  uint32_t given_count;
  Range given[max_given];  // low halves whose part of the table is the program's: no code may have them
  uint64_t tables[max_versions];  // where the table of each version is
  uint64_t own_address_space;     // see rt::own_address_space
  Range tool_regions[max_tool_regions];
  uint64_t regions_size;    // what a limit on address space is raised by for these
  uint64_t copies_regions;  // has a child of fork some that Weir must copy?
};
constexpr uint64_t space_page_size = 96 << 10;
static_assert(sizeof(SpacePage) <= space_page_size);

// ---- Twins: addresses of code whose low 32 bits are those of other code, too, by their whole address ---------------
// Their entries in the table stay empty, and the runtime looks here. Open addressing; read-only in the target.
struct Twin {
  uint64_t key;  // 0: none
  uint64_t to;  // as an entry of the table
};
struct TwinTable {
  uint64_t version;  // changes while places move: what was read meanwhile is not to be used. Odd: they do
  uint64_t mask;     // one less than there are places; 0: there are none
  uint64_t unused[6];
  Twin places[];
};
constexpr uint64_t max_twins = 1 << 22, twins_size = (64 << 20) + 4096;
static_assert(sizeof(TwinTable) + max_twins * sizeof(Twin) <= twins_size);
// (Addresses of programs have 47 bits.)
constexpr uint64_t twin_key(uint64_t pc, uint32_t version) { return pc | uint64_t{version} << 48; }
constexpr uint64_t twin_place(uint64_t key, uint64_t mask) { return (key * 0x9E37'79B9'7F4A'7C15 >> 32) & mask; }

// ---- The head of the runtime's image ------------------------------------------------------------------------------
struct RuntimeHeader {
  uint64_t version;
  uint64_t enter_link, enter_indirect, enter_syscall, enter_guard, enter_routine, enter_probe, enter_light[light_routines];
  uint64_t begin;  // where a new program enters
  uint64_t signal_entry;
  uint64_t sent, guarded_sent, sent_back, guarded_sent_back;  // for threads that are to go on in another version
  uint64_t allowed, allowed_done;                             // a system call, and where it ends
  uint64_t image_size;
  uint64_t tools, tools_end;  // ToolEntry (rt/hooks.h)
};

}  // namespace weir::rt
