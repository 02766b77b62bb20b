// What the program's OS calls take: on the processor, which is the kernel's work for them, and off it, which is waiting.
//
//     time = what passes from begin_os_span to end_os_span, by the time stamp counter, less what is waited
//     waited = what passed since the last reading of the thread's CPU clock, less what that clock went on
//
// To read the CPU clock is a system call, which takes longer than most. So it is read at the end of a span that was long enough to have been
// away, and before one only if the last reading is an old one. Between a reading and the begin of a span the thread may have been
// preempted, which a young reading makes rare, and `waited` is never more than the span.
//
// A call that cannot wait was preempted if it was away: that is no waiting. Of others the two are not told apart.
//
// A span is one that the kernel has the thread for a call of the program's: what Weir does besides, in calls that the runtime serves, is in
// none (syscalls.cc), and neither is a handler that interrupts a call.
//
// By the model (`--os-model=classes`, spec T4) a call that cannot wait takes what os_calls.inc says, so that it is the same in each run.

#include "rt/sys.h"
#include "tools/count/runtime/runtime.h"

namespace weir::count::runtime {

using rt::address, rt::sys;

namespace {

struct OsCost {
  OsClass os_class;
  uint16_t fixed;     // cycles
  uint16_t per_page;  // Determinate: of 4 KiB of its second argument, or, of transfers, of its result
  bool by_result;
};

constexpr OsCost costs[] = {
#define OS_CALL(number, name, os_class, fixed, per_page, by_result) {OsClass::os_class, fixed, per_page, by_result},
#include "tools/count/os_calls.inc"
#undef OS_CALL
};

// What is not in the table may wait.
OsCost cost_of(uint32_t number) {
  return number < sizeof costs / sizeof *costs ? costs[number] : OsCost{OsClass::Timed, 0, 0, false};
}

// Pages are made at once only where that is asked for: else time does not depend on how many there are.
uint64_t size_of(uint32_t number, const uint64_t* gpr) {
  constexpr uint32_t mmap = 9;
  constexpr uint64_t MAP_LOCKED = 0x2000, MAP_POPULATE = 0x8000;
  bool is_made = number != mmap || (gpr[2] && (gpr[10] & (MAP_LOCKED | MAP_POPULATE)));
  return is_made ? gpr[6] : 0;
}

// By the model; (what failed has moved nothing).
uint64_t modelled(const OsCost& cost, uint64_t size, bool failed) {
  return cost.fixed + (failed ? 0 : size * cost.per_page >> 12);
}

constexpr uint64_t fresh = 100'000, quick = 4'000, least = 1'000;  // nanoseconds
uint64_t ticks_of(ThreadBlock* tb, uint64_t nanoseconds) {
  return uint64_t((unsigned __int128){nanoseconds} * state(tb).ticks_per_ns >> 32);
}

// False: it cannot be read.
bool read_cpu_clock(ThreadBlock* tb) {
  constexpr uint64_t CLOCK_THREAD_CPUTIME_ID = 3;
  struct {
    uint64_t seconds, nanoseconds;
  } time;
  ClockReading& reading = state(tb).reading;
  reading.stamp = 0;
  if (tb->quiet || sys(rt::SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, address(&time))) return false;
  reading = {time_stamp(tb), time.seconds * 1'000'000'000 + time.nanoseconds};
  return true;
}

// Without the CPU clock: a call that may wait, and took so long, did nothing else.
uint64_t guess_waited(ThreadBlock* tb, uint64_t span) {
  constexpr uint64_t is_long = 100'000;  // nanoseconds
  State& s = state(tb);
  if (cost_of(s.os_call.number - 1).os_class != OsClass::Timed) return 0;
  s.undivided++;
  return span > ticks_of(tb, is_long) ? span : 0;
}

uint64_t waited_in(ThreadBlock* tb, uint64_t span) {
  if (span <= ticks_of(tb, quick)) return 0;
  const ClockReading before = state(tb).reading;
  if (!read_cpu_clock(tb) || !before.stamp) return guess_waited(tb, span);
  const ClockReading& now = state(tb).reading;
  uint64_t passed = now.stamp - before.stamp, used = ticks_of(tb, now.cpu - before.cpu);
  uint64_t away = int64_t(passed - used) > 0 ? passed - used : 0;
  if (away < ticks_of(tb, least)) return 0;  // the clocks were not read at the same instant: nobody comes back so soon
  return away < span ? away : span;
}

}  // namespace

uint64_t time_stamp(ThreadBlock* tb) {
  if (state(tb).no_time) return 0;
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return uint64_t(high) << 32 | low;
}

void begin_os_span(ThreadBlock* tb) {
  State& s = state(tb);
  OsCall& call = s.os_call;
  if (!call.number) return;
  call.begin = time_stamp(tb);
  if (!call.begin || call.begin - s.reading.stamp < ticks_of(tb, fresh)) return;
  read_cpu_clock(tb);
  call.begin = time_stamp(tb);
}

void end_os_span(ThreadBlock* tb) {
  OsCall& call = state(tb).os_call;
  if (!call.begin) return;
  uint64_t now = time_stamp(tb), span = int64_t(now - call.begin) > 0 ? now - call.begin : 0;
  uint64_t waited = waited_in(tb, span);
  call.time += span - waited;
  bool can_wait = cost_of(call.number - 1).os_class != OsClass::Fixed;
  if (can_wait) call.waited += waited;  // (others were preempted, as code is, which is nobody's time)
  call.begin = 0;
}

void drop_os_span(ThreadBlock* tb) {
  OsCall& call = state(tb).os_call;
  if (call.number) call.begin = 0;
}

// (A signal that interrupts an OS call comes with that call's time running.)
void begin_wait(ThreadBlock* tb) {
  State& s = state(tb);
  s.is_in_os_call = s.os_call.begin != 0;
  if (s.is_in_os_call) end_os_span(tb);
  s.waits_since = s.by_wall ? time_stamp(tb) : 0;
}

void end_wait(ThreadBlock* tb) {
  State& s = state(tb);
  s.reading.stamp = 0;  // it was we who waited
  if (s.is_in_os_call) begin_os_span(tb);
  if (s.waits_since && s.stamp) s.stamp += time_stamp(tb) - s.waits_since;
}

void os_enter(ThreadBlock* tb, uint32_t function) {
  const uint64_t* gpr = tb->regs.gpr;
  auto number = uint32_t(gpr[0]);
  state(tb).os_call = {.number = number + 1,
                       .function = function,
                       .begin = 0,
                       .time = 0,
                       .waited = 0,
                       .size = size_of(number, gpr),
                       .descriptor = gpr[7]};
  begin_os_span(tb);
}

void os_leave(ThreadBlock* tb) {
  State& s = state(tb);
  if (!s.os_call.number) return;
  end_os_span(tb);
  const OsCall call = s.os_call;
  s.os_call.number = 0;
  uint32_t number = call.number - 1;
  auto result = int64_t(tb->regs.gpr[0]);
  bool failed = rt::is_error(result);
  OsCost cost = cost_of(number);
  uint64_t time = call.time, waited = call.waited;
  if (s.os_by_class && cost.os_class != OsClass::Timed && !s.by_wall)
    time = modelled(cost, cost.by_result ? uint64_t(result) : call.size, failed), waited = 0;
  else s.untimed += s.no_time;
  auto* record = find(at<OsRecord>(tb, os_offset), max_os, at<uint32_t>(tb, os_list_offset), s.os, call.function,
                      number + 1, &OsRecord::function, &OsRecord::number);
  if (record) {
    record->calls++;
    record->errors += failed;
    record->time += time;
    record->waited += waited;
  } else {
    s.lost++;
  }
  charge_os(tb, time, waited);
}

}  // namespace weir::count::runtime
