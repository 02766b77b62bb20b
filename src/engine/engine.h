// The dynamic driver: runs a program from the code cache, with the probes of a tool, and collects what it counted.
//
// One thread does everything: it spawns the program, or attaches to one, injects the runtime, serves requests from shared memory, follows
// children, and collects. It owns all that the target must not be trusted with.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "instrument/tool.h"
#include "profile/program_run.h"

namespace weir::engine {

struct Options {
  std::vector<std::string> command;  // the program and its arguments,
  std::vector<int> pids = {};        // … or running processes, which are let go in the end
  double seconds = 0;                // attached: for how long; 0: until a signal says so, or they end
  bool follow = true;                // children that execute another program
  size_t cache_limit = 0;            // of a program's code cache, in bytes; 0: none
  bool keep_addresses = false;       // images stay where the kernel puts them
  bool page_faults = false;          // are counted and timed, for tools that collect them (rt::FaultTable)
  std::function<std::unique_ptr<instrument::Tool>()> make_tool;
  std::string_view runtime_part = {};  // the tool's part of the runtime (rt/hooks.h), by name; empty: it has none
  // A thread of a program has ended, others go on: the tool has collected it.
  std::function<void(instrument::Tool& tool, const profile::LiveRun& run)> on_thread_end = {};
  // A program (a process, from exec to exec) has ended, or Weir leaves it behind.
  std::function<void(instrument::Tool& tool, const profile::LiveRun& run)> on_program_end = {};
  // All have: what they counted is written. When Weir is killed, its guardian does this.
  std::function<Result<>(const struct Outcome& outcome)> write = [](const auto&) { return Result<>(); };
  // … and told. What was written stays as it is from here on, whatever happens to Weir.
  std::function<Result<>(const struct Outcome& outcome)> tell = [](const auto&) { return Result<>(); };
};

struct Stats {
  uint64_t processes = 0, threads = 0, functions = 0, blocks = 0, instructions = 0;
  uint64_t code_bytes = 0, app_bytes = 0, not_supported = 0, flushed_units = 0, not_followed = 0, from_archive = 0,
           cache_flushes = 0;
  uint64_t requests = 0, misses = 0, slow_returns = 0, signals = 0;
  uint64_t translate_ns = 0;
  uint64_t lost_faults = 0;  // records of page faults that the kernel had no room for
  uint64_t peak_code = 0, peak_table = 0, peak_counters = 0;
};

struct Outcome {
  enum End {
    Ended,        // all processes have
    LeftRunning,  // some outlive the program; another Weir process, left behind, serves them on
    Behind,       // this is that process, and they have ended now
  } end = Ended;
  bool cut_short = false;      // Weir was killed,
  bool has_ended_any = false;  // … and so processes were ended
  pid_t weir = 0;              // the process that served the target
  Stats stats;
  // Processor time of the program and of the children that it waited for, in microseconds; none: it is not known.
  std::optional<uint64_t> user_time, system_time;
  std::string no_page_faults = {};  // why they were not to be had
};

// Returns the exit status.
Result<int> run(const Options& options);

}  // namespace weir::engine
