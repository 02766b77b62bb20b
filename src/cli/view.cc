// weir view: a profile as a page in the browser.

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include <thread>

#include "cli/options.h"
#include "view/server.h"

namespace weir::cli {
namespace {

// In the user's browser, where there is a screen. Whether that works is the browser's affair: the address is on the terminal.
void open_in_browser(const std::string& address) {
  if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) return;
  const char* words[] = {"xdg-open", address.c_str(), nullptr};
  pid_t child;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  for (int fd : {0, 1, 2}) posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_RDWR, 0);
  // Signals are as any program has them, not as the server does; Ctrl-C ends the server, not the browser.
  posix_spawnattr_t own;
  posix_spawnattr_init(&own);
  posix_spawnattr_setflags(&own, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  sigset_t none, changed;
  sigemptyset(&none);
  sigemptyset(&changed);
  for (int number : {SIGINT, SIGTERM, SIGPIPE}) sigaddset(&changed, number);
  posix_spawnattr_setsigmask(&own, &none);
  posix_spawnattr_setsigdefault(&own, &changed);
  posix_spawnp(&child, words[0], &quiet, &own, const_cast<char**>(words), environ);
  posix_spawnattr_destroy(&own);
  posix_spawn_file_actions_destroy(&quiet);
}

}  // namespace

Result<int> view_profile(const Words& words) {
  view::Options options;
  std::vector<std::string> source_map;
  uint16_t port = 0;
  bool no_open = false;
  CLI::App app{
      "Shows a profile as a page: functions, call graph, flame graph, source. It is served on this machine only, at an\n"
      "address with a secret in it, until Ctrl-C.\n\n"
      "  weir view a.weir                     opens the browser\n"
      "  weir view a.weir --diff a.weir.old   what changed since\n"
      "  weir view a.weir --no-open --port 8080      and elsewhere: ssh -L 8080:127.0.0.1:8080 HOST\n\n"
      "weir export a.weir --format html -o a.html writes the same page with its data as one file."};
  app.name("weir view");
  app.add_option("FILE", options.file, "a profile, as weir profile writes it")->required();
  app.add_option("--port", port, "listen there; without it, at 8347, or at any port that is free")
      ->check(CLI::Range(1, 65535))
      ->type_name("N");
  app.add_flag("--no-open", no_open, "do not open a browser, print the address only");
  app.add_flag("--fold-inlined", options.fold_inlined, "inlined functions are part of those that they were inlined into");
  app.add_option("--diff", options.before, "an older profile to compare with")->type_name("OLD");
  app.add_option("--map", options.map,
                 "with --diff: this image, or function, of the profile before is that one now; may be repeated")
      ->type_name("OLD=NEW")
      ->allow_extra_args(false);
  app.add_option("--source-map", source_map, "OLD=NEW: source paths that begin with OLD are found at NEW")
      ->type_name("OLD=NEW");
  add_waits_option(app, options.with_waits);
  TRY(bool go_on, parse_options(app, words));
  if (!go_on) return 0;
  if (!options.map.empty() && options.before.empty())
    return fail("--map is for comparisons: name the older profile, --diff OLD");
  TRY(options.source_map, store::parse_source_map(source_map));
  TRY(std::unique_ptr<view::Queries> queries, view::Queries::open(options));
  std::jthread ahead;
  auto started = [&](const std::string& address) {
    // While the browser starts, what it will ask for first is read.
    ahead =
        std::jthread([&] { (void)queries->answer("summary", {}), (void)queries->answer("functions", {{"limit", "1"}}); });
    fmt::print("{}\n", address);
    fflush(stdout);
    say("{} is shown there until Ctrl-C", options.file);
    if (!no_open) open_in_browser(address);
  };
  TRY_VOID(view::serve(*queries, {port, started}));
  return 0;
}

}  // namespace weir::cli
