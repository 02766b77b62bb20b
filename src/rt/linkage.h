// The map of linkage information, and the walk that starts from it.
//
// For each stack the frames of the last sample are kept, outermost first, as *links*: which word held the return address, what
// it was, and the same for the other word that the step to the caller read (the caller's rbp, where it was saved). A step is a
// function of the frame's registers (pc, sp, bp) and of the words that it reads. So:
//
//     if a frame has the same registers as one of the last sample, and all words that were read from there on outward
//     are as they were, then the walk from there on is the one of the last sample.
//
// (By induction: same registers and words, same caller, with the same registers.) That the words are the same is not enough:
// a dead frame may have left its return address just there, in a frame that does not write all its words. And return addresses
// alone are not enough: of a frame whose CFA comes from rbp, the callee's saved rbp decides where the caller is.
//
// The walk goes outward from the innermost frame, which is always unwound. When a frame has the registers of a kept one, it has
// *joined*: the links from there on are compared with the stack. Up to the first that has changed they are taken over; from
// there on frames are unwound again, until one joins or all are done. Kept frames that a step goes past are passed over: they
// belong to the changed region. Nothing but the comparison depends on how deep the stack is.
//
// Three words are read for signal frames, and for frames that were aligned: these have two links, the inner one, which is
// *silent*, for the word that rsp follows from. What the last step, which found the end, has read is in no link: it is taken
// again, or (end_slot) looked at, each time. After a change of what is mapped (code.generation), of the stack's bounds or of the means, all is forgotten.
//
// The step of the innermost frame, which is always unwound, may rest on any register. The dynamic linker's frame, whose CFA comes from
// rbx, rests on which frame inward of it has saved that: its link never compares as equal, so it is unwound each time.
//
// Frames that were guessed are no function of so few words. A region of unchanged links with such frames gets a confidence
// instead: less for inner ones, least for one between two changed regions; below options.confidence it is unwound again.
#pragma once

#include "rt/step.h"

namespace weir::rt {

// What is compared: 32 bytes a frame, and on the stack one cache line, mostly.
struct Link {
  uint64_t slot;   // where the return address is,
  uint64_t value;  // and what it was
  uint64_t second_slot;
  uint64_t second;
};
static_assert(sizeof(Link) == 32);

// What else is known of it: the registers behind the step (pc is link.value), and sums over all that lie further out.
struct KeptFrame {
  enum Flags : uint8_t { Silent = 1, Exact = 2, Guessed = 4, ByFramePointer = 8, Turned = 16 };
  uint64_t sp, bp;
  uint32_t depth;              // frames from the outermost to this one,
  uint16_t guesses, pointers;  // and how many of them were guessed, and found by frame pointers
  uint16_t turn;               // how many changes of the stack lie further out; within one, sp only grows
  uint8_t flags;
};
static_assert(sizeof(KeptFrame) == 32);

struct Map {
  Link* links;  // outermost first
  KeptFrame* frames;
  uint32_t count = 0;
  uint64_t base = 0;      // the outermost slot of the innermost stack: by it the map is found
  uint64_t used = 0;      // when
  uint64_t end_slot = 0;  // has_firm_end: the word that ends it, which is 0; 0: there is none, a rule says so
  uint16_t turn = 0;      // of the innermost frame
  Stop end = Stop::None;
  bool is_good = false;  // whole, so that the next sample can start from it
  bool has_firm_end = false;

  State state_of(uint32_t i) const {
    const KeptFrame& f = frames[i];
    return {links[i].value, f.sp, f.bp, (f.flags & KeptFrame::Exact) != 0, nullptr};
  }
};

constexpr uint32_t max_turns = 16;     // from stack to stack, in one walk
constexpr uint32_t kept_of_deep = 64;  // innermost frames of a stack that is deeper than there is room for

// How many of the outermost `outer` links lie outward of the innermost one that has changed, and that one itself; 0 where none has.
template <class Memory>
[[gnu::noinline]] uint32_t changed_of(const Link* links, uint32_t outer, Memory& memory) {
  auto differs = [&](const Link& l) -> uint64_t {
    uint64_t a, b;
    if (!memory.read(l.slot, a) || !memory.read(l.second_slot, b)) return 1;
    return (a ^ l.value) | (b ^ l.second);
  };
  // Innermost first: the addresses on the stack grow. Four at a time, whose reads do not wait for each other.
  const Link* l = links + outer;
  for (; l - links >= 4; l -= 4)
    if (differs(l[-1]) | differs(l[-2]) | differs(l[-3]) | differs(l[-4])) break;
  while (l != links && !differs(l[-1])) l--;
  return static_cast<uint32_t>(l - links);
}

// Step follows step, and each waits for what it reads. The next frames are on the next lines of the stack, and many of them are those
// of the last sample, or called from the same places.
template <class Memory>
void expect_walk(const Stepper<Memory>& stepper, const Map& old, uint64_t sp) {
  constexpr uint32_t frames = 8, lines = 16, line = 64;
  for (uint32_t i = 0; i < lines; i++) __builtin_prefetch(reinterpret_cast<const void*>(sp + i * line));
  for (uint32_t i = old.count; i > 0 && i + frames > old.count; i--) stepper.expect(old.links[i - 1].value);
}

// The most frequent walk is a short one: only the innermost frame stands elsewhere. Its `step` leads to the registers of the frame that the
// map has next, no word that a link holds has changed, and the end, which rests on one word or none, is where it was: then the walk
// would take over all of the map. (The link of the innermost frame itself is put down anew. Where it would have another shape, as one of
// two words or of another means, or where a guess may have to be made again, the whole walk is made.)
template <class Memory>
bool holds(const Map& m, const Step& step, Memory& memory) {
  const KeptFrame& innermost = m.frames[m.count - 1];
  uint64_t end_word = 0;
  return step.means == Means::Cfi && !step.has_sp_word && !step.is_unsure && step.caller == m.state_of(m.count - 1) &&
         (innermost.flags & ~KeptFrame::Exact) == 0 && innermost.guesses == 0 && m.has_firm_end &&
         changed_of(m.links, m.count - 1, memory) == 0 &&
         (!m.end_slot || (memory.read(m.end_slot, end_word) && end_word == 0));
}

// ---- One walk ---------------------------------------------------------------------------------------------------------
template <class Memory>
class Walk {
 public:
  Walk(const Stepper<Memory>& stepper, const Map& old, Map& fresh, uint32_t capacity, uint8_t confidence, Memory& memory)
      : stepper_(stepper), old_(old), fresh_(fresh), capacity_(capacity), confidence_(confidence), memory_(memory) {}

  struct Found {
    uint32_t kept;  // of the old links, the outermost so many
    Stop end;
  };

  // Fills `fresh` with the frames from the innermost to where the kept ones begin. `step` is the one from `top`, and then the last one.
  Found run(const State& top, Stop stop, Step& step) {
    fresh_.count = 0;
    left_ = barrier_ = old_.count;
    turn_ = old_.turn;
    State state = top;
    for (;; stop = stepper_.step(state, step)) {
      if (stop == Stop::NeedsRbx) [[unlikely]] {
        uint64_t rbx = rbx_of(top);
        stop = rbx ? stepper_.step_with(state, rbx, step) : stepper_.step_without(state, step);
        step.is_unsure = true;
      }
      if (stop != Stop::None) return {0, stop};
      bool is_turn = step.has_sp_word && step.caller.sp <= state.sp;
      if (is_turn && ++turns_ > max_turns) return {0, Stop::Loop};
      if (Stop why = push(step, is_turn); why != Stop::None) return {0, why};
      unwound++;
      // What a call need not keep, code that is called with its frame in such a register leaves alone: it is written for that.
      state = step.caller, state.registers = fresh_.count == 1 ? top.registers : nullptr;
      pass(state, is_turn);
      if (!has_joined(state)) continue;

      // From here on outward all is as before, up to the first change.
      uint32_t outer = left_ - 1;
      uint32_t changed = changed_of(old_.links, outer, memory_);
      if (!is_trusted(changed, outer)) continue;
      if (turns_ + turns_in(changed, outer) > max_turns) {  // where it ends depends on all of them
        left_ = 0;
        continue;
      }
      if (changed == 0) {
        Stop end = stepper_.step(outer ? old_.state_of(0) : state, step);
        if (end != Stop::None && end != Stop::NeedsRbx) return fits(outer) ? Found{outer, end} : too_deep(outer);
      }
      // The silent link belongs to the one outward of it: one step has read both.
      if (changed < outer && old_.frames[changed].flags & KeptFrame::Silent) changed++;
      if (!fits(outer - changed)) return too_deep(outer);
      turns_ += turns_in(changed, outer);
      take_over(changed, outer);
      if (changed < outer) state = old_.state_of(changed), turn_ = old_.frames[changed].turn;
      left_ = changed;
    }
  }

  uint32_t unwound = 0, distrusted = 0;

 private:
  // rbx, in the frame outward of all fresh ones: where the nearest of them that saved it has put it, else still in the register.
  // 0: not known.
  uint64_t rbx_of(const State& top) const {
    uint64_t word;
    for (uint32_t i = fresh_.count; i-- > 0;) {
      const KeptFrame& behind = fresh_.frames[i];
      if (behind.flags & KeptFrame::Silent) continue;
      uint32_t inner = i;  // the frame's own registers are behind the step before
      while (inner > 0 && fresh_.frames[inner - 1].flags & KeptFrame::Silent) inner--;
      State own = inner ? State{fresh_.links[inner - 1].value, 0, 0,
                                (fresh_.frames[inner - 1].flags & KeptFrame::Exact) != 0, nullptr}
                        : top;
      Rule rule = stepper_.rule_of(own);
      uint64_t slot = behind.sp + static_cast<int64_t>(rule.rbx_offset);
      if (rule.kind == Rule::Signal) slot = fresh_.links[i].slot - saved_rip_at + saved_rbx_at;
      else if (rule.kind == Rule::None || rule.kind == Rule::Unsupported || rule.rbx_offset == Rule::rbx_lost) return 0;
      else if (rule.rbx_offset == 0) continue;
      return memory_.read(slot, word) ? word : 0;
    }
    constexpr unsigned rbx = 3;
    return top.registers ? (*top.registers)[rbx] : 0;
  }

  // Old frames that lie inside the one that was just left cannot be met any more.
  void pass(const State& state, bool is_turn) {
    if (is_turn) {
      while (left_ && old_.frames[left_ - 1].turn == turn_) left_--;
      turn_ = left_ ? old_.frames[left_ - 1].turn : 0;
    }
    while (left_) {
      const KeptFrame& f = old_.frames[left_ - 1];
      if (f.turn != turn_ || !(f.sp < state.sp || f.flags & KeptFrame::Silent)) break;
      left_--;
    }
  }

  bool has_joined(const State& state) const { return left_ && left_ <= barrier_ && old_.state_of(left_ - 1) == state; }

  // Of the links [changed, outer). Where they are not trusted, the next join is outward of the outermost guess.
  bool is_trusted(uint32_t changed, uint32_t outer) {
    uint32_t before = changed ? old_.frames[changed - 1].guesses : 0;
    if (outer == changed || old_.frames[outer - 1].guesses == before) return true;
    uint32_t outwardness = 100 - 50 * ((changed + outer) / 2) / old_.count;  // 50: innermost; 100: outermost
    uint32_t confidence = changed ? outwardness / 2 : outwardness;
    if (confidence >= confidence_ && confidence_ < 100) return true;
    distrusted++;
    barrier_ = changed + 1;
    while (old_.frames[barrier_ - 1].guesses == before) barrier_++;
    return false;
  }

  // Changes of the stack in the links [begin, end).
  uint32_t turns_in(uint32_t begin, uint32_t end) const {
    if (begin == end) return 0;
    const KeptFrame& last = old_.frames[end - 1];
    return last.turn + ((last.flags & KeptFrame::Turned) != 0) - old_.frames[begin].turn;
  }

  bool fits(uint32_t more) const { return more <= capacity_ - fresh_.count; }

  Stop push(const Step& s, bool is_turn) {
    if (!fits(1 + s.has_sp_word)) return Stop::TooDeep;
    if (s.has_sp_word) {
      fresh_.links[fresh_.count] = {s.sp_slot, s.sp_word, s.sp_slot, s.sp_word};
      uint8_t flags = is_turn ? KeptFrame::Silent | KeptFrame::Turned : KeptFrame::Silent;
      fresh_.frames[fresh_.count++] = {s.caller.sp, s.caller.bp, 0, 0, 0, 0, flags};
    }
    uint8_t flags = (s.caller.is_exact ? KeptFrame::Exact : 0) | (s.means == Means::Guess ? KeptFrame::Guessed : 0) |
                    (s.means == Means::FramePointer ? KeptFrame::ByFramePointer : 0);
    fresh_.links[fresh_.count] = {s.slot, s.caller.pc, s.second_slot, s.second};
    // One word cannot have two values: such a link has always changed.
    if (s.is_unsure) fresh_.links[fresh_.count].second_slot = s.slot, fresh_.links[fresh_.count].second = ~s.caller.pc;
    fresh_.frames[fresh_.count++] = {s.caller.sp, s.caller.bp, 0, 0, 0, 0, flags};
    return Stop::None;
  }

  void take_over(uint32_t changed, uint32_t outer) {
    for (uint32_t i = outer; i > changed; i--) {
      fresh_.links[fresh_.count] = old_.links[i - 1];
      fresh_.frames[fresh_.count++] = old_.frames[i - 1];
    }
  }

  // Of a stack without room the innermost frames are left.
  Found too_deep(uint32_t outer) {
    uint32_t wanted = fresh_.count < kept_of_deep ? kept_of_deep - fresh_.count : 0;
    take_over(outer > wanted ? outer - wanted : 0, outer);
    return {0, Stop::TooDeep};
  }

  const Stepper<Memory>& stepper_;
  const Map& old_;
  Map& fresh_;
  uint32_t capacity_;
  uint8_t confidence_;
  Memory& memory_;
  uint32_t left_ = 0;     // old links that the walk may still join: the outermost so many,
  uint32_t barrier_ = 0;  // and not more than these
  uint16_t turn_ = 0;     // of the old frames: the stack that the walk is on
  uint32_t turns_ = 0;
};

}  // namespace weir::rt
