// weir profile: every call, line and block of a program, counted and costed.

#include <time.h>
#include <x86intrin.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/options.h"
#include "cost/model.h"
#include "engine/engine.h"
#include "store/write.h"
#include "tools/count/assemble.h"
#include "tools/count/count.h"

namespace weir::cli {

namespace {

struct Settings {
  std::string output, cpu, clock = "cycles", paths = "callers", os_calls = "self";
  Attach attach;
  size_t cache_mb = 0;
  bool no_follow = false, quiet = false, keep_environment = false;
};

// What is profiled, as its command line says.
std::vector<std::string> command_of(const Settings& s, const Words& words) {
  if (s.attach.pids.empty()) return words.program;
  auto command = engine::command_of(s.attach.pids[0]);
  return command.empty() || command[0].empty() ? std::vector{fmt::format("process-{}", s.attach.pids[0])} : command;
}

Result<Settings> parse(const Words& words, bool& done) {
  Settings s;
  CLI::App app{
      "Profiles a program exactly: every call, line and basic block is counted, and costed in virtual cycles.\n\n"
      "  weir profile -- sqlite3 test.db 'select count(*) from t'\n"
      "  weir profile -o make.weir -- make\n"
      "  weir profile --pid 1234 --seconds 10\n"
      "  weir report make.weir functions\n"};
  app.name("weir profile");
  app.add_option("-o,--output", s.output, "write the profile there (default: PROGRAM.weir; an older one is kept as .old)")
      ->type_name("FILE");
  app.add_option("--cpu", s.cpu, "the CPU whose cycles are counted, as LLVM calls it (default: this machine's)");
  app.add_option("--clock", s.clock, "cycles, or instructions")
      ->check(CLI::IsMember({"cycles", "instructions"}))
      ->capture_default_str();
  app.add_option("--paths", s.paths, "callers: who called whom; full: every call path, for trees and flame graphs (slower)")
      ->check(CLI::IsMember({"callers", "full"}))
      ->capture_default_str();
  app.add_option("--os-calls", s.os_calls, "charged to the function that makes them, or functions of their own")
      ->check(CLI::IsMember({"self", "separate"}))
      ->capture_default_str();
  app.add_flag("--environment", s.keep_environment, "keep the environment in the profile");
  app.add_flag("--no-follow", s.no_follow, "let other programs that it executes run natively");
  app.add_flag("-q,--quiet", s.quiet, "print no summary");
  add_cache_option(app, s.cache_mb);
  add_attach_options(app, s.attach);
  TRY(bool go_on, parse_options(app, words));
  done = !go_on;
  if (done) return s;
  TRY_VOID(check_attach(s.attach, words));
  std::vector<std::string> command = command_of(s, words);
  if (command.empty()) return fail("no program given; try: weir profile -- ls");
  if (s.output.empty()) s.output = std::filesystem::path(command[0]).filename().string() + ".weir";
  return s;
}

int64_t microseconds(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * int64_t{1'000'000} + t.tv_nsec / 1000;
}

std::string host_cpu() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "";
}

// 1234567 → "1.23 M"
std::string scaled(double n) {
  const char* unit = "";
  for (const char* u : {" k", " M", " G", " T"}) {
    if (n < 1000) break;
    n /= 1000, unit = u;
  }
  return *unit ? fmt::format("{:.2f}{}", n, unit) : fmt::format("{:.0f}", n);
}

void print_summary(const profile::Profile& p, const std::string& path) {
  uint64_t cycles = 0, instructions = 0, os = 0;
  std::vector<std::pair<uint64_t, uint32_t>> self(p.functions.size());
  for (uint32_t i = 0; i < self.size(); i++) self[i].second = i;
  std::vector<uint64_t> calls(p.functions.size());
  for (const profile::Thread& t : p.threads) {
    cycles += t.cycles, instructions += t.instructions, os += t.os_time;
    for (const profile::FunctionCount& f : t.functions) self[f.function].first += f.self, calls[f.function] += f.calls;
  }
  say("{} cycles ({}), {} instructions, {} cycles in OS calls; processes: {}, threads: {}", scaled(double(cycles)),
      p.run.cpu, scaled(double(instructions)), scaled(double(os)), p.processes.size(), p.threads.size());
  size_t shown = std::min<size_t>(10, self.size());
  std::partial_sort(self.begin(), self.begin() + static_cast<ptrdiff_t>(shown), self.end(), std::greater<>());
  for (size_t i = 0; i < shown && self[i].first; i++) {
    const profile::Function& f = p.functions[self[i].second];
    std::string image = std::filesystem::path(p.images[f.image].path).filename();
    say("{:6.2f}%  {:>9}  {:>9} calls  {}  [{}]", 100.0 * double(self[i].first) / double(std::max<uint64_t>(cycles, 1)),
        scaled(double(self[i].first)), scaled(double(calls[self[i].second])), f.name.substr(0, 80), image);
  }
  say("next: weir report {} functions", path);
}

void describe_run(profile::Run& run, const Settings& s) {
  run.ended = microseconds(CLOCK_REALTIME);
  std::error_code gone;  // (somebody may have removed the directory)
  run.directory = std::filesystem::current_path(gone);
  for (char** e = environ; s.keep_environment && *e; e++) run.environment.push_back(*e);
  run.host_cpu = host_cpu();
  run.clock = s.clock;
  run.os_separate = s.os_calls == "separate";
  run.full_paths = s.paths == "full";
  run.weir_version = WEIR_VERSION;
}

Result<int> make_profile(const Words& words, const Settings& s) {
  TRY(cost::Model model, cost::Model::create(s.cpu));
  bool by_instructions = s.clock == "instructions";
  std::vector<uint32_t> ones;
  auto cost = std::make_shared<count::CostModel>([&](std::span<const std::byte> block, std::span<const x86::Insn> insns) {
    cost::Cost c = model.cost(block, insns);
    if (!by_instructions) return count::BlockCost{c.cycles, c.so_far};
    ones.resize(c.so_far.size());
    for (uint32_t i = 0; i < ones.size(); i++) ones[i] = i + 1;
    return count::BlockCost{static_cast<uint32_t>(ones.size()), ones};
  });

  profile::Profile result;
  count::Assembler assembler(result);
  engine::Options options;
  options.command = words.program;
  options.pids = s.attach.pids;
  options.seconds = s.attach.seconds.value_or(0);
  options.follow = !s.no_follow;
  options.cache_limit = s.cache_mb << 20;
  options.make_tool = [&] { return std::make_unique<count::Count>(cost, s.paths == "full", by_instructions); };
  auto program = [](const engine::ProgramRun& run) {
    int64_t now = microseconds(CLOCK_REALTIME);
    return count::Program{run.pid, run.parent, run.command, run.started, now, run.exit_status, run.images, run.perf_map};
  };
  options.on_thread_end = [&](instrument::Tool& tool, const engine::ProgramRun& run) {
    assembler.add_threads(static_cast<count::Count&>(tool), program(run));
  };
  options.on_program_end = [&](instrument::Tool& tool, const engine::ProgramRun& run) {
    assembler.add(static_cast<count::Count&>(tool), program(run));
  };
  result.run.started = microseconds(CLOCK_REALTIME);
  result.run.command = command_of(s, words);
  int64_t begin = microseconds(CLOCK_MONOTONIC);
  uint64_t stamp = __rdtsc();
  options.finish = [&](const engine::Outcome& outcome) -> Result<int> {
    int64_t elapsed = std::max<int64_t>(1, microseconds(CLOCK_MONOTONIC) - begin);
    result.run.cycles_per_second = static_cast<uint64_t>(double(__rdtsc() - stamp) * 1e6 / double(elapsed));
    describe_run(result.run, s);
    result.run.cpu = model.cpu();
    result.run.complete = outcome.end != engine::Outcome::LeftRunning && !outcome.cut_short;
    model.save();
    assembler.finish();
    TRY_VOID(store::write(result, s.output, outcome.weir));
    if (outcome.cut_short) say_cut_short(s.output);
    else if (!s.quiet && outcome.end != engine::Outcome::Behind) print_summary(result, s.output);
    return outcome.status;
  };
  TRY(int status, engine::run(options));
  // All is said and written; to give back the memory piece by piece would only take time.
  fflush(nullptr);
  _exit(status);
}

}  // namespace

Result<int> profile(const Words& words) {
  bool done = false;
  TRY(Settings s, parse(words, done));
  if (done) return 0;
  TRY_VOID(store::check_writable(s.output));
  return make_profile(words, s);
}

}  // namespace weir::cli
