// What a thread asks of Weir, and what it is told: a struct for each request and for each answer, as they lie in its thread block.
//
// Weir reads what the target writes here as hostile input: it copies a request once, and looks up every number in tables of its own.
#pragma once

#include <stdint.h>

namespace weir::rt {

struct Range {
  uint64_t begin, end;
};

enum class Request : uint32_t {
  None,
  Link,
  Indirect,
  Resume,
  Stale,
  Where,
  NewThread,
  Forked,
  NoThread,
  Hello,
  ThreadEnd,
  Exec,
  ExecFailed,
  Change,
  Executable,
  Give,
  Quiet,
  Begin,
  Place,
  Mapped,
  Settle,
  Called,
  Tool,
  Drain,
};

// ---- Answers ------------------------------------------------------------------------------------------------------
struct NoAnswer {};

// Is GoOn::pc a place in the cache?
enum Native : uint64_t {
  NotNative,
  NativeTarget,  // an address of the program, to be executed there, and to fault
  NativeSite,    // one that the processor refuses to go to: the transfer itself faults
};

// What an indirect transfer pops.
enum class Pops : uint64_t {
  Little,     // GoOn::stack_change
  FarReturn,  // rip, cs
  Interrupt,  // rip, cs, rflags, rsp, ss
};

// Where the thread goes on.
struct GoOn {
  uint64_t pc;
  uint64_t site;          // of an indirect transfer: its program pc,
  uint64_t stack_change;  // … what is to be added to rsp,
  Pops pops;
  Native native;
};

// What is at a cache pc.
enum class Place : uint64_t {
  NotCache,  // not in the cache: the address is the program's own
  Exact,     // the program's state is exact, but for what `restore` says
  Middle,    // in the middle of a translated instruction
};
enum Restore : uint64_t {
  RestoreNothing = 0,
  RestoreRcx = 1,     // rcx is in the slot `rcx`
  RestoreSpill0 = 2,  // a probe holds a register of the program in spill[0] (its number is in `spilled` & 15)
  RestoreSpill1 = 4,  // … and in spill[1] (number in `spilled` >> 4 & 15)
  SetRcxToPc = 8,     // behind a system call: rcx is the program's pc
  RestoreClock = 16,  // zmm31 is the program's, the clock is in `clock_away`
  RestoreFlags = 32,  // rax has the flags, as lahf and seto leave them; the program's is in more_spills[0]
  RestoreSpill2 = 64,   // … and in spill[2] (number in `spilled` >> 8 & 15)
  RestoreSpill3 = 128,  // … and in spill[3] (number in `spilled` >> 12 & 15)
  HasPlaces = 256,      // of an answer only: the process has mapped the places
};
struct WhereAnswer {
  uint64_t app;  // the program's address
  Place place;
  uint64_t restore, spilled;
  uint64_t resume;  // the cache pc to go on at
};

struct SlotAnswer {
  uint64_t slot;  // 0: there is none
};
struct HelloAnswer {
  uint64_t is_known;
};
struct GiveAnswer {
  uint64_t is_given;
};
struct ImagePlace {
  uint64_t begin;  // 0: anywhere
};

// ---- Requests -----------------------------------------------------------------------------------------------------
// Each is posted under its `kind`, and answered with its `Answer`.

// A direct transfer has come to an exit.
struct LinkRequest {
  static constexpr Request kind = Request::Link;
  using Answer = GoOn;
  uint64_t exit;
};
// An indirect one has missed the table.
struct IndirectRequest {
  static constexpr Request kind = Request::Indirect;
  using Answer = GoOn;
  uint64_t exit, target;
};
// Where a thread that goes on in the program comes from.
enum class Resuming : uint64_t {
  Anywhere,  // it may have been interrupted in the middle of a block
  Call,      // it arrives where the table leads, as a call would
  AtPoint,   // all that probes do before it is done, and nothing of what comes: it may change to another version
};
// The runtime goes on in the program.
struct ResumeRequest {
  static constexpr Request kind = Request::Resume;
  using Answer = GoOn;
  uint64_t pc;
  Resuming how;
};
// The same, at code that has changed since it was translated to `was`.
struct StaleRequest {
  static constexpr Request kind = Request::Stale;
  using Answer = GoOn;
  uint64_t pc, was;
};
struct WhereRequest {
  static constexpr Request kind = Request::Where;
  using Answer = WhereAnswer;
  uint64_t pc;  // in the cache
};
// Before a thread or process is made, when a process was, and where none could be.
struct NewThreadRequest {
  static constexpr Request kind = Request::NewThread;
  using Answer = SlotAnswer;
  uint64_t clone_flags;
};
// It is answered when the child has its copies of regions (instrument::ToolRegion), or is gone.
struct ForkedRequest {
  static constexpr Request kind = Request::Forked;
  using Answer = NoAnswer;
  uint64_t slot;
  int64_t pid;
};
struct NoThreadRequest {
  static constexpr Request kind = Request::NoThread;
  using Answer = NoAnswer;
  uint64_t slot;
};
// The first words of a new thread.
struct HelloRequest {
  static constexpr Request kind = Request::Hello;
  using Answer = HelloAnswer;
  uint64_t pid, tid;
};
// The thread is about to exit; no answer is awaited.
struct ThreadEndRequest {
  static constexpr Request kind = Request::ThreadEnd;
  using Answer = NoAnswer;
};
struct ExecRequest {
  static constexpr Request kind = Request::Exec;
  using Answer = NoAnswer;
  uint64_t path;
  int64_t directory;  // its descriptor
};
struct ExecFailedRequest {
  static constexpr Request kind = Request::ExecFailed;
  using Answer = NoAnswer;
};
// The program changes mappings that hold translated code.
struct ChangeRequest {
  static constexpr Request kind = Request::Change;
  using Answer = NoAnswer;
  Range range;
  uint64_t has_no_code;  // any more
  uint64_t protection;   // 0: none is set
};
// Memory has become executable. An empty range: it is not known what.
struct ExecutableRequest {
  static constexpr Request kind = Request::Executable;
  using Answer = NoAnswer;
  Range range;
};
// The program wants addresses that are Weir's. How much of it: all, or what can be had.
enum class Giving : uint64_t { All, Some };
struct GiveRequest {
  static constexpr Request kind = Request::Give;
  using Answer = GiveAnswer;
  Range range;
  Giving how;
};
// The program is about to install a seccomp filter. There are two such requests: what must be mapped for it is mapped with the first;
// from the second on the runtime makes no more system calls of its own.
struct QuietRequest {
  static constexpr Request kind = Request::Quiet;
  using Answer = NoAnswer;
  uint64_t is_second;
};
// The first words of a new program.
struct BeginRequest {
  static constexpr Request kind = Request::Begin;
  using Answer = GoOn;
};
// A loader is about to map an image anywhere.
struct PlaceRequest {
  static constexpr Request kind = Request::Place;
  using Answer = ImagePlace;
  int64_t file;  // its descriptor
  uint64_t size, attempt;
};
// Code of a file has been mapped.
struct MappedRequest {
  static constexpr Request kind = Request::Mapped;
  using Answer = NoAnswer;
  uint64_t begin, size, offset;
  int64_t file;  // its descriptor
};
// It is answered when nothing is claimed any more: see SpacePage::claim.
struct SettleRequest {
  static constexpr Request kind = Request::Settle;
  using Answer = NoAnswer;
};
// A tool's runtime part asks its live half, in words of their own.
struct ToolAnswer {
  uint64_t words[4];
};
struct ToolRequest {
  static constexpr Request kind = Request::Tool;
  using Answer = ToolAnswer;
  uint64_t words[4];
};
// The thread's buffer (rt/buffer.h) is full. When it is answered, it is empty.
struct DrainRequest {
  static constexpr Request kind = Request::Drain;
  using Answer = NoAnswer;
};
// The calls that came with an answer have been made.
struct CalledRequest {
  static constexpr Request kind = Request::Called;
  using Answer = NoAnswer;
  uint64_t failed;  // one more than the index of the call that failed; 0: none did
  int64_t result;   // of the last one
};

// ---- Where they lie -----------------------------------------------------------------------------------------------
constexpr uint32_t request_words = 4, answer_words = 5;

template <class T, uint32_t count>
T from_words(const uint64_t (&words)[count]) {
  static_assert(sizeof(T) <= sizeof words);
  T value;
  __builtin_memcpy(&value, words, sizeof value);
  return value;
}
template <class T, uint32_t count>
void to_words(const T& value, uint64_t (&words)[count]) {
  static_assert(sizeof(T) <= sizeof words);
  for (uint64_t& word : words) word = 0;
  __builtin_memcpy(words, &value, sizeof value);
}

enum class RequestState : uint32_t { Idle, Posted, Answered };

// A system call that the thread is to make for Weir. An answer may come with a list of them.
struct Call {
  int64_t nr;
  uint64_t args[6];
  char text[32];  // UsesText: the second argument points there
  uint64_t flags;
};
enum CallFlags : uint64_t {
  UsesText = 1,
  Opens = 2,           // its result is the descriptor,
  UsesDescriptor = 4,  // … which is the last argument but one, or, of close, the first
  Optional = 8,        // it may fail
};
constexpr uint32_t max_calls = 32;

// What an answer that is being made will need: parts of the table and of the code cache. Who waits for it touches them, so that the two
// share the work of making their pages.
struct Soon {
  uint32_t count;
  Range ranges[2];
};

struct RequestBlock {
  RequestState state;
  Request kind;
  uint32_t waiting;  // the thread sleeps on `state`
  uint32_t unused;
  uint64_t args[request_words];   // the request, of its kind
  uint64_t answer[answer_words];  // the answer to it
  uint64_t calls;                 // … and how many of ThreadBlock::calls to make first
  Soon soon;                      // before the answer
  char text[536];                 // with the answer: what the arguments of calls point to
};
static_assert(sizeof(RequestBlock) == 672);

}  // namespace weir::rt
