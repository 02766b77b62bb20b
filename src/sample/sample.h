// The sampling driver: starts a program, or attaches to running ones, has their threads interrupted at a rate, and collects the call
// paths that they were in.
//
// It uses no translation: programs run natively. A handler in the target (rt/sample.h) restores call sequences; Weir tells it what
// code is mapped, follows new threads, processes and programs, and in the end leaves everything as it was.
#pragma once

#include <functional>

#include "base/result.h"
#include "profile/profile.h"
#include "sample/collected.h"

namespace weir::sample {

enum class Source { Any, Perf, Timer };

struct Options {
  std::vector<std::string> command;  // the program and its arguments,
  std::vector<int> pids = {};        // … or running processes, which are let go in the end
  double seconds = 0;                // attached: for how long; 0: until a signal says so, or they end
  bool follow = true;                // children that execute another program
  std::string event = "cpu";         // "cpu", "wall", or an event of perf: see event_names()
  double rate = 1000;                // of time: samples a second
  uint64_t period = 0;               // of events: how many a sample stands for; 0: a fitting number
  Source source = Source::Any;
  rt::Options walk = {};
  std::string unwind = "auto";  // walk, in words
  bool verify = false;
  bool measure = false;  // what samples take
  // All have ended, or were let go. When Weir is killed, its guardian does this.
  std::function<Result<>(const struct Outcome& outcome)> write = [](const auto&) { return Result<>(); };
};

struct Outcome {
  profile::SampledBy by;
  std::vector<Program> programs;
  double cost = 0;               // measured: what a sample took in the program, on average, in seconds
  uint32_t left_running = 0;     // processes that outlive the program
  uint32_t not_followed = 0;     // processes that could not be entered,
  std::string why_not_followed;  // … the last of them
  bool cut_short = false;        // Weir was killed
  pid_t weir = 0;
};

// Returns the exit status.
Result<int> run(const Options& options);

std::vector<std::string> event_names();

}  // namespace weir::sample
