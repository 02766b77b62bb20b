// OS calls in three classes (spec T4): of fixed length, of a length that their size determines, and those that may wait, which
// are timed. The table is rt/os_calls.inc.

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

// What is not in the table is timed.
OsCost cost_of(uint32_t number) {
  return number < sizeof costs / sizeof *costs ? costs[number] : OsCost{OsClass::Timed, 0, 0, false};
}

bool is_terminal(uint64_t descriptor) {
  constexpr uint64_t TCGETS = 0x5401;
  char settings[64];
  return sys(SYS_ioctl, descriptor, TCGETS, address(settings)) == 0;
}

// A call that took long and waited for a child, which has that time already, or for a person (a read from a terminal).
bool waited_for_others(ThreadBlock* tb, uint32_t number, uint64_t argument, bool failed, uint64_t time) {
  constexpr uint64_t long_time = 1'000'000, CLONE_VFORK = 0x4000;
  constexpr uint32_t read = 0, readv = 19, clone = 56, vfork = 58, wait4 = 61, waitid = 247, clone3 = 435;
  if (time < long_time) return false;
  switch (number) {
    case wait4:
    case waitid:
    case vfork: return true;
    case clone: return argument & CLONE_VFORK;
    case clone3: {
      uint64_t flags = 0;  // (the child may have unmapped them meanwhile)
      return !failed && !tb->quiet && read_memory(reinterpret_cast<const void*>(argument), &flags, sizeof flags) &&
             (flags & CLONE_VFORK);
    }
    case read:
    case readv: return !tb->quiet && is_terminal(argument);
    default: return false;
  }
}

// The OS calls that handlers interrupted, each with the number of its place in ThreadBlock::interrupted. They are in the page of Tools, whose
// other half only the runtime knows.
struct SetAside {
  uint32_t number, function;
  uint64_t begin, size, descriptor;
  uint64_t since;
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

void set_os_call_aside(ThreadBlock* tb, uint32_t index) {
  Tools* t = tools(tb);
  aside(tb, index) = {t->os_number, t->os_function, t->os_begin, t->os_size, t->os_descriptor, time_stamp(tb)};
  t->os_number = 0;
}

// (What the handler took is its own time, not the call's.)
void take_os_call_back(ThreadBlock* tb, uint32_t index) {
  const SetAside& s = aside(tb, index);
  Tools* t = tools(tb);
  t->os_number = s.number, t->os_function = s.function, t->os_size = s.size, t->os_descriptor = s.descriptor;
  t->os_begin = s.begin + (time_stamp(tb) - s.since);
}

void os_enter(ThreadBlock* tb, uint32_t function) {
  Tools* t = tools(tb);
  t->os_number = uint32_t(tb->regs.gpr[0]) + 1;
  t->os_function = function;
  t->os_descriptor = tb->regs.gpr[7];
  t->os_size = tb->regs.gpr[6];
  t->os_begin = time_stamp(tb);
}

void os_leave(ThreadBlock* tb) {
  Tools* t = tools(tb);
  if (!t->os_number) return;
  uint32_t number = t->os_number - 1;
  t->os_number = 0;
  auto result = int64_t(tb->regs.gpr[0]);
  bool failed = is_error(result);
  OsCost cost = cost_of(number);
  uint64_t size = cost.by_result ? uint64_t(result) : t->os_size;
  uint64_t time = cost.fixed + (failed ? 0 : size * cost.per_page >> 12);
  if (cost.os_class == OsClass::Timed || t->by_wall) time = t->no_time ? 0 : time_stamp(tb) - t->os_begin;
  bool is_charged = !waited_for_others(tb, number, t->os_descriptor, failed, time);
  if (OsRecord* record = os_record(tb, t->os_function, number + 1)) {
    record->calls++;
    record->errors += failed;
    record->uncharged += !is_charged;
    (is_charged ? record->time : record->waited) += time;
  }
  if (is_charged) charge_os(tb, time);
}

}  // namespace weir::rt
