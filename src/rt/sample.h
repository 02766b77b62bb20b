// Sampling: what Weir and the handler in the target share.
//
// Three files are mapped into a process that is sampled, each at its place:
//
//     the sampler's code      a freestanding image, a signal handler
//     tables, read-only       unwind tables, and for each process a list of its code; Weir appends, nothing moves or goes away
//     slots, shared           a control block, and for each thread a trace (rt/walk.h) and a queue of records (rt/records.h)
//
// A thread that is sampled waits for nobody: it finds its slot, restores its call sequence and puts it down there. It makes no system
// call, but for a thread's first samples (its id), for stacks that Weir has not seen yet or that may go away, and for guesses; under a seccomp
// filter these are left out. The walk has a stack of its own, in the slot: the program's may be small. Weir reads all that the target writes
// as hostile input.
#pragma once

#include "rt/abi.h"
#include "rt/own_memory.h"
#include "rt/records.h"

namespace weir::rt {

constexpr uint32_t sampler_version = 2;

// ---- Where things lie ------------------------------------------------------------------------------------------------
// Right below the lowest place where the kernel puts a program (2/3 of the address space): what is free below that stays one piece, and neither
// AddressSanitizer's, MemorySanitizer's nor ThreadSanitizer's own memory lies there.
constexpr uint64_t sampler_base = 0x5500'0000'0000;
constexpr uint64_t sample_tables_base = 0x5501'0000'0000;
constexpr uint64_t sample_tables_size = uint64_t{16} << 30;
constexpr uint64_t sample_slots_base = 0x5510'0000'0000;
constexpr uint64_t sample_slot_stride = 32 << 20;
constexpr uint32_t max_sample_slots = 4096;  // slot 0 is the control block
constexpr uint64_t sample_slots_size = sample_slot_stride * max_sample_slots;
static_assert(sample_slots_base + sample_slots_size < 0x5555'4000'0000);

constexpr uint32_t trace_capacity = 1 << 15;  // frames of a stack
constexpr uint64_t handler_stack = 1 << 16;   // in a slot: its end
constexpr uint64_t trace_offset = 1 << 16;
constexpr uint64_t records_offset = 12 << 20;
constexpr uint64_t records_capacity = (sample_slot_stride - records_offset) / sizeof(uint64_t);
static_assert(trace_capacity <= UINT16_MAX && records_capacity > 16 * words_of(trace_capacity));

// ---- Signals ---------------------------------------------------------------------------------------------------------
// What an event or a timer tells the handler (si_perf_data, si_value).
enum class SampleKind : uint8_t {
  Time,    // of the clock that is sampled, or an event of that kind
  Switch,  // the thread comes back from waiting: wall time
  Guard,   // the thread is about to make a system call that must be seen, or to begin its program
};
constexpr uint64_t sample_mark = 0x5745ull << 48;
constexpr uint64_t sample_word(SampleKind kind, uint32_t process) {
  return sample_mark | static_cast<uint64_t>(kind) << 32 | process;
}
constexpr bool is_sample_word(uint64_t word) { return word >> 48 == sample_mark >> 48; }
constexpr SampleKind kind_of(uint64_t word) { return static_cast<SampleKind>(word >> 32 & 0xff); }
constexpr uint32_t process_of(uint64_t word) { return static_cast<uint32_t>(word); }

// ---- The control block -----------------------------------------------------------------------------------------------
constexpr uint32_t max_sample_processes = 4096;

// The few things that a thread waits for.
enum class Ask : uint32_t {
  Nothing,
  Look,   // the program's images are all mapped: what are they?
  Stop,   // take the events away, another program is about to be executed: a signal of ours would end it
  Go,     // it could not be
  Trace,  // let go of the process `subject`, another is about to trace it
};

// A thread whose system calls are dispatched.
struct SampledDispatch {
  uint64_t fs;  // of the thread; 0: nobody's
  uint64_t selector;
  uint32_t tid;
  uint8_t own;  // the selector, where the program has none
};

struct SampledProcess {
  // Weir's words.
  uint64_t code;  // the address of a Code in the tables; 0: nothing is known yet
  uint32_t pid;
  uint8_t may_call;   // system calls are allowed
  uint8_t sees_weir;  // it is in the same namespace of processes
  uint8_t runs_bare;  // it is to begin without us: there are no events yet, nor guards
  uint8_t has_clock;  // samples are of its threads' CPU time, in the kernel and outside:
  uint8_t is_off;     // … there is more or less of that than in samples
  uint64_t entry;     // where the program begins
  uint64_t sites[4];  // `syscall` instructions that are guarded
  uint32_t answered;  // as many questions
  // The target's.
  uint32_t tid_at;         // where its C library keeps a thread's id, from fs; 0: not known
  uint64_t known_fs[256];  // so of threads with these, by a hash
  uint32_t unknown;        // samples that met code or a stack that Weir has not told of
  uint32_t asking;         // a thread does
  uint32_t asked;          // so many questions,
  Ask ask;                 // of which this is the last
  uint32_t subject;        // of it
  uint32_t dispatch_count;
  SampledDispatch dispatches[64];  // by a hash of fs
  uint64_t lost;                   // samples that found no slot
  uint64_t periods;                // of CPU time: that are in samples, lost, or ours
  KernelSigaction action;          // of the signal, as the program believes it to be
};

constexpr uint32_t tid_places[] = {0x2d0, 0x30};  // glibc's, musl's
inline SampledDispatch& dispatch_place(SampledProcess& p, uint64_t fs) {
  return p.dispatches[fs * 0x9E3779B97F4A7C15ull >> (64 - 6)];
}
static_assert(sizeof SampledProcess::dispatches / sizeof(SampledDispatch) == 1 << 6);

struct SampleControl {
  uint32_t version;
  uint32_t signal;       // that samples come with
  uint32_t weir;         // the process
  uint64_t period;       // of wall time, in ticks of the time stamp counter; 0: each sample is one
  uint64_t nanoseconds;  // from one sample to the next; 0: they come with events
  uint8_t verify;        // restore every sample twice
  uint8_t is_timed;      // measure what samples take
  uint8_t has_fsbase;    // the processor lets programs read fs
  Options options;       // of the walker
  uint32_t process_count;
  uint32_t attention;               // something is to be looked at: see SampledProcess::unknown
  alignas(16) uint8_t text[256];    // arguments of system calls that Weir has the target make
  uint64_t keys[max_sample_slots];  // whose a slot is: sample_key(), or one of these
  SampledProcess processes[max_sample_processes];
};
constexpr uint64_t free_key = 0, used_key = 1;
constexpr uint64_t sample_key(uint32_t process, uint32_t tid) { return (uint64_t{process} + 1) << 32 | tid; }
constexpr uint32_t first_place(uint64_t key) { return static_cast<uint32_t>(key * 0x9E3779B97F4A7C15ull >> 52); }
static_assert(max_sample_slots == 1 << (64 - 52) && sizeof(SampleControl) < sample_slot_stride);

// ---- A thread's slot -------------------------------------------------------------------------------------------------
constexpr uint32_t difference_kinds = 8;

struct SampleSlot {
  uint32_t busy;
  uint32_t is_ready;
  uint32_t tid, process;
  uint64_t rip, rsp;  // at the last sample,
  uint64_t skip;      // … which took so many periods: as many are left out
  uint64_t
      last;  // until when time is in samples. CPU time: by the thread's own clock, in nanoseconds. Wall time: by the time stamp counter,
  uint64_t rest;  // … and what has passed before, and is no whole period
  uint64_t lost, late;
  uint64_t differences[difference_kinds];
  // The thread's own stack, which Weir tells; where that is not known yet, a stack pointer, and fs: the C library has put that there, too.
  KnownStack stack;
  uint64_t wanted, fs;
  Records::Queue queue;
  Trace trace;
};
static_assert(sizeof(SampleSlot) < handler_stack / 2 && trace_offset + Trace::bytes_for(trace_capacity) <= records_offset);
inline Records records_of(SampleSlot& s) {
  return {s.queue, reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(&s) + records_offset), records_capacity};
}

// At the begin of the image.
struct SamplerHeader {
  uint64_t version, handler, restorer, image_size;
};

}  // namespace weir::rt
