// What a thread leaves behind: its counters, its records, and the frames of calls that never returned.
//
// The program can write to all of it, while we look: what is looked at twice, or leads somewhere, is copied first, and every number
// that leads somewhere is looked up in tables of our own. What we keep is never more than a few times what was written there.

#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "instrument/clock.h"
#include "rt/faults.h"
#include "tools/count/count.h"
#include "tools/count/flow.h"

namespace weir::count {

namespace {

constexpr uint32_t exit_group = 231;

template <class T>
std::span<const T> table(const std::byte* memory, uint32_t offset, uint32_t count) {
  return {reinterpret_cast<const T*>(memory + offset), count};
}

uint64_t at(std::span<const uint64_t> cells, uint32_t index) { return index < cells.size() ? cells[index] : 0; }

const rt::ThreadBlock& block_of(const std::byte* memory) { return *reinterpret_cast<const rt::ThreadBlock*>(memory); }

// (The compiler may not read the memory a second time.)
template <class T>
T copy_of(const T& shared) {
  T copy;
  memcpy(&copy, &shared, sizeof copy);
  asm volatile("" : : : "memory");
  return copy;
}

runtime::State state_of(const std::byte* memory) {
  return copy_of(table<runtime::State>(memory, runtime::state_offset, 1)[0]);
}

// The frames, up to where the top, an address of the target, says. A frame without an rsp never was one.
std::vector<runtime::Frame> frames_of(const std::byte* memory) {
  static_assert(rt::blocks_base % rt::block_stride == 0);
  uint64_t top = __atomic_load_n(&block_of(memory).frames.top, __ATOMIC_RELAXED) % rt::block_stride;
  if (top < rt::frames_offset || top > rt::frames_end) return {};
  auto count = static_cast<uint32_t>((top - rt::frames_offset) / sizeof(runtime::Frame));
  std::vector<runtime::Frame> frames;
  for (const runtime::Frame& shared : table<runtime::Frame>(memory, rt::frames_offset, count)) {
    frames.push_back(copy_of(shared));
    if (frames.back().rsp) continue;
    frames.pop_back();
    break;
  }
  return frames;
}

// The call in which the thread ended, or is: it was waiting there. (`number` 0: there is none. Of those that do not come back the kernel tells nothing.)
runtime::OsRecord last_call_of(const runtime::OsCall& call) {
  constexpr uint32_t rt_sigreturn = 15, execve = 59, exit = 60, execveat = 322;
  uint32_t number = call.number - 1;
  bool comes_back =
      number != rt_sigreturn && number != execve && number != exit && number != exit_group && number != execveat;
  if (!call.number || !call.begin || !comes_back) return {};
  uint64_t now = __rdtsc();
  uint64_t waited = static_cast<int64_t>(now - call.begin) > 0 ? now - call.begin : 0;
  return {call.function, call.number, 1, 0, call.time, call.waited + waited};
}

profile::Range range_of(runtime::Spread s) { return s.span ? profile::Range{s.min, s.min + s.span - 1} : profile::Range{}; }

}  // namespace

// The first frame is that of the function that the thread begins in, which may not be known yet; a forked one has its parent's
// frames.
void Count::begin_thread(const instrument::ThreadStart& start) {
  std::byte* memory = start.memory;
  bool is_fork = start.parent && start.is_fork;
  auto* block = reinterpret_cast<rt::ThreadBlock*>(memory);
  auto* cells = reinterpret_cast<uint64_t*>(memory + rt::counters_offset);
  instrument::begin_clock(memory);
  std::vector<runtime::Frame> frames;
  if (is_fork) frames = frames_of(start.parent);
  for (runtime::Frame& f : frames)
    f = {{f.site, f.callee, (f.rsp & ~uint64_t{rt::FrameIsMarked}) | rt::FrameIsCounted}, {}, 0, 0};
  // Of a new program no function is known yet: see close_frames(). The one that threads begin in may be called again. Where it begins is the middle
  // of a call that its maker has made, as a rule.
  const Function& first = functions_[function_around(start.pc)];
  bool is_call = !first.begin || (first.begin == start.pc && !first.whole);
  uint64_t outermost = ~uint64_t{rt::frame_bits} | (is_call ? uint64_t{0} : uint64_t{rt::FrameIsCounted});
  if (frames.empty()) frames.push_back({{rt::start_site, first.cell.index, outermost}, {}, 0, 0});
  auto* state = reinterpret_cast<runtime::State*>(memory + runtime::state_offset);
  state->start = is_fork ? state_of(start.parent).start : start.pc.value;
  state->by_wall = is_by_wall();
  state->os_by_class = options_.os_model == OsModel::Classes;
  state->ticks_per_ns = static_cast<uint64_t>(options_.ticks.per_nanosecond() * 0x1p32);
  start.name.copy(state->name, sizeof state->name - 1);
  if (full_paths_) {
    auto* contexts = reinterpret_cast<runtime::Context*>(memory + runtime::contexts_offset);
    for (uint32_t i = 0; i < frames.size(); i++) {
      frames[i].context = i + 1;
      contexts[i + 1] = {i, frames[i].site, frames[i].callee, 0, i == 0 && !is_fork && is_call, 0, 0, 0};
    }
    state->contexts = static_cast<uint32_t>(frames.size()) + 1;
  }
  for (const runtime::Frame& f : frames)
    if (f.callee > rt::not_arrived && f.callee < rt::max_counters) cells[f.callee]++;
  std::ranges::copy(frames, reinterpret_cast<runtime::Frame*>(memory + rt::frames_offset));
  block->frames.top = reinterpret_cast<uint64_t>(block->self) + rt::frames_offset + frames.size() * sizeof(runtime::Frame);
}

std::optional<int> Count::exit_status(const std::byte* memory) const {
  runtime::OsCall call = state_of(memory).os_call;
  if (call.number != exit_group + 1) return {};
  return static_cast<int>(call.descriptor & 0xff);
}

void Count::collect(const instrument::ThreadData& data) {
  Thread thread;
  thread.tid = data.tid;
  add_units(data, thread);
  const runtime::State state = state_of(data.memory);
  add_other_calls(data, state, thread);
  auto os = table<runtime::OsRecord>(data.memory, runtime::os_offset, runtime::max_os);
  for (uint32_t i : table<uint32_t>(data.memory, runtime::os_list_offset, std::min(state.os, runtime::max_os))) {
    runtime::OsRecord r = copy_of(os[i % runtime::max_os]);
    if (!r.number--) continue;
    r.function = function_of(r.function);
    thread.os_calls.push_back(r);
  }
  runtime::OsRecord last_call = last_call_of(state.os_call);
  if (last_call.number--) last_call.function = function_of(last_call.function), thread.os_calls.push_back(last_call);
  thread.name.assign(state.name, strnlen(state.name, sizeof state.name));
  thread.os_time = state.os_clock + last_call.time;
  thread.waited = state.waited + last_call.waited;
  thread.undivided = state.undivided;
  thread.untimed = state.untimed;
  thread.lost = state.lost;
  thread.unseen = state.unseen;
  for (const runtime::Context& c :
       table<runtime::Context>(data.memory, runtime::contexts_offset, std::min(state.contexts, runtime::max_contexts))) {
    const runtime::Context copy = copy_of(c);
    if (!thread.contexts.empty() && !copy.callee) break;  // it never was one
    thread.contexts.push_back(copy);
  }
  thread.faults = faults_of(data.memory);
  close_frames(data.memory, state, last_call, thread);
  for (runtime::Context& c : thread.contexts) c.site = site_of(c.site), c.callee = function_of(c.callee);
  if (thread.contexts.size() > 1 && thread.contexts[1].site == start)
    thread.contexts[1].callee = function_around({state.start});
  threads_[data.pid].push_back(std::move(thread));
}

// Code that was written over other code is the later function's.
std::vector<Faults> Count::faults_of(const std::byte* memory) {
  constexpr ptrdiff_t most_around = 16;  // functions that begin behind the one that is looked for, and before the place
  const auto& shared = *reinterpret_cast<const rt::FaultTable*>(memory + rt::faults_offset);
  uint64_t count = std::min<uint64_t>(__atomic_load_n(&shared.count, __ATOMIC_ACQUIRE), rt::max_fault_records);
  if (count && by_address_.size() != functions_.size()) {
    by_address_.resize(functions_.size());
    std::iota(by_address_.begin(), by_address_.end(), 0);
    std::ranges::stable_sort(by_address_, {}, [&](uint32_t f) { return functions_[f].begin; });
  }
  auto function_at = [&](AppPc pc) -> uint32_t {
    auto behind = std::ranges::upper_bound(by_address_, pc, {}, [&](uint32_t f) { return functions_[f].begin; });
    auto last = behind - std::min<ptrdiff_t>(behind - by_address_.begin(), most_around);
    while (behind != last)
      if (--behind; pc < functions_[*behind].end) return *behind;
    return 0;
  };
  std::map<uint32_t, Faults> sums;
  for (uint64_t i = 0; i < count; i++) {
    const rt::FaultRecord r = copy_of(shared.records[i]);
    if (!r.faults) continue;
    uint32_t function = r.pc ? function_at({r.pc}) : 0;
    Faults& sum = sums[function];
    sum.function = function, sum.faults += r.faults, sum.time += r.time, sum.waited += r.waited;
  }
  std::vector<Faults> all;
  for (const auto& [function, sum] : sums) all.push_back(sum);
  return all;
}

Unit Count::end_of_unit(size_t number) const {
  if (number + 1 < units_.size()) return units_[number + 1];
  return {static_cast<uint32_t>(blocks_.size()), points_, static_cast<uint32_t>(sites_.size()), UINT32_MAX};
}

// Only what the thread has run.
void Count::add_units(const instrument::ThreadData& data, Thread& thread) const {
  auto written = data.written.begin();
  for (size_t number = 0; number < units_.size(); number++) {
    uint32_t begin = units_[number].cell, end = end_of_unit(number).cell;
    while (written != data.written.end() && written->end <= begin) ++written;
    if (written == data.written.end()) return;
    if (written->begin < end) add_unit(number, data, thread);
  }
}

// The counts of its blocks, and the calls that have records of their own: direct ones, and those of the first callee of an indirect call.
void Count::add_unit(size_t number, const instrument::ThreadData& data, Thread& thread) const {
  const Unit begin = units_[number], end = end_of_unit(number);
  auto cells = data.cells.first(std::min<size_t>(end.cell, data.cells.size()));
  cells = cells.subspan(std::min<size_t>(begin.cell, cells.size()));
  if (std::ranges::all_of(cells, [](uint64_t n) { return n == 0; })) return;
  std::vector<Count64> flows;
  auto local = [&](uint32_t point) { return point == outside ? outside : point - begin.point + 1; };
  for (const Block& b : blocks().subspan(begin.block, end.block - begin.block))
    flows.push_back(
        {local(b.from), local(b.to), b.counter.index ? at(data.cells, b.counter.index) : 0, b.counter.index != 0});
  solve_counts(flows, end.point - begin.point + 1);
  auto count_of = [&](uint32_t block) {
    const Count64& flow = flows[block - begin.block];
    return flow.is_known ? static_cast<int64_t>(flow.count) : 0;
  };
  for (uint32_t b = begin.block; b < end.block; b++) {
    int64_t count = count_of(b);
    uint64_t extra = blocks_[b].extra.index ? at(data.cells, blocks_[b].extra.index) : 0;
    thread.clock += static_cast<uint64_t>(count) * blocks_[b].cycles + extra;
    if (count > 0) thread.blocks.push_back({b, static_cast<uint64_t>(count), extra});
  }
  for (uint32_t i = begin.site; i < end.site; i++) {
    const Site& site = sites_[i];
    auto cell = [&](uint32_t n) { return at(data.cells, site.record.index + n); };
    uint32_t callee = site.callee;
    uint64_t calls = 0;
    if (callee != profile::none)
      calls = site.taken.index ? at(data.cells, site.taken.index)
                               : static_cast<uint64_t>(std::max<int64_t>(0, count_of(site.block)));
    else if (!cell(runtime::RecordCallee)) continue;
    else callee = function_of(static_cast<uint32_t>(cell(runtime::RecordCallee))), calls = cell(runtime::RecordCalls);
    // (Calls that a forked process began with may have ended there without a total: inside another of the same function.)
    if (calls || cell(runtime::RecordTotal) || cell(runtime::RecordSpread + 1))
      thread.calls.push_back({i, callee, calls, cell(runtime::RecordTotal),
                              range_of({cell(runtime::RecordSpread), cell(runtime::RecordSpread + 1)}),
                              cell(runtime::RecordOs)});
  }
}

// Those of other callees are in a hash table.
void Count::add_other_calls(const instrument::ThreadData& data, const runtime::State& state, Thread& thread) const {
  auto others = table<runtime::OtherRecord>(data.memory, runtime::others_offset, runtime::max_others);
  for (uint32_t i :
       table<uint32_t>(data.memory, runtime::others_list_offset, std::min(state.others, runtime::max_others))) {
    const runtime::OtherRecord r = copy_of(others[i % runtime::max_others]);
    if (!r.callee) continue;
    thread.calls.push_back({site_of(r.site), function_of(r.callee), r.calls, r.total, range_of(r.self), r.os});
  }
  auto waits = table<runtime::WaitRecord>(data.memory, runtime::wait_records_offset, runtime::max_waits);
  for (uint32_t i : table<uint32_t>(data.memory, runtime::wait_list_offset, std::min(state.waits, runtime::max_waits))) {
    const runtime::WaitRecord r = copy_of(waits[i % runtime::max_waits]);
    if (r.callee) thread.calls.push_back({site_of(r.site), function_of(r.callee), 0, 0, {}, 0, r.waited});
  }
}

uint32_t Count::site_of(uint32_t cell) const {
  cell &= ~rt::direct_site;
  if (cell <= rt::signal_site) return cell;
  auto codes = std::span(sites_).subspan(signal + 1);
  auto site = std::ranges::lower_bound(codes, cell, {}, [](const Site& s) { return s.record.index; });
  return site == codes.end() || site->record.index != cell ? start : static_cast<uint32_t>(&*site - sites_.data());
}

uint32_t Count::function_of(uint32_t cell) const {
  auto found = std::ranges::lower_bound(cell_of_function_, cell);
  return found == cell_of_function_.end() || *found != cell ? 0 : static_cast<uint32_t>(found - cell_of_function_.begin());
}

// The nearest one: without symbols their ends are guesses, and one may reach over others.
uint32_t Count::function_around(AppPc pc) const {
  uint32_t nearest = 0;
  for (uint32_t i = 1; i < functions_.size(); i++)
    if (functions_[i].begin <= pc && pc < functions_[i].end && functions_[nearest].begin <= functions_[i].begin)
      nearest = i;
  return nearest;
}

// Calls that had not returned: they took what they took up to now. What the clock is now follows from the blocks (wall time is what it was when
// somebody last looked at it). How much of it belongs to
// the innermost call is known if the thread ended in an OS call; else it is no minimum or maximum.
void Count::close_frames(const std::byte* memory, const runtime::State& state, const runtime::OsRecord& last_call,
                         Thread& thread) const {
  rt::Times last = state.clock_at_os_call;
  uint64_t clock = is_by_wall() ? last.clock : thread.clock, os = last_call.time, waited = last_call.waited;
  bool self_is_known = last.clock == clock;
  uint64_t self_clock = last.self;
  auto end_leaf = [&](const runtime::LeafCall& leaf) {
    if (!leaf.site) return;
    uint32_t number = site_of(static_cast<uint32_t>(leaf.site));
    if (uint32_t callee = sites_[number].callee; callee != profile::none)
      thread.calls.push_back({number, callee, 0, clock - leaf.begin.clock});
    self_is_known = true;
    self_clock = leaf.begin.self;
  };
  end_leaf(copy_of(*reinterpret_cast<const runtime::LeafCall*>(block_of(memory).tool)));
  const std::vector<runtime::Frame> frames = frames_of(memory);
  auto interrupted = std::to_array(block_of(memory).interrupted);
  auto aside = std::to_array(state.aside);
  auto waits = table<uint64_t>(memory, runtime::waits_offset, static_cast<uint32_t>(frames.size()));
  if (!frames.empty() && frames.back().context && frames.back().context < thread.contexts.size()) {
    thread.contexts[frames.back().context].os += os;
    thread.contexts[frames.back().context].waited += waited;
  }
  std::unordered_map<uint32_t, uint32_t> depth;
  for (const runtime::Frame& f : frames) depth[f.callee]++;
  for (size_t i = frames.size(); i--;) {
    const runtime::Frame& f = frames[i];
    uint64_t delta = clock - f.begin.clock, self = self_clock - f.begin.self;
    if (f.rsp & rt::FrameIsMarked) os += f.os, waited += copy_of(waits[i]);
    uint32_t number = site_of(f.site);
    if (f.context && f.context < thread.contexts.size()) {
      if (!self_is_known) {  // all contexts together took all
        self = clock;
        for (const runtime::Context& c : thread.contexts) self -= c.self;
        for (size_t k = 0; k < i; k++) self -= frames[k + 1].begin.self - frames[k].begin.self;
      }
      thread.contexts[f.context].self += self;
    }
    uint32_t callee = function_of(f.callee);
    if (i == 0 && f.site == rt::start_site) {
      AppPc start{state.start};
      if (!start) break;  // it was there before Weir
      callee = function_around(start);
    }
    Calls c{number, callee};
    if (!(f.site & rt::direct_site) && !(f.rsp & rt::FrameIsCounted)) c.calls++;  // (of direct ones the block has told)
    if (--depth[f.callee] == 0) c.total = delta, c.os = os, c.waited = waited;
    if (self_is_known && static_cast<int64_t>(self) >= 0) c.self = {self, self};  // (else it ran on, while we looked)
    thread.calls.push_back(c);
    self_is_known = true;
    self_clock = f.begin.self;
    if (f.site == rt::signal_site)
      for (size_t k = 0; k < interrupted.size(); k++)  // (a handler that was left may have had the same place)
        if (interrupted[k].frame == (f.rsp & ~uint64_t{rt::frame_bits}) - rt::handler_frame)
          end_leaf(std::exchange(aside[k].leaf, {}));
  }
}

std::vector<Thread> Count::take(uint32_t pid) {
  auto node = threads_.extract(pid);
  return node ? std::move(node.mapped()) : std::vector<Thread>{};
}

}  // namespace weir::count
