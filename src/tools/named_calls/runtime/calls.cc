// Counts calls, and notes their arguments and results.

#include "tools/named_calls/runtime/memory.h"

#include "rt/hooks.h"

namespace weir::named_calls::runtime {

using rt::OpenCall, rt::ThreadBlock;

namespace {

template <class T>
T* at(ThreadBlock* tb, uint64_t offset) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(tb) + offset);
}
State& state(ThreadBlock* tb) { return *at<State>(tb, state_offset); }
Count& count_of(ThreadBlock* tb, const OpenCall& call) { return at<Count>(tb, counts_offset)[function_of(call.number)]; }
// `note` is one more than its index.
Record* record_of(ThreadBlock* tb, const OpenCall& call) {
  return call.note ? at<Record>(tb, records_offset) + call.note - 1 : nullptr;
}

bool begin(ThreadBlock* tb, OpenCall* call) {
  State& s = state(tb);
  uint64_t number = ++count_of(tb, *call).calls;
  if (s.traces && s.records == max_records) {
    s.untraced++;
  } else if (s.traces) {
    call->note = ++s.records;
    Record& r = *record_of(tb, *call);
    for (uint32_t i = 0; i < 6; i++) r.arguments[i] = rt::argument(tb, i);
    r.function = function_of(call->number);
  }
  const Answer& answer = at<Answer>(tb, answers_offset)[pattern_of(call->number)];
  if (!answer.is_set || (answer.at && answer.at != number)) return false;
  rt::result(tb) = answer.value;
  count_of(tb, *call).returned++;
  if (Record* r = record_of(tb, *call)) r->result = answer.value, r->state = HasReturned;
  return true;
}

// (Calls of the process that forked end there.)
void end(ThreadBlock* tb, const OpenCall& call, CallState how, uint64_t result) {
  if (call.is_inherited) return;
  (how == WasLeft ? count_of(tb, call).left : count_of(tb, call).returned)++;
  if (Record* r = record_of(tb, call)) r->state = how, r->result = result;
}
void has_returned(ThreadBlock* tb, const OpenCall* call) { end(tb, *call, HasReturned, rt::result(tb)); }
void was_left(ThreadBlock* tb, const OpenCall* call) { end(tb, *call, WasLeft, 0); }

constexpr rt::Hooks hooks{.call_begins = begin, .call_returns = has_returned, .call_left = was_left};

}  // namespace

}  // namespace weir::named_calls::runtime

TOOL_RUNTIME(calls) = {"calls", &weir::named_calls::runtime::hooks, {}};
