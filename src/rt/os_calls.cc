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
// By the model (`--os-model=classes`, spec T4) a call that cannot wait takes what rt/os_calls.inc says, so that it is the same in each run.

#include "rt/runtime.h"

namespace weir::rt {

namespace {

struct OsCost {
  OsClass os_class;
  uint16_t fixed;     // cycles
  uint16_t per_page;  // Determinate: of 4 KiB of its second argument, or, of transfers, of its result
  bool by_result;
};

constexpr OsCost costs[] = {
#define OS_CALL(number, name, os_class, fixed, per_page, by_result) {OsClass::os_class, fixed, per_page, by_result},
#include "rt/os_calls.inc"
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
  return uint64_t((unsigned __int128){nanoseconds} * tools(tb)->ticks_per_ns >> 32);
}

// False: it cannot be read.
bool read_cpu_clock(ThreadBlock* tb) {
  constexpr uint64_t CLOCK_THREAD_CPUTIME_ID = 3;
  struct {
    uint64_t seconds, nanoseconds;
  } time;
  ClockReading& reading = tools(tb)->reading;
  reading.stamp = 0;
  if (tb->quiet || sys(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, address(&time))) return false;
  reading = {time_stamp(tb), time.seconds * 1'000'000'000 + time.nanoseconds};
  return true;
}

// Without the CPU clock: a call that may wait, and took so long, did nothing else.
uint64_t guess_waited(ThreadBlock* tb, uint64_t span) {
  constexpr uint64_t is_long = 100'000;  // nanoseconds
  Tools* t = tools(tb);
  if (cost_of(t->os_number - 1).os_class != OsClass::Timed) return 0;
  t->undivided++;
  return span > ticks_of(tb, is_long) ? span : 0;
}

uint64_t waited_in(ThreadBlock* tb, uint64_t span) {
  if (span <= ticks_of(tb, quick)) return 0;
  const ClockReading before = tools(tb)->reading;
  if (!read_cpu_clock(tb) || !before.stamp) return guess_waited(tb, span);
  const ClockReading& now = tools(tb)->reading;
  uint64_t passed = now.stamp - before.stamp, used = ticks_of(tb, now.cpu - before.cpu);
  uint64_t away = int64_t(passed - used) > 0 ? passed - used : 0;
  if (away < ticks_of(tb, least)) return 0;  // the clocks were not read at the same instant: nobody comes back so soon
  return away < span ? away : span;
}

// The OS calls that handlers interrupted, each with the number of its place in ThreadBlock::interrupted. They are in the page of Tools, whose
// other half only the runtime knows.
struct SetAside {
  uint32_t number, function;
  uint64_t time, waited, size, descriptor;
};
constexpr uint32_t aside_offset = tools_offset + 2048;
static_assert(sizeof(Tools) <= 2048 && sizeof(SetAside) * interrupted_count <= 2048);
SetAside& aside(ThreadBlock* tb, uint32_t index) {
  return reinterpret_cast<SetAside*>(reinterpret_cast<char*>(tb) + aside_offset)[index];
}

}  // namespace

uint64_t time_stamp(ThreadBlock* tb) {
  if (tools(tb)->no_time) return 0;
  uint32_t low, high;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return uint64_t(high) << 32 | low;
}

void begin_os_span(ThreadBlock* tb) {
  Tools* t = tools(tb);
  if (!t->os_number) return;
  t->os_begin = time_stamp(tb);
  if (!t->os_begin || t->os_begin - t->reading.stamp < ticks_of(tb, fresh)) return;
  read_cpu_clock(tb);
  t->os_begin = time_stamp(tb);
}

void end_os_span(ThreadBlock* tb) {
  Tools* t = tools(tb);
  if (!t->os_begin) return;
  uint64_t now = time_stamp(tb), span = int64_t(now - t->os_begin) > 0 ? now - t->os_begin : 0;
  uint64_t waited = waited_in(tb, span);
  t->os_time += span - waited;
  bool can_wait = cost_of(t->os_number - 1).os_class != OsClass::Fixed;
  if (can_wait) t->os_waited += waited;  // (others were preempted, as code is, which is nobody's time)
  t->os_begin = 0;
}

void drop_os_span(ThreadBlock* tb) {
  if (tools(tb)->os_number) tools(tb)->os_begin = 0;
}

void set_os_call_aside(ThreadBlock* tb, uint32_t index) {
  end_os_span(tb);
  Tools* t = tools(tb);
  aside(tb, index) = {t->os_number, t->os_function, t->os_time, t->os_waited, t->os_size, t->os_descriptor};
  t->os_number = 0;
}

void take_os_call_back(ThreadBlock* tb, uint32_t index) {
  const SetAside& s = aside(tb, index);
  Tools* t = tools(tb);
  t->os_number = s.number, t->os_function = s.function, t->os_size = s.size, t->os_descriptor = s.descriptor;
  t->os_time = s.time, t->os_waited = s.waited;
}

void os_enter(ThreadBlock* tb, uint32_t function) {
  Tools* t = tools(tb);
  const uint64_t* gpr = tb->regs.gpr;
  t->os_number = uint32_t(gpr[0]) + 1;
  t->os_function = function;
  t->os_descriptor = gpr[7];
  t->os_size = size_of(uint32_t(gpr[0]), gpr);
  t->os_time = t->os_waited = 0;
  begin_os_span(tb);
}

void os_leave(ThreadBlock* tb) {
  Tools* t = tools(tb);
  if (!t->os_number) return;
  end_os_span(tb);
  uint32_t number = t->os_number - 1;
  t->os_number = 0;
  auto result = int64_t(tb->regs.gpr[0]);
  bool failed = is_error(result);
  OsCost cost = cost_of(number);
  uint64_t time = t->os_time, waited = t->os_waited;
  if (t->os_by_class && cost.os_class != OsClass::Timed && !t->by_wall)
    time = modelled(cost, cost.by_result ? uint64_t(result) : t->os_size, failed), waited = 0;
  else t->untimed += t->no_time;
  if (OsRecord* record = os_record(tb, t->os_function, number + 1)) {
    record->calls++;
    record->errors += failed;
    record->time += time;
    record->waited += waited;
  }
  charge_os(tb, time, waited);
}

}  // namespace weir::rt
