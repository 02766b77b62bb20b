// The parallel stack (rt/frames.h), where translated code does not keep it itself: frames that no return ends, stacks that are switched, calls whose
// callee is not the usual one.
//
// A frame ends when control is back at its rsp, or above it on the same stack: rsp ≥ Frame::rsp.
//
// What is in a frame behind its head, and what comes of it, is the affair of the `Tool`:
//
//   struct Frame : rt::Frame;                       a frame
//   struct Taken;                                   what is known of one that has ended
//   begin(tb, frame, parent)                        a call begins: all but the head
//   arrive(tb, frame, parent)                       its callee is known now
//   mark(tb, frame)                                 it is marked: the runtime will end it
//   take(tb, frame) → Taken                         it ends; it is still on top
//   end(tb, frame, taken, is_outermost, was_resolver)  … and is not any more. No other frame of its callee is left; what it called was to be found first
//   abandon(tb, index)                              a handler ends without a return: what it interrupted (ThreadBlock::interrupted) is left
//   lose(tb)                                        something found no room
//
// and, for those that end or begin quickly (which is for the light doors: no other function is called, so few registers are in use):
//
//   begin_quickly(tb, frame)
//   find_quickly(tb, frame, site, callee) → pointer, null: not so
//   end_quickly(that, taken, is_outermost)
#pragma once

#include "rt/abi.h"
#include "rt/sys.h"

namespace weir::rt {

// Searches for frames with an rsp. Where a stack has been moved (Go's, when they grow), each return is to a place that no frame has: what
// such a search has found is kept, so that the next one does not look at all frames again.
class Search {
 public:
  explicit Search(uint64_t rsp) : rsp_(rsp) {}
  bool is_at(const Frame& f) {
    uint64_t other = f.rsp & ~uint64_t{frame_bits};
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

template <class Tool>
class ParallelStack {
  using F = typename Tool::Frame;

 public:
  [[gnu::always_inline]] explicit ParallelStack(ThreadBlock* tb) : tb_(tb) {}

  bool exists() const { return tb_->frames.top; }
  F* top() { return reinterpret_cast<F*>(tb_->frames.top); }
  F* bottom() { return reinterpret_cast<F*>(reinterpret_cast<char*>(tb_) + frames_offset); }
  static uint64_t rsp_of(const F& f) { return f.rsp & ~uint64_t{frame_bits}; }
  static bool is_marked(const F& f) { return f.rsp & FrameIsMarked; }

  void mark(F* f) {
    if (is_marked(*f)) return;
    Tool::mark(tb_, *f);
    f->rsp |= FrameIsMarked;
  }

  void push(uint32_t site, uint32_t callee, uint64_t rsp) {
    if (tb_->frames.top + sizeof(F) > reinterpret_cast<uint64_t>(tb_) + frames_end)
      sys(SYS_exit_group, 125);  // Weir will say why
    F* f = top();
    f->site = site, f->callee = callee, f->rsp = rsp;
    Tool::begin(tb_, *f, f[-1]);
    tb_->frames.top += sizeof(F);
    if (callee != not_arrived) frames_of(callee)++;
  }
  void push_tail(uint32_t site, uint32_t callee, uint64_t rsp) {
    if (has_long_chain()) end_cycle(callee);
    push(site, callee, rsp | FrameIsTail);
  }
  bool push_tail_quickly(uint32_t site, uint32_t callee, uint64_t rsp);

  void pop(bool was_resolver = false);
  bool pop_quickly();

  // Control is where the rsp of its caller's frames is `rsp`; behind a call of `caller`, if that is known.
  void settle(uint64_t rsp, uint32_t caller = not_arrived);
  // Control is behind a call of `caller`: it came by a return, and the frame of the call has ended, or by a jump. False: that function has no frame.
  bool leave(uint64_t rsp, uint32_t caller) {
    settle(rsp, caller);
    return top()[-1].callee == caller || is_in_unknown();
  }
  bool leave_quickly(uint64_t rsp, uint32_t caller);

  // A function has been called or jumped to.
  void arrive(uint32_t callee, uint64_t rsp) {
    if (top()[-1].callee == not_arrived) arrive_by_call(callee);
    else arrive_by_jump(callee, rsp);
  }
  // … at its begin: by a tail call, unless this is another stack.
  void arrive_by_jump(uint32_t callee, uint64_t rsp) {
    bool new_stack = top() > bottom() + 1 && distance(rsp_of(top()[-1]), rsp) > near;
    if (new_stack) push(start_site, callee, rsp);
    else push_tail(site_of_jump(), callee, rsp);
  }
  bool arrive_quickly(uint32_t callee, uint64_t rsp);
  // From a function to the middle of another: to a part of it that lies elsewhere (then it is a tail call, but no call that counts:
  // those come to the begin), or back from there.
  void jump_to_middle(uint32_t callee, uint32_t site) {
    if (is_back(callee)) pop();
    else push_tail(site, callee, rsp_of(top()[-1]) | FrameIsCounted);
  }
  bool jump_to_middle_quickly(uint32_t callee, uint32_t site) {
    if (is_back(callee)) return pop_quickly();
    return push_tail_quickly(site, callee, rsp_of(top()[-1]) | FrameIsCounted);
  }
  // Control came to the middle of a function: to a landing pad, or through a table of jumps that has cases in a part elsewhere. Or
  // anywhere in code that is written at run time: then it may be a call.
  void resync(uint32_t function, uint64_t rsp);
  // The resolver of a linkage table has found out who is called, and goes there. Its own call ends, and the call that led to it begins again, for
  // whoever arrives.
  void begin_resolved(uint32_t resolver);

 private:
  static constexpr uint64_t near =
      1 << 12;  // a function that is jumped to further away from its caller's frame has another stack
  static constexpr uint64_t depth = 64 << 20;  // frames of one stack are no further apart than this
  static uint64_t distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }
  static bool is_tail(const F& f) { return f.rsp & FrameIsTail; }
  // The first frame of a stack that control was switched to: nobody called it.
  static bool begins_stack(const F& f) { return f.site == start_site; }

  template <class T>
  T* at(uint64_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(tb_) + offset);
  }
  uint64_t& frames_of(uint32_t callee) { return at<uint64_t>(counters_offset)[callee]; }
  StackState& state() { return *at<StackState>(stack_state_offset); }

  // Read one by one, as they were written, so that the processor finds them among what is on its way to memory.
  struct SiteAndCallee {
    uint32_t site, callee;
  };
  [[gnu::always_inline]] static SiteAndCallee call_of(const F& f) {
    SiteAndCallee call;
    asm("movl %2, %0\n\tmovl %3, %1" : "=&r"(call.site), "=r"(call.callee) : "m"(f.site), "m"(f.callee));
    return call;
  }
  // Is this the function that the thread began in, which Weir alone knows?
  [[gnu::always_inline]] bool is_in_unknown() { return top() == bottom() + 1 && bottom()->callee == unknown_function; }
  // The jump that led here, if it was one of the function whose frame is on top. A return may lead to a function, too: by push and ret, or to
  // what ends a signal handler.
  [[gnu::always_inline]] uint32_t site_of_jump() {
    const F& f = top()[-1];
    if (f.callee == tb_->frames.jump_caller || is_in_unknown()) return tb_->frames.jump_site;
    return f.site == signal_site ? signal_site : unknown_site;
  }
  [[gnu::always_inline]] bool is_back(uint32_t callee) {
    F* f = top();
    return f > bottom() + 1 && is_tail(f[-1]) && f[-2].callee == callee;
  }
  void arrive_by_call(uint32_t callee) {
    F* f = top() - 1;
    f->callee = callee;
    frames_of(callee)++;
    Tool::arrive(tb_, *f, f[-1]);
  }

  // Functions may go on calling each other at their ends, as those of interpreters do, and never return. In a long chain a function that
  // comes again has ended what it called so before; of a callee that is not known yet, its caller is looked at.
  static constexpr int long_chain = 16;
  [[gnu::always_inline]] bool has_long_chain() {
    int n = 0;
    for (F* f = top(); n < long_chain && f > bottom() + 1 && is_tail(f[-1]); f--) n++;
    return n == long_chain;
  }
  void end_cycle(uint32_t callee);

  void forget_searches(const F* ended) {
    for (Absent& a : state().absent)
      if (a.limit > reinterpret_cast<uint64_t>(ended)) a.limit = 0;
  }
  F* find_frame(uint64_t rsp);
  Interrupted* interrupted_by(const F& handler);
  F* left_handler(uint64_t rsp);
  F* move_stack(uint64_t rsp, uint32_t caller);
  void pop_returned(uint64_t rsp);
  void drop_below(uint64_t rsp);
  void park(F* base);
  bool unpark(uint64_t rsp);

  ThreadBlock* tb_;
};

// The frame behind the one with this rsp; null: there is none.
template <class Tool>
auto ParallelStack<Tool>::find_frame(uint64_t rsp) -> F* {
  Search search(rsp);
  auto is_done = [&](const F* f) {
    for (const Absent& a : state().absent)
      if (search.is_done(a, reinterpret_cast<uint64_t>(f))) return true;
    return false;
  };
  for (F* f = top(); f > bottom() + 1; f--) {
    if (is_marked(f[-1]) && is_done(f)) break;
    if (search.is_at(f[-1])) return f;
  }
  if (search.was_long()) {
    state().absent[state().searches++ % 4] = search.result(tb_->frames.top);
    mark(top() - 1);
  }
  return nullptr;
}

// What the handler with this frame interrupted; null: it is not known any more.
template <class Tool>
Interrupted* ParallelStack<Tool>::interrupted_by(const F& handler) {
  for (auto& i : tb_->interrupted)
    if (i.frame == rsp_of(handler) - handler_frame) return &i;
  return nullptr;
}

// (The frame is read once: what is written may be anything, for all the compiler knows.)
template <class Tool>
void ParallelStack<Tool>::pop(bool was_resolver) {
  F* place = top() - 1;
  auto [site, callee] = call_of(*place);
  F f = *place;
  f.site = site, f.callee = callee;
  auto taken = Tool::take(tb_, *place);
  tb_->frames.top = reinterpret_cast<uint64_t>(place);
  if (is_marked(f)) forget_searches(place);
  if (site == signal_site)
    if (Interrupted* i = interrupted_by(f)) Tool::abandon(tb_, static_cast<uint32_t>(i - tb_->interrupted));
  bool is_outermost = callee != not_arrived && --frames_of(callee) == 0;
  Tool::end(tb_, f, taken, is_outermost, was_resolver);
}

// The frame on top has returned to `rsp`, and with it those that it was tail-called from. (One that was left by changing its return address
// ends below that.)
template <class Tool>
void ParallelStack<Tool>::pop_returned(uint64_t rsp) {
  for (bool more = true; more && top() > bottom() + 1;) {
    const F& f = top()[-1];
    if (rsp_of(f) > rsp || rsp - rsp_of(f) > depth) return;
    more = (is_tail(f) || rsp_of(f) != rsp) && !begins_stack(f);
    pop();
  }
}

// The frames above `base` are of a stack that control has left for another: they end for now, and are kept.
template <class Tool>
void ParallelStack<Tool>::park(F* base) {
  auto* parked = at<ParkedFrame>(parked_offset);
  StackState& s = state();
  auto count = static_cast<uint32_t>(top() - base);
  s.stacks++;
  if (s.parked + count > max_parked) Tool::lose(tb_);
  else
    for (uint32_t i = 0; i < count; i++) parked[s.parked++] = {base[i], s.stacks};
  while (top() > base) pop();
}

// Control is back on a stack that was parked and has a frame with this rsp: the frames up to that one go on, as callees of what is
// on top, which resumed them.
template <class Tool>
bool ParallelStack<Tool>::unpark(uint64_t rsp) {
  auto* parked = at<ParkedFrame>(parked_offset);
  StackState& s = state();
  uint32_t i = s.parked;
  Search search(rsp);
  while (i && !search.is_done(s.absent_parked, i) && !search.is_at(parked[i - 1].frame)) i--;
  if (!i || (parked[i - 1].frame.rsp & ~uint64_t{frame_bits}) != rsp) {
    if (search.was_long()) s.absent_parked = search.result(s.parked);
    return false;
  }
  s.absent_parked = {};
  uint32_t first = i - 1, end = i;
  while (first > 0 && parked[first - 1].stack == parked[first].stack) first--;
  while (end < s.parked && parked[end].stack == parked[first].stack) end++;
  for (uint32_t k = first; k < i; k++) {
    const Frame f = parked[k].frame;
    push(f.site, f.callee, (f.rsp & ~uint64_t{FrameIsMarked}) | FrameIsCounted);
  }
  for (uint32_t k = end; k < s.parked; k++) parked[first + k - end] = parked[k];
  s.parked -= end - first;
  return true;
}

// The frame of a handler that control has left, without a return, for the stack that it interrupted; null: there is none.
template <class Tool>
auto ParallelStack<Tool>::left_handler(uint64_t rsp) -> F* {
  bool has_handlers = false;
  for (const Interrupted& i : tb_->interrupted) has_handlers |= i.frame != 0;
  for (F* f = top() - 1; has_handlers && f > bottom() && !begins_stack(*f); f--) {
    if (f->site != signal_site) continue;
    const Interrupted* i = interrupted_by(*f);
    if (i && rsp >= i->stack && rsp < rsp_of(*f)) return nullptr;  // it is still there
    if (f == bottom() + 1 || distance(rsp_of(f[-1]), rsp) <= depth) return f;
  }
  return nullptr;
}

// Frames that ended without a return: below `rsp` on its stack, or of handlers that had another one.
template <class Tool>
void ParallelStack<Tool>::drop_below(uint64_t rsp) {
  while (top() > bottom() + 1) {
    F* f = top() - 1;
    bool is_below = rsp_of(*f) <= rsp && rsp - rsp_of(*f) <= depth && !begins_stack(*f);
    if (!is_below) f = left_handler(rsp);
    if (!f) return;
    while (top() > f) pop();
  }
}

// Go's functions that find no room call, before all else, who copies their stack to a larger one. Control is then behind that call, at
// another rsp: the frames of the stack have moved with it. The frame behind that of the call; null: it is not so.
template <class Tool>
auto ParallelStack<Tool>::move_stack(uint64_t rsp, uint32_t caller) -> F* {
  constexpr int64_t most_between = 32;  // frames of those who copy it
  auto is_first_act = [&](const F* f) { return f[-1].callee == caller && rsp_of(f[-1]) == rsp_of(*f) + 8 && !is_tail(*f); };
  F* call = top() - 1;
  while (call > bottom() && top() - call < most_between && !is_first_act(call)) call--;
  if (call == bottom() || !is_first_act(call)) return nullptr;
  F* first = call - 1;
  while (first > bottom() && !begins_stack(*first)) first--;
  if (first == bottom()) return nullptr;
  uint64_t by = rsp - rsp_of(*call);
  for (F* f = first; f <= call; f++) f->rsp += by;
  forget_searches(bottom());
  return call + 1;
}

template <class Tool>
void ParallelStack<Tool>::settle(uint64_t rsp, uint32_t caller) {
  if (!exists()) return;
  F* f = find_frame(rsp);
  if (!f && state().parked && unpark(rsp)) return pop_returned(rsp);
  if (!f && caller != not_arrived) f = move_stack(rsp, caller);
  if (!f) return drop_below(rsp);
  while (top() > f) {  // stacks that were left for this one, then calls on it that did not return
    F* begin = top() - 1;
    while (begin > f && !begins_stack(*begin)) begin--;
    if (begins_stack(*begin)) park(begin);
    else
      while (top() > f) pop();
  }
  pop_returned(rsp);
}

template <class Tool>
void ParallelStack<Tool>::end_cycle(uint32_t callee) {
  if (callee == not_arrived) callee = top()[-1].callee;
  if (callee == not_arrived || !frames_of(callee)) return;
  F *f = top(), *outermost = f;
  for (bool more = true; more && f > bottom() + 1; f--) {
    if (f[-1].callee == callee) outermost = f;
    more = is_tail(f[-1]);
  }
  while (top() > outermost) pop();
}

template <class Tool>
void ParallelStack<Tool>::resync(uint32_t function, uint64_t rsp) {
  settle(rsp);
  const F& f = top()[-1];
  if (f.callee == function || is_in_unknown()) return;
  if (f.callee == not_arrived && rsp_of(f) == rsp + 8) arrive_by_call(function);
  else jump_to_middle(function, site_of_jump());
}

template <class Tool>
void ParallelStack<Tool>::begin_resolved(uint32_t resolver) {
  F f = top()[-1];
  if (f.callee != resolver || f.site & direct_site || top() <= bottom() + 1) return;
  pop(true);
  push(f.site, not_arrived, f.rsp & ~uint64_t{FrameIsMarked | FrameIsCounted});
}

// ---- Quickly. False: left to those above, with what is done so far. ----

template <class Tool>
[[gnu::always_inline]] inline bool ParallelStack<Tool>::pop_quickly() {
  F* f = top() - 1;
  auto [site, callee] = call_of(*f);
  if (is_marked(*f) || callee == not_arrived) return false;
  auto* record = Tool::find_quickly(tb_, *f, site, callee);
  if (!record) return false;
  auto taken = Tool::take_quickly(tb_, *f);
  tb_->frames.top = reinterpret_cast<uint64_t>(f);
  bool is_outermost = --frames_of(callee) == 0;
  Tool::end_quickly(record, taken, is_outermost);
  return true;
}

// A return site whose frame is not on top: most often, what was called has called another at its end. Or `caller` came by a jump: its own
// frame is on top, and nothing has ended.
template <class Tool>
[[gnu::always_inline]] inline bool ParallelStack<Tool>::leave_quickly(uint64_t rsp, uint32_t caller) {
  if (top()[-1].callee == caller && rsp_of(top()[-1]) - rsp - 1 < near) return true;
  for (bool more = true; more;) {
    uint64_t bits = top()[-1].rsp ^ rsp;
    if (bits & ~uint64_t{FrameIsTail | FrameIsCounted} || !pop_quickly()) return false;
    more = bits & FrameIsTail;
  }
  return true;
}

template <class Tool>
[[gnu::always_inline]] inline bool ParallelStack<Tool>::push_tail_quickly(uint32_t site, uint32_t callee, uint64_t rsp) {
  F* f = top();
  if (reinterpret_cast<uint64_t>(f + 1) > reinterpret_cast<uint64_t>(tb_) + frames_end || has_long_chain()) return false;
  Tool::begin_quickly(tb_, *f);
  f->site = site;
  f->callee = callee;
  f->rsp = rsp | FrameIsTail;
  tb_->frames.top = reinterpret_cast<uint64_t>(f + 1);
  frames_of(callee)++;
  return true;
}

template <class Tool>
[[gnu::always_inline]] inline bool ParallelStack<Tool>::arrive_quickly(uint32_t callee, uint64_t rsp) {
  F* f = top();
  if (f <= bottom() + 1 || distance(rsp_of(f[-1]), rsp) > near) return false;
  return push_tail_quickly(site_of_jump(), callee, rsp);
}

}  // namespace weir::rt
