// The invariants of a profile. Two sources are compared: what blocks counted (self times, instructions), and what calls measured by the
// clock (totals, spreads).
//
// Where a limit of docs/limits.md bends a rule, the profile itself says so, and only that much is allowed:
//  - A handler, or a coroutine, runs inside whoever it interrupted or was resumed by, without a call site there. Their sites are of the kinds
//    `signal` and `start`; a function may have as much more than its calls explain as those took. A function that they lead to may
//    also be on the stack below them: then the inner call counts in no total, and its sum is not known.
//    Where stacks are switched, some calls never return, and are seen to have ended only later.
//  - A handler that does not return leaves a path through blocks half-way: up to the cycles of all blocks of the function, for each signal.
//  - A thread that others end may have been about to end a call, whose time is there twice or not at all: in its caller, itself and what it called.
//  - A thread that goes on while the profile is written (its process outlives the program, and the run is not complete) is read piece by piece:
//    some of its calls are younger than its blocks.
//  - Of a thread that was there before Weir came there is no start, and functions that were on its stack have calls and no begin.
//  - A thread with a note ("thread 12: …") says itself what it could not see.
//  - Of code that is written at run time a function is what was called, or where a call returned to: such parts call each other in ways
//    that no call site tells. What was called there and told nobody who it is has calls, and no total.
// Recursive functions, alone or together, have no such sum: a call inside a call of the same function counts once.
#include "report/check.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/components.h"
#include "base/text.h"
#include "symbols/written_names.h"

namespace weir::report {
namespace {

using store::none;
using Sum = __int128;  // of numbers up to store::most

enum Rule : uint8_t { Possible, Nested, SelfSum, Blocks, Calls, Children, Spread, Paths, OsSum };
constexpr std::array<std::pair<const char*, const char*>, 9> rules{{
    {"possible", "no time or count is below zero, or larger than any run"},
    {"nested", "self ≤ total ≤ the thread's time"},
    {"self", "the self times of a thread add up to its time"},
    {"blocks", "blocks make up their function's self time, and the thread's instructions"},
    {"calls", "the calls and totals of a function's callers are its own"},
    {"children", "total = self + the totals of the calls that a function makes, outside cycles"},
    {"spread", "smallest self ≤ largest self ≤ self"},
    {"paths", "call paths make up self times and calls"},
    {"os", "OS time and waiting: a thread's functions, OS calls, call paths make up its own; callers, a function's total"},
}};

struct Finding {
  Rule rule;
  uint32_t thread, function;
  std::string text;
};

struct Site {
  uint32_t function;
  std::string kind;
};

// What OS calls took, and what passed in them besides.
struct OsTimes {
  Sum time = 0, waited = 0;
  void add(int64_t more_time, int64_t more_waited) { time += more_time, waited += std::max<int64_t>(0, more_waited); }
  bool operator==(const OsTimes&) const = default;
};

struct Node {
  const store::FunctionCounts* row = nullptr;
  Sum calls = 0, total = 0;  // by its callers
  Sum made = 0;              // totals of the calls that it makes
  Sum blocks = 0, once = 0;  // cycles of its blocks: all that ran, and each once
  Sum paths = 0, path_calls = 0;
  OsTimes os;  // by its callers
  std::vector<uint32_t> callees;
  bool calls_nobody = false;
  bool is_cyclic = false, is_reached = false;  // reached: from a handler or a coroutine
};

struct Thread {
  store::ThreadRow row;
  bool has_note = false, has_paths = false, goes_on = false;
  Sum instructions = 0, signals = 0;
  Sum once = 0;             // cycles of all blocks that ran, each once
  Sum begun = 0;            // totals of what has no caller: the thread itself, handlers, coroutines
  uint32_t unfinished = 0;  // functions that may have half of an end
  OsTimes os_calls, os_paths;
  uint64_t starts = 0;  // sites of the kind `start`: more than one, and stacks were switched
  std::vector<store::FunctionCounts> functions;
  std::vector<store::CallCounts> calls;
  std::unordered_map<uint32_t, Node> nodes;
};

// Marks what is in a cycle of calls.
void mark_cycles(std::unordered_map<uint32_t, Node>& nodes) {
  std::unordered_map<uint32_t, uint32_t> numbers;
  for (auto& [id, node] : nodes) numbers.emplace(id, static_cast<uint32_t>(numbers.size()));
  std::vector<std::vector<uint32_t>> out(nodes.size());
  for (auto& [id, node] : nodes)
    for (uint32_t callee : node.callees) out[numbers.at(id)].push_back(numbers.at(callee));
  base::Components components(out);
  for (auto& [id, node] : nodes) node.is_cyclic = components.leads_to_itself(numbers.at(id));
}

class Checker {
 public:
  explicit Checker(store::Reader& reader) : reader_(reader) {}

  Result<> run() {
    TRY(profile::Run run, reader_.run());
    is_sampled_ = run.sampling.has_value();
    is_by_instructions_ = run.clock == "instructions";
    // With inlined functions, where there are any, and without.
    if (reader_.has_inlined()) {
      TRY_VOID(check_form(run));
      TRY_VOID(reader_.fold_inlined(true));
    }
    return check_form(run);
  }

  uint64_t rows = 0;
  std::array<uint64_t, rules.size()> checked{}, broken{}, excused{};
  std::vector<Finding> findings;

 private:
  Result<> check_form(const profile::Run& run) {
    threads_.clear();
    TRY_VOID(read_threads(run.complete));
    TRY_VOID(read_counts());
    for (auto& [id, thread] : threads_) check_thread(thread);
    return {};
  }
  Result<> read_threads(bool is_complete) {
    TRY(std::vector<store::ThreadRow> all, reader_.all_threads());
    TRY(std::vector<store::ProcessRow> processes, reader_.processes());
    for (store::ThreadRow& row : all) {
      std::string begin = fmt::format("thread {}: ", row.tid);
      Thread& thread = threads_[row.id];
      for (const store::ProcessRow& p : processes) {
        if (p.id != row.process) continue;
        if (p.ended_by != "exit" || p.pid != row.tid) thread.unfinished = 3;
        thread.goes_on |= !is_complete && p.ended_by.empty();
        for (const std::string& note : p.notes) thread.has_note |= note.starts_with(begin);
      }
      thread.row = std::move(row);
    }
    TRY_VOID(reader_.all_functions([&](const store::FunctionInfo& f) {
      if (!symbols::is_written(f.image)) return;
      written_.insert(f.id);
      if (!f.offset) nobody_.insert(f.id);
    }));
    return reader_.sites([&](const store::CallRow& s) { sites_[s.site] = {s.caller, s.site_kind}; });
  }

  Result<> read_counts() {
    TRY_VOID(reader_.counts_of_functions([&](const store::FunctionCounts& c) {
      bool is_good = are_possible({c.self, c.total, c.os_time, c.os_time_total}) &&
                     (is_sampled_ || are_possible({c.calls, c.os_calls})) &&
                     (!tells_waits() || are_possible({c.waited, c.waited_total}));
      if (Thread* t = thread_of(c.thread, c.function, is_good)) t->functions.push_back(c);
    }));
    TRY_VOID(reader_.counts_of_calls([&](const store::CallCounts& c) {
      bool is_good = are_possible({c.total, c.os_time_total}) && (is_sampled_ || are_possible({c.calls})) &&
                     (!tells_waits() || are_possible({c.waited_total}));
      if (Thread* t = thread_of(c.thread, c.callee, is_good)) t->calls.push_back(c);
    }));
    TRY_VOID(reader_.sums_of_os_calls([&](const store::Reader::OsSums& c) {
      if (Thread* t = thread_of(c.thread, none, are_possible({c.time, c.waited}))) t->os_calls.add(c.time, c.waited);
    }));
    TRY_VOID(reader_.counts_of_blocks([&](const store::BlockCounts& c) {
      Thread* t = thread_of(c.thread, c.function,
                            are_possible({c.count, c.extra, c.instructions, c.cycles}) && c.instructions <= UINT32_MAX &&
                                c.cycles <= UINT32_MAX);
      if (!t) return;
      t->instructions += Sum{c.count} * c.instructions;
      Node& node = t->nodes[c.function];
      node.blocks += Sum{c.count} * c.cycles + c.extra;
      node.once += c.cycles, t->once += c.cycles;
    }));
    return reader_.contexts([&](const store::ContextRow& c) {
      Thread* t = thread_of(c.thread, c.function, are_possible({int64_t(c.self), int64_t(c.calls), int64_t(c.total)}));
      if (!t) return;
      t->has_paths = true;
      t->os_paths.add(int64_t(c.os_time), int64_t(c.waited));
      t->nodes[c.function].paths += int64_t(c.self), t->nodes[c.function].path_calls += int64_t(c.calls);
    });
  }

  static bool are_possible(std::initializer_list<int64_t> figures) {
    return std::ranges::all_of(figures, [](int64_t n) { return n >= 0 && n <= store::most; });
  }
  bool tells_waits() const { return !is_sampled_ && reader_.tells_waits(); }
  // Null: the row is told, and no sum has it in it.
  Thread* thread_of(uint32_t thread, uint32_t function, bool is_good) {
    rows++;
    auto found = threads_.find(thread);
    bool is_known = found != threads_.end();
    expect(Possible, is_known && is_good, is_known ? &found->second : nullptr, function,
           [&] { return is_known ? "a figure that cannot be" : "a row of no thread"; });
    return is_known && is_good ? &found->second : nullptr;
  }

  // The rule holds, or is told by `text`. What may be excused is counted, and not told.
  template <class Text>
  void expect(Rule rule, bool holds, const Thread* thread, uint32_t function, Text text, bool may_be_excused = false) {
    constexpr size_t most_told = 1000;
    checked[rule]++;
    if (holds) return;
    if (may_be_excused) {
      excused[rule]++;
      return;
    }
    if (broken[rule]++ < most_told) findings.push_back({rule, thread ? thread->row.tid : 0, function, text()});
  }

  void check_thread(Thread& t) {
    Sum self = 0;
    for (const store::FunctionCounts& f : t.functions) t.nodes[f.function].row = &f, self += f.self;
    expect(SelfSum, self == Sum(t.row.cycles), &t, none,
           [&] { return fmt::format("{}, the thread has {}", self, t.row.cycles); });
    if (!is_sampled_)
      expect(Blocks, t.instructions == Sum(t.row.instructions), &t, none,
             [&] { return fmt::format("{} instructions, the thread has {}", t.instructions, t.row.instructions); });
    add_calls(t);
    check_os(t);
    if (t.has_paths && reader_.has_inlined()) {
      Sum paths = 0;  // (by function they are spread)
      for (auto& [id, node] : t.nodes) paths += node.paths;
      bool is_blind = t.has_note || t.goes_on || !t.starts || t.signals;
      expect(
          Paths, paths == Sum(t.row.cycles), &t, none,
          [&] { return fmt::format("{} on paths, the thread has {}", paths, t.row.cycles); }, is_blind);
    }
    for (auto& [id, node] : t.nodes) check_function(t, id, node);
  }

  void check_os(Thread& t) {
    OsTimes own{Sum(t.row.os_time), Sum(t.row.waited)}, functions;
    for (const store::FunctionCounts& f : t.functions) functions.add(f.os_time, f.waited);
    auto expect_own = [&](const char* what, const OsTimes& sums) {
      expect(
          OsSum, sums == own, &t, none,
          [&] {
            return fmt::format("{} {} and {}, the thread {} and {}", what, sums.time, sums.waited, own.time, own.waited);
          },
          t.has_note || t.goes_on);
    };
    if (is_sampled_) return;
    expect_own("functions have", functions);
    // (By instructions OS time stands with the calls alone.)
    if (is_by_instructions_) t.os_calls.time = 0;
    if (tells_waits()) expect_own("OS calls have", t.os_calls);  // (before schema 6 some were in no time)
    if (t.has_paths) expect_own("call paths have", t.os_paths);
  }

  void add_calls(Thread& t) {
    std::vector<uint32_t> begun;
    for (const store::CallCounts& c : t.calls) {
      check_spread(t, c.callee, c.self_min, c.self_max);
      Node& callee = t.nodes[c.callee];
      callee.calls += c.calls, callee.total += c.total;
      callee.os.add(c.os_time_total, c.waited_total);
      auto site = sites_.find(c.site);
      if (site == sites_.end()) continue;
      auto& [function, kind] = site->second;
      if (kind == "signal") t.signals += c.calls;
      if (kind == "start") t.starts++;
      if (kind == "signal" || kind == "start") {
        t.begun += c.total, begun.push_back(c.callee);
        continue;
      }
      Node& caller = t.nodes[function];
      caller.made += c.total, caller.callees.push_back(c.callee);
      caller.calls_nobody |= nobody_.contains(c.callee);
    }
    mark_cycles(t.nodes);
    t.signals = std::min(t.signals, Sum{1} << 40);  // (times cycles, this stays a number)
    // The thread itself is the first that was begun: what is more is inside others.
    t.begun = std::max(Sum{0}, t.begun - Sum(t.row.cycles));
    if (!t.begun && !t.signals) return;
    while (!begun.empty()) {
      Node& node = t.nodes[begun.back()];
      begun.pop_back();
      if (std::exchange(node.is_reached, true)) continue;
      begun.insert(begun.end(), node.callees.begin(), node.callees.end());
    }
  }

  void check_function(Thread& t, uint32_t id, const Node& n) {
    static constexpr store::FunctionCounts nothing{none, none, 0, 0, 0, 0, 0, 0, 0, 0, {}, {}};
    const store::FunctionCounts& f = n.row ? *n.row : nothing;
    expect(
        Nested, f.self <= f.total && f.total <= Sum(t.row.cycles) + t.begun, &t, id,
        [&] { return fmt::format("self {}, total {}, the thread {}", f.self, f.total, t.row.cycles); }, t.goes_on);
    check_spread(t, id, f.self_min, f.self_max);
    if (is_sampled_) return;
    Sum left = (reader_.has_inlined() ? t.once : n.once) * t.signals;  // by handlers that did not return
    bool is_blind = t.has_note || t.goes_on || !t.starts || written_.contains(id);
    expect(
        Spread, !f.self_max || *f.self_max <= f.self + left, &t, id,
        [&] { return fmt::format("one call took {}, all together {}", *f.self_max, f.self); }, is_blind);
    // (Blocks and call paths are those of the functions that have the code.)
    if (!reader_.has_inlined())
      expect(Blocks, n.blocks == f.self, &t, id, [&] { return fmt::format("blocks {}, self {}", n.blocks, f.self); });
    // (What was running when Weir came has no callers: its total is its time with what was inlined into it.)
    bool was_running = reader_.has_inlined() && n.total < f.total && f.total <= f.self + n.made;
    bool calls_hold = n.calls == f.calls && (std::max(n.total, Sum{f.self}) == f.total || was_running);
    expect(Calls, calls_hold, &t, id,
           [&] { return fmt::format("{} calls of total {}, callers {} of {}", f.calls, f.total, n.calls, n.total); });
    auto holds_os = [](Sum total, Sum self, Sum by_callers, Sum all) {
      return std::max(by_callers, self) == total && total <= all;
    };
    bool os_holds = holds_os(f.os_time_total, f.os_time, n.os.time, Sum(t.row.os_time)) &&
                    (!tells_waits() || holds_os(f.waited_total, f.waited, n.os.waited, Sum(t.row.waited)));
    expect(
        OsSum, os_holds, &t, id,
        [&] {
          return fmt::format("OS time {} in all, callers {}; waited {}, callers {}", f.os_time_total, n.os.time,
                             f.waited_total, n.os.waited);
        },
        t.has_note || t.goes_on);
    if (t.has_paths && !reader_.has_inlined())
      expect(
          Paths, n.paths == f.self && n.path_calls == f.calls, &t, id,
          [&] { return fmt::format("self {} of {} calls, paths {} of {}", f.self, f.calls, n.paths, n.path_calls); },
          is_blind || t.signals);
    check_children(t, id, n, f, left, is_blind);
  }

  void check_children(Thread& t, uint32_t id, const Node& n, const store::FunctionCounts& f, Sum left, bool is_blind) {
    if (n.is_cyclic) return;
    Sum known = f.self + n.made;
    auto text = [&] { return fmt::format("total {}, self {} + calls {}", f.total, f.self, n.made); };
    bool is_less = f.total < known, is_seen = !is_blind && !n.is_reached && !(is_less ? t.starts > 1 : n.calls_nobody);
    bool holds = is_less ? f.total >= known - left : f.total <= known + left + t.begun;
    if (!holds && is_seen && t.unfinished) t.unfinished--, is_seen = false;
    expect(Children, holds, &t, id, text, !is_seen);
  }

  void check_spread(Thread& t, uint32_t id, std::optional<int64_t> min, std::optional<int64_t> max) {
    bool holds = min.has_value() == max.has_value() && (!min || (are_possible({*min, *max}) && *min <= *max));
    expect(Spread, holds, &t, id, [&] { return fmt::format("from {} to {}", min.value_or(-1), max.value_or(-1)); });
  }

  store::Reader& reader_;
  bool is_sampled_ = false, is_by_instructions_ = false;
  std::map<uint32_t, Thread> threads_;
  std::unordered_map<uint32_t, Site> sites_;
  std::unordered_set<uint32_t> written_, nobody_;  // functions of code written at run time, and those without a place
};

}  // namespace

Result<bool> check(store::Reader& reader, Output& out) {
  Checker c(reader);
  TRY_VOID(c.run());
  TRY_VOID(reader.fold_inlined(false));  // (findings name inlined functions, too)
  std::unordered_map<uint32_t, std::string> names;
  for (const Finding& f : c.findings) names[f.function];
  TRY_VOID(reader.all_functions([&](const store::FunctionInfo& f) {
    if (auto known = names.find(f.id); known != names.end()) known->second = f.name;
  }));
  uint64_t broken = 0;
  for (uint64_t n : c.broken) broken += n;
  out.begin("check");
  out.fact("rows", c.rows);
  out.fact("broken", broken);
  out.table("rules", {{"rule", "rule", Kind::Label},
                      {"checked", "checked", Kind::Count},
                      {"broken", "broken", Kind::Count},
                      {"excused", "excused", Kind::Count},
                      {"what", "what must hold", Kind::Code}});
  for (size_t r = 0; r < rules.size(); r++)
    out.row({std::string(rules[r].first), c.checked[r], c.broken[r], c.excused[r], std::string(rules[r].second)});
  out.end_table();
  if (broken) out.line();
  out.table("findings", {{"rule", "broken", Kind::Label},
                         {"thread", "thread", Kind::Id},
                         {"function", "function", Kind::Name},
                         {"text", "what the profile has", Kind::Code}});
  uint64_t limit = out.is_text() ? 50 : UINT64_MAX;
  for (size_t i = 0; i < std::min<uint64_t>(c.findings.size(), limit); i++) {
    const Finding& f = c.findings[i];
    out.row({std::string(rules[f.rule].first), uint64_t{f.thread}, names[f.function], f.text});
  }
  out.end_table(broken - std::min<uint64_t>(c.findings.size(), limit));
  out.line();
  out.line(broken ? fmt::format("{} in {} of counts: the profile is wrong there", counted(broken, "fault"),
                                counted(c.rows, "row"))
                  : fmt::format("{} of counts: all that must hold does", counted(c.rows, "row")));
  TRY_VOID(out.end());
  return broken == 0;
}

}  // namespace weir::report
