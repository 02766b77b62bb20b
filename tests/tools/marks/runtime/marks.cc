#include "../marks.h"

#include "rt/hooks.h"
#include "rt/regions.h"
#include "rt/told_calls.h"

namespace weir::marks {

using namespace weir::rt;

namespace {

constexpr uint64_t end_of_memory = uint64_t{1} << 47;

struct State {
  uint32_t is_on, count;
  MarksNote notes[MARKS_LOG_SIZE];
};
State& state(ThreadBlock* tb) { return *reinterpret_cast<State*>(reinterpret_cast<uint64_t>(tb) + tool_offset); }

uint8_t* shadow(uint64_t at) { return reinterpret_cast<uint8_t*>(tool_region(MARKS_SHADOW).begin + at / 8); }

void set_marks(uint64_t begin, uint64_t size, bool is_marked) {
  if (begin >= end_of_memory || size > end_of_memory - begin) return;
  for (uint64_t at = begin, end = begin + size; at < end;) {
    bool is_whole = at % 8 == 0 && end - at >= 8;
    uint64_t n = is_whole ? 8 : 1;
    auto bits = uint8_t(is_whole ? 0xff : 1 << at % 8);
    if (is_marked) __atomic_fetch_or(shadow(at), bits, __ATOMIC_RELAXED);
    else __atomic_fetch_and(shadow(at), uint8_t(~bits), __ATOMIC_RELAXED);
    at += n;
  }
}

void note(ThreadBlock* tb, const ToldCall& call, uint32_t use, const Effect& e = {}) {
  State& s = state(tb);
  if (!s.is_on || s.count == MARKS_LOG_SIZE) return;
  s.notes[s.count++] = {call.time, use, call.pc, call.number, call.result, e.argument, e.begin, e.size};
}

void answer(ThreadBlock* tb, const uint64_t* a) {
  State& s = state(tb);
  const ToldCalls& counts = *reinterpret_cast<const ToldCalls*>(reinterpret_cast<uint64_t>(tb) + told_calls_offset);
  switch (a[0]) {
    case MARKS_READ:
      for (uint64_t i = 0; i < a[2]; i++) reinterpret_cast<uint8_t*>(a[3])[i] = *shadow(a[1] + i) >> (a[1] + i) % 8 & 1;
      break;
    case MARKS_CLEAR: return set_marks(a[1], a[2], false);
    case MARKS_REGION:
      *reinterpret_cast<MarksRange*>(a[2]) = {tool_region(uint32_t(a[1])).begin, tool_region(uint32_t(a[1])).end};
      break;
    case MARKS_COUNTS: *reinterpret_cast<MarksCounts*>(a[1]) = {counts.told, counts.unknown, counts.without_begin}; break;
    case MARKS_LOG:
      if (a[3]) {
        uint32_t n = s.count < a[2] ? s.count : uint32_t(a[2]);
        for (uint32_t i = 0; i < n; i++) reinterpret_cast<MarksNote*>(a[1])[i] = s.notes[i];
        *reinterpret_cast<uint64_t*>(a[3]) = n;
      }
      s.is_on = true, s.count = 0;
      break;
    default: break;
  }
}

void begin(ThreadBlock* tb, const ToldCall& call) {
  if (call.number == MARKS) return answer(tb, call.arguments);
  note(tb, call, MARKS_BEGIN);
}

void effect(ThreadBlock* tb, const ToldCall& call, const Effect& e) {
  if (call.number == MARKS) return;
  if (e.use == Use::Written) set_marks(e.begin, e.size, true);
  note(tb, call, uint32_t(e.use), e);
}

void end(ThreadBlock* tb, const ToldCall& call) {
  if (call.number != MARKS) note(tb, call, MARKS_END);
}

constexpr Hooks hooks{.told_call_begins = begin, .told_call_effect = effect, .told_call_ends = end};

}  // namespace
}  // namespace weir::marks

TOOL_RUNTIME(marks) = {"marks", &weir::marks::hooks, {}};
