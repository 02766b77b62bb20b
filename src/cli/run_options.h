// What the verbs that run a program have in common: their options, and what they say of the run.
#pragma once

#include <optional>

#include "cli/options.h"
#include "engine/engine.h"

namespace weir::cli {

struct RunOptions {
  std::vector<int> pids;  // running processes instead of a program,
  std::optional<double> seconds;
  size_t cache_mb = 0;
  std::string log_file;
  bool no_follow = false, quiet = false, verbose = false;
};

void add_run_options(CLI::App& app, RunOptions& options);

// Is there one thing to look at? From here on messages go where they should.
Result<> check_run_options(const RunOptions& options, const Words& words, std::string_view verb);

// Without a tool.
engine::Options engine_options(const RunOptions& options, const Words& words);

void say_ended(const engine::ProgramRun& run);
void say_stats(const engine::Stats& stats);
// The words of a guardian that has written what there is.
void say_cut_short(const engine::Outcome& outcome, const std::string& file);

}  // namespace weir::cli
