// What a profile of one run holds, exact or sampled: plain structs, made by the tool that counts or from samples, named by `symbols`,
// kept by `store`.
//
// Two forms. What a thread counted is kept by the functions that have code of their own ("folded": inlined calls are part of their
// callers); `unfold.h` makes the other form of it, where inlined functions are functions. The store has both.
//
// Two kinds of facts. *Code* is known before the run and the same for all threads: images, functions, blocks, call
// sites. *Counts* belong to a thread. Ids are indices into the vectors of Profile; `none` is no such thing.
//
// Times are virtual cycles of the CPU model, exact and repeatable. What the outside world decided is kept apart:
// `os_time` (the processor time that the kernel spent in OS calls) is never part of a `self`; reports add the two where that is asked for.
// `waited` (what passed in OS calls while the thread was off the processor) is part of neither.
//
// Of a sampled profile (Run::sampling) times are numbers of samples; nobody knows its calls, OS calls and instructions: they are
// 0 here, and nothing is told of them. Each instruction that was sampled is a block, of 1 cycle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "profile/program_run.h"

namespace weir::profile {

inline constexpr uint32_t none = UINT32_MAX;
using Cycles = uint64_t;

struct Image {
  std::string path;      // as mapped: "/usr/lib/…/libc.so.6", "[vdso]", "[code written at run time]"
  std::string build_id;  // hexadecimal, may be empty
  uint64_t size = 0;     // bytes of the file
  int64_t modified = 0;  // seconds since 1970
  bool operator==(const Image&) const = default;
};

// A function, or the part of one that lies apart (`.cold`). Offsets are addresses as the image's file has them (virtual
// addresses of its segments).
struct Function {
  uint32_t image = none;
  uint64_t offset = 0;
  uint64_t size = 0;
  std::string linkage_name;  // as in the symbol table; empty: the image has no name for it
  std::string name;          // for people: demangled, or "libc.so.6+0x1234"
  std::string file;          // where it is declared; empty: not known
  uint32_t line = 0;
  std::string named_by = {};  // what gave it its name where no symbol did: "start", "variant", "jump", "users"
  std::string clone =
      {};                // how the compiler made it of the author's function: "constprop.0"; `name` ends in it, in brackets
  bool has_code = true;  // false: it is only known where it was inlined; it has no offset then
  bool operator==(const Function&) const = default;
};

struct Block {
  uint32_t function = none;
  uint64_t offset = 0;
  uint32_t code = 0, size = 0;  // its bytes, in Profile::code: what a report disassembles, and costs again for another CPU
  uint32_t instructions = 0;
  uint32_t cycles = 0;
  bool operator==(const Block&) const = default;
};

// A call that was inlined: the instructions of a function that are another function's. It is in blocks that ran; what left no
// instruction is not known. The one around it comes before it.
struct Scope {
  uint32_t function = none;  // whose code it is in
  uint32_t parent = none;    // the inlined call around it; none: the function itself
  uint32_t inlined = none;   // the function that was inlined
  uint32_t site = none;      // of the kind Inlined
  uint64_t entry = 0;        // where it begins to run
  bool operator==(const Scope&) const = default;
};

// The instructions of one block that come from one source line of one function or inlined call.
struct LinePart {
  uint32_t block = none;
  std::string file;  // of the instruction, not of the function: inlined code keeps its own
  uint32_t line = 0;
  std::string inlined;  // the innermost inlined function there, demangled; empty: none
  uint32_t instructions = 0;
  uint32_t cycles = 0;  // the parts of a block add up to the block
  uint32_t scope = none;
  bool is_counted = true;  // false: its block runs as a part of executions of the line that another block counts
  bool operator==(const LinePart&) const = default;
};

// An instruction that calls, or jumps to another function (a tail call), or the place that a signal interrupted.
enum class SiteKind : uint8_t { Call, IndirectCall, TailCall, Signal, Start, Inlined };
struct CallSite {
  uint32_t function =
      none;  // that holds it; none for Start: the kernel began a thread here (or it stands for what cut a walk off)
  uint64_t offset = 0;
  SiteKind kind = SiteKind::Call;
  std::string file;
  uint32_t line = 0;
  uint32_t scope = none;  // the innermost inlined call that it is in; none: the function itself
  bool operator==(const CallSite&) const = default;
};

struct Range {
  Cycles min = UINT64_MAX, max = 0;
  bool operator==(const Range&) const = default;
};

// ---- counts of one thread ----

struct FunctionCount {
  uint32_t function = none;
  uint64_t calls = 0;
  Cycles self = 0;   // of all its calls
  Range self_range;  // of one call
  Cycles total = 0;  // self and descendants; a call inside a call of the same function is not counted twice
  uint64_t os_calls = 0;
  Cycles os_time = 0;        // in OS calls made by the function itself
  Cycles os_time_total = 0;  // and by its descendants
  Cycles waited = 0;         // what passed in them while the thread was off the processor: in no other time
  Cycles waited_total = 0;
  uint64_t inlined = 0;      // of the calls: that were inlined (of the folded form: none)
  bool is_estimate = false;  // the total (see profile/unfold.h)
  bool operator==(const FunctionCount&) const = default;
};

// A2: what a caller is responsible for.
struct CallCount {
  uint32_t site = none;
  uint32_t callee = none;
  uint64_t calls = 0;
  Cycles total = 0;  // self and descendants of these calls
  Cycles os_time_total = 0;
  Range self_range;
  Cycles waited_total = 0;
  bool operator==(const CallCount&) const = default;
};

struct BlockCount {
  uint32_t block = none;
  uint64_t count = 0;
  Cycles extra = 0;  // T3: what its run-time dependent instructions cost beyond Block::cycles
  bool operator==(const BlockCount&) const = default;
};

// How often an inlined call was entered.
struct ScopeCount {
  uint32_t scope = none;
  uint64_t entries = 0;
  bool operator==(const ScopeCount&) const = default;
};

// A node of the calling-context tree (`--paths=full`); the parent comes before its children.
struct Context {
  uint32_t parent = none;
  uint32_t site = none;  // in the parent's function
  uint32_t function = none;
  uint64_t calls = 0;
  Cycles self = 0;
  Cycles os_time = 0, waited = 0;
  bool operator==(const Context&) const = default;
};

// Of a sampled profile: samples of a call path at one instruction.
struct LeafCount {
  uint32_t context = none;
  uint32_t block = none;
  uint64_t samples = 0;
  bool operator==(const LeafCount&) const = default;
};

enum class OsClass : uint8_t { Fixed, Determinate, Timed };  // T4
struct OsCount {
  uint32_t function = none;  // that made the calls
  uint32_t number = 0;       // of the system call
  uint64_t calls = 0;
  uint64_t errors = 0;
  Cycles time = 0;
  Cycles waited = 0;
  OsClass os_class = OsClass::Timed;
  bool operator==(const OsCount&) const = default;
};

struct Thread {
  uint32_t process = none;
  uint32_t tid = 0;
  std::string name;
  Cycles cycles = 0;  // of its virtual clock: the sum of `self`
  uint64_t instructions = 0;
  Cycles os_time = 0;
  std::vector<FunctionCount> functions;
  std::vector<CallCount> calls;
  std::vector<BlockCount> blocks;
  std::vector<Context> contexts;
  std::vector<OsCount> os_calls;
  std::vector<LeafCount> leaves = {};
  Cycles waited = 0;
  std::vector<ScopeCount> scopes = {};
  bool operator==(const Thread&) const = default;
};

// A source file as it was at the end of the run.
struct SourceFile {
  std::string path;
  uint64_t size = 0;
  uint32_t hash = 0;  // CRC-32 of its bytes
  bool operator==(const SourceFile&) const = default;
};

struct Process : ProgramRun {
  uint32_t parent = none;  // index; none: the one that Weir started
  bool operator==(const Process&) const = default;
};

// How samples were taken.
struct SampledBy {
  std::string event;        // "cpu" or "wall": time; else an event: "cycles", "page-faults", …
  std::string source;       // "perf" or "timer"
  double rate = 0;          // of time: samples a second
  uint64_t period = 0;      // of events: how many a sample stands for
  std::string unwind;       // "auto", "cfi", "fp", "heuristic"
  uint32_t confidence = 0;  // 0 to 100: guessed regions below it were unwound again
  bool verify = false;      // every sample was restored twice, and compared
  bool sees_kernel = true;  // false: time in the kernel is not in the samples
  bool operator==(const SampledBy&) const = default;
};

// And how far they can be trusted: sums over all threads.
struct Sampling : SampledBy {
  uint64_t samples = 0;
  uint64_t frames = 0;                   // of all call sequences
  uint64_t frames_unwound = 0;           // steps that were taken: the others were as in the sample before
  uint64_t frames_heuristic = 0;         // of `frames`: guessed,
  uint64_t frames_by_frame_pointer = 0;  // or found by frame pointers
  uint64_t truncated = 0;                // samples whose walk was cut off
  uint64_t no_room = 0;                  // samples whose call path found no place
  uint64_t lost = 0;                     // that were due, and were not taken
  uint64_t late = 0;                     // that came when a blocked signal was let through
  uint64_t verify_differences = 0;       // samples that came out otherwise when they were restored in full
  uint64_t distrusted = 0;               // unchanged regions that were unwound again
  uint64_t new_maps = 0;                 // samples on a stack of which nothing was known

  struct Reason {
    std::string name;
    uint64_t samples = 0;
    bool operator==(const Reason&) const = default;
  };
  std::vector<Reason> truncated_by, differences_by;  // sorted by name, none of 0
  bool operator==(const Sampling&) const = default;
};

struct Run {
  std::vector<std::string> command;
  std::string directory;
  std::vector<std::string> environment;  // on request
  std::string cpu;                       // of the cost model: "znver4"
  std::string host_cpu;                  // as /proc/cpuinfo names it
  uint64_t cycles_per_second = 0;        // of the clock that OS calls are timed with; of samples: their rate
  std::string clock;                     // "cycles", "instructions", "wall" or "samples"
  std::string os_model;                  // of OS time: "measured", or "classes" (T4); empty: there is none
  bool os_separate = false;              // T5: OS calls shown as functions of their own
  bool full_paths = false;
  int64_t started = 0, ended = 0;
  // Processor time of the program and of the children that it waited for, under Weir, in microseconds; none: it was not measured.
  std::optional<uint64_t> user_time, system_time;
  std::string weir_version;
  bool complete = true;              // false: Weir or the machine was stopped before the end
  std::optional<Sampling> sampling;  // none: the profile is exact
  bool operator==(const Run&) const = default;
};

struct Profile {
  Run run;
  std::vector<Image> images;
  std::vector<Function> functions;  // also those that never ran (coverage)
  std::vector<Block> blocks;        // those that were translated; count 0 is possible
  std::vector<std::byte> code;      // of all blocks: there may be millions, so they own no memory of their own
  std::vector<Scope> scopes;
  std::vector<LinePart> lines;  // of a block in the order of its instructions
  std::vector<CallSite> sites;
  std::vector<SourceFile> sources;  // in the order of their paths
  std::vector<Process> processes;
  std::vector<Thread> threads;

  std::span<const std::byte> code_of(const Block& b) const { return std::span(code).subspan(b.code, b.size); }
  bool operator==(const Profile&) const = default;
};

}  // namespace weir::profile
