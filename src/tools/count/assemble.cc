#include "tools/count/assemble.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "profile/os_call.h"
#include "profile/processes.h"
#include "profile/sums.h"
#include "tools/count/spread.h"

namespace weir::count {

using profile::Cycles;
using profile::none;
using profile::SiteKind;

namespace {

// A thread of a large program has megabytes of counts.
constexpr size_t kept_threads = 1000, kept_processes = 1000;

// Blocks that are asked for one after the other are near each other in the hash table: in a line of the CPU's cache.
uint32_t hash_of_block(uint32_t function, uint64_t offset) {
  return (hash_of(function, offset >> 5) & ~7u) | (offset >> 2 & 7);
}

}  // namespace

Assembler::Open& Assembler::open(const profile::LiveRun& program) {
  auto [known, is_new] = open_.try_emplace(program.pid);
  if (is_new) known->second.process = add_process(program);
  known->second.written.read(static_cast<pid_t>(program.pid), program.started, program.perf_map,
                             std::ranges::any_of(program.images, symbols::is_written));
  return known->second;
}

uint32_t Assembler::add_process(const profile::LiveRun& program) {
  if (p_.processes.size() >= kept_processes && program.parent_pid) return none;  // (the one that was started has its place)
  p_.processes.push_back({{program.pid, program.command, program.started, program.started, {}, {}, {}, program.program}});
  parents_.push_back(program.parent_pid);
  return static_cast<uint32_t>(p_.processes.size() - 1);
}

void Assembler::add_threads(Count& tool, const profile::LiveRun& program) {
  uint32_t process = open(program).process;
  add_functions(tool, program);
  add_blocks(tool);
  add_sites(tool);
  for (const Thread& t : tool.take(program.pid)) add_thread(tool, t, process);
}

void Assembler::add(Count& tool, const profile::LiveRun& program) {
  add_threads(tool, program);
  uint32_t process = open_.extract(program.pid).mapped().process;
  if (process == none) return;
  p_.processes[process].ended = program.ended;
  p_.processes[process].exit_status = program.exit_status;
  p_.processes[process].ended_by = program.ended_by;
}

// These three give ids to what the tool has, beyond those that it got before. Programs have code in common: it is added once.
void Assembler::add_functions(Count& tool, const profile::LiveRun& program) {
  std::vector<uint32_t>& ids = tool.ids.functions;
  ids.reserve(tool.functions().size());
  symbols::Writer writer{program.pid, program.started, open_.at(program.pid).written.code()};
  while (ids.size() < tool.functions().size()) {
    const Function& f = tool.functions()[ids.size()];
    if (f.whole) {
      ids.push_back(ids[f.whole]);
      continue;
    }
    bool known = !ids.empty();
    uint32_t where = known && f.image < program.images.size() ? code_.image(program.images[f.image], &writer)
                                                              : code_.image("[anonymous]", nullptr);
    ids.push_back(code_.function(where, f.begin.value - f.bias, static_cast<uint64_t>(f.end - f.begin)));
  }
}

void Assembler::add_blocks(Count& tool) {
  std::vector<uint32_t>& ids = tool.ids.blocks;
  ids.reserve(tool.blocks().size());
  const Pool& pool = tool.pool();
  if (p_.blocks.empty()) {  // often it is the only program
    known_blocks_.reserve(tool.blocks().size());
    p_.blocks.reserve(tool.blocks().size());
    insns_.reserve(tool.blocks().size());
    p_.code.reserve(pool.code.size());
    lengths_.reserve(pool.lengths.size());
    so_far_.reserve(pool.so_far.size());
  }
  auto append = [](auto& to, const auto& from, uint32_t first, uint32_t count) {
    to.insert(to.end(), from.begin() + first, from.begin() + first + count);
  };
  for (const Block& b : tool.blocks().subspan(ids.size())) {
    uint64_t offset = b.begin.value - tool.functions()[b.function].bias;
    uint32_t owner = tool.ids.functions[b.function];
    auto next = static_cast<uint32_t>(p_.blocks.size());
    uint32_t id = known_blocks_.find_or_add(hash_of_block(owner, offset), next, [&](uint32_t i) {
      const profile::Block& known = p_.blocks[i];
      return known.function == owner && known.offset == offset && known.size == b.size &&
             known.instructions == b.instructions && known.cycles == b.cycles;  // (else it was rewritten)
    });
    ids.push_back(id);
    if (id != next) continue;
    p_.blocks.push_back({owner, offset, static_cast<uint32_t>(p_.code.size()), b.size, b.instructions, b.cycles});
    insns_.push_back({static_cast<uint32_t>(lengths_.size()), 0});
    append(p_.code, pool.code, b.code, b.size);
    append(lengths_, pool.lengths, b.insn, b.instructions);
    append(so_far_, pool.so_far, b.insn, b.instructions);
  }
}

void Assembler::add_sites(Count& tool) {
  std::vector<uint32_t>& ids = tool.ids.sites;
  ids.reserve(tool.sites().size());
  while (ids.size() < tool.sites().size()) {
    auto i = static_cast<uint32_t>(ids.size());
    const Site& s = tool.sites()[i];
    SiteKind kind = i == Count::start ? SiteKind::Start : i == Count::signal ? SiteKind::Signal : s.kind;
    bool is_code = i > Count::signal;
    uint32_t owner = is_code ? tool.ids.functions[s.function] : none;
    uint64_t offset = is_code ? s.pc.value - tool.functions()[s.function].bias : 0;
    auto next = static_cast<uint32_t>(p_.sites.size());
    uint32_t id = known_sites_.find_or_add(hash_of(owner, offset), next, [&](uint32_t k) {
      const profile::CallSite& known = p_.sites[k];
      return known.function == owner && known.offset == offset && known.kind == kind;
    });
    ids.push_back(id);
    if (id == next) p_.sites.push_back({owner, offset, kind, "", 0});
  }
}

namespace {

void widen(profile::Range& range, profile::Range by) {
  range.min = std::min(range.min, by.min), range.max = std::max(range.max, by.max);
}

void add_up_functions(std::vector<profile::FunctionCount>& counts) {
  add_up(counts, &profile::FunctionCount::function, [](profile::FunctionCount& sum, const profile::FunctionCount& c) {
    sum.calls += c.calls, sum.self += c.self, sum.total += c.total;
    sum.os_calls += c.os_calls, sum.os_time += c.os_time, sum.os_time_total += c.os_time_total;
    sum.waited += c.waited, sum.waited_total += c.waited_total;
    widen(sum.self_range, c.self_range);
  });
}

void add_up_calls(std::vector<profile::CallCount>& counts) {
  auto key = [](const profile::CallCount& c) { return uint64_t{c.site} << 32 | c.callee; };
  add_up(counts, key, [](profile::CallCount& sum, const profile::CallCount& c) {
    sum.calls += c.calls, sum.total += c.total, sum.os_time_total += c.os_time_total, sum.waited_total += c.waited_total;
    widen(sum.self_range, c.self_range);
  });
}

void add_up_os_calls(std::vector<profile::OsCount>& counts) {
  auto key = [](const profile::OsCount& c) { return uint64_t{c.function} << 32 | c.number; };
  add_up(counts, key, [](profile::OsCount& sum, const profile::OsCount& c) {
    sum.calls += c.calls, sum.errors += c.errors;
    sum.time += c.time, sum.waited += c.waited;
  });
}

// What a thread's full tables mean for its figures.
std::string what_is_lost(const Thread& t, const profile::Thread& out) {
  if (t.contexts.size() < runtime::max_contexts)
    return fmt::format("the tables of calls or of OS calls were full: {} are not counted", with_commas(t.lost));
  uint64_t calls = 0, on_paths = 0;
  for (const auto& c : out.calls) calls += c.calls;
  for (const profile::Context& c : out.contexts) on_paths += c.calls;
  return fmt::format(
      "{} of {} calls found no place in the table of call paths, which holds {}: on call paths their time stands at their "
      "callers",
      with_commas(calls - std::min(calls, on_paths)), with_commas(calls), with_commas(runtime::max_contexts));
}

}  // namespace

namespace {

// OS calls take none of the program's instructions: what they took stands with them alone.
void leave_out_os_time(profile::Thread& t) {
  t.os_time = 0;
  for (profile::FunctionCount& f : t.functions) f.os_time = f.os_time_total = 0;
  for (profile::CallCount& c : t.calls) c.os_time_total = 0;
  for (profile::Context& c : t.contexts) c.os_time = 0;
}

}  // namespace

void Assembler::add_thread(const Count& tool, const Thread& t, uint32_t process) {
  const auto& [functions, blocks, sites] = tool.ids;
  profile::Thread out;
  out.process = process;
  out.tid = t.tid;
  out.name = t.name;
  out.os_time = t.os_time;
  out.waited = t.waited;
  auto add_function = [&](uint32_t function) -> profile::FunctionCount& {
    profile::FunctionCount& f = out.functions.emplace_back();
    f.function = functions[function];
    return f;
  };
  is_by_wall_ = tool.is_by_wall();
  std::vector<OwnTime> faults, faults_waited;
  for (const Faults& f : t.faults) {
    faults.push_back({functions[f.function], f.time});
    faults_waited.push_back({functions[f.function], f.waited});
  }
  for (const profile::BlockCount& c : t.blocks) {
    const Block& b = tool.blocks()[c.block];
    out.blocks.push_back({blocks[c.block], c.count, c.extra});
    uint64_t cycles = is_by_wall_ ? 0 : c.count * b.cycles + c.extra;
    if (out.functions.empty() || out.functions.back().function != functions[b.function]) add_function(b.function);
    out.functions.back().self += cycles;
    out.cycles += cycles;
    out.instructions += c.count * b.instructions;
  }
  for (const Calls& c : t.calls)
    out.calls.push_back({sites[c.site], functions[c.callee], c.calls, c.total, c.os, c.self, c.waited});
  for (const runtime::OsRecord& r : t.os_calls) {
    auto& f = add_function(r.function);
    f.os_calls = r.calls, f.os_time = r.time, f.waited = r.waited;
    out.os_calls.push_back(
        {f.function, r.number, r.calls, r.errors, r.time, r.waited, static_cast<profile::OsClass>(os_class(r.number))});
  }
  for (const Faults& faults_of : t.faults) {
    auto& f = add_function(faults_of.function);
    f.os_time = faults_of.time, f.waited = faults_of.waited;  // (they are no calls)
    out.os_calls.push_back(
        {f.function, profile::page_fault, faults_of.faults, 0, faults_of.time, faults_of.waited, profile::OsClass::Timed});
    out.os_time += faults_of.time, out.waited += faults_of.waited;
  }
  for (size_t i = 1; i < t.contexts.size(); i++) {
    const runtime::Context& c = t.contexts[i];
    uint32_t parent = c.parent && c.parent < i ? c.parent - 1 : none;
    out.contexts.push_back({parent, sites[c.site], functions[c.callee], c.calls, c.self, c.os, c.waited});
    if (is_by_wall_) add_function(c.callee).self = c.self, out.cycles += c.self;
  }
  add_up_calls(out.calls);
  // A path that was left half-way may have set the clock back; and a thread that goes on may have begun calls since its blocks were read.
  for (profile::CallCount& c : out.calls)
    if (static_cast<int64_t>(c.total) < 0) c.total = 0;
  spread_to_callers(out, p_.sites, faults, {&profile::Context::os_time, &profile::CallCount::os_time_total});
  spread_to_callers(out, p_.sites, faults_waited, {&profile::Context::waited, &profile::CallCount::waited_total});
  for (const profile::CallCount& c : out.calls)
    out.functions.push_back({.function = c.callee,
                             .calls = c.calls,
                             .self_range = c.self_range,
                             .total = c.total,
                             .os_time_total = c.os_time_total,
                             .waited_total = c.waited_total});
  add_up_functions(out.functions);
  // What was called before Weir was there took at least its own time.
  for (profile::FunctionCount& f : out.functions) {
    f.total = std::max(f.total, f.self);
    f.os_time_total = std::max(f.os_time_total, f.os_time);
    f.waited_total = std::max(f.waited_total, f.waited);
  }
  add_up_os_calls(out.os_calls);
  if (tool.is_by_instructions()) leave_out_os_time(out);
  ran_.resize(p_.functions.size());
  for (const profile::FunctionCount& f : out.functions) ran_[f.function] = true;
  auto note = [&](const std::string& text) {
    p_.processes[process == none ? 0 : process].notes.push_back(fmt::format("thread {}: {}", t.tid, text));
  };
  if (t.lost) note(what_is_lost(t, out));
  if (t.unseen)
    note(
        fmt::format("{} went to functions whose calls were not seen (coroutines of other threads, stacks that code written "
                    "at run time leaves): their totals lack what came before",
                    counted(t.unseen, "return")));
  if (t.undivided)
    note(
        fmt::format("{} that may wait could not be divided into work and waiting, as the CPU clock may not be read there "
                    "(a system call filter): those of more than 0.1 ms count as waiting",
                    counted(t.undivided, "OS call")));
  if (t.untimed)
    note(fmt::format("{} have no time, as the time stamp counter may not be read there", counted(t.untimed, "OS call")));
  bool is_first = process != none && !parents_[process] && t.tid == p_.processes[process].pid;
  if (process == none || (p_.threads.size() >= kept_threads && !is_first)) add_to_others(out);
  else p_.threads.push_back(std::move(out));
}

void Assembler::add_to_others(const profile::Thread& t) {
  if (others_ == none) {
    others_process_ = static_cast<uint32_t>(p_.processes.size());
    p_.processes.push_back({{0, {"[other threads]"}, p_.processes[0].started, p_.processes[0].started}});
    parents_.push_back(0);
    others_ = static_cast<uint32_t>(p_.threads.size());
    p_.threads.emplace_back().process = others_process_;
  }
  profile::Thread& sum = p_.threads[others_];
  auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(sum.functions, t.functions);
  append(sum.calls, t.calls);
  append(sum.blocks, t.blocks);
  append(sum.os_calls, t.os_calls);
  sum.cycles += t.cycles, sum.instructions += t.instructions, sum.os_time += t.os_time, sum.waited += t.waited;
  std::vector<uint32_t> ids;  // of the thread's contexts, among the others
  for (const profile::Context& c : t.contexts) {
    uint32_t parent = c.parent == none ? none : ids[c.parent];
    auto next = static_cast<uint32_t>(sum.contexts.size());
    uint32_t id = others_contexts_.find_or_add(hash_of(parent, uint64_t{c.site} << 32 | c.function), next, [&](uint32_t k) {
      const profile::Context& known = sum.contexts[k];
      return known.parent == parent && known.site == c.site && known.function == c.function;
    });
    ids.push_back(id);
    if (id == next) sum.contexts.push_back({parent, c.site, c.function});
    sum.contexts[id].calls += c.calls, sum.contexts[id].self += c.self;
    sum.contexts[id].os_time += c.os_time, sum.contexts[id].waited += c.waited;
  }
  others_count_++;
  if (sum.functions.size() + sum.calls.size() + sum.blocks.size() > 2 * others_size_ + 10'000) add_up_others();
}

void Assembler::add_up_others() {
  profile::Thread& sum = p_.threads[others_];
  add_up_functions(sum.functions);
  add_up_calls(sum.calls);
  add_up(sum.blocks, &profile::BlockCount::block,
         [](profile::BlockCount& s, const profile::BlockCount& c) { s.count += c.count, s.extra += c.extra; });
  add_up_os_calls(sum.os_calls);
  others_size_ = sum.functions.size() + sum.calls.size() + sum.blocks.size();
}

// Wall time is known by function. Its blocks have their shares of it, as the model of the CPU guesses: so all sums are right, and lines can be told.
void Assembler::spread_wall_time() {
  auto weight = [&](const profile::BlockCount& c) {
    return double(c.count) * p_.blocks[c.block].cycles + double(c.extra) + 1e-9;
  };
  for (profile::Thread& t : p_.threads) {
    struct Sum {
      double weight = 0;
      Cycles left = 0;
      profile::BlockCount* last = nullptr;
    };
    std::unordered_map<uint32_t, Sum> sums;
    for (const profile::FunctionCount& f : t.functions) sums[f.function].left = f.self;
    for (const profile::BlockCount& c : t.blocks) sums[p_.blocks[c.block].function].weight += weight(c);
    for (profile::BlockCount& c : t.blocks) {
      Sum& sum = sums[p_.blocks[c.block].function];
      double own = weight(c);
      c.extra = std::min(sum.left, static_cast<Cycles>(double(sum.left) * own / sum.weight));
      sum.weight -= own;
      sum.left -= c.extra;
      sum.last = &c;
    }
    for (auto& [function, sum] : sums)
      if (sum.last) sum.last->extra += sum.left;
  }
  for (profile::Block& b : p_.blocks) b.cycles = 0;
  for (profile::LinePart& l : p_.lines) l.cycles = 0;
}

void Assembler::finish() {
  if (others_ != none) {
    add_up_others();
    p_.threads[others_].name = fmt::format("{} threads", others_count_);
    for (const profile::Process& process : p_.processes)
      p_.processes[others_process_].ended = std::max(p_.processes[others_process_].ended, process.ended);
    p_.processes[others_process_].notes.push_back(fmt::format("{} that ended after the first {} are added up",
                                                              counted(others_count_, "thread"), with_commas(kept_threads)));
  }
  profile::find_parents(p_.processes, parents_);
  cut_blocks();
  ran_.resize(p_.functions.size());
  for (uint32_t i = 0; i < p_.images.size(); i++) {
    code_.name_functions(i, ran_, true);  // those that never ran are known too (A8)
    find_lines(i);
    for (const std::string& note : code_.notes(i))
      if (!p_.processes.empty()) p_.processes[0].notes.push_back(note);
  }
  count_entries();
  mark_visits();
  if (is_by_wall_) spread_wall_time();
}

}  // namespace weir::count
