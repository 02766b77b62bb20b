// A tool with two versions of every function, to show that threads change between them exactly:
//
//   two_versions [--probes N] [--moves MICROSECONDS] [--seed N] [--pid N --seconds S] --json FILE -- PROGRAM ARGS…
//
// Each version counts the instructions that are executed in it, so the sum must be what icount counts. With --probes there is a probe in one block of
// N that goes to the other version now and then, at any of its instructions. With --moves Weir moves threads about as often.
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "engine/engine.h"
#include "process/keeper.h"
#include "process/spawn.h"

namespace weir {
namespace {

using instrument::Op;
using instrument::Temp;
using instrument::Version;
using instrument::Where;

struct Settings {
  uint64_t probes = 0, moves = 0, seed = 1;
  std::string json;
};

// Of all programs of the run.
struct Totals {
  uint64_t instructions[2] = {}, gone = 0, moved = 0;
};

class TwoVersions : public instrument::Tool {
 public:
  TwoVersions(const Settings& settings, Totals& totals) : settings_(settings), totals_(totals), random_(settings.seed) {}
  std::unique_ptr<Tool> copy() const override { return std::make_unique<TwoVersions>(*this); }
  Version versions() const override { return 2; }

  void plan(const instrument::Subject& subject, instrument::Counters& counters, instrument::Plan& plan) override {
    const x86::Function& f = subject.function;
    for (const x86::Block& b : f.blocks) {
      uint32_t n = b.count - (b.ends == x86::BlockEnd::Undecodable);  // the last one is not executed here
      uint64_t number = (b.begin.value ^ settings_.seed) * 0x9E37'79B9'7F4A'7C15 >> 20;
      bool goes = settings_.probes && n && number % settings_.probes == 0;
      auto at = static_cast<uint32_t>(goes ? number / 64 % n : 0);
      if (at) count(counters, plan, b.first, at, subject.version);
      if (goes) go(counters, plan, b.first + at, 2 + number / 4096 % 100, subject.version);
      if (n > at) count(counters, plan, b.first + at, n - at, subject.version);
    }
  }

  std::chrono::microseconds look(instrument::Moves& moves) override {
    if (!settings_.moves) return std::chrono::microseconds::max();
    for (const auto& t : moves.threads()) {
      Version& last = last_[t.tid];
      totals_.moved += last != t.version;
      last = t.version;
      if (!t.is_on_its_way && random_() % 4) moves.move(t.tid, 1 - t.version);
    }
    return std::chrono::microseconds(1 + random_() % (2 * settings_.moves));
  }

  void collect(const instrument::ThreadData& thread) override {
    auto at = [&](instrument::Counter c) { return c.index < thread.cells.size() ? thread.cells[c.index] : 0; };
    for (const Counted& c : counted_) totals_.instructions[c.version] += c.instructions * at(c.counter);
    for (instrument::Counter c : gone_) totals_.gone += at(c);
  }

 private:
  struct Counted {
    instrument::Counter counter;
    uint32_t instructions;
    Version version;
  };

  void count(instrument::Counters& counters, instrument::Plan& plan, uint32_t insn, uint32_t instructions,
             Version version) {
    counted_.push_back({counters.allocate(), instructions, version});
    plan.insert(Where::Before, insn, {Op{.kind = Op::AddCounter, .counter = counted_.back().counter, .value = 1}});
  }

  // To the other version at each `period`th time.
  void go(instrument::Counters& counters, instrument::Plan& plan, uint32_t insn, uint64_t period, Version version) {
    instrument::Counter times = counters.allocate();
    gone_.push_back(counters.allocate());
    plan.insert(Where::Before, insn,
                {Op{.kind = Op::LoadCounter, .temp = Temp::A, .counter = times},
                 Op{.kind = Op::Add, .temp = Temp::A, .value = 1},
                 Op{.kind = Op::StoreCounter, .temp = Temp::A, .counter = times},
                 Op{.kind = Op::SkipUnless, .temp = Temp::A, .count = 4, .value = static_cast<int64_t>(period)},
                 Op{.kind = Op::Set, .temp = Temp::A, .value = 0},
                 Op{.kind = Op::StoreCounter, .temp = Temp::A, .counter = times},
                 Op{.kind = Op::AddCounter, .counter = gone_.back(), .value = 1},
                 Op{.kind = Op::GoTo, .value = 1 - version}});
  }

  const Settings& settings_;
  Totals& totals_;
  std::minstd_rand random_;
  std::vector<Counted> counted_;
  std::vector<instrument::Counter> gone_;
  std::map<uint32_t, Version> last_;  // by thread, when it was looked at
};

int main(int argc, char** argv) {
  Settings settings;
  engine::Options options;
  int i = 1;
  for (; i + 1 < argc && strcmp(argv[i], "--"); i += 2) {
    std::string name = argv[i], value = argv[i + 1];
    if (name == "--probes") settings.probes = std::stoul(value);
    else if (name == "--moves") settings.moves = std::stoul(value);
    else if (name == "--seed") settings.seed = std::stoul(value);
    else if (name == "--json") settings.json = value;
    else if (name == "--pid") options.pids = {std::stoi(value)};
    else if (name == "--seconds") options.seconds = std::stod(value);
    else if (name == "--cache-mb") options.cache_limit = std::stoul(value) << 20;
    else if (name == "--keep-addresses") options.keep_addresses = value == "yes";
    else return fprintf(stderr, "two_versions: what is %s?\n", argv[i]), 2;
  }
  options.command.assign(argv + std::min(i + 1, argc), argv + argc);
  Totals totals;
  options.make_tool = [&] { return std::make_unique<TwoVersions>(settings, totals); };
  options.on_program_end = [](auto&, auto&) {};
  options.write = [&](const engine::Outcome&) -> Result<> {
    if (settings.json.empty()) return {};
    uint64_t sum = totals.instructions[0] + totals.instructions[1];
    std::ofstream(settings.json) << fmt::format(
        "{{\"instructions\": {}, \"by_version\": [{}, {}], \"gone\": {}, \"moved\": {}}}\n", sum, totals.instructions[0],
        totals.instructions[1], totals.gone, totals.moved);
    return {};
  };
  auto status = engine::run(options);
  if (status && *status >= process::by_signal) process::end_as(*status);
  if (status) return *status;
  fprintf(stderr, "two_versions: %s\n", status.error().what.c_str());
  return 125;
}

}  // namespace
}  // namespace weir

int main(int argc, char** argv) {
  // (The engine executes this program anew to keep its files for processes of other users.)
  if (argc > 1 && std::string_view(argv[1]) == weir::process::Keeper::verb) return weir::process::Keeper::keep(argc, argv);
  return weir::main(argc, argv);
}
