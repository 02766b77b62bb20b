// Call sequences, restored incrementally: what a sample costs depends on what changed on the stack since the last one.
//
// How a signal handler uses it. For each thread, memory of Trace::bytes_for() and CallTree::bytes_for(), zeroed, and
//
//     Trace trace = Trace::make(memory, capacity);  CallTree tree = CallTree::make(memory, capacity);     once
//     GuardedMemory memory;
//     Sample s = restore(trace, tree, code, stack, {rip, rsp, rbp, true, rbx}, options, memory);          at each sample
//
// `code` is what is mapped (rt/step.h); `stack` the thread's own stack, or {} where that is not known. The sample is counted in
// tree node s.node: its path to a root is the call sequence; leaves are kept by address. trace.counts adds up. With verify()
// behind it the sample is restored once more, in full, and compared. Faults of GuardedMemory are the caller's affair: see rt/memory.h.
// No libc, no allocation, no locks; a thread's trace belongs to the thread.
//
// ---- The map of linkage information ----
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
// again each time. After a change of what is mapped (code.generation), of the stack's bounds or of the means, all is forgotten.
//
// The dynamic linker's frame, whose CFA comes from rbx, rests on which frame inward of it has saved that: its link never compares
// as equal, so it is unwound each time.
//
// Frames that were guessed are no function of so few words. A region of unchanged links with such frames gets a confidence
// instead: less for inner ones, least for one between two changed regions; below options.confidence it is unwound again.
#pragma once

#include "rt/call_tree.h"
#include "rt/memory.h"
#include "rt/step.h"

namespace weir::rt {

// What is compared: 32 bytes a frame, and on the stack one cache line, mostly.
struct Link {
  uint64_t slot;    // where the return address is,
  uint64_t value;   // and what it was
  uint64_t second;  // the word at slot + second_at
  int32_t second_at;
  uint32_t node;  // of the calling-context tree
};
static_assert(sizeof(Link) == 32);

// What else is known of it: the registers behind the step (pc is link.value), and sums over all that lie further out.
struct Frame {
  enum Flags : uint8_t { Silent = 1, Exact = 2, Guessed = 4, ByFramePointer = 8, Turned = 16 };
  uint64_t sp, bp;
  uint32_t depth;              // frames from the outermost to this one,
  uint32_t guesses, pointers;  // and of these so many that were guessed, and found by frame pointers
  uint16_t turn;               // how many changes of the stack lie further out; within one, sp only grows
  uint8_t flags;
};
static_assert(sizeof(Frame) == 32);

struct Options {
  Use use{};
  uint8_t confidence = 100;  // 0 to 100: guessed regions below it are unwound again
};

struct Map {
  Link* links;  // outermost first
  Frame* frames;
  uint32_t count = 0;
  uint64_t base = 0;  // the outermost slot of the innermost stack: by it the map is found
  uint64_t used = 0;  // when
  uint16_t turn = 0;  // of the innermost frame
  Stop end = Stop::None;
  bool is_good = false;  // whole, so that the next sample can start from it
};

struct Counts {
  uint64_t samples, frames;
  uint64_t unwound, by_frame_pointer, guessed;  // frames: steps taken; and of all frames, so found
  uint64_t distrusted;                          // unchanged regions that were unwound again
  uint64_t new_maps;                            // samples on a stack of which nothing was kept
  uint64_t ended[root_count];                   // samples, by Stop
};
static_assert(static_cast<uint32_t>(Stop::Count) <= root_count);

struct Sample {
  uint32_t node;
  uint32_t depth;    // frames
  uint32_t unwound;  // steps taken for it
  Stop end;
  const Map* map;  // its frames, until the next sample
};

constexpr uint32_t map_count = 4;      // stacks of a thread that are remembered
constexpr uint32_t max_turns = 16;     // from stack to stack, in one walk
constexpr uint32_t kept_of_deep = 64;  // innermost frames of a stack that is deeper than there is room for

struct Trace {
  Map maps[map_count];
  Map fresh;  // newly found frames, innermost first
  KnownRule* known;
  uint32_t capacity;
  uint64_t clock;
  // What all maps rest on: when it changes, they are forgotten.
  Stack stack;
  Use use;
  uint32_t generation;
  Counts counts;

  static uint64_t bytes_for(uint32_t capacity) {
    return uint64_t{capacity} * (sizeof(Link) + sizeof(Frame)) * (map_count + 1) + known_count * sizeof(KnownRule);
  }
  // capacity: the most frames of a stack, at least 64.
  static Trace make(void* memory, uint32_t capacity) {
    Trace t{};
    t.capacity = capacity;
    auto* links = static_cast<Link*>(memory);
    auto* frames = reinterpret_cast<Frame*>(links + uint64_t{capacity} * (map_count + 1));
    for (uint32_t i = 0; i <= map_count; i++) {
      Map& m = i < map_count ? t.maps[i] : t.fresh;
      m.links = links + uint64_t{capacity} * i, m.frames = frames + uint64_t{capacity} * i;
    }
    t.known = reinterpret_cast<KnownRule*>(frames + uint64_t{capacity} * (map_count + 1));
    return t;
  }
};

// How many of the outermost `outer` links lie outward of the innermost one that has changed, and that one itself; 0 where none has.
template <class Memory>
[[gnu::noinline]] uint32_t changed_of(const Link* links, uint32_t outer, Memory& memory) {
  auto differs = [&](const Link& l) -> uint64_t {
    uint64_t a, b;
    if (!memory.read(l.slot, a) || !memory.read(l.slot + static_cast<int64_t>(l.second_at), b)) return 1;
    return (a ^ l.value) | (b ^ l.second);
  };
  // Innermost first: the addresses on the stack grow. Four at a time, whose reads do not wait for each other.
  const Link* l = links + outer;
  for (; l - links >= 4; l -= 4)
    if (differs(l[-1]) | differs(l[-2]) | differs(l[-3]) | differs(l[-4])) break;
  while (l != links && !differs(l[-1])) l--;
  return static_cast<uint32_t>(l - links);
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

  // Fills `fresh` with the frames from the innermost to where the kept ones begin.
  Found run(State state) {
    fresh_.count = 0;
    left_ = barrier_ = old_.count;
    turn_ = old_.turn;
    const State top = state;
    Step step;
    for (;;) {
      Stop stop = stepper_.step(state, step);
      if (stop == Stop::NeedsRbx) [[unlikely]] {
        uint64_t rbx = rbx_of(top);
        stop = rbx ? stepper_.step_with(state, rbx, step) : stepper_.step_without(state, step);
      }
      if (stop != Stop::None) return {0, stop};
      bool is_turn = step.has_sp_word && step.caller.sp <= state.sp;
      if (is_turn && ++turns_ > max_turns) return {0, Stop::Loop};
      if (Stop why = push(step, is_turn); why != Stop::None) return {0, why};
      unwound++;
      state = step.caller;
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
        Stop end = stepper_.step(outer ? state_of(0) : state, step);
        if (end != Stop::None && end != Stop::NeedsRbx) return fits(outer) ? Found{outer, end} : too_deep(outer);
      }
      // The silent link belongs to the one outward of it: one step has read both.
      if (changed < outer && old_.frames[changed].flags & Frame::Silent) changed++;
      if (!fits(outer - changed)) return too_deep(outer);
      turns_ += turns_in(changed, outer);
      take_over(changed, outer);
      if (changed < outer) state = state_of(changed), turn_ = old_.frames[changed].turn;
      left_ = changed;
    }
  }

  uint32_t unwound = 0, distrusted = 0;

 private:
  State state_of(uint32_t i) const {
    const Frame& f = old_.frames[i];
    return {old_.links[i].value, f.sp, f.bp, (f.flags & Frame::Exact) != 0, 0};
  }

  // rbx, in the frame outward of all fresh ones: where the nearest of them that saved it has put it, else still in the register.
  // 0: not known.
  uint64_t rbx_of(const State& top) const {
    uint64_t word;
    for (uint32_t i = fresh_.count; i-- > 0;) {
      const Frame& behind = fresh_.frames[i];
      if (behind.flags & Frame::Silent) continue;
      uint32_t inner = i;  // the frame's own registers are behind the step before
      while (inner > 0 && fresh_.frames[inner - 1].flags & Frame::Silent) inner--;
      State own =
          inner ? State{fresh_.links[inner - 1].value, 0, 0, (fresh_.frames[inner - 1].flags & Frame::Exact) != 0, 0} : top;
      Rule rule = stepper_.rule_of(own);
      uint64_t slot = behind.sp + static_cast<int64_t>(rule.rbx_offset);
      if (rule.kind == Rule::Signal) slot = fresh_.links[i].slot - saved_rip_at + saved_rbx_at;
      else if (rule.kind == Rule::None || rule.kind == Rule::Unsupported || rule.rbx_offset == Rule::rbx_lost) return 0;
      else if (rule.rbx_offset == 0) continue;
      return memory_.read(slot, word) ? word : 0;
    }
    return top.bx;
  }

  // Old frames that lie inside the one that was just left cannot be met any more.
  void pass(const State& state, bool is_turn) {
    if (is_turn) {
      while (left_ && old_.frames[left_ - 1].turn == turn_) left_--;
      turn_ = left_ ? old_.frames[left_ - 1].turn : 0;
    }
    while (left_) {
      const Frame& f = old_.frames[left_ - 1];
      if (f.turn != turn_ || !(f.sp < state.sp || f.flags & Frame::Silent)) break;
      left_--;
    }
  }

  bool has_joined(const State& state) const { return left_ && left_ <= barrier_ && state_of(left_ - 1) == state; }

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
    const Frame& last = old_.frames[end - 1];
    return last.turn + ((last.flags & Frame::Turned) != 0) - old_.frames[begin].turn;
  }

  bool fits(uint32_t more) const { return more <= capacity_ - fresh_.count; }

  Stop push(const Step& s, bool is_turn) {
    auto second_at = static_cast<int64_t>(s.second_slot - s.slot);
    if (second_at != static_cast<int32_t>(second_at)) return Stop::NotOutward;
    if (!fits(1 + s.has_sp_word)) return Stop::TooDeep;
    if (s.has_sp_word) {
      fresh_.links[fresh_.count] = {s.sp_slot, s.sp_word, s.sp_word, 0, 0};
      uint8_t flags = is_turn ? Frame::Silent | Frame::Turned : Frame::Silent;
      fresh_.frames[fresh_.count++] = {s.caller.sp, s.caller.bp, 0, 0, 0, 0, flags};
    }
    uint8_t flags = (s.caller.is_exact ? Frame::Exact : 0) | (s.means == Means::Guess ? Frame::Guessed : 0) |
                    (s.means == Means::FramePointer ? Frame::ByFramePointer : 0);
    fresh_.links[fresh_.count] = {s.slot, s.caller.pc, s.second, static_cast<int32_t>(second_at), 0};
    // One word cannot have two values: such a link has always changed.
    if (s.is_unsure) fresh_.links[fresh_.count].second_at = 0, fresh_.links[fresh_.count].second = ~s.caller.pc;
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

// ---- From a walk to the map -------------------------------------------------------------------------------------------
// The map whose stack `sp` is probably on. (Any would do: what does not join is unwound.)
inline Map* nearest_map(Trace& t, uint64_t sp) {
  Map* best = nullptr;
  for (Map& m : t.maps)
    if (m.is_good && m.base >= sp && (!best || m.base < best->base)) best = &m;
  return best;
}

inline void forget_if_changed(Trace& t, const Code& code, const Stack& stack, Use use) {
  if (t.generation == code.generation && t.stack == stack && t.use == use) return;
  for (Map& m : t.maps) m.is_good = false;
  t.generation = code.generation, t.stack = stack, t.use = use;
}

// For a walk that kept nothing: the map of the same stack, or one that is free, or the one that was not used for longest.
inline Map& map_for(Trace& t, uint64_t base) {
  Map* best = &t.maps[0];
  for (Map& m : t.maps) {
    if (m.is_good && m.base == base) return m;
    if (best->is_good && (!m.is_good || m.used < best->used)) best = &m;
  }
  best->count = 0, best->is_good = false, best->end = Stop::None;
  return *best;
}

// The outermost slot of the innermost stack. Kept frames are `m`'s.
inline uint64_t base_of(const Map& fresh, const Map* m, uint32_t kept) {
  for (uint32_t i = 0; i < fresh.count; i++)
    if (i && fresh.frames[i].flags & Frame::Turned) return fresh.links[i - 1].slot;
  for (uint32_t i = kept; i > 0; i--) {
    if (m->frames[i - 1].flags & Frame::Turned) return i < kept ? m->links[i].slot : fresh.links[fresh.count - 1].slot;
    if (m->frames[i - 1].turn == 0) return m->links[0].slot;
  }
  return fresh.count ? fresh.links[fresh.count - 1].slot : 0;
}

// Puts the fresh frames behind the kept ones, with their nodes: a frame whose callers are those of the last sample has its node.
inline void put_down(Map& m, uint32_t kept, const Map& fresh, Stop end, CallTree& tree) {
  bool is_same = m.end == end;
  uint32_t parent = static_cast<uint32_t>(end), depth = 0, guesses = 0, pointers = 0;
  uint32_t old_count = m.count;
  uint16_t turn = 0;
  uint32_t first = is_same ? kept : 0;  // another root: all nodes are others
  if (first) {
    const Frame& f = m.frames[first - 1];
    parent = m.links[first - 1].node, depth = f.depth, guesses = f.guesses, pointers = f.pointers;
    turn = static_cast<uint16_t>(f.turn + ((f.flags & Frame::Turned) != 0));
  }
  m.count = kept + fresh.count;
  for (uint32_t i = first; i < m.count; i++) {
    Link& l = m.links[i];
    Frame& f = m.frames[i];
    uint64_t old_value = l.value;
    uint32_t old_node = l.node;
    bool was_silent = f.flags & Frame::Silent;
    if (i >= kept) l = fresh.links[m.count - 1 - i], f = fresh.frames[m.count - 1 - i];
    bool is_silent = f.flags & Frame::Silent;
    is_same = is_same && i < old_count && l.value == old_value && is_silent == was_silent;
    if (!is_silent) parent = is_same ? old_node : tree.child(parent, l.value, TreeNode::Caller), depth++;
    guesses += (f.flags & Frame::Guessed) != 0;
    pointers += (f.flags & Frame::ByFramePointer) != 0;
    l.node = parent;
    f.depth = depth, f.guesses = guesses, f.pointers = pointers, f.turn = turn;
    turn = static_cast<uint16_t>(turn + ((f.flags & Frame::Turned) != 0));
  }
  m.turn = turn, m.end = end;
}

template <class Memory>
Sample restore(Trace& t, CallTree& tree, const Code& code, const Stack& stack, const State& top, const Options& options,
               Memory& memory) {
  static constexpr Map none{};
  Stepper<Memory> stepper(code, stack, options.use, t.known, memory);
  forget_if_changed(t, code, stack, options.use);
  Map* m = nearest_map(t, top.sp);
  Walk<Memory> walk(stepper, m ? *m : none, t.fresh, t.capacity, options.confidence, memory);
  auto [kept, end] = walk.run(top);
  if (end == Stop::TooDeep && t.fresh.count > kept_of_deep) t.fresh.count = kept_of_deep;
  uint64_t base = base_of(t.fresh, m, kept);
  if (!m || (kept == 0 && m->base != base)) {
    // Its stack was said to end where this one goes on: a walk that was cut off, or a stack that is gone.
    if (m && m->base < base) m->is_good = false;
    m = &map_for(t, base);
    t.counts.new_maps++;
  }
  put_down(*m, kept, t.fresh, end, tree);
  m->base = base, m->used = ++t.clock;
  m->is_good = end != Stop::TooDeep && m->count > 0;

  uint32_t depth = m->count ? m->frames[m->count - 1].depth : 0;
  uint32_t caller = m->count ? m->links[m->count - 1].node : static_cast<uint32_t>(end);
  Sample sample{tree.child(caller, top.pc, TreeNode::Leaf), depth + 1, walk.unwound, end, m};
  tree.count(sample.node);
  Counts& c = t.counts;
  c.samples++, c.frames += sample.depth, c.unwound += walk.unwound, c.distrusted += walk.distrusted;
  if (m->count) c.guessed += m->frames[m->count - 1].guesses, c.by_frame_pointer += m->frames[m->count - 1].pointers;
  c.ended[static_cast<uint32_t>(end)]++;
  return sample;
}

// ---- The proof --------------------------------------------------------------------------------------------------------
enum class Difference : uint8_t { None, End, Depth, Address, Slot, Registers };

// The sample that was just restored, once more, in full, and without what is known from earlier ones.
template <class Memory>
Difference verify(Trace& t, const Sample& sample, const Code& code, const Stack& stack, const State& top,
                  const Options& options, Memory& memory) {
  static constexpr Map none{};
  Stepper<Memory> stepper(code, stack, options.use, nullptr, memory);
  Walk<Memory> walk(stepper, none, t.fresh, t.capacity, options.confidence, memory);
  Stop end = walk.run(top).end;
  uint32_t count = t.fresh.count;
  if (end == Stop::TooDeep && count > kept_of_deep) count = kept_of_deep;
  const Map& m = *sample.map;
  if (end != sample.end) return Difference::End;
  if (count != m.count) return Difference::Depth;
  for (uint32_t i = 0; i < count; i++) {
    const Link &a = m.links[count - 1 - i], &b = t.fresh.links[i];
    const Frame &f = m.frames[count - 1 - i], &g = t.fresh.frames[i];
    if (a.value != b.value) return Difference::Address;
    if (a.slot != b.slot || a.second_at != b.second_at) return Difference::Slot;
    if (a.second != b.second || f.sp != g.sp || f.bp != g.bp || f.flags != g.flags) return Difference::Registers;
  }
  return Difference::None;
}

}  // namespace weir::rt
