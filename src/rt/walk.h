// Call sequences, restored incrementally: what a sample costs depends on what changed on the stack since the last one.
//
// How a signal handler uses it. For each thread, memory of Trace::bytes_for(), zeroed, and
//
//     Trace trace = Trace::make(memory, capacity);                                                  once
//     OwnMemory memory(…);
//     Sample s = restore(trace, code, stack, {rip, rsp, rbp, true, &registers}, options, memory);   at each sample
//
// `code` is what is mapped (rt/step.h); `stack` the thread's own stack, or {} where that is not known. s.map has the callers, and s.known
// says which of them are new. trace.counts adds up. With verify() behind it the sample is restored once more, in full, and
// compared. What `memory` may read: rt/own_memory.h.
// No libc, no allocation, no locks; a thread's trace belongs to the thread.
//
// How it works, and why that is right: rt/linkage.h.
#pragma once

#include "rt/linkage.h"

namespace weir::rt {

struct Options {
  Use use{};
  uint8_t confidence = 100;  // 0 to 100: guessed regions below it are unwound again
};

constexpr uint32_t end_count = 16;  // room for reasons why a walk ends
static_assert(static_cast<uint32_t>(Stop::Count) <= end_count);

struct Counts {
  uint64_t samples, frames;
  uint64_t unwound, by_frame_pointer, guessed;  // frames: steps taken; and of all frames, so found
  uint64_t distrusted;                          // unchanged regions that were unwound again
  uint64_t new_maps;                            // samples on a stack of which nothing was kept
  uint64_t ended[end_count];                    // samples, by Stop
  uint64_t timed, ticks;                        // signals whose handling was measured, and what that took
};

struct Sample {
  const Map* map;  // its callers, until the next sample
  uint8_t map_number;
  Stop end;
  uint32_t known;    // frames of the map, the outermost so many, that are those of its last sample:
  uint32_t kept;     // … callers; the others were silent
  uint32_t depth;    // frames: all callers, and the innermost one
  uint32_t unwound;  // steps taken for it
};

constexpr uint32_t map_count = 4;  // stacks of a thread that are remembered
struct Trace {
  Map maps[map_count];
  Map fresh;  // newly found frames, innermost first
  uint32_t capacity;
  uint64_t clock;
  // What all maps rest on: when it changes, they are forgotten.
  Stack stack;
  Use use;
  uint32_t generation;
  Counts counts;
  Known known;

  static constexpr uint64_t bytes_for(uint32_t capacity) {
    return uint64_t{capacity} * (sizeof(Link) + sizeof(KeptFrame)) * (map_count + 1) + known_count * sizeof(KnownRule);
  }
  static KnownRule* rules_in(void* memory, uint32_t capacity) {
    return reinterpret_cast<KnownRule*>(static_cast<char*>(memory) + bytes_for(capacity)) - known_count;
  }
  // capacity: the most frames of a stack, from 64 to 65,535.
  static Trace make(void* memory, uint32_t capacity) {
    Trace t{};
    t.capacity = capacity;
    auto* links = static_cast<Link*>(memory);
    auto* frames = reinterpret_cast<KeptFrame*>(links + uint64_t{capacity} * (map_count + 1));
    for (uint32_t i = 0; i <= map_count; i++) {
      Map& m = i < map_count ? t.maps[i] : t.fresh;
      m.links = links + uint64_t{capacity} * i, m.frames = frames + uint64_t{capacity} * i;
    }
    t.known.rules = rules_in(memory, capacity);
    return t;
  }
};

// ---- From a walk to the map -------------------------------------------------------------------------------------------
// The map whose stack `sp` is probably on. (Any would do: what does not join is unwound.)
inline Map* nearest_map(Trace& t, uint64_t sp) {
  Map* best = nullptr;
  for (Map& m : t.maps)
    if (m.is_good && m.base >= sp && (!best || m.base < best->base)) best = &m;
  return best;
}

// The next sample on each stack is walked, and told, in full.
inline void forget(Trace& t) {
  for (Map& m : t.maps) m.is_good = false;
}

inline void forget_if_changed(Trace& t, const Code& code, const Stack& stack, Use use) {
  if (t.generation == code.generation && t.stack == stack && t.use == use) return;
  forget(t);
  t.known = {t.known.rules, {}, {}};
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
    if (i && fresh.frames[i].flags & KeptFrame::Turned) return fresh.links[i - 1].slot;
  for (uint32_t i = kept; i > 0; i--) {
    if (m->frames[i - 1].flags & KeptFrame::Turned) return i < kept ? m->links[i].slot : fresh.links[fresh.count - 1].slot;
    if (m->frames[i - 1].turn == 0) return m->links[0].slot;
  }
  return fresh.count ? fresh.links[fresh.count - 1].slot : 0;
}

// Puts the fresh frames behind the kept ones. Returns how many, from the outermost on, lead to the same addresses as before.
inline uint32_t put_down(Map& m, uint32_t kept, const Map& fresh, Stop end) {
  bool is_same = m.end == end;
  uint32_t depth = 0, old_count = m.count, known = kept;
  uint16_t guesses = 0, pointers = 0, turn = 0;
  if (kept) {
    const KeptFrame& f = m.frames[kept - 1];
    depth = f.depth, guesses = f.guesses, pointers = f.pointers;
    turn = static_cast<uint16_t>(f.turn + ((f.flags & KeptFrame::Turned) != 0));
  }
  m.count = kept + fresh.count;
  for (uint32_t i = kept; i < m.count; i++) {
    Link& l = m.links[i];
    KeptFrame& f = m.frames[i];
    uint64_t old_value = l.value;
    bool was_silent = f.flags & KeptFrame::Silent;
    l = fresh.links[m.count - 1 - i], f = fresh.frames[m.count - 1 - i];
    bool is_silent = f.flags & KeptFrame::Silent;
    is_same = is_same && i < old_count && l.value == old_value && is_silent == was_silent;
    known += is_same;
    depth += !is_silent;
    guesses = static_cast<uint16_t>(guesses + ((f.flags & KeptFrame::Guessed) != 0));
    pointers = static_cast<uint16_t>(pointers + ((f.flags & KeptFrame::ByFramePointer) != 0));
    f.depth = depth, f.guesses = guesses, f.pointers = pointers, f.turn = turn;
    turn = static_cast<uint16_t>(turn + ((f.flags & KeptFrame::Turned) != 0));
  }
  m.turn = turn;
  if (m.end != end) known = 0;  // another root
  m.end = end;
  return known;
}

// Where only the innermost frame has changed.
inline void put_down_innermost(Map& m, const Step& step) {
  Link& l = m.links[m.count - 1];
  l.slot = step.slot, l.second_slot = step.second_slot, l.second = step.second;
}

struct Restored {
  Map* map;
  uint32_t known;    // its frames, the outermost so many, that lead to the same addresses as before
  uint32_t unwound;  // steps taken
};

// The whole walk, from the innermost frame, whose `step` ended with `stop`. `m` is the map to start from, or null.
template <class Memory>
[[gnu::noinline]] Restored walk(Trace& t, Map* m, const Stepper<Memory>& stepper, const State& top, Stop stop, Step& step,
                                uint8_t confidence, Memory& memory) {
  static constexpr Map none{};
  if (m) expect_walk(stepper, *m, top.sp);
  Walk<Memory> whole(stepper, m ? *m : none, t.fresh, t.capacity, confidence, memory);
  auto [kept, end] = whole.run(top, stop, step);
  if (end == Stop::TooDeep && t.fresh.count > kept_of_deep) t.fresh.count = kept_of_deep;
  uint64_t base = base_of(t.fresh, m, kept);
  if (!m || (kept == 0 && m->base != base)) {
    // Its stack was said to end where this one goes on: a walk that was cut off, or a stack that is gone.
    if (m && m->base < base) m->is_good = false;
    m = &map_for(t, base);
    t.counts.new_maps++;
  }
  uint32_t known = put_down(*m, kept, t.fresh, end);
  m->base = base;
  m->is_good = end != Stop::TooDeep && m->count > 0;
  m->has_firm_end = end == Stop::Complete && !step.is_unsure && !step.has_sp_word, m->end_slot = step.slot;
  t.counts.distrusted += whole.distrusted;
  return {m, known, whole.unwound};
}

// `weight`: as many samples.
template <class Memory>
Sample restore(Trace& t, const Code& code, const Stack& stack, const State& top, const Options& options, Memory& memory,
               uint64_t weight = 1) {
  Stepper<Memory> stepper(code, stack, options.use, &t.known, memory);
  forget_if_changed(t, code, stack, options.use);
  Map* m = nearest_map(t, top.sp);
  Step step;
  Stop stop = stepper.step(top, step);
  Restored now{m, 0, 1};
  if (m && stop == Stop::None && holds(*m, step, memory)) {
    put_down_innermost(*m, step);
    now.known = m->count;
  } else {
    now = walk(t, m, stepper, top, stop, step, options.confidence, memory);
    m = now.map;
  }
  m->used = ++t.clock;

  Counts& c = t.counts;
  uint32_t kept = now.known ? m->frames[now.known - 1].depth : 0;
  Sample sample{m, static_cast<uint8_t>(m - t.maps), m->end, now.known, kept, 1, now.unwound};
  if (m->count) {
    const KeptFrame& f = m->frames[m->count - 1];
    sample.depth += f.depth;
    c.guessed += weight * f.guesses, c.by_frame_pointer += weight * f.pointers;
  }
  c.samples += weight, c.frames += weight * sample.depth, c.unwound += sample.unwound;
  c.ended[static_cast<uint32_t>(m->end)] += weight;
  return sample;
}

// ---- The proof --------------------------------------------------------------------------------------------------------
enum class Difference : uint8_t { None, End, Depth, Address, Slot, Registers };

// The sample that was just restored, once more, in full, and without what is known from earlier ones.
template <class Memory>
[[gnu::cold]] Difference verify(Trace& t, const Sample& sample, const Code& code, const Stack& stack, const State& top,
                                const Options& options, Memory& memory) {
  static constexpr Map none{};
  Stepper<Memory> stepper(code, stack, options.use, nullptr, memory);
  Walk<Memory> walk(stepper, none, t.fresh, t.capacity, options.confidence, memory);
  Step step;
  Stop end = walk.run(top, stepper.step(top, step), step).end;
  uint32_t count = t.fresh.count;
  if (end == Stop::TooDeep && count > kept_of_deep) count = kept_of_deep;
  const Map& m = *sample.map;
  if (end != sample.end) return Difference::End;
  if (count != m.count) return Difference::Depth;
  for (uint32_t i = 0; i < count; i++) {
    const Link &a = m.links[count - 1 - i], &b = t.fresh.links[i];
    const KeptFrame &f = m.frames[count - 1 - i], &g = t.fresh.frames[i];
    if (a.value != b.value) return Difference::Address;
    if (a.slot != b.slot || a.second_slot != b.second_slot) return Difference::Slot;
    if (a.second != b.second || f.sp != g.sp || f.bp != g.bp || f.flags != g.flags) return Difference::Registers;
  }
  return Difference::None;
}

}  // namespace weir::rt
