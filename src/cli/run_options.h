// What the verbs that run a program have in common: their options, and what they say of the run.
#pragma once

#include <optional>

#include "cli/options.h"
#include "engine/engine.h"
#include "profile/profile.h"

namespace weir::cli {

struct RunOptions {
  std::vector<int> pids;  // running processes instead of a program,
  std::optional<double> seconds;
  size_t cache_mb = 0;
  std::string log_file;
  bool no_follow = false, quiet = false, verbose = false;
};

void add_run_options(CLI::App& app, RunOptions& options);
void add_cache_option(CLI::App& app, RunOptions& options);  // for those with a code cache
// For those that write a profile.
void add_result_options(CLI::App& app, std::string& output, bool& keep_environment);

// Is there one thing to look at? From here on messages go where they should.
Result<> check_run_options(const RunOptions& options, const Words& words, std::string_view verb);

// What is looked at, as its command line says.
std::vector<std::string> command_of(const RunOptions& options, const Words& words);
// Where the profile goes, by -o or by the program's name.
Result<std::string> result_name(const std::string& output, const RunOptions& options, const Words& words);
// Writes the profile there. Where that fails it goes elsewhere, which is an error that says where; or it stays in memory, and the user is asked to
// make room. `run`: see store::write().
Result<> write_profile(const profile::Profile& profile, const std::string& file, pid_t run);
void describe_run(profile::Run& run, bool keep_environment);
// What `weir report FILE` shows, on stderr.
Result<> print_summary(const std::string& file, bool os_apart = false);

// Without a tool.
engine::Options engine_options(const RunOptions& options, const Words& words);

void say_ended(const profile::LiveRun& run);
void say_stats(const engine::Stats& stats);
// The words of a guardian that has written what there is.
void say_cut_short(const engine::Outcome& outcome, const std::string& file);

}  // namespace weir::cli
