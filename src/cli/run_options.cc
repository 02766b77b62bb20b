#include "cli/run_options.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/processor.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "process/program.h"
#include "report/report.h"
#include "store/write.h"

namespace weir::cli {

namespace {

// CLI11 does not know of the program behind the options.
struct UsageWithProgram : CLI::Formatter {
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return fmt::format("{0} [--] PROGRAM [ARGUMENTS]\n       {1} [OPTIONS] --pid N[,N...]\n",
                       trimmed(CLI::Formatter::make_usage(app, name)), app->get_name());
  }
  static std::string trimmed(std::string text) { return text.substr(0, text.find_last_not_of('\n') + 1); }
};

}  // namespace

void add_run_options(CLI::App& app, RunOptions& o) {
  app.formatter(std::make_shared<UsageWithProgram>());
  app.add_flag("--no-follow", o.no_follow, "let other programs that it executes run natively");
  app.add_option("-p,--pid", o.pids, "attach to these running processes, and let go of them in the end")
      ->delimiter(',')
      ->type_name("N[,N]");
  app.add_option("--seconds", o.seconds, "with --pid: let go after that long (default: at Ctrl-C, or when they end)")
      ->type_name("S");
  app.add_option("--log-file", o.log_file, "write Weir's own messages there, not to stderr")->type_name("FILE");
  app.add_flag("-q,--quiet", o.quiet, "print no summary");
  app.add_flag("-v,--verbose", o.verbose, "tell how each program ended, and what the engine did");
  app.footer("In names of files, %p is the number of the process weir, and %q{VAR} a variable of the environment.");
}

void add_cache_option(CLI::App& app, RunOptions& o) {
  app.add_option(
         "--cache-mb", o.cache_mb,
         "megabytes of translated code to keep for a program; when they are full it is flushed (default: all is kept)")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
}

void add_result_options(CLI::App& app, std::string& output, bool& keep_environment) {
  app.add_option("-o,--output", output, "write the profile there (default: PROGRAM.weir; an older one is kept as .old)")
      ->type_name("FILE");
  app.add_flag("--environment", keep_environment, "keep the environment in the profile");
}

std::vector<std::string> command_of(const RunOptions& o, const Words& words) {
  if (o.pids.empty()) return words.program;
  auto command = process::command_of(o.pids[0]);
  return command.empty() || command[0].empty() ? std::vector{fmt::format("process-{}", o.pids[0])} : command;
}

namespace {

// The name that a process was started by. Its file may have another one, as links lead to it: redis-server is redis-check-rdb, and awk mawk.
// The first word of its command says the name, in front of whatever else the process tells of itself there ("redis-server *:6379", "nginx:
// worker process"); it is believed where the kernel's name (15 characters of what was executed, or what a thread called itself) or the file
// agrees.
std::string started_as(pid_t pid) {
  std::string file = process::program_name(pid), kernel;
  if (file == "?") return "";
  file = std::string(base_name(file.substr(0, file.find(" (deleted)"))));
  std::getline(std::ifstream(fmt::format("/proc/{}/comm", pid)), kernel);
  std::vector<std::string> command = process::command_of(pid);
  std::string word = command.empty() ? "" : command[0];
  for (std::string name : {word.substr(0, word.find_first_of(" :")), word}) {
    constexpr size_t kernel_length = 15;
    if (name = std::string(base_name(name)); name.starts_with('-')) name.erase(0, 1);  // of a login shell
    if (!name.empty() && (name == file || name.substr(0, kernel_length) == kernel)) return name;
  }
  bool is_name = kernel.find_first_not_of(".") != kernel.npos && kernel.find_first_of(" :*/") == kernel.npos;
  return is_name ? kernel : file;
}

}  // namespace

Result<std::string> result_name(const std::string& output, const RunOptions& o, const Words& words) {
  TRY(std::string file, file_name("-o", output));
  if (!file.empty()) return file;
  std::string program = o.pids.empty() ? std::string(base_name(words.program[0])) : started_as(o.pids[0]);
  return (program.empty() ? fmt::format("process-{}", o.pids[0]) : program) + ".weir";
}

namespace {

std::string host_cpu() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "";
}

// Is there somebody who could make room now? Not where Weir is a guardian, or goes on behind the program.
bool asks_to_try_again(const Error& error, pid_t run) {
  bool is_foreground = isatty(STDERR_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (run != getpid() || !is_foreground) return false;
  say("{}; it is still in memory: make room, and press Enter to try again (Ctrl-D gives it up)", error.what);
  char answer[256];
  return read(STDIN_FILENO, answer, sizeof answer) > 0;
}

}  // namespace

Result<> write_profile(const profile::Profile& profile, const std::string& file, pid_t run) {
  for (;;) {
    auto place = store::write_somewhere(profile, file, run);
    if (place && place->why.empty()) return {};
    if (place) {
      std::string move = quoted_command({"mv", place->file, file});
      return fail("{}; the profile is in {}; when that is mended: {}", place->why, place->file, move);
    }
    if (!asks_to_try_again(place.error(), run)) return fail("{}; nothing was written", place.error().what);
  }
}

void describe_run(profile::Run& run, bool keep_environment) {
  run.ended = process::microseconds_now();
  std::error_code gone;  // (somebody may have removed the directory)
  run.directory = std::filesystem::current_path(gone);
  for (char** e = environ; keep_environment && *e; e++) run.environment.push_back(*e);
  run.host_cpu = host_cpu();
  run.weir_version = WEIR_VERSION;
}

Result<> print_summary(const std::string& file, bool os_apart) {
  TRY(store::Reader reader, store::Reader::open(file));
  report::Options options;
  TRY(options.with_waits, reader.add_waits({}));
  options.os = os_apart ? store::OsTime::Apart : store::OsTime::InSelf;
  std::string text;
  report::Output output(style_of_messages(), [&](std::string_view piece) { return text.append(piece), true; });
  TRY_VOID(report::show(reader, options, output));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) say("{}", line);
  return {};
}

Result<> check_run_options(const RunOptions& o, const Words& words, std::string_view verb) {
  bool positive = std::ranges::all_of(o.pids, [](int pid) { return pid > 0; });
  if (o.pids.empty() && o.seconds) return fail("--seconds needs --pid");
  if (!positive)
    return fail("--pid takes the numbers of processes: --pid 1234, or --pid \"$(pidof NAME)\" while NAME runs");
  constexpr double longest = 1e9;  // (30 years: the engines count in nanoseconds)
  if (o.seconds && !(*o.seconds > 0 && *o.seconds <= longest))
    return fail("--seconds takes a positive number, at most {:.0f}", longest);
  if (!o.pids.empty() && !words.program.empty())
    return fail("{}: a program and --pid do not go together", words.program[0]);
  if (o.pids.empty() && words.program.empty()) return fail("no program given; try: weir {} -- ls", verb);
  TRY_VOID(choose_processor());
  if (o.log_file.empty()) return {};
  TRY(std::string file, file_name("--log-file", o.log_file));
  return log_to(file);
}

engine::Options engine_options(const RunOptions& o, const Words& words) {
  engine::Options options;
  options.command = words.program;
  options.pids = o.pids;
  options.seconds = o.seconds.value_or(0);
  options.follow = !o.no_follow;
  options.cache_limit = o.cache_mb << 20;
  return options;
}

void say_ended(const profile::LiveRun& run) {
  say("process {}: {}: {}", run.pid, shortened(quoted_command(run.command), 100), ending(run.exit_status, run.ended_by));
}

void say_stats(const engine::Stats& s) {
  auto us_each = s.functions ? double(s.translate_ns) / 1000 / double(s.functions) : 0;
  say("processes {}, threads {}, signals {}", with_commas(s.processes), with_commas(s.threads), with_commas(s.signals));
  say("translator: {} functions, {:.2f} us each, {} blocks, {} instructions, {} -> {} bytes", with_commas(s.functions),
      us_each, with_commas(s.blocks), with_commas(s.instructions), with_commas(s.app_bytes), with_commas(s.code_bytes));
  if (s.from_archive) say("{} functions from the archive of earlier runs", with_commas(s.from_archive));
  say("time in the translator {:.3f} ms", double(s.translate_ns) / 1e6);
  say("requests {}, look-up misses {}, slow returns {}", with_commas(s.requests), with_commas(s.misses),
      with_commas(s.slow_returns));
  say("peak sizes: code {} KiB, table {} KiB, counters {} KiB a thread", with_commas(s.peak_code / 1024),
      with_commas(s.peak_table / 1024), with_commas(s.peak_counters / 1024));
  if (s.not_supported)
    say("{} instructions cannot be translated (reported when they are reached)", with_commas(s.not_supported));
  if (s.not_followed) say("{} programs not followed", with_commas(s.not_followed));
  if (s.cache_flushes) say("the code cache was full and flushed {} times", with_commas(s.cache_flushes));
  if (s.flushed_units) say("{} functions forgotten, as their memory was changed", with_commas(s.flushed_units));
}

void say_cut_short(const engine::Outcome& outcome, const std::string& file) {
  say("weir was killed{}{}", outcome.has_ended_any ? ", and so the program was ended" : "",
      file.empty() ? "" : "; what the program did until then is in " + file);
}

}  // namespace weir::cli
