// The options of a verb, by CLI11.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <optional>

#include "cli/verbs.h"

namespace weir::cli {

// False: help was asked for, and given. `app` is named after the verb: "weir run".
inline Result<bool> parse_options(CLI::App& app, const Words& words) {
  std::vector<std::string> reversed(words.options.rbegin(), words.options.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& e) {
    return fail("{}; see: {} --help", e.what(), app.get_name());
  }
  return true;
}

// Running processes instead of a program.
struct Attach {
  std::vector<int> pids;
  std::optional<double> seconds;
};

inline void add_attach_options(CLI::App& app, Attach& attach) {
  app.add_option("-p,--pid", attach.pids, "attach to these running processes, and let go of them in the end")
      ->delimiter(',')
      ->type_name("N[,N…]");
  app.add_option("--seconds", attach.seconds, "with --pid: let go after that long (default: at Ctrl-C, or when they end)")
      ->type_name("S");
}

inline void add_cache_option(CLI::App& app, size_t& megabytes) {
  app.add_option(
         "--cache-mb", megabytes,
         "megabytes of translated code to keep for a program; when they are full it is flushed (default: all is kept)")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
}

// The words of a guardian that has written what there is.
inline void say_cut_short(const std::string& file) {
  say("weir was killed, and so the program was ended{}", file.empty() ? "" : "; what it did until then is in " + file);
}

// Is there one thing to look at?
inline Result<> check_attach(const Attach& attach, const Words& words) {
  bool positive = std::ranges::all_of(attach.pids, [](int pid) { return pid > 0; });
  if (attach.pids.empty() && attach.seconds) return fail("--seconds needs --pid");
  if (!positive)
    return fail("--pid takes the numbers of processes: --pid 1234, or --pid \"$(pidof NAME)\" while NAME runs");
  if (attach.seconds && !(*attach.seconds > 0)) return fail("--seconds takes a positive number");
  if (!attach.pids.empty() && !words.program.empty())
    return fail("{}: a program and --pid do not go together", words.program[0]);
  return {};
}

}  // namespace weir::cli
