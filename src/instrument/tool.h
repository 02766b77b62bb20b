// The interface of a tool: it is given a lifted function with its analysis, and says what to insert where.
//
// A tool never sees a code cache or an object file: where its code will lie is a placement's (placement.h). What it inserts is a
// few abstract operations; lowering turns them into the cheapest instructions, in dead registers where there are any. Counters are cells of 64 bits, one set for every thread, so that nothing is locked and nothing is lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rt/abi.h"
#include "x86/function.h"

namespace weir::elf {
class Image;
}

namespace weir::instrument {

// A 64-bit cell, one for every thread.
struct Counter {
  uint32_t index = 0;
};

// A function may have several translations, each with probes of its own, known by a number: 0 is the normal one, in which programs begin.
// Calls, returns and jumps stay within a version. A thread changes where a probe says so (Op::GoTo), or where Weir moves it (Moves).
using Version = uint8_t;

// A register of the probe itself; lowering finds it a dead one, or spills.
enum class Temp : uint8_t { A, B, C, D };
constexpr int temps = 4;

// How two numbers compare that have no sign.
enum class Condition : uint8_t { Equal, NotEqual, Below, AboveOrEqual };

// One operation of a probe.
struct Op {
  enum Kind : uint8_t {
    AddCounter,    // counter += value
    AddClock,      // the thread's virtual clock += value
    Set,           // temp = value
    GetRegister,   // temp = register of the program
    LoadCounter,   // temp = counter
    StoreCounter,  // counter = temp
    Load,          // temp = the `size` bytes at [other + value], and zeros above them
    Store,         // the `size` bytes at [other + value] = temp
    Add,           // temp += value
    SkipUnless,    // unless temp == value: skip the next `count` operations
    Call,          // routine number `value` of the tool's runtime part, with temps A and B as arguments
    GoTo,          // go on here, in version `value`: what comes behind, in the probe and in this version, is not executed
    // What follows is lowered by operate.cc, and so is a probe with Temp::C or D, with a `size` or with `by_temp`: there the temp
    // `other` stands in place of `value` (AddCounter, Set, Add and those up to ColdIf). Such a probe has none of the operations from
    // PushFrame on.
    And,           // temp &= value
    Or,            // temp |= value
    Xor,           // temp ^= value
    ShiftLeft,     // temp <<= value, and zeros come in; of the value the lowest 6 bits count
    ShiftRight,    // temp >>= value, the same
    Multiply,      // temp *= value
    SkipIf,        // if temp is so to value (`condition`): skip the next `count` operations
    ColdIf,        // only if it is: the next `count` operations, which stand out of line
    AddIndexed,    // the counter number `counter` + temp += value
    GetWord,       // temp = word number `value` of what the tool's probes touch (rt::ThreadBlock::tool)
    SetWord,       // that word = temp
    GetResult,     // temp = what the routine that was called last has left in rt::ThreadBlock::routine_args[0]
    // Of memory operand number `count` of the instruction that the probe stands before (x86/operands.h).
    GetAddress,    // temp = the lowest address that it accesses, or would if its count or its mask were not 0
    GetExtent,     // temp = how many bytes it accesses; with Extent::State: at most
    GetSelected,   // Masked, Packed and Indexed: bit n of temp: element n is accessed
    GetElement,    // Indexed: temp = the address of its element number `value`
    GetTarget,     // temp = where the transfer goes that the probe stands before: an address of the program
    // The thread's buffer (Services::buffer, rt/buffer.h).
    BeginRecord,   // temp = where a record of `value` bytes goes; where there is no room, the buffer is emptied first
    EndRecord,     // the record of `value` bytes is whole
    // The parallel stack (rt/frames.h): `counter` is the site of a call, `callee` the counter of a function.
    PushFrame,  // a call of `callee` (none: whoever arrives) begins, which ends `value` bytes above rsp (and rt::FrameBits)
    PopFrame,   // it has returned, to the function whose counter is number `value`
    ArriveFrame,   // whoever was called, it is `callee`
    ResyncFrames,  // control is here, in the middle of the function `callee`: calls below rsp have ended
    SetJumpSite,   // an indirect jump that may be a tail call: its site; `callee` is the function that it is in
    CallWith,      // routine number `value`, with the numbers of `counter` and `callee` as arguments
    Own,           // number `value` of the tool's own: see InlineCode
    // Calls of named functions (rt/open_calls.h). The engine inserts these itself: see Tool::named_functions.
    BeginCall,     // of the function whose number is that of `counter`; `value`: rt::CallWants
    EndCalls,      // control has come back, to the address `value`: those that are inside it have ended
    NoteStack,     // before and behind an instruction that moves the stack pointer elsewhere
    TellStack,
  };
  Kind kind;
  Temp temp = Temp::A;
  Temp other = Temp::B;
  x86::Gpr reg = x86::RAX;
  uint8_t count = 0;
  uint8_t size = 8;      // 1, 2, 4, 8
  bool by_temp = false;  // `other` in place of `value`
  Condition condition = Condition::Equal;
  bool flags_are_dead = false;  // PushFrame: the callee overwrites them, as far as the tool knows
  bool goes_back = false;       // PushFrame: a tail call that others may come from again and again
  Counter counter = {};
  int64_t value = 0;
  Counter callee = {};
};

enum class Where : uint8_t {
  Entry,        // of the function, when it is called (not when it loops back to its first block); `index` is ignored
  Arrival,      // at the entry, of what comes through the table: indirect calls and jumps, but not direct calls
  Block,        // anywhere before the block `index` does anything visible: lowering looks for the cheapest place
  Before,       // the instruction `index` (calls, returns and system calls are instructions)
  After,        // the plain instruction `index`
  ReturnSite,   // the block `index` follows a call: when that call has returned
  Taken,        // the edge from block `index` to its taken successor
  FallThrough,  // … or to the next one
};

struct Insertion {
  Where where;
  uint32_t index;         // of a block or an instruction of the function
  uint32_t first, count;  // of Plan::ops
};

// What a tool wants for one function.
class Plan {
 public:
  void insert(Where where, uint32_t index, std::initializer_list<Op> ops) {
    insert(where, index, std::span(ops.begin(), ops.size()));
  }
  void insert(Where where, uint32_t index, std::span<const Op> ops) {
    insertions_.push_back({where, index, static_cast<uint32_t>(ops_.size()), static_cast<uint32_t>(ops.size())});
    ops_.insert(ops_.end(), ops.begin(), ops.end());
  }
  void clear() {
    insertions_.clear();
    ops_.clear();
  }
  std::span<const Insertion> insertions() const { return insertions_; }
  std::span<const Op> ops_of(const Insertion& i) const { return {ops_.data() + i.first, i.count}; }
  bool empty() const { return insertions_.empty(); }

 private:
  std::vector<Insertion> insertions_;
  std::vector<Op> ops_;
};

// Is what begins at an address a part of a function that stands elsewhere? Perhaps: no symbol says that it is a function. Hole: unwind tables do
// not know it either, so it belongs to who falls into it.
enum class IsPart : uint8_t { No, Perhaps, Hole, Yes };

// A function as a tool sees it.
struct Subject {
  const x86::Function& function;
  uint32_t image;                                   // index of the image that holds it
  uint64_t bias;                                    // of the image: address in memory less address in the file
  const x86::ReadMemory& code;                      // of the function,
  const x86::ReadMemory& image_code;                // … and of the rest of its image
  const std::function<AppRange(AppPc)>& bounds_of;  // of the function at an address of the same image
  const std::function<IsPart(AppPc)>& is_part;      // … or of none
  bool is_pristine;                                 // its code is that of a file, and will stay so
  bool is_volatile;                                 // it may be rewritten; whatever leads here comes to function.entry
  const elf::Image* file = nullptr;                 // of the image; null: it has none
  std::span<const AppRange> regions = {};           // where the tool's regions are
  Version version = 0;
};

// What a thread leaves: its cells, and its memory as rt/abi.h and the tool's runtime part describe it. Most threads of a large program run little of it: all cells
// outside of `written`, in ascending order, are 0, and reading them would take a page for each 512.
struct CellRange {
  uint32_t begin, end;
};
struct ThreadData {
  uint32_t pid, tid;
  std::span<const uint64_t> cells;
  std::byte* memory;
  std::span<const CellRange> written;
  std::span<const rt::OpenCall> open_calls = {};  // of named functions: they have not returned
};

// A function that a tool names, by symbol and image: whoever calls it, and however (directly, through a pointer, by a jump at its end), the
// tool's runtime part is told (rt/hooks.h: call_begins and those behind it).
struct Named {
  std::string symbol;        // as in the symbol table, mangled where the language does so; * and ? stand for any characters
  std::string image = {};    // path, file name, or the name that it gives itself (DT_SONAME); empty: any
  std::string version = {};  // of the symbol: "GLIBC_2.14"; empty: any
  bool returns = false;      // how its calls end is told, too
  bool replace = false;      // call_begins may do what it does in its place
};

// A function that has such a name. An IFUNC has several: all that its resolver may choose.
struct NamedFunction {
  uint32_t name;       // by its index in named_functions()
  std::string symbol;  // as it was found: "memcpy@@GLIBC_2.14"
  uint32_t image;
  AppPc begin;
};

// Hands out counters. One for every code space: see Tool.
class Counters {
 public:
  static constexpr uint32_t clock_cells = rt::clock_cells;  // the first cells are the virtual clock

  Counter allocate(uint32_t count = 1) { return {(next_ += count) - count}; }
  uint32_t size() const { return next_; }

 private:
  uint32_t next_ = rt::first_counter;
};

// Sparse memory of a tool's in the target, beside that of its threads. Where it lies is found out when a program begins, and when it is attached to; the
// runtime part is told by rt/regions.h. Nothing takes memory before it is touched.
struct ToolRegion {
  enum class AtFork : uint8_t {
    Copy,   // the child has its own, as it was then. (What other threads write meanwhile may be in it or not, as with the program's memory.)
    Share,  // both see the same
  };
  std::string_view name;      // for people
  uint64_t size;              // whole pages
  uint64_t alignment = 4096;  // a power of two
  AtFork at_fork = AtFork::Copy;
  bool is_low = false;      // below 2 GiB: a displacement of 32 bits reaches it
  bool is_visible = false;  // to Weir, while the process runs and when it is gone: see Tool::collect_region
};

// What a tool wants of the engine and the runtime, besides operations.
struct Services {
  bool clock = false;                        // the virtual clock (rt/clock.h): Op::AddClock
  bool frames = false;                       // the parallel stack (rt/frames.h): Op::PushFrame and those behind it
  bool system_calls = false;                 // what they do with memory is told: rt::Hooks::told_call_effect
  std::span<const ToolRegion> regions = {};  // at most rt::max_tool_regions
};

// A thread that begins.
struct ThreadStart {
  std::byte* memory;
  const std::byte* parent = nullptr;  // that it was forked or cloned from; null: none
  bool is_fork = false;
  AppPc pc = {};          // in a new program: where; elsewhere where it goes on, or 0
  std::string name = {};  // where it is known
};

// A thread that asks Weir, and waits.
struct Asking {
  uint32_t pid, tid;
  std::byte* memory;
};

// What processes leave of a region that Weir sees.
struct RegionData {
  uint32_t pid;     // the process that ends, or is let go of
  uint32_t number;  // of Services::regions
  int file;         // that has it, for pread(); what was never touched is a hole (SEEK_DATA)
  bool is_last;     // of those who share it: always, where each has its own
};

// What a tool may have its threads do.
class Moves {
 public:
  virtual ~Moves() = default;
  struct Thread {
    uint32_t pid, tid;
    Version version;    // that it runs in
    bool is_on_its_way;  // to another one
  };
  virtual std::vector<Thread> threads() const = 0;
  // The thread goes on in that version, at the next instruction that begins a block, or a system call. A signal handler that it is in
  // goes back to the version that the signal came in.
  virtual void move(uint32_t tid, Version version) = 0;
};

class InlineCode;

// A tool belongs to one code space: the program of one or more processes that share their translations. When a process
// takes a way of its own (it was forked, and then loads code), its tool is a copy.
class Tool {
 public:
  virtual ~Tool() = default;
  virtual std::unique_ptr<Tool> copy() const = 0;
  // How many versions there are, at most rt::max_versions.
  virtual Version versions() const { return 1; }
  // Does plan() ever plan anything?
  virtual bool has_probes() const { return true; }
  // Translations may be kept beyond the process, and used by others, under this name; empty: they may not (code with counters).
  virtual std::string archive_name() const { return {}; }
  virtual Services services() const { return {}; }
  // What it does in line; null: nothing of its own.
  virtual const InlineCode* inline_code() const { return nullptr; }
  // Symbols are looked for when code of an image is about to run. (A tool that names functions has probes.)
  virtual std::vector<Named> named_functions() const { return {}; }
  // One has been found, and may be called from now on. Returns the tool's own number for it, which its runtime part is told.
  virtual uint32_t name(const NamedFunction& function) { return function.name; }
  // Called once for every translated function, or part of one.
  virtual void plan(const Subject& subject, Counters& counters, Plan& plan) = 0;
  virtual void begin_thread(const ThreadStart& /*start*/) {}
  // How a thread that is in exit_group ends its process, where the tool has noted it.
  virtual std::optional<int> exit_status(const std::byte* /*memory*/) const { return {}; }
  // This process goes on for one that was killed: all that plan() did there is known here, if it was published (base/published.h).
  virtual void adopt() {}
  // Its runtime part asks, in words of their own.
  virtual rt::ToolAnswer answer(const Asking& /*thread*/, const rt::ToolRequest& /*request*/) { return {}; }
  // The thread's buffer is full (rt/buffer.h): what is in it is gone when this returns.
  virtual void drain(const Asking& /*thread*/) {}
  // Called now and then while the program runs, if there are several versions: not sooner than the last call has said, which is 0 at first.
  virtual std::chrono::microseconds look(Moves& /*moves*/) { return std::chrono::microseconds::max(); }
  // A thread has ended (or is being looked at).
  virtual void collect(const ThreadData& thread) = 0;
  // A process has ended (or is being looked at), whose threads are collected.
  virtual void collect_region(const RegionData& /*region*/) {}
};

}  // namespace weir::instrument
