// count: the exact profile. How often every block ran and what every call took, in virtual cycles (spec 1: T1–T3, A1–A8).
//
// Two things are counted. *Blocks*: some have a counter, the others follow from them (flow.h); there the virtual clock is advanced
// too. *Calls*: a call pushes a frame on the parallel stack (rt/frames.h) with the clock of that moment, its return site pops it. Self times follow from
// the blocks, self+descendants from the frames.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "base/flat_map.h"
#include "base/published.h"
#include "base/ticks.h"
#include "instrument/tool.h"
#include "profile/profile.h"
#include "tools/count/inline.h"
#include "tools/count/runtime/memory.h"

namespace weir::count {

// What a block costs: its cycles, and, of each instruction, those up to and with it.
struct BlockCost {
  uint32_t cycles;
  std::span<const uint32_t> so_far;
};
using CostModel = std::function<BlockCost(std::span<const std::byte> block, std::span<const x86::Insn> insns)>;

enum class Known : uint8_t { NotYet, No, Yes };

struct Function {
  AppPc begin, end;
  uint32_t image = 0;
  uint64_t bias = 0;
  instrument::Counter cell{
      rt::unknown_function};      // its frames on the stack; that of another where the image is mapped twice, or of `whole`
  uint32_t whole = 0;             // 0: none; it is a part of that one, which has its frames, too
  bool is_stub = false;           // of a procedure linkage table: no function for anybody but the linker
  Known is_leaf = Known::NotYet;  // see leaf.cc
  bool may_return_twice = false;  // known with is_leaf
  Known overwrites_flags = Known::NotYet;  // before it reads any
};

struct Block {
  AppPc begin;
  uint32_t function = 0;
  uint32_t size = 0, code = 0;          // its bytes, and where they begin in Pool::code
  uint32_t instructions = 0, insn = 0;  // and those in Pool::lengths and so_far
  uint32_t cycles = 0;
  uint32_t from = 0, to = 0;         // points: see flow.h
  instrument::Counter counter = {};  // none: its count follows from those of others
  instrument::Counter extra = {};    // cycles of repeated instructions; none: it has none
};

// What blocks are made of, one behind the other. (Half a million blocks are ordinary: a compiler.)
struct Pool {
  Published<std::byte> code;
  Published<uint8_t> lengths;  // of instructions
  Published<uint32_t> so_far;  // cycles of the block, up to and with this instruction
};

struct Site {
  AppPc pc;
  uint32_t function = 0;
  profile::SiteKind kind = profile::SiteKind::Call;
  uint32_t callee = profile::none;  // where it is known
  uint32_t block = 0;               // that it ends
  instrument::Counter record = {};  // its cells
  instrument::Counter taken = {};   // of a conditional jump, or what is behind one: the block does not tell
};

// What was planned together, from these on: a part of a function. Nothing outside of it follows from its cells.
struct Unit {
  uint32_t block, point, site, cell;
};

// Code of no file, or that was written to, and what was planned for it: it is often translated again.
struct Planned {
  std::vector<x86::Insn> insns;
  std::vector<x86::Block> blocks;
  instrument::Plan plan;
  uint32_t previous = 0;  // of the same entry: one more than its number
};

// Calls from a site to a function, of one thread.
struct Calls {
  uint32_t site = 0, callee = 0;
  uint64_t calls = 0, total = 0;
  profile::Range self = {};
  uint64_t os = 0, waited = 0;
};

// Page faults of a function.
struct Faults {
  uint32_t function = 0;
  uint64_t faults = 0, time = 0, waited = 0;
};

struct Thread {
  uint32_t tid = 0;
  std::string name;
  std::vector<profile::BlockCount> blocks;  // those that ran
  std::vector<Calls> calls;                 // of a site and callee there may be several
  std::vector<runtime::OsRecord> os_calls;  // `function` is an index
  std::vector<Faults> faults;               // by function
  std::vector<runtime::Context> contexts;   // `site` and `callee` are indices; the first is none
  uint64_t clock = 0;                       // what its blocks have advanced it by
  uint64_t os_time = 0, waited = 0, lost = 0, unseen = 0, undivided = 0, untimed = 0;  // see runtime::State
};

runtime::OsClass os_class(uint32_t number);

// What the profile calls the first of a tool's functions, blocks and sites: see Assembler.
struct ProfileIds {
  std::vector<uint32_t> functions, blocks, sites;
};

// What the clock counts (T6). Of the clock of instructions a repeated string instruction is one, however often it repeats. Wall time is read
// by the runtime, at each call and return.
enum class Clock : uint8_t { Cycles, Instructions, Wall };

// What OS calls take: as it is measured, or, of those that cannot wait, by the model that os_calls.inc is (T4).
enum class OsModel : uint8_t { Measured, Classes };

struct Options {
  bool full_paths = false;
  Clock clock = Clock::Cycles;
  OsModel os_model = OsModel::Measured;
  TickRate ticks = {};
};

class Count : public instrument::Tool {
 public:
  Count(std::shared_ptr<CostModel> cost, const Options& options)
      : cost_(std::move(cost)), options_(options), full_paths_(options.full_paths || options.clock == Clock::Wall) {}
  std::unique_ptr<Tool> copy() const override { return std::make_unique<Count>(*this); }
  instrument::Services services() const override { return {.clock = true, .frames = true}; }
  const instrument::InlineCode* inline_code() const override { return &count::inline_code(); }
  std::optional<int> exit_status(const std::byte* memory) const override;
  void plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) override;
  void begin_thread(const instrument::ThreadStart& start) override;
  void collect(const instrument::ThreadData& data) override;
  void adopt() override;

  static constexpr std::string_view runtime_part = "count";
  // Sites of these numbers are no instructions.
  static constexpr uint32_t start = 0, signal = 1;
  std::span<const Function> functions() const { return functions_; }  // the first is unknown code
  std::span<const Block> blocks() const { return blocks_; }
  const Pool& pool() const { return pool_; }
  std::span<const Site> sites() const { return sites_; }
  bool is_by_wall() const { return options_.clock == Clock::Wall; }
  bool is_by_instructions() const { return options_.clock == Clock::Instructions; }
  // The threads that have been collected since it was last asked.
  std::vector<Thread> take(uint32_t pid);
  ProfileIds ids;

 private:
  class Planner;
  uint32_t function_at(const instrument::Subject& subject, AppPc pc, instrument::Counters& counters, uint32_t whole = 0);
  uint32_t& first_of_place(const Function& f);
  bool is_leaf(const instrument::Subject& subject, uint32_t function);
  bool overwrites_flags(const instrument::Subject& subject, uint32_t function);
  const Planned* find_planned(const x86::Function& f) const;
  uint32_t site_of(uint32_t cell) const;
  uint32_t function_of(uint32_t cell) const;
  uint32_t function_around(AppPc pc) const;
  std::vector<Faults> faults_of(const std::byte* memory);
  Unit end_of_unit(size_t number) const;
  void add_unit(size_t number, const instrument::ThreadData& data, Thread& thread) const;
  void add_units(const instrument::ThreadData& data, Thread& thread) const;
  void add_other_calls(const instrument::ThreadData& data, const runtime::State& state, Thread& thread) const;
  void publish();
  void close_frames(const std::byte* memory, const runtime::State& state, const runtime::OsRecord& last_call,
                    Thread& thread) const;

  std::shared_ptr<CostModel> cost_;
  Options options_;
  bool full_paths_;  // A6: every call goes through the runtime, which keeps the calling-context tree
  Published<Function> functions_{{}};
  Published<uint32_t> cell_of_function_{rt::unknown_function};  // that were handed out for them: ascending
  Published<Block> blocks_;
  Pool pool_;
  uint32_t points_ = 1;            // of blocks, the outside with them
  Published<Site> sites_{{}, {}};  // their records are ascending, too
  Published<Unit> units_;
  FlatMap<uint32_t> function_by_begin_;  // and 0 where none is known
  FlatMap<uint32_t> function_by_place_;  // in its image: the first of those that are the same in the profile
  std::vector<uint32_t> by_address_;     // functions, as they were when it was made: see faults_of()
  std::vector<Planned> planned_;
  FlatMap<uint32_t> planned_by_entry_;               // one more than the number of the last one
  std::map<uint32_t, std::vector<Thread>> threads_;  // by pid
};

}  // namespace weir::count
