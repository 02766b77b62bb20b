// weir diff: two profiles, and what changed.

#include <filesystem>

#include "cli/options.h"
#include "cli/terminal.h"
#include "report/diff.h"

namespace weir::cli {
namespace {

// The profile here that was written last, of those that have an older one beside them.
Result<std::string> last_with_old() {
  namespace fs = std::filesystem;
  std::error_code error;
  std::string newest;
  fs::file_time_type newest_time;
  for (const fs::directory_entry& entry : fs::directory_iterator(".", error)) {
    const fs::path& path = entry.path();
    if (path.extension() != ".weir" || !fs::exists(path.string() + ".old", error)) continue;
    auto time = fs::last_write_time(path, error);
    if (error || (!newest.empty() && time <= newest_time)) continue;
    newest = path.filename();
    newest_time = time;
  }
  if (newest.empty()) return fail("no profile here has an older one (.weir.old) beside it; name two: weir diff OLD NEW");
  return newest;
}

}  // namespace

Result<int> diff(const Words& words) {
  std::string before, now, format = "text", colour = "auto", os_calls;
  report::DiffOptions options;
  bool no_pager = false;
  CLI::App app{
      "Compares two profiles, function by function, matched by name. What became worse is listed apart.\n\n"
      "  weir diff old.weir new.weir\n"
      "  weir diff                                  the last profile here, and the one before it (.old)\n"
      "  weir diff base.weir new.weir --threshold 2 exit status 1 when code grew by more than 2 %, for CI\n\n"
      "weir view NEW --diff OLD shows the same in the graph and the flame graph."};
  app.name("weir diff");
  app.add_option("OLD", before, "the profile before");
  app.add_option("NEW", now, "the profile now");
  app.add_option(
         "--threshold", options.threshold,
         "exit status 1 if the code of the program, or of one function (with --filter: that matches), grew by more than "
         "this share (in percent) of the code before; OS time, which differs from run to run, does not count")
      ->check(number_between(0, 1e6))
      ->type_name("PERCENT");
  app.add_option("--limit", options.limit, "at most so many rows a list; 0: all")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 53))
      ->type_name("N");
  app.add_option("--filter", options.filter, "only names that match, as grep -E")->type_name("RE");
  app.add_option("--format", format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  app.add_option("--os-calls", os_calls,
                 "self: OS time is the calling function's; separate: functions of their own, [read]; else as NEW was made")
      ->check(CLI::IsMember({"self", "separate"}));
  app.add_option("--color", colour, "auto, always or never")->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("--no-pager", no_pager, "write to the terminal directly");
  TRY(bool go_on, parse_options(app, words));
  if (!go_on) return 0;
  if (before.empty()) {
    TRY(now, last_with_old());
    before = now + ".old";
  } else if (now.empty()) {  // one name: that profile, and its older one
    now = before;
    before = now + ".old";
  }
  TRY(store::Reader old_reader, store::Reader::open(before));
  TRY(store::Reader new_reader, store::Reader::open(now));
  TRY_VOID(tell_bad_rows(old_reader));
  TRY_VOID(tell_bad_rows(new_reader));
  TRY(options.os, os_time(new_reader, os_calls));
  auto as = format == "json" ? report::Format::Json : format == "csv" ? report::Format::Csv : report::Format::Text;
  Screen screen(as == report::Format::Text && !no_pager);
  report::Output output(style_of_stdout(as, colour), [&](std::string_view text) { return screen.write(text); });
  TRY(bool beyond, report::show_diff(old_reader, new_reader, options, output));
  return beyond ? 1 : 0;
}

}  // namespace weir::cli
