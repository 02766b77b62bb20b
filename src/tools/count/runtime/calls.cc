// What calls took: the records of the calls that the runtime ends, and the tool's routines.

#include "rt/parallel_stack.h"
#include "rt/virtual_clock.h"
#include "tools/count/runtime/runtime.h"

namespace weir::count::runtime {

using rt::cells, rt::now, rt::set_self_clock, rt::direct_site, rt::not_arrived, rt::unknown_site, rt::FrameIsCounted,
    rt::FrameIsMarked;

namespace {

// What a call took.
struct Taken {
  uint64_t total, self, os, waited;
};

uint64_t& waited_of(ThreadBlock* tb, const Frame& f) {
  return at<uint64_t>(tb, waits_offset)[&f - at<Frame>(tb, rt::frames_offset)];
}

OtherRecord* other_record(ThreadBlock* tb, uint32_t site, uint32_t callee) {
  auto* table = at<OtherRecord>(tb, others_offset);
  auto* list = at<uint32_t>(tb, others_list_offset);
  uint32_t& used = state(tb).others;
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

[[gnu::always_inline]] inline void add_to_cells(uint64_t* record, bool outermost, const Taken& t) {
  if (outermost) record[RecordTotal] += t.total, record[RecordOs] += t.os;
  reinterpret_cast<Spread*>(record + RecordSpread)->add(t.self);
}

void add_wait(ThreadBlock* tb, uint32_t site, uint32_t callee, uint64_t waited) {
  auto* record = find(at<WaitRecord>(tb, wait_records_offset), max_waits, at<uint32_t>(tb, wait_list_offset),
                      state(tb).waits, site, callee, &WaitRecord::site, &WaitRecord::callee);
  if (record) record->waited += waited;
  else state(tb).lost++;
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
    state(tb).lost++;
    return;
  }
  other->calls += !counted;
  add_to_cells(&other->total, outermost, t);
}

// The node for a call from here, if there are to be any.
uint64_t context_for(ThreadBlock* tb, const Frame& parent, uint32_t site, uint32_t callee, bool counted) {
  State& s = state(tb);
  if (!s.contexts) return 0;
  auto* nodes = at<Context>(tb, contexts_offset);
  auto from = uint32_t(parent.context);
  uint32_t hash = (from * 0x9E3779B1u ^ site * 0x85EBCA77u ^ callee * 0xC2B2AE3Du) >> 10;
  uint32_t& first = at<uint32_t>(tb, context_index_offset)[hash % context_index_size];
  for (uint32_t n = first; n; n = nodes[n].next)
    if (nodes[n].parent == from && nodes[n].site == site && nodes[n].callee == callee) return nodes[n].calls += !counted, n;
  if (s.contexts == max_contexts) return s.lost++, from;
  nodes[s.contexts] = {from, site, callee, first, !counted, 0, 0, 0};
  return first = s.contexts++;
}

// A leaf call ends elsewhere than behind it.
void end_leaf(ThreadBlock* tb, LeafCall& leaf) {
  if (!leaf.site) return;
  Times end = now(tb);
  set_self_clock(tb, end, leaf.begin.self);
  add_to_cells(cells(tb) + leaf.site, true, {end.clock - leaf.begin.clock, end.self - leaf.begin.self, 0, 0});
  leaf = {};
}

// The tool of a ParallelStack. A marked frame has OS time.
struct Calls {
  using Frame = runtime::Frame;
  using Taken = runtime::Taken;
  using Stack = rt::ParallelStack<Calls>;

  static void begin(ThreadBlock* tb, Frame& f, const Frame& parent) {
    f.begin = now(tb);
    f.os = 0;
    f.context = f.callee != not_arrived ? context_for(tb, parent, f.site, f.callee, f.rsp & FrameIsCounted) : 0;
  }
  static void arrive(ThreadBlock* tb, Frame& f, const Frame& parent) {
    f.context = context_for(tb, parent, f.site, f.callee, false);
  }
  static void mark(ThreadBlock* tb, Frame& f) { f.os = waited_of(tb, f) = 0; }
  [[gnu::always_inline]] static Taken take(ThreadBlock* tb, const Frame& f) {
    Taken taken = take_quickly(tb, f);
    if (f.rsp & FrameIsMarked) taken.os = f.os, taken.waited = waited_of(tb, f);
    return taken;
  }
  static void end(ThreadBlock* tb, const Frame& f, const Taken& taken, bool is_outermost, bool was_resolver) {
    add(tb, f.site, f.callee, f.rsp & FrameIsCounted, is_outermost, taken, was_resolver);
    if (state(tb).contexts) at<Context>(tb, contexts_offset)[f.context].self += taken.self;
    Stack stack(tb);
    if (stack.top() == stack.bottom() || !(taken.os | taken.waited)) return;
    Frame* parent = stack.top() - 1;
    stack.mark(parent);
    parent->os += taken.os;
    waited_of(tb, *parent) += taken.waited;
  }
  static void abandon(ThreadBlock* tb, uint32_t index) { end_leaf(tb, state(tb).aside[index].leaf); }
  static void lose(ThreadBlock* tb) { state(tb).lost++; }

  [[gnu::always_inline]] static void begin_quickly(ThreadBlock* tb, Frame& f) { f.begin = now(tb); }
  [[gnu::always_inline]] static Taken take_quickly(ThreadBlock* tb, const Frame& f) {
    Times begin = f.begin, end = now(tb);
    set_self_clock(tb, end, begin.self);
    return {end.clock - begin.clock, end.self - begin.self, 0, 0};
  }
  // The record of the call, which is counted there.
  [[gnu::always_inline]] static uint64_t* find_quickly(ThreadBlock* tb, const Frame& f, uint32_t site, uint32_t callee) {
    uint64_t* record = cells(tb) + (site & ~direct_site);
    if (site & direct_site) return record;
    if (site <= unknown_site) return nullptr;
    if (record[RecordCallee] == callee) {
      record[RecordCalls] += !(f.rsp & FrameIsCounted);
      return record;
    }
    OtherRecord& other = at<OtherRecord>(tb, others_offset)[near_other(site, callee)];
    if (other.site != site || other.callee != callee) return nullptr;
    other.calls += !(f.rsp & FrameIsCounted);
    return &other.total;
  }
  [[gnu::always_inline]] static void end_quickly(uint64_t* record, const Taken& taken, bool is_outermost) {
    add_to_cells(record, is_outermost, taken);
  }
};
using Stack = Calls::Stack;

void shift_clock(ThreadBlock* tb, Times by) {
  Stack stack(tb);
  for (Frame* f = stack.bottom(); stack.exists() && f < stack.top(); f++)
    f->begin.clock -= by.clock, f->begin.self -= by.self;
}

// A handler of the program begins, or has ended. Its frame ends where its signal frame is.
void begin_handler(ThreadBlock* tb, uint32_t index) {
  Stack stack(tb);
  if (!stack.exists()) return;
  State& s = state(tb);
  if (s.os_call.number) s.stamp = time_stamp(tb);
  tick(tb);
  end_os_span(tb);
  s.aside[index] = {leaf(tb), s.os_call};
  s.os_call.number = 0;
  leaf(tb) = {};
  stack.push(rt::signal_site, not_arrived, tb->interrupted[index].frame + rt::handler_frame);
}

void end_handler(ThreadBlock* tb, uint32_t index, uint64_t frame, bool goes_on) {
  Stack stack(tb);
  if (!stack.exists()) return;
  State& s = state(tb);
  os_leave(tb);  // its last call itself: control does not come back behind it
  if (index != rt::not_interrupted) s.os_call = s.aside[index].os_call, leaf(tb) = s.aside[index].leaf;
  tick(tb);
  stack.settle(frame + rt::handler_frame);
  s.clock_at_os_call = now(tb);  // (it may go on in an OS call that it was interrupted in)
  LeafCall& interrupted = leaf(tb);  // what the handler took belongs to its total
  if (!goes_on) end_leaf(tb, interrupted);
  if (!interrupted.site) return;
  Times t = now(tb);
  uint64_t handlers = (t.clock - t.self) - (interrupted.begin.clock - interrupted.begin.self);
  cells(tb)[interrupted.site + RecordTotal] += handlers;
  interrupted.begin.clock += handlers;
}

[[gnu::always_inline]] inline void note_extreme(ThreadBlock* tb, uint64_t above_min, uint64_t offset) {
  auto* spread = at<Spread>(tb, offset);
  spread->add(spread->min + above_min);
}

void run_routine(ThreadBlock* tb, uint32_t routine, uint64_t a, uint64_t b) {
  uint64_t rsp = tb->regs.gpr[4];
  Stack stack(tb);
  if (routine != OsLeave) tick(tb);  // (the time of OS calls is kept apart)
  switch (routine) {
    case Enter: stack.push(uint32_t(a), uint32_t(b), rsp); break;
    case EnterTail: stack.push_tail(uint32_t(a), uint32_t(b), rsp + 8); break;
    case Leave: state(tb).unseen += !stack.leave(rsp, uint32_t(a)); break;
    case Extreme: note_extreme(tb, a, b); break;
    case MiddleJump: stack.jump_to_middle(uint32_t(a), uint32_t(b)); break;
    case Arrival: stack.arrive(uint32_t(a), rsp + 8); break;
    case TailArrival: stack.arrive_by_jump(uint32_t(a), rsp + 8); break;
    case Resync:
      if (!stack.exists()) break;
      end_leaf(tb, leaf(tb));
      stack.resync(uint32_t(a), rsp);
      break;
    case OsEnter:
      state(tb).clock_at_os_call = now(tb);
      os_enter(tb, uint32_t(a));
      break;
    case OsLeave:
      os_leave(tb);
      if (state(tb).by_wall) state(tb).stamp = time_stamp(tb);
      break;
    case Leaving: charge_os(tb, 0, 0); break;  // (a frame with OS time is ended by the runtime: by its own site and callee)
    case Resolved: stack.begin_resolved(uint32_t(a)); break;
    case RepeatBegin: state(tb).repeat = tb->rcx; break;
    case RepeatEnd: {
      uint64_t extra = (state(tb).repeat - tb->rcx) * (b >> 16) / (b & 0xffff);
      cells(tb)[a] += extra;
      rt::advance(tb, extra);
      break;
    }
    default: break;
  }
}

template <Routine routine, class F>
[[gnu::always_inline]] inline void run_light(F run) {
  ThreadBlock* tb;
  asm("movq %%gs:0, %0" : "=r"(tb));
  auto a = uint32_t(tb->routine_args[0]), b = uint32_t(tb->routine_args[1]);
  bool done = !state(tb).contexts && run(tb, tb->regs.gpr[4], a, b);
  tb->exit_id = done ? rt::no_routine : uint32_t(routine);
}

using Rsp = uint64_t;
#define LIGHT [[gnu::no_caller_saved_registers]] void
LIGHT leave() {
  run_light<Leave>([](auto* tb, Rsp rsp, uint32_t caller, uint32_t) { return Stack(tb).leave_quickly(rsp, caller); });
}
LIGHT enter_tail() {
  run_light<EnterTail>(
      [](auto* tb, Rsp rsp, uint32_t site, uint32_t callee) { return Stack(tb).push_tail_quickly(site, callee, rsp + 8); });
}
LIGHT tail_arrival() {
  run_light<TailArrival>(
      [](auto* tb, Rsp rsp, uint32_t callee, uint32_t) { return Stack(tb).arrive_quickly(callee, rsp + 8); });
}
LIGHT middle_jump() {
  run_light<MiddleJump>(
      [](auto* tb, Rsp, uint32_t callee, uint32_t site) { return Stack(tb).jump_to_middle_quickly(callee, site); });
}
LIGHT extreme() {
  run_light<Extreme>([](auto* tb, Rsp, uint32_t, uint32_t offset) {
    note_extreme(tb, tb->routine_args[0], offset);
    return true;
  });
}
#undef LIGHT

void note_name(ThreadBlock* tb) {
  constexpr uint64_t PR_GET_NAME = 16;
  if (Stack(tb).exists() && !tb->quiet) rt::sys(rt::SYS_prctl, PR_GET_NAME, rt::address(state(tb).name));
}

void allow_stamps(ThreadBlock* tb, bool are_allowed) { state(tb).no_time = !are_allowed; }

constexpr rt::Hooks hooks{
    .routine = run_routine,
    .kernel_begins = begin_os_span,
    .kernel_ends = end_os_span,
    .kernel_dropped = drop_os_span,
    .wait_begins = begin_wait,
    .wait_ends = end_wait,
    .name_changes = note_name,
    .stamps_change = allow_stamps,
    .handler_begins = begin_handler,
    .handler_ends = end_handler,
    .clock_restarts = shift_clock,
};

}  // namespace

// (Time stamps of two processors may differ.)
void tick(ThreadBlock* tb) {
  State& s = state(tb);
  if (!s.by_wall) return;
  uint64_t stamp = time_stamp(tb);
  if (s.stamp && int64_t(stamp - s.stamp) > 0) rt::advance(tb, stamp - s.stamp);
  s.stamp = stamp;
  s.clock_at_os_call = now(tb);
}

void charge_os(ThreadBlock* tb, uint64_t time, uint64_t waited) {
  State& s = state(tb);
  s.os_clock += time;
  s.waited += waited;
  Stack stack(tb);
  if (!stack.exists() || stack.top() == stack.bottom()) return;
  Frame* f = stack.top() - 1;
  stack.mark(f);
  f->os += time;
  waited_of(tb, *f) += waited;
  if (!s.contexts) return;
  Context& c = at<Context>(tb, contexts_offset)[f->context];
  c.os += time, c.waited += waited;
}

}  // namespace weir::count::runtime

TOOL_RUNTIME(count) = {"count",
                       &weir::count::runtime::hooks,
                       {weir::count::runtime::leave, weir::count::runtime::enter_tail, weir::count::runtime::tail_arrival,
                        weir::count::runtime::middle_jump, weir::count::runtime::extreme}};
