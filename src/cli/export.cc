// weir export: a profile for other tools.

#include "report/export.h"

#include <sys/stat.h>

#include <chrono>

#include "cli/options.h"
#include "view/export_html.h"

namespace weir::cli {
namespace {

// How far it is, once it has taken a while, where a person waits.
class Progress {
 public:
  ~Progress() {
    if (told_ >= 0) put_message("\r\x1b[K");
  }
  void tell(double part) {
    int percent = static_cast<int>(100 * part);
    if (!is_terminal_ || percent == told_ || std::chrono::steady_clock::now() < begin_ + std::chrono::seconds(1)) return;
    told_ = percent;
    put_message(fmt::format("\rweir: {} %", percent));
  }

 private:
  const bool is_terminal_ = isatty(2);
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int told_ = -1;
};

// A profile takes a run to make again: no other file takes its place, whatever name it goes by.
Result<> refuse_as_output(const std::string& out, const std::string& profile) {
  struct stat to, from;
  bool are_there =
      (out == "-" ? fstat(STDOUT_FILENO, &to) : stat(out.c_str(), &to)) == 0 && stat(profile.c_str(), &from) == 0;
  if (are_there && to.st_dev == from.st_dev && to.st_ino == from.st_ino)
    return fail("-o {}: is the profile {} itself, which would be lost; name another file", out, profile);
  return {};
}

}  // namespace

Result<int> export_profile(const Words& words) {
  std::string file, format, out, before, thread, process;
  std::vector<std::string> source_map, map;
  std::optional<bool> waits;
  bool fold_inlined = false;
  std::vector<std::string> formats(std::begin(report::formats), std::end(report::formats));
  formats.push_back("html");
  CLI::App app{
      "Turns a profile into a file for another tool.\n\n"
      "  weir export a.weir --format html -o a.html                    the page of weir view, with its data, in one file\n"
      "  weir export a.weir --format callgrind -o callgrind.out.a      callgrind_annotate, KCachegrind\n"
      "  weir export a.weir --format pprof -o a.pb.gz                  go tool pprof, speedscope, Perfetto\n"
      "  weir export a.weir --format folded -o - | flamegraph.pl       flame graphs\n"
      "  weir export a.weir --format firefox -o a.json                 profiler.firefox.com\n"
      "  weir export a.weir --format svg -o river.svg                  the call graph, laid out by Graphviz's dot\n"
      "  weir export a.weir --format llvm -o a.prof                    clang -fprofile-sample-use=a.prof\n"
      "  weir export a.weir --format bolt -o a.fdata                   llvm-bolt -data a.fdata\n"};
  app.name("weir export");
  app.add_option("FILE", file, "a profile, exact or sampled")->required();
  app.add_option("--format", format, fmt::format("{}", fmt::join(formats, ", ")))
      ->required()
      ->check(CLI::IsMember(formats));
  app.add_option("-o,--output", out, "where to; -: standard output")->required()->type_name("OUT");
  app.add_option("--thread", thread, "only this thread (tid, index, or name)")->type_name("T");
  app.add_option("--process", process, "only this process (pid, index, or the name of its program)")->type_name("P");
  add_waits_option(app, waits);
  app.add_flag("--fold-inlined", fold_inlined, "inlined functions are part of those that they were inlined into");
  app.add_option("--diff", before, "html: an older profile to compare with")->type_name("OLD");
  app.add_option("--map", map,
                 "html, with --diff: this image, or function, of the profile before is that one now; may be repeated")
      ->type_name("OLD=NEW")
      ->allow_extra_args(false);
  app.add_option("--source-map", source_map, "html: OLD=NEW: source paths that begin with OLD are found at NEW")
      ->type_name("OLD=NEW");
  TRY(bool go_on, parse_options(app, words));
  if (!go_on) return 0;
  TRY_VOID(refuse_as_output(out, file));
  if (!map.empty() && before.empty()) return fail("--map is for comparisons: name the older profile, --diff OLD");
  if (!before.empty()) TRY_VOID(refuse_as_output(out, before));
  if (format == "html") {
    if (!thread.empty() || !process.empty())
      return fail("--format html: has all threads; --thread and --process are for other formats");
    view::Options options{file, before, map, {}, waits, fold_inlined};
    TRY(options.source_map, store::parse_source_map(source_map));
    std::optional<Progress> progress(std::in_place);
    TRY(std::string html, view::html_of(options, {}, [&](double part) { progress->tell(part); }));
    progress.reset();
    TRY_VOID(report::write_output(out, [&](const Sink& sink) { return sink(html), Result<>(); }));
    return 0;
  }
  if (!before.empty() || !source_map.empty() || !map.empty())
    return fail("--diff, --map and --source-map are for --format html");
  TRY(store::Reader reader, store::Reader::open(file));
  TRY_VOID(tell_bad_rows(reader));
  TRY_VOID(reader.add_waits(waits));
  if (!thread.empty() || !process.empty()) TRY_VOID(reader.select(thread, process));
  // (Compilers take counts of the functions that have code.)
  if (fold_inlined || format == "llvm" || format == "bolt") TRY_VOID(reader.fold_inlined(true));
  TRY_VOID(report::write_export(reader, format, out));
  return 0;
}

}  // namespace weir::cli
