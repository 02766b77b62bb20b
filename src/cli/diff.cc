// weir diff: two profiles, and what changed.

#include <filesystem>
#include <memory>

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

// "5", "5%", "5 %".
CLI::Validator percent_between(double least, double most) {
  auto check = [=](std::string& text) -> std::string {
    std::string number = text;
    if (number.ends_with('%')) number.pop_back();
    while (number.ends_with(' ')) number.pop_back();
    double percent = 0;
    if (!CLI::detail::lexical_cast(number, percent) || !(percent >= least && percent <= most))
      return fmt::format("{} is no percentage from {} to {}; say 5 or 5%", text, least, most);
    text = number;
    return "";
  };
  return CLI::Validator(check, "");
}

struct Files {
  std::vector<std::string> before, now;
};

// OLD NEW, or OLD… : NEW…; one name: that profile, and its older one; none: the last that has one.
Result<Files> files_of(const std::vector<std::string>& words) {
  Files files;
  auto colon = std::ranges::find(words, ":");
  if (colon != words.end()) {
    files.before.assign(words.begin(), colon);
    files.now.assign(colon + 1, words.end());
    if (files.before.empty() || files.now.empty() || std::ranges::find(files.now, ":") != files.now.end())
      return fail("name the profiles before, one colon, and those now: weir diff A1 A2 A3 : B1 B2 B3");
  } else if (words.size() > 2) {
    return fail("{} profiles: put a colon between those before and those now: weir diff A1 A2 A3 : B1 B2 B3", words.size());
  } else if (words.size() == 2) {
    files = {{words[0]}, {words[1]}};
  } else {
    std::string now = words.empty() ? "" : words[0];
    if (now.empty()) {
      TRY(now, last_with_old());
    }
    files = {{now + ".old"}, {now}};
  }
  return files;
}

// Readers that stay where they are.
Result<std::vector<std::unique_ptr<store::Reader>>> open_all(const std::vector<std::string>& files, bool fold_inlined) {
  std::vector<std::unique_ptr<store::Reader>> readers;
  for (const std::string& file : files) {
    TRY(store::Reader reader, store::Reader::open(file));
    TRY_VOID(reader.fold_inlined(fold_inlined));
    TRY_VOID(tell_bad_rows(reader));
    readers.push_back(std::make_unique<store::Reader>(std::move(reader)));
  }
  return readers;
}

report::Readers pointers(const std::vector<std::unique_ptr<store::Reader>>& readers) {
  report::Readers all;
  for (const auto& r : readers) all.push_back(r.get());
  return all;
}

}  // namespace

Result<int> diff(const Words& words) {
  std::string format = "text", colour = "auto", os_calls;
  std::vector<std::string> profiles;
  report::DiffOptions options;
  bool no_pager = false, fold_inlined = false;
  std::optional<bool> waits;
  CLI::App app{
      "Compares two profiles, or several of each side, function by function. The first line is the verdict. What became\n"
      "worse is listed apart. Functions and images that got another name are found by what is in them.\n\n"
      "  weir diff old.weir new.weir\n"
      "  weir diff                                   the last profile here, and the one before it (.old)\n"
      "  weir diff base.weir new.weir --threshold 2% exit status 1 when the code grew by more than 2 %, for CI\n"
      "  weir diff a1.weir a2.weir a3.weir : b1.weir b2.weir b3.weir\n"
      "                                              several runs a side: what is worse for certain, though runs vary\n"
      "  weir diff old.weir new.weir --format markdown > comment.md\n"
      "  weir diff old.weir new.weir --map libold.so=libnew.so\n\n"
      "weir view NEW --diff OLD shows the same in the graph and the flame graph."};
  app.name("weir diff");
  app.add_option("PROFILES", profiles, "OLD NEW, or OLD... : NEW...");
  app.add_option("--threshold", options.threshold,
                 "exit status 1 if the code of the program grew by more than this share of what it was: 5 or 5%; OS time, "
                 "which differs from run to run, does not count. Of two single sampled runs, if a function's share did")
      ->transform(percent_between(0, 1e6))
      ->type_name("PERCENT");
  app.add_flag("--per-function", options.per_function,
               "the threshold holds for each function, too, though the whole became no worse");
  app.add_option("--level", options.level,
                 "how certain a change must be that is measured with an error (samples, runs that vary)")
      ->transform(percent_between(50, 99.9999))
      ->type_name("PERCENT")
      ->default_str("99%");
  app.add_flag("--totals", options.totals,
               "judge the whole of two single sampled runs as well, by the error of sampling alone");
  app.add_option("--map", options.map, "this image, or function, of the run before is that one now; may be repeated")
      ->type_name("OLD=NEW")
      ->allow_extra_args(false);
  app.add_option("--limit", options.limit, "at most so many rows a list; 0: all")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 53))
      ->type_name("N");
  app.add_option("--filter", options.filter, "only names that match, as grep -E; the threshold holds for each of them")
      ->type_name("RE");
  app.add_option("--format", format, "text, markdown, json or csv")
      ->check(CLI::IsMember({"text", "markdown", "json", "csv"}))
      ->capture_default_str();
  app.add_option(
         "--os-calls", os_calls,
         "separate: OS calls are listed, too, as functions of their own, [read]; self: they are not; else as NEW was made")
      ->check(CLI::IsMember({"self", "separate"}));
  add_waits_option(app, waits);
  app.add_option("--color", colour, "auto, always or never")->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_flag("--fold-inlined", fold_inlined, "inlined functions are part of those that they were inlined into");
  app.add_flag("--no-pager", no_pager, "write to the terminal directly");
  TRY(bool go_on, parse_options(app, words));
  if (!go_on) return 0;
  TRY(Files files, files_of(profiles));
  TRY(auto before, open_all(files.before, fold_inlined));
  TRY(auto now, open_all(files.now, fold_inlined));
  for (auto* side : {&before, &now})
    for (auto& reader : *side) TRY_VOID(reader->add_waits(waits));
  TRY(options.os, os_time(*now.front(), os_calls));
  static const std::map<std::string, report::Format> formats = {{"text", report::Format::Text},
                                                                {"markdown", report::Format::Markdown},
                                                                {"json", report::Format::Json},
                                                                {"csv", report::Format::Csv}};
  report::Format as = formats.at(format);
  Screen screen(as == report::Format::Text && !no_pager);
  report::Output output(style_of_stdout(as, colour), [&](std::string_view text) { return screen.write(text); });
  TRY(bool beyond, report::show_diff(pointers(before), pointers(now), options, output));
  return beyond ? 1 : 0;
}

}  // namespace weir::cli
