// What the exact profile keeps of a thread, in the target: counters, in records of cells, and tables behind the thread block.
#pragma once

#include "rt/abi.h"

namespace weir::count::runtime {

using rt::Times;

// The routines of the runtime part.
enum Routine : uint32_t {
  Leave = rt::StackLeave,
  EnterTail = rt::StackEnterTail,
  TailArrival = rt::StackTailArrival,
  MiddleJump = rt::StackMiddleJump,
  Extreme,  // A: a value less the minimum, B: where in the thread block the Spread is
  // Those before are light.
  Enter = rt::light_routines + 1,  // a call: A is the site, as frames have it, B the callee
  Arrival,                         // A: the function: it was called or jumped to
  OsEnter,                         // A: the function that makes an OS call
  OsLeave,
  Leaving,      // the function that was called may go elsewhere than back (longjmp, unwinders)
  Resolved,     // A: the function: it has found out who is called, and goes there
  RepeatBegin,  // before a repeated string instruction
  RepeatEnd,    // behind it. A: cell, B: cycles << 16 | elements
  Resync = rt::StackResync,
};
static_assert(RepeatEnd < Resync);
static_assert(Extreme + 1 == rt::light_routines);

// ---- What translated code touches ----

// A call of a function that calls nobody: it needs no frame.
struct LeafCall {
  Times begin;
  uint64_t site;  // 0: none is under way
};
static_assert(sizeof(LeafCall) <= sizeof(rt::ThreadBlock::tool));
inline LeafCall& leaf(rt::ThreadBlock* tb) { return *reinterpret_cast<LeafCall*>(tb->tool); }

// What a frame took is
//     total = now.clock - begin.clock,  self = now.self - begin.self
// and goes to the record of (site, callee), to the total only when the function has no other frame below.
struct Frame : rt::Frame {
  Times begin;  // when it was called
  uint64_t
      os;  // marked: what OS calls took, its callees' included; what passed in them besides is beside the frames: see waits_offset
  uint64_t context;  // with full paths: its node
};
static_assert(sizeof(Frame) == 48);

// The record of a call site: cells.
enum RecordCell : uint32_t {
  RecordTotal,                  // clock of its calls; of a call inside a call of the same function nothing
  RecordSpread,                 // of the callee's own clock in one call: two cells
  RecordOs = RecordSpread + 2,  // time of OS calls
  record_cells,
  // Of a site whose callee is not known: the first one that it had. Others have records elsewhere.
  RecordCallee = record_cells,  // by its cell; 0: none yet
  RecordCalls,
  indirect_record_cells,
};

// What the values were between, of those that were seen. Translated code looks whether `value - min < span`.
struct Spread {
  uint64_t min, span;  // span: one more than from the smallest to the largest; 0: none seen

  void add(uint64_t value) {
    if (value - min < span || int64_t(value) < 0) return;  // (a path that was left half-way may have set the clock back)
    if (!span) min = value, span = 1;
    else if (value > min) span = value - min + 1;
    else span += min - value, min = value;
  }
};

// Records of the other callees of such sites, by site and callee: translated code looks in the first table, at one place; what is
// not there is in the second.
struct OtherRecord {
  uint32_t site, callee;
  uint64_t total;  // as above
  Spread self;
  uint64_t os, calls;
};
static_assert(sizeof(OtherRecord) == 48);
// From `total` on it is as the cells of a record.
static_assert(offsetof(OtherRecord, self) - offsetof(OtherRecord, total) == RecordSpread * 8);
static_assert(offsetof(OtherRecord, os) - offsetof(OtherRecord, total) == RecordOs * 8);
constexpr uint32_t near_others_bits = 15, max_near_others = 1 << near_others_bits;
constexpr uint32_t max_others = max_near_others + (1 << 18);
constexpr uint32_t others_hash_callee = 0x9E3779B1, others_hash_site = 0x85EBCA77;
constexpr uint32_t near_other(uint32_t site, uint32_t callee) {
  return (callee * others_hash_callee + site * others_hash_site) >> (32 - near_others_bits);
}
constexpr uint32_t others_offset = rt::tool_offset;

// ---- What the runtime part alone touches, and Weir ----

// OS calls: a hash table by function and number.
enum class OsClass : uint8_t { Fixed, Determinate, Timed };
constexpr uint32_t os_offset = others_offset + max_others * sizeof(OtherRecord);
struct OsRecord {
  uint32_t function, number;  // the number is one more than it is
  uint64_t calls, errors;
  uint64_t time, waited;  // on the processor, and off it
};
static_assert(sizeof(OsRecord) == 40);
constexpr uint32_t max_os = 1 << 16;

// What the thread's CPU clock was (nanoseconds) when the time stamp counter stood there.
struct ClockReading {
  uint64_t stamp, cpu;
};

// The OS call that is under way.
struct OsCall {
  uint32_t number;  // and one; 0: there is none
  uint32_t function;
  uint64_t begin;         // since when the kernel has it; 0: it does not
  uint64_t time, waited;  // what it took before that
  uint64_t size, descriptor;
};

// What a handler interrupted: by its place in ThreadBlock::interrupted.
struct SetAside {
  LeafCall leaf;
  OsCall os_call;
};

struct State {
  uint64_t start;              // program address at which the thread began
  uint64_t os_clock;           // processor time of all OS calls of the thread
  uint64_t waited;             // what passed in them while the thread was off the processor
  uint32_t others, os, waits;  // records in use: their indices are in the lists behind
  uint32_t contexts;           // in use; 0: no full paths
  uint64_t lost;               // what did not fit into a table
  uint64_t unseen;             // returns to functions that have no frame
  OsCall os_call;
  ClockReading reading;    // the last one; a stamp of 0: none is of use
  uint64_t ticks_per_ns;   // of the time stamp counter, times 2^32
  uint64_t undivided;      // OS calls that may have waited where the CPU clock could not be read
  uint64_t untimed;        // and those made where no time can be told
  uint64_t repeat;         // see RepeatBegin
  uint32_t no_time;        // the time stamp counter may not be read
  uint32_t os_by_class;    // OS calls that cannot wait take what the table says
  uint32_t by_wall;        // the clock is the time that passes: it is advanced when somebody looks at it,
  uint32_t is_in_os_call;  // the thread waits for Weir, and did so while the kernel had it,
  uint64_t waits_since;    // … and since then, where the clock is the time that passes
  uint64_t stamp;          // by_wall: it was so at this time
  Times clock_at_os_call;  // the clock, as it was at the last OS call, or behind a handler
  char name[16];           // of the thread
  SetAside aside[rt::interrupted_count];
};
constexpr uint32_t state_offset = os_offset + max_os * sizeof(OsRecord);
static_assert(sizeof(State) <= 4096);
constexpr uint32_t others_list_offset = state_offset + 4096, os_list_offset = others_list_offset + max_others * 4;

// Full paths: the calling-context tree. Node 0 is none; the parent of a node comes before it.
struct Context {
  uint32_t parent, site, callee, next;  // next: with the same hash
  uint64_t calls, self, os, waited;
};
static_assert(sizeof(Context) == 48);
constexpr uint32_t contexts_offset = 256 << 20, max_contexts = 4 << 20;
static_assert(os_list_offset + max_os * 4 <= contexts_offset);
constexpr uint32_t context_index_offset = contexts_offset + (192 << 20),
                   context_index_size = 4 << 20;  // of the first with a hash
static_assert(uint64_t{max_contexts} * sizeof(Context) <= 192 << 20);

// What passed in OS calls while the thread was off the processor. Few calls wait, so it stands apart from what translated code touches:
// a word for each frame of the parallel stack, and, by call site (the first cell of its record) and callee, a hash table.
constexpr uint32_t waits_offset = context_index_offset + context_index_size * 4;
struct WaitRecord {
  uint32_t site, callee;
  uint64_t waited;
};
constexpr uint32_t max_waits = 1 << 16;
constexpr uint32_t wait_records_offset = waits_offset + (16 << 20);
static_assert((rt::frames_end - rt::frames_offset) / sizeof(Frame) * 8 <= 16 << 20);
constexpr uint32_t wait_list_offset = wait_records_offset + max_waits * sizeof(WaitRecord);
static_assert(wait_list_offset + max_waits * 4 <= rt::tool_end);

}  // namespace weir::count::runtime
