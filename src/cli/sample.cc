// weir sample: where a program is, looked at many times a second, while it runs natively.

#include "sample/sample.h"
#include "process/spawn.h"

#include <time.h>

#include <charconv>
#include <cmath>

#include "cli/run_options.h"
#include "process/program.h"
#include "profile/sources.h"
#include "sample/assemble.h"
#include "store/write.h"

namespace weir::cli {

namespace {

struct Settings {
  std::string output, clock = "cpu", event, unwind = "auto", source = "auto";
  double frequency = 1000, confidence = 1;
  RunOptions run;
  bool verify = false, cost = false, keep_environment = false;
};

Result<Settings> parse(Words& words, bool& done) {
  Settings s;
  CLI::App app{
      "Samples a program: looks where each of its threads is, and who called that, many times a second of its CPU time.\n\n"
      "  weir sample -- sqlite3 test.db 'select count(*) from t'\n"
      "  weir sample -F 10000 -o make.weir -- make\n"
      "  weir sample --pid 1234 --seconds 10\n"
      "  weir sample --clock=wall -- ./server\n"
      "  weir report make.weir functions\n"};
  app.name("weir sample");
  CLI::Option* frequency = app.add_option("-F,--frequency", s.frequency, "samples a second of a thread's time")
                               ->check(number_between(1, 20'000))
                               ->type_name("HZ")
                               ->capture_default_str();
  CLI::Option* clock = app.add_option("--clock", s.clock, "cpu: while a thread runs; wall: also while it waits")
                           ->check(CLI::IsMember({"cpu", "wall"}))
                           ->capture_default_str();
  app.add_option("-e,--event", s.event,
                 fmt::format("sample every N-th of these, not time: {}", fmt::join(sample::event_names(), ", ")))
      ->type_name("NAME[:N]");
  app.add_option("--unwind", s.unwind,
                 "how callers are found: by call frame information, by frame pointers, by words that look like return "
                 "addresses; auto: by the first of these that there is")
      ->check(CLI::IsMember({"auto", "cfi", "fp", "heuristic"}))
      ->capture_default_str();
  app.add_option(
         "--confidence", s.confidence,
         "guessed callers of the last sample are taken over where they are at least so likely to hold still; 1: they are "
         "guessed again each time")
      ->check(number_between(0, 1))
      ->capture_default_str();
  app.add_flag("--verify", s.verify,
               "find the callers of each sample twice, from the last sample and in full, and count the differences");
  app.add_flag("--cost", s.cost, "measure what samples take in the program, too, and say it");
  app.add_option("--source", s.source,
                 "what interrupts threads: perf's events, or timers; auto: timers where perf is not allowed")
      ->check(CLI::IsMember({"auto", "perf", "timer"}))
      ->capture_default_str();
  add_result_options(app, s.output, s.keep_environment);
  add_run_options(app, s.run);
  take_program(app, words);
  TRY(bool go_on, parse_options(app, words));
  done = !go_on;
  if (done) return s;
  TRY_VOID(check_run_options(s.run, words, "sample"));
  if (!s.event.empty() && (frequency->count() || clock->count()))
    return fail("{} is about time, and --event counts something else: --event NAME:N takes a sample at every N-th event",
                frequency->count() ? "-F" : "--clock");
  TRY(s.output, result_name(s.output, s.run, words));
  return s;
}

Result<sample::Options> sample_options(const Settings& s, const Words& words) {
  sample::Options options;
  options.command = words.program;
  options.pids = s.run.pids;
  options.seconds = s.run.seconds.value_or(0);
  options.follow = !s.run.no_follow;
  options.event = s.event.empty() ? s.clock : s.event.substr(0, s.event.find(':'));
  options.rate = s.frequency;
  if (size_t colon = s.event.find(':'); colon != s.event.npos) {
    std::string_view number = std::string_view(s.event).substr(colon + 1);
    auto [end, error] = std::from_chars(number.begin(), number.end(), options.period);
    if (error != std::errc() || end != number.end() || !options.period)
      return fail("--event {}: behind the colon is how many events a sample stands for", s.event);
  }
  options.source = s.source == "perf"    ? sample::Source::Perf
                   : s.source == "timer" ? sample::Source::Timer
                                         : sample::Source::Any;
  options.unwind = s.unwind;
  options.walk.use = {.cfi = s.unwind == "auto" || s.unwind == "cfi",
                      .frame_pointers = s.unwind == "auto" || s.unwind == "fp",
                      .guesses = s.unwind == "auto" || s.unwind == "heuristic"};
  options.walk.confidence = static_cast<uint8_t>(std::lround(s.confidence * 100));
  options.verify = s.verify;
  options.measure = s.cost;
  return options;
}

}  // namespace

Result<int> sample(Words words) {
  bool done = false;
  TRY(Settings s, parse(words, done));
  if (done) return 0;
  TRY_VOID(store::check_writable(s.output));
  TRY(sample::Options options, sample_options(s, words));
  profile::Profile result;
  result.run.started = process::microseconds_now();
  result.run.command = command_of(s.run, words);
  options.write = [&](const sample::Outcome& outcome) -> Result<> {
    static std::unique_ptr<sample::Assembler> kept;  // never taken down: the process ends
    kept = std::make_unique<sample::Assembler>(result, outcome.by);
    sample::Assembler& assembler = *kept;
    for (const sample::Program& p : outcome.programs) assembler.add(p);
    assembler.finish();
    profile::note_sources(result);
    describe_run(result.run, s.keep_environment);
    result.run.complete = !outcome.cut_short;
    TRY_VOID(write_profile(result, s.output, outcome.weir));
    if (outcome.cut_short)
      return say("weir was killed; the program goes on without it, and what was sampled is in {}", s.output), Result<>();
    if (s.cost)
      say("a sample took {:.2f} µs in the program, besides what the kernel takes to interrupt it", outcome.cost * 1e6);
    if (s.run.quiet) return {};
    if (outcome.left_running)
      say("processes that outlive the program, and are sampled no longer: {} (weir sample --pid goes on)",
          outcome.left_running);
    if (outcome.not_followed)
      say("processes that ran unsampled: {}; the last one: {}", outcome.not_followed, outcome.why_not_followed);
    return print_summary(s.output);
  };
  TRY(int status, sample::run(options));
  process::end_as(status);
}

}  // namespace weir::cli
