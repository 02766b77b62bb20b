// The table of system calls (rt/call_effects.inc), and how its words are told.

#include "rt/call_effects.h"

#include "rt/call_functions.h"
#include "rt/call_terms.h"

namespace weir::rt {

namespace calls {
namespace {

constexpr int timespec = 16, timeval = 16, itimerval = 32, itimerspec = 32, stat = 144, statfs = 120, rusage = 144,
              rlimit = 16, siginfo = 128;

constexpr Line lines[] = {
#define CALL(number, name, parameters, ...) line(number, parameters __VA_OPT__(, ) __VA_ARGS__),
#include "rt/call_effects.inc"
#undef CALL
};
constexpr int line_count = sizeof lines / sizeof *lines;
constexpr int highest = lines[line_count - 1].number;

// The same without the room that lines do not use.
struct Entry {
  uint16_t first;  // of its terms
  uint8_t count : 7, known : 1;
  uint8_t used, narrow, is_signed;
};
consteval int count_terms() {
  int n = 0;
  for (const Line& l : lines) n += l.count;
  return n;
}
struct Table {
  Entry calls[highest + 1];
  Term terms[count_terms()];
};
consteval Table make_table() {
  Table t{};
  int n = 0;
  for (const Line& l : lines) {
    t.calls[l.number] = {uint16_t(n), l.count, 1, l.used, l.narrow, l.is_signed};
    for (int i = 0; i < l.count; i++) t.terms[n++] = l.terms[i];
  }
  return t;
}
constexpr Table table = make_table();

uint64_t size_of(const Teller& t, const Entry& entry, const Term& term) {
  if (term.count == no_arg) return term.unit;
  uint64_t count = t.arg(term.count);
  if (entry.is_signed >> term.count & 1) count = t.int_arg(term.count) > 0 ? uint64_t(t.int_arg(term.count)) : 0;
  else if (entry.narrow >> term.count & 1) count = uint32_t(count);
  uint64_t size;
  return __builtin_mul_overflow(count, term.unit, &size) ? ~uint64_t{0} : size;
}

void tell_term(Teller& t, const Entry& entry, const Term& term) {
  if (term.op == Op::ToldBy) return term.function(t);
  if (term.op == Op::Unknown) return t.unknown(term.argument, term.argument == no_arg ? 0 : t.arg(term.argument));
  int i = term.argument;
  uint64_t begin = t.arg(i), size = size_of(t, entry, term);
  if (term.or_null && !begin) return;
  switch (term.op) {
    case Op::Text: return t.text(i, begin, size);
    case Op::Reads: return t.reads(i, begin, size);
    case Op::Writes: return t.writes(i, begin, size, term.when);
    case Op::Updates: return t.updates(i, begin, size, term.when);
    case Op::Fills: return t.fills(i, begin, size, t.result() * term.unit, term.when);
    default: return t.later(i, begin, size);
  }
}

void tell_call(Teller& t, uint64_t number) {
  if (!is_known_call(number)) return t.unknown(no_arg);
  const Entry& entry = table.calls[number];
  for (int i = 0; i < entry.count; i++) tell_term(t, entry, table.terms[entry.first + i]);
}

}  // namespace
}  // namespace calls

bool is_known_call(uint64_t number) { return number <= calls::highest && calls::table.calls[number].known; }

void tell_effects_before(SystemCall& call, ReadMemory* read, TellEffect* tell, void* self) {
  bool is_known = is_known_call(call.number);
  call.used = is_known ? calls::table.calls[call.number].used : 0;
  call.narrow = is_known ? calls::table.calls[call.number].narrow : 0;
  Teller t(call, read, tell, self);
  calls::tell_call(t, call.number);
}

void tell_effects_after(const SystemCall& call, int64_t result, ReadMemory* read, TellEffect* tell, void* self) {
  SystemCall copy = call;
  Teller t(copy, result, read, tell, self);
  calls::tell_call(t, call.number);
}

bool Teller::holds(When when) const {
  constexpr int64_t EINTR = 4;
  switch (when) {
    case When::Success: return !has_failed();
    case When::Positive: return result_ > 0;
    case When::Interrupt: return error() == EINTR;
    case When::Done: return !has_failed() || error() == EINTR;
    default: return true;
  }
}

// What would go on at address 0 is cut off: no stretch ends before it begins.
void Teller::tell(Use use, int i, uint64_t begin, uint64_t size) {
  bool may_be_empty = use == Use::Unknown || use == Use::Remapped;
  if (!size && !may_be_empty) return;
  if (size > -begin && begin) size = -begin;
  tell_(self_, {use, uint8_t(i), begin, size});
}

void Teller::fills(int i, uint64_t begin, uint64_t room, uint64_t written, When when) {
  if (before_) tell(Use::MayWrite, i, begin, room);
  else if (holds(when)) tell(Use::Written, i, begin, written < room ? written : room);
}

void Teller::updates(int i, uint64_t begin, uint64_t size, When when) {
  reads(i, begin, size);
  writes(i, begin, size, when);
}

uint64_t Teller::text_size(uint64_t begin, uint64_t limit) const {
  char chunk[256];
  constexpr uint64_t page = 4096;
  for (uint64_t size = 0; size < limit;) {
    uint64_t at = begin + size, n = sizeof chunk;
    if (n > limit - size) n = limit - size;
    if (n > page - at % page) n = page - at % page;
    if (!load(at, chunk, n)) return size + 1;
    for (uint64_t i = 0; i < n; i++)
      if (size++, !chunk[i]) return size;
  }
  return limit;
}

void Teller::text(int i, uint64_t begin, uint64_t limit) {
  if (before_) reads(i, begin, text_size(begin, limit));
}

void Teller::texts(int i, uint64_t array) {
  constexpr uint64_t limit = 128 * 1024, most = 1 << 20;
  if (!before_) return;
  for (uint64_t n = 0; n < most; n++) {
    uint64_t at = 0;
    reads(i, array + n * 8, 8);
    if (!load(array + n * 8, &at, 8) || !at) return;
    text(i, at, limit);
  }
  unknown(i, array + most * 8);
}

uint32_t Teller::kept32(int k, uint64_t from) {
  if (before_) call_.kept[k] = load32(from);
  return uint32_t(call_.kept[k]);
}

}  // namespace weir::rt
