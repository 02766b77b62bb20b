// weir profile: every call, line and block of a program, counted and costed.

#include <time.h>

#include <algorithm>

#include "base/text.h"
#include "cli/run_options.h"
#include "cost/model.h"
#include "process/spawn.h"
#include "profile/sources.h"
#include "store/write.h"
#include "tools/count/assemble.h"
#include "tools/count/count.h"

namespace weir::cli {

namespace {

struct Settings {
  std::string output, cpu, clock = "cycles", paths = "callers", os_calls = "self", os_model = "measured";
  RunOptions run;
  bool keep_environment = false;
};

Result<Settings> parse(Words& words, bool& done) {
  Settings s;
  CLI::App app{
      "Profiles a program exactly: every call, line and basic block is counted, and costed in virtual cycles.\n\n"
      "  weir profile -- sqlite3 test.db 'select count(*) from t'\n"
      "  weir profile -o make.weir -- make\n"
      "  weir profile --pid 1234 --seconds 10\n"
      "  weir report make.weir functions\n"};
  app.name("weir profile");
  app.add_option("--cpu", s.cpu, "the CPU whose cycles are counted, as LLVM calls it (default: this machine's)");
  app.add_option("--clock", s.clock,
                 "cycles, instructions, or wall: the time that passes, the probes' included (every call path; slow)")
      ->check(CLI::IsMember({"cycles", "instructions", "wall"}))
      ->capture_default_str();
  app.add_option("--paths", s.paths, "callers: who called whom; full: every call path, for trees and flame graphs (slower)")
      ->check(CLI::IsMember({"callers", "full"}))
      ->capture_default_str();
  app.add_option("--os-calls", s.os_calls, "charged to the function that makes them, or functions of their own")
      ->check(CLI::IsMember({"self", "separate"}))
      ->capture_default_str();
  app.add_option("--os-model", s.os_model,
                 "measured: OS calls take the processor time that they took; classes: those that cannot wait take a round "
                 "figure, the same in each run")
      ->check(CLI::IsMember({"measured", "classes"}))
      ->capture_default_str();
  add_result_options(app, s.output, s.keep_environment);
  add_cache_option(app, s.run);
  add_run_options(app, s.run);
  take_program(app, words);
  TRY(bool go_on, parse_options(app, words));
  done = !go_on;
  if (done) return s;
  TRY_VOID(check_run_options(s.run, words, "profile"));
  if (s.clock == "wall") s.paths = "full";
  TRY(s.output, result_name(s.output, s.run, words));
  return s;
}

int64_t microseconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * int64_t{1'000'000} + t.tv_nsec / 1000;
}

// What is not known of page faults.
void note_page_faults(const engine::Outcome& outcome, profile::Profile& result) {
  if (result.processes.empty()) return;
  std::vector<std::string>& notes = result.processes[0].notes;
  if (!outcome.no_page_faults.empty())
    notes.push_back(fmt::format("page faults could not be counted, and are in no OS time: {}", outcome.no_page_faults));
  if (outcome.stats.lost_faults)
    notes.push_back(fmt::format("page faults came faster than they could be read: {} of the kernel's are lost, two a fault",
                                counted(outcome.stats.lost_faults, "record")));
}

Result<int> make_profile(const Words& words, const Settings& s) {
  TickRate ticks;
  TRY(cost::Model model, cost::Model::create(s.cpu));
  count::Clock clock = s.clock == "instructions" ? count::Clock::Instructions
                       : s.clock == "wall"       ? count::Clock::Wall
                                                 : count::Clock::Cycles;
  std::vector<uint32_t> ones;
  auto cost = std::make_shared<count::CostModel>([&](std::span<const std::byte> block, std::span<const x86::Insn> insns) {
    cost::Cost c = model.cost(block, insns);
    if (clock != count::Clock::Instructions) return count::BlockCost{c.cycles, c.so_far};
    ones.resize(c.so_far.size());
    for (uint32_t i = 0; i < ones.size(); i++) ones[i] = i + 1;
    return count::BlockCost{static_cast<uint32_t>(ones.size()), ones};
  });

  profile::Profile result;
  count::Assembler assembler(result);
  engine::Options options = engine_options(s.run, words);
  count::OsModel os_model = s.os_model == "classes" ? count::OsModel::Classes : count::OsModel::Measured;
  // (By wall time they are in the time that passes, and the model is the same in every run.)
  options.page_faults = s.clock != "wall" && os_model == count::OsModel::Measured;
  options.runtime_part = count::Count::runtime_part;
  options.make_tool = [&] {
    return std::make_unique<count::Count>(cost, count::Options{s.paths == "full", clock, os_model, ticks});
  };
  options.on_thread_end = [&](instrument::Tool& tool, const profile::LiveRun& run) {
    assembler.add_threads(static_cast<count::Count&>(tool), run);
  };
  options.on_program_end = [&](instrument::Tool& tool, const profile::LiveRun& run) {
    assembler.add(static_cast<count::Count&>(tool), run);
    if (s.run.verbose) say_ended(run);
  };
  result.run.started = microseconds(CLOCK_REALTIME);
  result.run.command = command_of(s.run, words);
  options.write = [&](const engine::Outcome& outcome) -> Result<> {
    result.run.cycles_per_second = static_cast<uint64_t>(ticks.per_nanosecond() * 1e9);
    describe_run(result.run, s.keep_environment);
    result.run.clock = s.clock;
    result.run.os_model = s.os_model;
    result.run.os_separate = s.os_calls == "separate";
    result.run.full_paths = s.paths == "full";
    result.run.cpu = model.cpu();
    result.run.user_time = outcome.user_time, result.run.system_time = outcome.system_time;
    result.run.complete = outcome.end != engine::Outcome::LeftRunning && !outcome.cut_short;
    model.save();
    assembler.finish();
    note_page_faults(outcome, result);
    profile::note_sources(result);
    return write_profile(result, s.output, outcome.weir);
  };
  options.tell = [&](const engine::Outcome& outcome) -> Result<> {
    if (outcome.cut_short) return say_cut_short(outcome, s.output), Result<>();
    if (s.run.verbose) say_stats(outcome.stats);
    if (outcome.end == engine::Outcome::LeftRunning && !s.run.quiet)
      say("some processes outlive the program: {} is completed when they end", s.output);
    if (outcome.end != engine::Outcome::Behind && !s.run.quiet) TRY_VOID(print_summary(s.output, s.os_calls == "separate"));
    return {};
  };
  TRY(int status, engine::run(options));
  // All is said and written; to give back the memory piece by piece would only take time.
  process::end_as(status);
}

}  // namespace

Result<int> profile(Words words) {
  bool done = false;
  TRY(Settings s, parse(words, done));
  if (done) return 0;
  TRY_VOID(store::check_writable(s.output));
  return make_profile(words, s);
}

}  // namespace weir::cli
