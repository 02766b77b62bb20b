// The parallel stack, where translated code does not keep it itself: frames that no return ends, stacks that are switched, calls
// whose callee is not the usual one, OS calls.
//
// A frame ends when control is back at its rsp, or above it on the same stack: rsp ≥ Frame::rsp. What a frame took is
//     total = now.clock - Frame::begin.clock,  self = now.self - Frame::begin.self
// and goes to the record of (site, callee), to the total only when the function has no other frame below.

#include "rt/runtime.h"

namespace weir::rt {

namespace {

template <class T>
T* at(ThreadBlock* tb, uint64_t offset) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(tb) + offset);
}
uint64_t* cells(ThreadBlock* tb) { return at<uint64_t>(tb, counters_offset); }
Frame* top(ThreadBlock* tb) { return reinterpret_cast<Frame*>(tb->frames_top); }
Frame* bottom(ThreadBlock* tb) { return at<Frame>(tb, frames_offset); }
uint64_t rsp_of(const Frame& f) { return f.rsp & ~uint64_t{frame_bits}; }
bool has_os(const Frame& f) { return f.rsp & FrameHasOs; }
uint64_t& waited_of(ThreadBlock* tb, const Frame* f) { return at<uint64_t>(tb, waits_offset)[f - bottom(tb)]; }
void begin_os(ThreadBlock* tb, Frame* f) {
  if (!has_os(*f)) f->os = waited_of(tb, f) = 0, f->rsp |= FrameHasOs;
}
bool is_tail(const Frame& f) { return f.rsp & FrameIsTail; }
bool is_counted(const Frame& f) { return f.rsp & FrameIsCounted; }

// (The runtime uses no other vector register, so xmm31 is what translated code left there.)
[[gnu::always_inline]] inline Times read_clock(ThreadBlock* tb) {
  Times t;
  if (tb->clock_in_register) {
    asm volatile("vmovq %%xmm31, %0\n\tvpextrq $1, %%xmm31, %1" : "=r"(t.clock), "=r"(t.self));
    return t;
  }
  t.clock = cells(tb)[0] + cells(tb)[1];
  t.self = t.clock + tb->self_bias;
  return t;
}
void advance(ThreadBlock* tb, uint64_t by) {
  Times t = now(tb);
  set_clock(tb, {t.clock + by, t.self + by});
}

[[gnu::always_inline]] inline void set_self_clock(ThreadBlock* tb, Times now, uint64_t self) {
  if (tb->clock_in_register) asm volatile("vpinsrq $1, %0, %%xmm31, %%xmm31" : : "r"(self));
  else tb->self_bias = self - now.clock;
}

constexpr uint64_t near = 1 << 12;    // a function that is jumped to further away from its caller's frame has another stack
constexpr uint64_t depth = 64 << 20;  // frames of one stack are no further apart than this

uint64_t distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

// The record with this key in a hash table, or a new one, whose index goes to the list; null when there is no room.
template <class R>
R* find(R* table, uint32_t size, uint32_t* list, uint32_t& used, uint32_t first, uint32_t second, uint32_t R::* a,
        uint32_t R::* b) {
  uint64_t hash = (uint64_t(first) * 0x9E3779B1u) ^ (uint64_t(second) * 0x85EBCA77u);
  for (uint32_t i = 0; i < 64; i++) {
    auto index = uint32_t((hash + i) % size);
    R& r = table[index];
    if (r.*a == first && r.*b == second) return &r;
    if (r.*b) continue;
    r.*a = first, r.*b = second;
    list[used++] = index;
    return &r;
  }
  return nullptr;
}

OtherRecord* other_record(ThreadBlock* tb, uint32_t site, uint32_t callee) {
  auto* table = at<OtherRecord>(tb, others_offset);
  auto* list = at<uint32_t>(tb, others_list_offset);
  uint32_t& used = tools(tb)->others;
  uint32_t first = near_other(site, callee), before = used;
  OtherRecord& r = table[first];
  if (r.site == site && r.callee == callee) return &r;
  if (!r.callee) {
    r.site = site, r.callee = callee;
    list[used++] = first;
    return &r;
  }
  auto* other = find(table + max_near_others, max_others - max_near_others, list, used, site, callee, &OtherRecord::site,
                     &OtherRecord::callee);
  if (used != before) list[before] += max_near_others;
  return other;
}

// What a call took.
struct Taken {
  uint64_t total, self, os, waited;
};

[[gnu::always_inline]] inline void add_to_cells(uint64_t* record, bool outermost, const Taken& t) {
  if (outermost) record[RecordTotal] += t.total, record[RecordOs] += t.os;
  reinterpret_cast<Spread*>(record + RecordSpread)->add(t.self);
}

[[gnu::always_inline]] inline void add_to_other(OtherRecord& record, bool outermost, const Taken& t) {
  if (outermost) record.total += t.total, record.os += t.os;
  record.self.add(t.self);
}

void add_wait(ThreadBlock* tb, uint32_t site, uint32_t callee, uint64_t waited) {
  auto* record = find(at<WaitRecord>(tb, wait_records_offset), max_waits, at<uint32_t>(tb, wait_list_offset),
                      tools(tb)->waits, site, callee, &WaitRecord::site, &WaitRecord::callee);
  if (record) record->waited += waited;
  else tools(tb)->lost++;
}

// `is_other`: it is not the usual callee, though it may be the first.
void add(ThreadBlock* tb, uint32_t site, uint32_t callee, bool counted, bool outermost, const Taken& t, bool is_other) {
  if (outermost && t.waited) add_wait(tb, site & ~direct_site, callee, t.waited);
  uint64_t* record = cells(tb) + (site & ~direct_site);
  if (site & direct_site) return add_to_cells(record, outermost, t);
  if (site > unknown_site && callee != not_arrived && !is_other) {
    if (!record[RecordCallee]) record[RecordCallee] = callee;
    if (record[RecordCallee] == callee) {
      record[RecordCalls] += !counted;
      return add_to_cells(record, outermost, t);
    }
  }
  OtherRecord* other = other_record(tb, site, callee);
  if (!other) {
    tools(tb)->lost++;
    return;
  }
  other->calls += !counted;
  add_to_other(*other, outermost, t);
}

// The node for a call from here, if there are to be any.
uint64_t context_for(ThreadBlock* tb, const Frame& parent, uint32_t site, uint32_t callee, bool counted) {
  Tools* t = tools(tb);
  if (!t->contexts) return 0;
  auto* nodes = at<Context>(tb, contexts_offset);
  auto from = uint32_t(parent.context);
  uint32_t hash = (from * 0x9E3779B1u ^ site * 0x85EBCA77u ^ callee * 0xC2B2AE3Du) >> 10;
  uint32_t& first = at<uint32_t>(tb, context_index_offset)[hash % context_index_size];
  for (uint32_t n = first; n; n = nodes[n].next)
    if (nodes[n].parent == from && nodes[n].site == site && nodes[n].callee == callee) return nodes[n].calls += !counted, n;
  if (t->contexts == max_contexts) return t->lost++, from;
  nodes[t->contexts] = {from, site, callee, first, !counted, 0, 0, 0};
  return first = t->contexts++;
}

// Read one by one, as they were written, so that the processor finds them among what is on its way to memory.
struct SiteAndCallee {
  uint32_t site, callee;
};
[[gnu::always_inline]] inline SiteAndCallee call_of(const Frame& f) {
  SiteAndCallee call;
  asm("movl %2, %0\n\tmovl %3, %1" : "=&r"(call.site), "=r"(call.callee) : "m"(f.site), "m"(f.callee));
  return call;
}

// The frame on top ends. (It is read once: what is written may be anything, for all the compiler knows.)
[[gnu::always_inline]] inline Frame take_off(ThreadBlock* tb, Taken& taken) {
  Frame* place = top(tb) - 1;
  auto [site, callee] = call_of(*place);
  Frame f{place->begin, site, callee, place->rsp, place->os, place->context};
  Times end = read_clock(tb);
  taken = {end.clock - f.begin.clock, end.self - f.begin.self, has_os(f) ? f.os : 0, has_os(f) ? waited_of(tb, place) : 0};
  set_self_clock(tb, end, f.begin.self);
  tb->frames_top = uint64_t(place);
  return f;
}

// Searches for frames with an rsp. Where a stack has been moved (Go's, when they grow), each return is to a place that no frame has: what
// such a search has found is kept, so that the next one does not look at all frames again.
class Search {
 public:
  explicit Search(uint64_t rsp) : rsp_(rsp) {}
  bool is_at(const Frame& f) {
    uint64_t other = rsp_of(f);
    if (other < rsp_ && other > low_) low_ = other;
    if (other > rsp_ && other < high_) high_ = other;
    steps_++;
    return other == rsp_;
  }
  // Is it not before `limit` either?
  bool is_done(const Absent& known, uint64_t limit) {
    if (known.limit != limit || rsp_ <= known.low || rsp_ >= known.high) return false;
    if (known.low > low_) low_ = known.low;
    if (known.high < high_) high_ = known.high;
    return true;
  }
  bool was_long() const { return steps_ > 32; }
  Absent result(uint64_t limit) const { return {limit, low_, high_}; }

 private:
  uint64_t rsp_, low_ = 0, high_ = ~uint64_t{0}, steps_ = 0;
};

void forget_searches(ThreadBlock* tb, const Frame* ended) {
  for (Absent& a : tools(tb)->absent)
    if (a.limit > uint64_t(ended)) a.limit = 0;
}

// The frame behind the one with this rsp; null: there is none.
Frame* find_frame(ThreadBlock* tb, uint64_t rsp) {
  Search search(rsp);
  auto is_done = [&](const Frame* f) {
    for (const Absent& a : tools(tb)->absent)
      if (search.is_done(a, uint64_t(f))) return true;
    return false;
  };
  for (Frame* f = top(tb); f > bottom(tb) + 1; f--) {
    if (has_os(f[-1]) && is_done(f)) break;
    if (search.is_at(f[-1])) return f;
  }
  if (search.was_long()) {
    tools(tb)->absent[tools(tb)->searches++ % 4] = search.result(tb->frames_top);
    begin_os(tb, top(tb) - 1);
  }
  return nullptr;
}

// A leaf call ends elsewhere than behind it.
void end_leaf(ThreadBlock* tb, LeafCall& leaf) {
  if (!leaf.site) return;
  Times end = read_clock(tb);
  set_self_clock(tb, end, leaf.begin.self);
  add_to_cells(cells(tb) + leaf.site, true, {end.clock - leaf.begin.clock, end.self - leaf.begin.self, 0, 0});
  leaf = {};
}

// What the handler with this frame interrupted; null: it is not known any more.
Interrupted* interrupted_by(ThreadBlock* tb, const Frame& handler) {
  for (auto& i : tb->interrupted)
    if (i.frame == rsp_of(handler) - handler_frame) return &i;
  return nullptr;
}

// A handler ends without returning, and with it the leaf call that it interrupted.
void abandon_leaf(ThreadBlock* tb, const Frame& handler) {
  if (Interrupted* i = interrupted_by(tb, handler)) end_leaf(tb, i->leaf);
}

void pop(ThreadBlock* tb, bool is_resolver = false) {
  Taken taken;
  Frame f = take_off(tb, taken);
  if (has_os(f)) forget_searches(tb, top(tb));
  if (f.site == signal_site) abandon_leaf(tb, f);
  bool outermost = f.callee != not_arrived && --cells(tb)[f.callee] == 0;
  add(tb, f.site, f.callee, is_counted(f), outermost, taken, is_resolver);
  if (tools(tb)->contexts) at<Context>(tb, contexts_offset)[f.context].self += taken.self;
  if (top(tb) == bottom(tb) || !(taken.os | taken.waited)) return;
  Frame* parent = top(tb) - 1;
  begin_os(tb, parent);
  parent->os += taken.os;
  waited_of(tb, parent) += taken.waited;
}

// The first frame of a stack that control was switched to: nobody called it.
bool begins_stack(const Frame& f) { return f.site == start_site; }

// The frame on top has returned to `rsp`, and with it those that it was tail-called from. (One that was left by changing its return address
// ends below that.)
void pop_returned(ThreadBlock* tb, uint64_t rsp) {
  for (bool more = true; more && top(tb) > bottom(tb) + 1;) {
    const Frame& f = top(tb)[-1];
    if (rsp_of(f) > rsp || rsp - rsp_of(f) > depth) return;
    more = (is_tail(f) || rsp_of(f) != rsp) && !begins_stack(f);
    pop(tb);
  }
}

void push(ThreadBlock* tb, uint32_t site, uint32_t callee, uint64_t rsp) {
  if (tb->frames_top + sizeof(Frame) > uint64_t(tb) + frames_end) sys(SYS_exit_group, 125);  // Weir will say why
  uint64_t context = callee != not_arrived ? context_for(tb, top(tb)[-1], site, callee, rsp & FrameIsCounted) : 0;
  *top(tb) = {now(tb), site, callee, rsp, 0, context};
  tb->frames_top += sizeof(Frame);
  if (callee != not_arrived) cells(tb)[callee]++;
}

// The frames above `base` are of a stack that control has left for another: they end for now, and are kept. (Its begin is the
// number of the stack then.)
void park(ThreadBlock* tb, Frame* base) {
  auto* parked = at<Frame>(tb, parked_offset);
  Tools* t = tools(tb);
  auto count = uint32_t(top(tb) - base);
  t->stacks++;
  if (t->parked + count > max_parked) t->lost++;
  else
    for (uint32_t i = 0; i < count; i++) parked[t->parked] = base[i], parked[t->parked++].begin = {t->stacks, 0};
  while (top(tb) > base) pop(tb);
}

// Control is back on a stack that was parked and has a frame with this rsp: the frames up to that one go on, as callees of what is
// on top, which resumed them.
bool unpark(ThreadBlock* tb, uint64_t rsp) {
  auto* parked = at<Frame>(tb, parked_offset);
  Tools* t = tools(tb);
  uint32_t i = t->parked;
  Search search(rsp);
  while (i && !search.is_done(t->absent_parked, i) && !search.is_at(parked[i - 1])) i--;
  if (!i || rsp_of(parked[i - 1]) != rsp) {
    if (search.was_long()) t->absent_parked = search.result(t->parked);
    return false;
  }
  t->absent_parked = {};
  uint32_t first = i - 1, end = i;
  while (first > 0 && parked[first - 1].begin.clock == parked[first].begin.clock) first--;
  while (end < t->parked && parked[end].begin.clock == parked[first].begin.clock) end++;
  for (uint32_t k = first; k < i; k++)
    push(tb, parked[k].site, parked[k].callee, (parked[k].rsp & ~uint64_t{FrameHasOs}) | FrameIsCounted);
  for (uint32_t k = end; k < t->parked; k++) parked[first + k - end] = parked[k];
  t->parked -= end - first;
  return true;
}

// The frame of a handler that control has left, without a return, for the stack that it interrupted; null: there is none.
Frame* left_handler(ThreadBlock* tb, uint64_t rsp) {
  bool has_handlers = false;
  for (const Interrupted& i : tb->interrupted) has_handlers |= i.frame != 0;
  for (Frame* f = top(tb) - 1; has_handlers && f > bottom(tb) && !begins_stack(*f); f--) {
    if (f->site != signal_site) continue;
    const Interrupted* i = interrupted_by(tb, *f);
    if (i && rsp >= i->stack && rsp < rsp_of(*f)) return nullptr;  // it is still there
    if (f == bottom(tb) + 1 || distance(rsp_of(f[-1]), rsp) <= depth) return f;
  }
  return nullptr;
}

// Frames that ended without a return: below `rsp` on its stack, or of handlers that had another one.
void drop_below(ThreadBlock* tb, uint64_t rsp) {
  while (top(tb) > bottom(tb) + 1) {
    Frame* f = top(tb) - 1;
    bool is_below = rsp_of(*f) <= rsp && rsp - rsp_of(*f) <= depth && !begins_stack(*f);
    if (!is_below) f = left_handler(tb, rsp);
    if (!f) return;
    while (top(tb) > f) pop(tb);
  }
}

// Go's functions that find no room call, before all else, who copies their stack to a larger one. Control is then behind that call, at
// another rsp: the frames of the stack have moved with it. The frame behind that of the call; null: it is not so.
Frame* move_stack(ThreadBlock* tb, uint64_t rsp, uint32_t caller) {
  constexpr int64_t most_between = 32;  // frames of those who copy it
  auto is_first_act = [&](const Frame* f) {
    return f[-1].callee == caller && rsp_of(f[-1]) == rsp_of(*f) + 8 && !is_tail(*f);
  };
  Frame* call = top(tb) - 1;
  while (call > bottom(tb) && top(tb) - call < most_between && !is_first_act(call)) call--;
  if (call == bottom(tb) || !is_first_act(call)) return nullptr;
  Frame* first = call - 1;
  while (first > bottom(tb) && !begins_stack(*first)) first--;
  if (first == bottom(tb)) return nullptr;
  uint64_t by = rsp - rsp_of(*call);
  for (Frame* f = first; f <= call; f++) f->rsp += by;
  forget_searches(tb, bottom(tb));
  return call + 1;
}

// Control is where the rsp of its caller's frames is `rsp`; behind a call of `caller`, if that is known.
void settle(ThreadBlock* tb, uint64_t rsp, uint32_t caller = not_arrived) {
  if (!tb->frames_top) return;
  Frame* f = find_frame(tb, rsp);
  if (!f && tools(tb)->parked && unpark(tb, rsp)) return pop_returned(tb, rsp);
  if (!f && caller != not_arrived) f = move_stack(tb, rsp, caller);
  if (!f) return drop_below(tb, rsp);
  while (top(tb) > f) {  // stacks that were left for this one, then calls on it that did not return
    Frame* begin = top(tb) - 1;
    while (begin > f && !begins_stack(*begin)) begin--;
    if (begins_stack(*begin)) park(tb, begin);
    else
      while (top(tb) > f) pop(tb);
  }
  pop_returned(tb, rsp);
}

// Functions may go on calling each other at their ends, as those of interpreters do, and never return. In a long chain a function that
// comes again has ended what it called so before; of a callee that is not known yet, its caller is looked at.
constexpr int long_chain = 16;
[[gnu::always_inline]] inline bool has_long_chain(ThreadBlock* tb) {
  int n = 0;
  for (Frame* f = top(tb); n < long_chain && f > bottom(tb) + 1 && is_tail(f[-1]); f--) n++;
  return n == long_chain;
}
void end_cycle(ThreadBlock* tb, uint32_t callee) {
  if (callee == not_arrived) callee = top(tb)[-1].callee;
  if (callee == not_arrived || !cells(tb)[callee]) return;
  Frame *f = top(tb), *outermost = f;
  for (bool more = true; more && f > bottom(tb) + 1; f--) {
    if (f[-1].callee == callee) outermost = f;
    more = is_tail(f[-1]);
  }
  while (top(tb) > outermost) pop(tb);
}
void push_tail(ThreadBlock* tb, uint32_t site, uint32_t callee, uint64_t rsp) {
  if (has_long_chain(tb)) end_cycle(tb, callee);
  push(tb, site, callee, rsp | FrameIsTail);
}

// Is this the function that the thread began in, which Weir alone knows?
[[gnu::always_inline]] inline bool is_in_unknown(ThreadBlock* tb) {
  return top(tb) == bottom(tb) + 1 && bottom(tb)->callee == unknown_function;
}

// The jump that led here, if it was one of the function whose frame is on top. A return may lead to a function, too: by push and ret, or to
// what ends a signal handler.
[[gnu::always_inline]] inline uint32_t site_of_jump(ThreadBlock* tb) {
  const Frame& f = top(tb)[-1];
  if (f.callee == tb->jump_caller || is_in_unknown(tb)) return tb->jump_site;
  return f.site == signal_site ? signal_site : unknown_site;
}

// A function has been jumped to at its begin: by a tail call, unless this is another stack.
void arrive_by_jump(ThreadBlock* tb, uint32_t callee, uint64_t rsp) {
  bool new_stack = top(tb) > bottom(tb) + 1 && distance(rsp_of(top(tb)[-1]), rsp) > near;
  if (new_stack) push(tb, start_site, callee, rsp);
  else push_tail(tb, site_of_jump(tb), callee, rsp);
}

// From a function to the middle of another: to a part of it that lies elsewhere (then it is a tail call, but no call that counts:
// those come to the begin), or back from there.
[[gnu::always_inline]] inline bool is_back(ThreadBlock* tb, uint32_t callee) {
  Frame* f = top(tb);
  return f > bottom(tb) + 1 && is_tail(f[-1]) && f[-2].callee == callee;
}
void jump_to_middle(ThreadBlock* tb, uint32_t callee, uint32_t site) {
  if (is_back(tb, callee)) pop(tb);
  else push_tail(tb, site, callee, rsp_of(top(tb)[-1]) | FrameIsCounted);
}

// The call on top has come to its callee.
void arrive(ThreadBlock* tb, uint32_t callee) {
  Frame& f = top(tb)[-1];
  f.callee = callee;
  cells(tb)[callee]++;
  f.context = context_for(tb, top(tb)[-2], f.site, callee, false);
}

// The resolver of a linkage table has found out who is called, and goes there. Its own call ends, and the call that led to it begins again, for
// whoever arrives.
void begin_resolved(ThreadBlock* tb, uint32_t resolver) {
  Frame f = top(tb)[-1];
  if (f.callee != resolver || f.site & direct_site || top(tb) <= bottom(tb) + 1) return;
  pop(tb, true);
  push(tb, f.site, not_arrived, f.rsp & ~uint64_t{FrameHasOs | FrameIsCounted});
}

// Control came to the middle of a function: to a landing pad, or through a table of jumps that has cases in a part elsewhere. Or
// anywhere in code that is written at run time: then it may be a call.
void resync(ThreadBlock* tb, uint32_t function, uint64_t rsp) {
  if (!tb->frames_top) return;
  end_leaf(tb, tb->leaf);
  settle(tb, rsp);
  const Frame& f = top(tb)[-1];
  if (f.callee == function || is_in_unknown(tb)) return;
  if (f.callee == not_arrived && rsp_of(f) == rsp + 8) arrive(tb, function);
  else jump_to_middle(tb, function, site_of_jump(tb));
}

// Control is behind a call of `caller`. It came by a return, and the frame of the call has ended, or by a jump.
void leave(ThreadBlock* tb, uint64_t rsp, uint32_t caller) {
  settle(tb, rsp, caller);
  tools(tb)->unseen += top(tb)[-1].callee != caller && !is_in_unknown(tb);
}

[[gnu::always_inline]] inline void note_extreme(ThreadBlock* tb, uint64_t above_min, uint64_t offset) {
  auto* spread = at<Spread>(tb, offset);
  spread->add(spread->min + above_min);
}

}  // namespace

Times now(ThreadBlock* tb) { return read_clock(tb); }
void set_clock(ThreadBlock* tb, Times t) {
  if (tb->clock_in_register) {
    asm volatile("vmovdqu64 %0, %%xmm31" : : "m"(t));
    return;
  }
  cells(tb)[0] = t.clock - cells(tb)[1];
  tb->self_bias = t.self - t.clock;
}

void shift_frames(ThreadBlock* tb, Times by) {
  for (Frame* f = bottom(tb); tb->frames_top && f < top(tb); f++) f->begin.clock -= by.clock, f->begin.self -= by.self;
}

// (Time stamps of two processors may differ.)
void tick(ThreadBlock* tb) {
  Tools* t = tools(tb);
  if (!t->by_wall) return;
  uint64_t stamp = time_stamp(tb);
  if (t->stamp && int64_t(stamp - t->stamp) > 0) advance(tb, stamp - t->stamp);
  t->stamp = stamp;
  tb->clock_at_os_call = now(tb);
}

void run_routine(ThreadBlock* tb, Routine routine, uint64_t a, uint64_t b) {
  uint64_t rsp = tb->regs.gpr[4];
  if (routine != Routine::OsLeave) tick(tb);  // (the time of OS calls is kept apart)
  switch (routine) {
    case Routine::AddToCounter:
      if (a < max_counters) cells(tb)[a] += b;
      break;
    case Routine::Nothing: break;
    case Routine::Enter: push(tb, uint32_t(a), uint32_t(b), rsp); break;
    case Routine::EnterTail: push_tail(tb, uint32_t(a), uint32_t(b), rsp + 8); break;
    case Routine::Leave: leave(tb, rsp, uint32_t(a)); break;
    case Routine::Extreme: note_extreme(tb, a, b); break;
    case Routine::Resync: resync(tb, uint32_t(a), rsp); break;
    case Routine::MiddleJump: jump_to_middle(tb, uint32_t(a), uint32_t(b)); break;
    case Routine::Arrival:
      if (top(tb)[-1].callee == not_arrived) {
        arrive(tb, uint32_t(a));
        break;
      }
      [[fallthrough]];
    case Routine::TailArrival: arrive_by_jump(tb, uint32_t(a), rsp + 8); break;
    case Routine::OsEnter:
      tb->clock_at_os_call = now(tb);
      os_enter(tb, uint32_t(a));
      break;
    case Routine::OsLeave:
      os_leave(tb);
      if (tools(tb)->by_wall) tools(tb)->stamp = time_stamp(tb);
      break;
    case Routine::Leaving:
      charge_os(tb, 0, 0);
      break;  // (a frame with OS time is ended by the runtime: by its own site and callee)
    case Routine::Resolved: begin_resolved(tb, uint32_t(a)); break;
    case Routine::RepeatBegin: tools(tb)->repeat = tb->rcx; break;
    case Routine::RepeatEnd: {
      uint64_t extra = (tools(tb)->repeat - tb->rcx) * (b >> 16) / (b & 0xffff);
      cells(tb)[a] += extra;
      advance(tb, extra);
      break;
    }
  }
}

// The routines that are called most, for the light doors: no other function is called here, so few registers are in use. False: left to
// run_routine(), with what is done so far.
namespace {

[[gnu::always_inline]] inline bool pop_quickly(ThreadBlock* tb) {
  Frame* f = top(tb) - 1;
  auto [site, callee] = call_of(*f);
  if (has_os(*f) || callee == not_arrived) return false;
  uint64_t* record = cells(tb) + (site & ~direct_site);
  if (!(site & direct_site)) {
    if (site <= unknown_site) return false;
    if (record[RecordCallee] == callee) {
      record[RecordCalls] += !is_counted(*f);
    } else {
      OtherRecord& other = at<OtherRecord>(tb, others_offset)[near_other(site, callee)];
      if (other.site != site || other.callee != callee) return false;
      other.calls += !is_counted(*f);
      record = &other.total;
    }
  }
  Times begin = f->begin, end = read_clock(tb);
  set_self_clock(tb, end, begin.self);
  tb->frames_top = uint64_t(f);
  bool outermost = --cells(tb)[callee] == 0;
  add_to_cells(record, outermost, {end.clock - begin.clock, end.self - begin.self, 0, 0});
  return true;
}

// A return site whose frame is not on top: most often, what was called has called another at its end. Or `caller` came by a jump: its own
// frame is on top, and nothing has ended.
[[gnu::always_inline]] inline bool leave_quickly(ThreadBlock* tb, uint64_t rsp, uint32_t caller) {
  if (top(tb)[-1].callee == caller && rsp_of(top(tb)[-1]) - rsp - 1 < near) return true;
  for (bool is_tail = true; is_tail;) {
    uint64_t bits = top(tb)[-1].rsp ^ rsp;
    if (bits & ~uint64_t{FrameIsTail | FrameIsCounted} || !pop_quickly(tb)) return false;
    is_tail = bits & FrameIsTail;
  }
  return true;
}

[[gnu::always_inline]] inline bool push_tail_quickly(ThreadBlock* tb, uint32_t site, uint32_t callee, uint64_t rsp) {
  Frame* f = top(tb);
  if (uint64_t(f + 1) > uint64_t(tb) + frames_end || has_long_chain(tb)) return false;
  f->begin = read_clock(tb);
  f->site = site;
  f->callee = callee;
  f->rsp = rsp | FrameIsTail;
  tb->frames_top = uint64_t(f + 1);
  cells(tb)[callee]++;
  return true;
}

// A function has been jumped to at its begin, by a tail call.
[[gnu::always_inline]] inline bool arrive_quickly(ThreadBlock* tb, uint32_t callee, uint64_t rsp) {
  Frame* f = top(tb);
  if (f <= bottom(tb) + 1 || distance(rsp_of(f[-1]), rsp) > near) return false;
  return push_tail_quickly(tb, site_of_jump(tb), callee, rsp);
}

[[gnu::always_inline]] inline bool jump_to_middle_quickly(ThreadBlock* tb, uint32_t callee, uint32_t site) {
  if (is_back(tb, callee)) return pop_quickly(tb);
  return push_tail_quickly(tb, site, callee, rsp_of(top(tb)[-1]) | FrameIsCounted);
}

}  // namespace

template <Routine routine, class F>
[[gnu::always_inline]] inline void run_light(F run) {
  ThreadBlock* tb;
  asm("movq %%gs:0, %0" : "=r"(tb));
  auto a = uint32_t(tb->routine_args[0]), b = uint32_t(tb->routine_args[1]);
  bool done = !tools(tb)->contexts && run(tb, tb->regs.gpr[4], a, b);
  tb->exit_id = uint32_t(done ? Routine::Nothing : routine);
}

using Rsp = uint64_t;
extern "C" {
#define LIGHT [[gnu::no_caller_saved_registers]] void
LIGHT rt_leave() {
  run_light<Routine::Leave>([](auto* tb, Rsp rsp, uint32_t caller, uint32_t) { return leave_quickly(tb, rsp, caller); });
}
LIGHT rt_enter_tail() {
  run_light<Routine::EnterTail>(
      [](auto* tb, Rsp rsp, uint32_t site, uint32_t callee) { return push_tail_quickly(tb, site, callee, rsp + 8); });
}
LIGHT rt_tail_arrival() {
  run_light<Routine::TailArrival>(
      [](auto* tb, Rsp rsp, uint32_t callee, uint32_t) { return arrive_quickly(tb, callee, rsp + 8); });
}
LIGHT rt_middle_jump() {
  run_light<Routine::MiddleJump>(
      [](auto* tb, Rsp, uint32_t callee, uint32_t site) { return jump_to_middle_quickly(tb, callee, site); });
}
LIGHT rt_extreme() {
  run_light<Routine::Extreme>([](auto* tb, Rsp, uint32_t, uint32_t offset) {
    note_extreme(tb, tb->routine_args[0], offset);
    return true;
  });
}
#undef LIGHT
}

// Time that the kernel took for the function that runs now, and that this waited.
void charge_os(ThreadBlock* tb, uint64_t time, uint64_t waited) {
  tools(tb)->os_clock += time;
  tools(tb)->waited += waited;
  if (!tb->frames_top || top(tb) == bottom(tb)) return;
  Frame* f = top(tb) - 1;
  begin_os(tb, f);
  f->os += time;
  waited_of(tb, f) += waited;
  if (!tools(tb)->contexts) return;
  Context& c = at<Context>(tb, contexts_offset)[f->context];
  c.os += time, c.waited += waited;
}

OsRecord* os_record(ThreadBlock* tb, uint32_t function, uint32_t number) {
  auto* record = find(at<OsRecord>(tb, os_offset), max_os, at<uint32_t>(tb, os_list_offset), tools(tb)->os, function,
                      number, &OsRecord::function, &OsRecord::number);
  if (!record) tools(tb)->lost++;
  return record;
}

// A handler of the program begins, or has ended. Its frame ends where its signal frame is. What it interrupted goes on, or is left for a
// place that the handler has chosen.
void begin_handler(ThreadBlock* tb, uint64_t frame) {
  if (!tb->frames_top) return;
  if (tools(tb)->os_number) tools(tb)->stamp = time_stamp(tb);
  tick(tb);
  for (uint32_t i = 0; i < interrupted_count; i++)
    if (tb->interrupted[i].frame == frame) tb->interrupted[i].leaf = tb->leaf, set_os_call_aside(tb, i);
  tb->leaf = {};
  push(tb, signal_site, not_arrived, frame + handler_frame);
}
void end_handler(ThreadBlock* tb, uint64_t frame, bool goes_on) {
  if (!tb->frames_top) return;
  tick(tb);
  settle(tb, frame + handler_frame);
  LeafCall& leaf = tb->leaf;  // that it interrupted: what it took belongs to its total
  if (!goes_on) end_leaf(tb, leaf);
  if (!leaf.site) return;
  Times t = now(tb);
  uint64_t handlers = (t.clock - t.self) - (leaf.begin.clock - leaf.begin.self);
  cells(tb)[leaf.site + RecordTotal] += handlers;
  leaf.begin.clock += handlers;
}

}  // namespace weir::rt
